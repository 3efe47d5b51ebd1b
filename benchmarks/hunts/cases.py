"""A case of a hunt: its random numbers, what it counted and what it found. Its number alone makes it again."""

from __future__ import annotations

import signal
import time
import traceback
import warnings
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numba.core.compiler_lock import global_compiler_lock

CASES_PER_SEED = 1_000_000


WAITING = 60.0  # times its seconds that a case may wait for a processor or hang, by the clock on the wall


class CaseTimeoutError(BaseException):
    """A case took longer than it may; no `except Exception` of the code under test may swallow it."""


@dataclass(frozen=True)
class Finding:
    """Something that should not be: what, where, and how to see it again."""

    hunt: str
    case: int
    what: str  # a few words, the same for findings of one kind
    model: str
    detail: str

    @property
    def replay(self) -> str:
        return f"python -m benchmarks hunt --only {self.hunt} --case {self.case}"


@dataclass
class HuntCase:
    """One case: `rng` makes its problem; a hunt counts what it tried and notes what it found."""

    hunt: str
    number: int
    counts: Counter[str] = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)  # what a replay prints
    rng: np.random.Generator = field(init=False)

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng([zlib.crc32(self.hunt.encode()), self.number])

    def count(self, what: str, n: int = 1) -> None:
        self.counts[what] += n

    def note(self, line: Any) -> None:
        self.notes.append(str(line))

    def find(self, what: str, model: Any, detail: str) -> None:
        words = " ".join(str(model).split())
        self.findings.append(Finding(self.hunt, self.number, what, words, detail))


@dataclass(frozen=True)
class Hunt:
    """A hunt: `run` tries one case, which may take `seconds` of the processor."""

    name: str
    title: str
    checked: str  # what is compared with what, in a sentence
    run: Callable[[HuntCase], None]
    seconds: float = 20.0


@dataclass
class HuntTally:
    """What a hunt has tried so far."""

    hunt: Hunt
    cases: int = 0
    too_slow: int = 0
    seconds: float = 0.0
    counts: Counter[str] = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)

    def add(self, case: HuntCase, seconds: float, finished: bool) -> None:
        self.cases += 1
        self.too_slow += not finished
        self.seconds += seconds
        self.counts += case.counts
        self.findings += case.findings


def run_case(hunt: Hunt, number: int, limited: bool = True) -> tuple[HuntCase, float, bool]:
    """Run one case: the case, its seconds of the processor, and whether it ended in time."""
    case, start, finished = HuntCase(hunt.name, number), time.process_time(), True
    known: list[int] = []  # how many findings there were when the time was up
    try:
        with (
            warnings.catch_warnings(),
            np.errstate(all="ignore"),
            _limit(hunt.seconds if limited else 0.0, lambda: known.append(len(case.findings))),
        ):
            warnings.simplefilter("ignore")
            hunt.run(case)
    except CaseTimeoutError:
        finished = False
    except Exception as error:  # neither certifit's nor a peer's: one broken case must not end the hunt
        case.find("the hunt itself failed", hunt.name, f"{type(error).__name__}: {error}")
        case.note(traceback.format_exc())
    # A compiled function in which the time was up may turn that into an error of its own: nobody's defect.
    del case.findings[(known or [len(case.findings)])[0] :]
    return case, time.process_time() - start, finished and not known


@contextmanager
def _limit(seconds: float, note: Callable[[], None]) -> Iterator[None]:
    """Raise CaseTimeoutError in this block after so many seconds of the processor; 0: no limit. Main thread only.

    `note` is called just before.
    """
    start, latest = time.process_time(), time.monotonic() + WAITING * seconds

    def stop(*_: Any) -> None:
        left = start + seconds - time.process_time()
        if left > 0 and time.monotonic() < latest:
            # Other programs had the processor: what a hunt tries must not depend on them.
            signal.setitimer(signal.ITIMER_REAL, max(left, 0.05))
            return
        if global_compiler_lock.is_locked():
            # A function whose compilation is broken off never runs again in this process: wait for its end.
            signal.setitimer(signal.ITIMER_REAL, 0.05)
            return
        note()
        raise CaseTimeoutError

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def run_hunts(
    hunts: Iterable[Hunt], seed: int, minutes: float, most: int = CASES_PER_SEED, say: Callable[[str], None] = print
) -> list[HuntTally]:
    """Run cases of all hunts in turn, each with an equal share of the processor's time, until it is used up."""
    tallies = [HuntTally(hunt) for hunt in hunts]
    start, said = time.process_time(), time.perf_counter()
    while time.process_time() - start < 60 * minutes:
        waiting = [t for t in tallies if t.cases < most]
        if not waiting:
            break
        tally = min(waiting, key=lambda t: t.seconds)
        tally.add(*run_case(tally.hunt, seed * CASES_PER_SEED + tally.cases))
        if time.perf_counter() - said > 15:
            said = time.perf_counter()
            words = ", ".join(f"{t.hunt.name} {t.cases} ({len(t.findings)})" for t in tallies)
            say(f"{(time.process_time() - start) / 60:.1f} min; cases (findings): {words}")
    return tallies
