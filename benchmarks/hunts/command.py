"""`python -m benchmarks hunt`: run hunts for some minutes, print what was tried and found, or replay one case."""

from __future__ import annotations

import argparse
import os
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from benchmarks.hunts.cases import CASES_PER_SEED, Finding, Hunt, HuntTally, run_case, run_hunts
from benchmarks.hunts.page import PAGE, add_runs, code_at_hand, tables, write_page
from benchmarks.reporting import say


def all_hunts() -> dict[str, Hunt]:
    """Every hunt by its name."""
    from benchmarks.hunts.brute_force import BRUTE_FORCE
    from benchmarks.hunts.foreign_boosters import FOREIGN_BOOSTERS
    from benchmarks.hunts.foreign_verdicts import FOREIGN_VERDICTS
    from benchmarks.hunts.forty_digits import FORTY_DIGITS
    from benchmarks.hunts.honest_fits import HONEST_FITS
    from benchmarks.hunts.tampered_attributes import TAMPERED_ATTRIBUTES
    from benchmarks.hunts.wrong_models import WRONG_MODELS

    hunts = (
        WRONG_MODELS,
        TAMPERED_ATTRIBUTES,
        HONEST_FITS,
        BRUTE_FORCE,
        FORTY_DIGITS,
        FOREIGN_VERDICTS,
        FOREIGN_BOOSTERS,
    )
    return {hunt.name: hunt for hunt in hunts}


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    hunts = all_hunts()
    parser = argparse.ArgumentParser(prog="python -m benchmarks hunt", description=__doc__)
    parser.add_argument(
        "--minutes", type=float, default=30.0, metavar="M", help="of the processor, for all hunts together (30)"
    )
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="the cases tried are S million and on (0)")
    parser.add_argument("--only", action="append", choices=list(hunts), metavar="NAME",
                        help=f"this hunt only; one of {', '.join(hunts)}")  # fmt: skip
    parser.add_argument("--most", type=int, default=CASES_PER_SEED, metavar="N", help="most cases of each hunt")
    parser.add_argument("--case", type=int, metavar="NUMBER", help="replay this case of the hunt that --only names")
    parser.add_argument(
        "--write", action="store_true", help="add the run to the record and write docs/evidence/what_was_tried.md"
    )
    parser.add_argument("--anew", action="store_true", help="with --write: forget the earlier runs of these hunts")
    parser.add_argument("--page", type=Path, default=PAGE, metavar="FILE", help="where --write writes")
    asked = parser.parse_args(arguments)
    if asked.case is not None and (asked.only is None or len(asked.only) != 1):
        parser.error("--case needs --only NAME, once: cases of different hunts have the same numbers")
    return asked


def main(arguments: Sequence[str]) -> int:
    """Return 1 where anything was found, else 0."""
    asked, hunts = parse(arguments), all_hunts()
    chosen = [hunts[name] for name in asked.only or hunts]
    if asked.case is not None:
        return replay(chosen[0], asked.case)
    code = code_at_hand()  # before the run: others may commit meanwhile
    os.nice(5)  # it is in no hurry
    tallies = run_hunts(chosen, asked.seed, asked.minutes, asked.most, say)
    print("\n".join(table.markdown() for table in tables(tallies)))
    print(listing(tallies))
    if asked.write:
        add_runs(tallies, asked.seed, code, asked.anew)
        write_page(hunts, asked.page)
        say(f"saved {asked.page}")
    return int(any(tally.findings for tally in tallies))


def replay(hunt: Hunt, number: int) -> int:
    """Run one case again and print all that it noted."""
    case, seconds, _ = run_case(hunt, number, limited=False)
    print("\n".join(case.notes))
    print(f"\n{hunt.name} {number}: {seconds:.1f} s; {dict(case.counts)}")
    for finding in case.findings:
        print(f"FOUND {finding.what}: {finding.model}\n      {finding.detail}")
    return int(bool(case.findings))


def listing(tallies: Sequence[HuntTally], each: int = 3) -> str:
    """Findings, those of one kind and model together, and how to see the first few of them again."""
    groups: dict[tuple[str, str], list[Finding]] = defaultdict(list)
    for finding in (finding for tally in tallies for finding in tally.findings):
        groups[finding.what, finding.model.partition("(")[0]].append(finding)
    lines = []
    for (what, model), found in sorted(groups.items()):
        lines.append(f"{what}: {model}, {len(found)} times in {len({f.case for f in found})} cases")
        for finding in list({f.case: f for f in found}.values())[:each]:
            detail = " ".join(finding.detail.split())[:300]
            lines.append(f"    {finding.replay}\n        {finding.model[:200]}\n        {detail}")
    return "\n".join(lines) or "nothing was found"
