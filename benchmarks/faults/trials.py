"""What a fault is, and the count of its trials."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np


class FaultFinding(Exception):
    """What must not be: other bits, a wrong answer, something half-written, an error without words."""


Trial = Callable[[np.random.Generator], str]


@dataclass(frozen=True)
class Fault:
    """A thing that goes wrong, on purpose and at random; a trial says in a few words how it was survived."""

    name: str
    title: str
    times: int  # trials of a full run
    begin: Callable[[Path], AbstractContextManager[Trial]]  # prepare in a folder; give what one trial does; clean up


@dataclass
class FaultTally:
    """The trials of one fault."""

    fault: Fault
    ends: Counter[str] = field(default_factory=Counter)
    findings: list[str] = field(default_factory=list)

    @property
    def trials(self) -> int:
        return self.ends.total() + len(self.findings)

    def run(self, folder: Path, seed: int, times: int, seconds: float = math.inf) -> None:
        """Make so many trials, each from a seed of its own, or fewer where the time is over."""
        end = time.monotonic() + seconds
        with self.fault.begin(folder) as trial:
            for number in range(times):
                if time.monotonic() > end:
                    return
                try:
                    self.ends[trial(np.random.default_rng([seed, number]))] += 1
                except FaultFinding as error:
                    self.findings.append(f"trial {number} of seed {seed}: {error}")
