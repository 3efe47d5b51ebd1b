"""Write docs/evidence/faults.md from what was tried so far: every run adds to benchmarks/results/faults.json."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.faults.trials import Fault, FaultTally
from benchmarks.hunts.page import code_at_hand
from benchmarks.reporting import RESULTS, Table, machine

RECORD = RESULTS / "faults.json"
PAGE = Path(__file__).parents[2] / "docs" / "evidence" / "faults.md"
OPENING = """# Faults tried

Programs are killed, workers and schedulers vanish, disks fill up, bits flip, and files come from strangers. Each line
is a fault that was made on purpose, at random moments and places, so many times; what must not be is other bits than
those of a fit in one piece, a wrong answer without a word, something half-written, or an error that is no sentence.

    python -m benchmarks faults --only flipped_bits --write    # tries one, adds it to the record and writes this page
    python -m benchmarks faults --minutes 30                   # tries all, none for longer than that

"""


def add_run(tally: FaultTally, seed: int, path: Path = RECORD) -> None:
    """Add the trials of a fault to the record; those of the same seed, made before, give way."""
    record = read_record(path)
    run = {
        "seed": seed, "trials": tally.trials, "ends": dict(tally.ends), "findings": tally.findings,
        "code": code_at_hand(), "date": machine()["date"][:10],
    }  # fmt: skip
    others = [one for one in record.get(tally.fault.name, []) if one["seed"] != seed]
    record[tally.fault.name] = [*others, run]
    path.write_text(json.dumps(record, indent=1, sort_keys=True) + "\n")


def read_record(path: Path = RECORD) -> dict[str, list[dict[str, Any]]]:
    return json.loads(path.read_text()) if path.exists() else {}


def write_page(faults: Mapping[str, Fault], path: Path = PAGE, record: Path = RECORD) -> None:
    """Write the page from the record."""
    runs = read_record(record)
    rows, findings = [], []
    for name, fault in faults.items():
        done = runs.get(name, [])
        ends = sum((Counter(run["ends"]) for run in done), Counter())
        trials, bad = sum(run["trials"] for run in done), sum(len(run["findings"]) for run in done)
        rows.append([f"`{name}`: {fault.title}", f"{fault.times:,}", f"{trials:,}", str(bad), _in_words(ends),
                     ", ".join(sorted({run["date"] for run in done})),
                     ", ".join(sorted({run["code"] for run in done}))])  # fmt: skip
        findings += [f"- `{name}`: {finding}" for run in done for finding in run["findings"][:5]]
    head = ("fault", "trials of a full run", "made", "not survived", "how the others ended", "when", "code")
    told = "\n## Not survived\n\n" + "\n".join(findings) + "\n" if findings else ""
    path.write_text(OPENING + Table("What was tried", head, rows).markdown() + told)


def _in_words(ends: Counter[str]) -> str:
    return "; ".join(f"{end}: {times:,}" for end, times in sorted(ends.items(), key=lambda one: (-one[1], one[0])))


def table(tallies: Sequence[FaultTally]) -> Table:
    """What was tried in this run."""
    rows = [
        [tally.fault.title, str(tally.trials), str(len(tally.findings)),
         "; ".join(f"{end}: {times}" for end, times in tally.ends.most_common())]
        for tally in tallies
    ]  # fmt: skip
    return Table("Faults tried", ("fault", "trials", "not survived", "how the others ended"), rows)
