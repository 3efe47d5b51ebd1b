"""Write docs/evidence/what_was_tried.md from the runs on record: every run adds to benchmarks/results/hunts.json."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.hunts.cases import Finding, Hunt, HuntTally
from benchmarks.reporting import RESULTS, Table, machine

RECORD = RESULTS / "hunts.json"
PAGE = Path(__file__).parents[2] / "docs" / "evidence" / "what_was_tried.md"
OPENING = """# What was tried

Certificates are only worth something if nobody finds one that is false. The standing hunts look for such, and for
honest fits that are refused and fitted numbers that nobody watches: random tables, settings and damage, held
against linear programs, enumeration, 40-digit arithmetic, scikit-learn and statsmodels.

    python -m benchmarks hunt --minutes 30 --write    # runs them all and writes this page
    python -m benchmarks hunt --only honest_fits --most 10000 --write    # one of them; the others stay as they are
    python -m benchmarks hunt --only wrong_models --case 17    # one case again, with all that it saw

A hunt that finds nothing proves nothing; the numbers below say how hard it looked. Tables are small (up to 200 rows
and 12 columns), so nothing here speaks of what only large ones show.
A wrong model that holds is one whose objective lies within the tolerance asked for, which the hunt verifies.
A finding may be the hunt's own mistake; it stays until the case is run again.
"""


def tables(tallies: Sequence[HuntTally]) -> list[Table]:
    """One table for each hunt: what it counted, and its findings by kind."""
    return [_table(tally.hunt, [_run(tally, 0, "")]) for tally in tallies]


def add_runs(tallies: Sequence[HuntTally], seed: int, code: str, anew: bool = False, path: Path = RECORD) -> None:
    """Add runs to the record; those of the same hunt and seed give way, and with `anew` all of the hunt."""
    record = read_record(path)
    for tally in tallies:
        others = [run for run in record.get(tally.hunt.name, []) if run["seed"] != seed and not anew]
        record[tally.hunt.name] = [*others, _run(tally, seed, code)]
    path.write_text(json.dumps(record, indent=1, sort_keys=True) + "\n")


def read_record(path: Path = RECORD) -> dict[str, list[dict[str, Any]]]:
    return json.loads(path.read_text()) if path.exists() else {}


def write_page(hunts: Mapping[str, Hunt], path: Path = PAGE, record: Path = RECORD) -> None:
    """Write the page from the record: one table for each hunt, of all its runs."""
    runs = read_record(record)
    done = {name: runs[name] for name in hunts if runs.get(name)}
    sections = [_table(hunts[name], found).markdown() for name, found in done.items()]
    lines = [
        f"- {name}, {what}: `{replay}`"
        for name, found in done.items()
        for run in found
        for what, replay in run["replays"]
    ]
    findings = "\n## Findings to see again\n\n" + "\n".join(lines) + "\n" if lines else ""
    path.write_text("\n".join([OPENING, *sections]) + findings)


def _run(tally: HuntTally, seed: int, code: str) -> dict[str, Any]:
    """A run as it stands in the record."""
    return {
        "seed": seed, "code": code, "date": machine()["date"][:10], "cases": tally.cases, "too_slow": tally.too_slow,
        "minutes": round(tally.seconds / 60, 1), "counts": dict(tally.counts),
        "found": dict(Counter(finding.what for finding in tally.findings)),
        "replays": [[finding.what, finding.replay] for finding in _first_of_each(tally)],
    }  # fmt: skip


def _table(hunt: Hunt, runs: Sequence[dict[str, Any]]) -> Table:
    counts, found = (sum((Counter(run[name]) for run in runs), Counter()) for name in ("counts", "found"))
    rows = [["cases", f"{sum(run['cases'] for run in runs):,}"]]
    rows += [[what, f"{n:,}"] for what, n in sorted(counts.items())]
    too_slow = sum(run["too_slow"] for run in runs)
    if too_slow:
        rows.append([f"cases given up after {hunt.seconds:g} s", f"{too_slow:,}"])
    rows += [[f"**found: {what}**", f"**{n:,}**"] for what, n in sorted(found.items())] or [["found", "nothing"]]
    seeds = "; ".join(
        f"seed {run['seed']}, {run['minutes']} minutes, {run['code']}, {run['date']}" for run in runs if run["code"]
    )
    return Table(f"{hunt.title}: {hunt.checked}", ["what", "how often"], rows, seeds and f"{seeds}.")


def _first_of_each(tally: HuntTally) -> list[Finding]:
    return list({(f.what, f.model.partition("(")[0]): f for f in reversed(tally.findings)}.values())


def code_at_hand() -> str:
    """The commit whose code a run starts with, and whether there are changes to it."""
    root, asked = PAGE.parents[2], {"capture_output": True, "text": True, "check": False}
    found = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=root, **asked)
    changed = subprocess.run(
        ["git", "status", "--porcelain", "src", "benchmarks", ":!benchmarks/results"], cwd=root, **asked
    )
    return f"commit {found.stdout.strip() or 'unknown'}{' with changes' if changed.stdout.strip() else ''}"
