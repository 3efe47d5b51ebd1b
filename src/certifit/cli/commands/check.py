"""`certifit check`: what an import line changed from `sklearn` to `certifit` would change in a script."""

from __future__ import annotations

import textwrap
from dataclasses import asdict
from pathlib import Path

from certifit.cli.screen import Screen
from certifit.migration.script_check import ScriptCheck, check_script, read_script

HEADINGS = {"fails": "Would not run", "differs": "Other defaults", "ignored": "Accepted and ignored"}


def run_check(path: Path, screen: Screen) -> bool:
    """Say what an import swap would change in a script or a notebook; True if all of it would run."""
    source, places = read_script(path)
    found = check_script(source)
    if not (found.moves or found.stays):
        screen.say(f"{path.name} imports nothing from scikit-learn.")
    if found.moves:
        screen.heading("Change these imports")
        for line, text in found.moves:
            _say(screen, places[line - 1], text)
    if found.stays:
        screen.heading("Leave these to scikit-learn, whose tools work with certifit's models")
        for line, text in found.stays:
            _say(screen, places[line - 1], text)
    for verdict, heading in HEADINGS.items():
        if found.count(verdict):
            screen.heading(heading)
        for one in found.findings:
            if one.verdict == verdict:
                _say(screen, places[one.line - 1], f"{one.subject}: {one.words}")
    if found.moves:
        screen.say()
        screen.say(_summary(path, found))
    findings = [{**asdict(one), "place": places[one.line - 1]} for one in found.findings]
    screen.document({"moves": found.moves, "stays": found.stays, "findings": findings, "runs": found.runs})
    return found.runs


def _summary(path: Path, found: ScriptCheck) -> str:
    fails = found.count("fails")
    if fails:
        return f"{path.name}: {fails} {'place' if fails == 1 else 'places'} would not run after the change."
    return f"{path.name} would run after the change."


def _say(screen: Screen, place: str, text: str, width: int = 80, margin: int = 10) -> None:
    """A place and what is to be said about it, in lines of at most `width` columns."""
    first = f"  {place}".ljust(margin) + " "
    lines = textwrap.wrap(text, width, initial_indent=first, subsequent_indent=" " * (margin + 1))
    screen.say("\n".join(lines))
