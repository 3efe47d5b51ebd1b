"""`python -m benchmarks faults`: try faults, print how they were survived, and what was found."""

from __future__ import annotations

import argparse
import math
import signal
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.faults.page import add_run, table, write_page
from benchmarks.faults.trials import Fault, FaultTally
from benchmarks.reporting import say


def all_faults() -> dict[str, Fault]:
    """Every fault by its name."""
    from benchmarks.faults.checkpoint_files import FLIPPED_CHECKPOINTS, HOSTILE_CHECKPOINTS
    from benchmarks.faults.clusters import LOST_SCHEDULERS, LOST_WORKERS
    from benchmarks.faults.data_files import HOSTILE_TABLES
    from benchmarks.faults.killed_programs import KILLED_FITS, KILLED_SAVES
    from benchmarks.faults.model_files import FLIPPED_BITS, FULL_DISKS, HOSTILE_MODELS

    faults = (
        KILLED_FITS, KILLED_SAVES, FLIPPED_BITS, HOSTILE_MODELS, FLIPPED_CHECKPOINTS, HOSTILE_CHECKPOINTS, FULL_DISKS,
        HOSTILE_TABLES, LOST_WORKERS, LOST_SCHEDULERS,
    )  # fmt: skip
    return {fault.name: fault for fault in faults}


def main(arguments: Sequence[str]) -> int:
    """Return 1 where anything was found, else 0."""
    faults = all_faults()
    parser = argparse.ArgumentParser(prog="python -m benchmarks faults", description=__doc__)
    parser.add_argument("--only", action="append", choices=list(faults), metavar="NAME",
                        help=f"this fault only; one of {', '.join(faults)}")  # fmt: skip
    parser.add_argument("--times", type=int, metavar="N", help="trials of each fault (by default as many as listed)")
    parser.add_argument("--seed", type=int, default=0, metavar="S")
    parser.add_argument("--minutes", type=float, metavar="M", help="of each fault, at most")
    parser.add_argument(
        "--write", action="store_true", help="add the trials to the record and write docs/evidence/faults.md"
    )
    asked = parser.parse_args(arguments)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # a file that grows too large is then an error, not the end
    tallies = []
    for name in asked.only or faults:
        tally = FaultTally(faults[name])
        say(f"{tally.fault.title} ...")
        with tempfile.TemporaryDirectory() as folder:
            seconds = math.inf if asked.minutes is None else 60 * asked.minutes
            tally.run(Path(folder), asked.seed, asked.times or tally.fault.times, seconds)
        tallies.append(tally)
        if asked.write:
            add_run(tally, asked.seed)
            write_page(faults)
    print(table(tallies).markdown())
    for tally in tallies:
        print("\n".join(f"FOUND {tally.fault.name}: {finding}" for finding in tally.findings[:10]))
    return int(any(tally.findings for tally in tallies))
