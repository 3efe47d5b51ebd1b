"""The comparison of models while it runs: a line for each that is done, and what is being fitted now."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console

from certifit.table.portfolio.contest import Contest, Trial
from certifit.table.portfolio.leaderboard import attempt_line


class LiveBoard:
    """Shows trials on a terminal as they go on, within 80 columns; nothing elsewhere."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.status: Any = None

    @contextmanager
    def shown(self) -> Iterator[None]:
        """While models are compared."""
        if self.console.quiet or not self.console.is_terminal:
            yield
            return
        with self.console.status("comparing models") as self.status:
            yield
        self.status = None

    def tell(self, contest: Contest, trial: Trial) -> None:
        """What is being fitted now, or the line of a candidate that is done."""
        if self.status is None:
            return
        if trial.fate == "running":
            left = max(contest.clock.left(), 0.0)
            time = "" if left == float("inf") else f" · {left:.0f} s left"
            words = contest.attempt(trial).label[:40]
            self.status.update(f"{words}: fold {trial.folds + 1} of {len(contest.splits)}{time}")
            return
        attempt = contest.attempt(trial)
        if trial.fate == "scored":
            label, score, ends, proof, seconds = attempt_line(attempt)
            self.console.print(f"{label[:30]:<30} {score:>8} {ends:>20} {proof:<9.9} {seconds:>8}", soft_wrap=True)
        elif not trial.settings and not trial.why.startswith("not for "):
            self.console.print(f"  {attempt.label[:24]:<24} {trial.fate}: {trial.why}"[:80], soft_wrap=True)
