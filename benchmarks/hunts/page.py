"""The page of the documentation that says what was tried, how often, and what was found."""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from benchmarks.hunts.cases import Finding, HuntTally
from benchmarks.reporting import Report, Table

PAGE = Path(__file__).parents[2] / "docs" / "evidence" / "what_was_tried.md"
OPENING = """# What was tried

Certificates are only worth something if nobody finds one that is false. The standing hunts look for such, and for
honest fits that are refused and fitted numbers that nobody watches: random tables, settings and damage, held
against linear programs, enumeration, 40-digit arithmetic, scikit-learn and statsmodels.

    python -m benchmarks hunt --minutes 30 --write    # runs them all and writes this page
    python -m benchmarks hunt --only wrong_models --case 17    # one case again, with all that it saw

A hunt that finds nothing proves nothing; the numbers below say how hard it looked. Tables are small (up to 200 rows
and 12 columns), so nothing here speaks of what only large ones show.
A wrong model that holds is one whose objective lies within the tolerance asked for, which the hunt verifies.
"""


def tables(tallies: Sequence[HuntTally]) -> list[Table]:
    """One table for each hunt: what it counted, and its findings by kind."""
    return [_table(tally) for tally in tallies]


def _table(tally: HuntTally) -> Table:
    found = Counter(finding.what for finding in tally.findings)
    rows = [["cases", str(tally.cases)], *([what, f"{n}"] for what, n in sorted(tally.counts.items()))]
    if tally.too_slow:
        rows.append([f"cases given up after {tally.hunt.seconds:g} s", str(tally.too_slow)])
    rows += [[f"**found: {what}**", f"**{n}**"] for what, n in sorted(found.items())] or [["found", "nothing"]]
    note = f"{tally.seconds / 60:.1f} minutes."
    return Table(f"{tally.hunt.title}: {tally.hunt.checked}", ["what", "how often"], rows, note)


def write_page(tallies: Sequence[HuntTally], seed: int, code: str, path: Path = PAGE) -> None:
    """Write the page anew, with the machine, the versions and how each finding is seen again."""
    minutes = sum(tally.seconds for tally in tallies) / 60
    report = Report(f"seed {seed}, {minutes:.0f} minutes, {code}", tables(tallies), {})
    lines = [f"- {f.what}: `{f.replay}`" for tally in tallies for f in _first_of_each(tally)]
    findings = "\n## Findings to see again\n\n" + "\n".join(lines) + "\n" if lines else ""
    path.write_text(f"{OPENING}\n{report.markdown('The last run').replace('### ', '## ', 1)}{findings}")


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
