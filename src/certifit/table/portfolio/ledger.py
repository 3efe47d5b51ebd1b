"""What was tried and decided while models were compared: enough to show it, and to do it again without a clock."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from numbers import Integral, Real
from typing import Any

import numpy as np

from certifit.core import Certificate
from certifit.core.summary import Summary
from certifit.rows import Array

NO_TIME = "no time left"
_PLAIN = {"str": (str,), "bool": (bool, np.bool_), "int": (Integral,), "float": (Real,)}  # by how fields are declared


@dataclass(frozen=True)
class Attempt:
    """One candidate, and what became of it."""

    name: str  # a key of `candidates.KINDS`, or "baseline"
    words: str
    settings: Mapping[str, Any]  # that differ from the defaults
    fate: str  # scored, stopped, dropped, skipped or failed
    why: str = ""
    folds: int = 0  # on which it was scored
    seconds: float = 0.0
    certificate: str = ""  # the kind of proof that its fits carry
    proved: bool = False  # whether all of them hold
    score: float = np.nan  # in the metric's own unit, over the folds that were scored
    low: float = np.nan  # ends of its interval
    high: float = np.nan

    @property
    def label(self) -> str:
        """Its name with the settings that are not the defaults."""
        listed = ", ".join(f"{name}={value}" for name, value in self.settings.items())
        return f"{self.words} ({listed})" if listed else self.words


@dataclass(frozen=True, repr=False)
class SearchLedger:
    """Everything that was decided on the way to a model of a table."""

    metric: str
    larger_is_better: bool
    folds: int
    metric_word: str  # as it was asked for
    asked_folds: int
    seed: int
    budget: float  # seconds; those of the first run, where this is a replay
    rows_compared: int
    asked: str  # the model asked for, or auto
    group: str  # column whose rows stay together; empty for none
    time: str  # column by which later rows are tested; empty for none
    class_weight: Any
    family: str
    rule: str
    attempts: tuple[Attempt, ...]  # the baseline first, then in the order in which they were begun
    chosen: int  # number of the attempt that won
    corrected: float  # its score, corrected for having chosen it
    corrected_low: float
    corrected_high: float
    confidence: float
    choice: Certificate  # what is proved about the choice
    unseen_errors: Array  # ascending: how strange rows looked to models that had not seen them
    digest: str = ""  # SHA-256 of everything that was fitted
    streamed: str = ""  # "blocks" or "dask" where rows were read so, and those compared drawn; empty: in memory
    rivals: int = 0  # models that might have been chosen; 0 in files of earlier versions: all that were scored
    gain_error: float = np.nan  # standard error of how much better than the baseline the winner is, row by row
    alerts: tuple[tuple[str, str], ...] = ()  # kind and words of what to know before the model is trusted

    def __repr__(self) -> str:
        """The leaderboard, and what was decided."""
        return repr(self._summary())

    def _repr_html_(self) -> str:
        return self._summary()._repr_html_()

    def _summary(self) -> Summary:
        from certifit.table.portfolio.leaderboard import leaderboard_summary  # which needs this module

        return leaderboard_summary(self)

    def check_places(self) -> int:
        """Refuse a ledger of a file that is not made as it is declared; it asks for no columns."""
        sound = isinstance(self.attempts, tuple) and all(isinstance(a, Attempt) for a in self.attempts)
        if not sound or not 0 <= self.chosen < len(self.attempts):
            raise ValueError("a ledger whose attempts do not have the chosen one among them")
        _check_declared(self)
        for attempt in self.attempts:
            _check_declared(attempt)
        if not all(isinstance(a.settings, dict) for a in self.attempts):
            raise ValueError("an attempt whose settings are no dict")
        if not isinstance(self.choice, Certificate) or not isinstance(self.unseen_errors, np.ndarray):
            raise ValueError("a ledger without the proof of its choice, or without errors of unseen rows")
        pairs = isinstance(self.alerts, tuple) and all(isinstance(pair, (tuple, list)) for pair in self.alerts)
        if not pairs or not all(len(pair) == 2 and all(isinstance(x, str) for x in pair) for pair in self.alerts):
            raise ValueError("a ledger whose alerts are not pairs of a kind and words")
        return 0

    @property
    def winner(self) -> Attempt:
        """The attempt that won."""
        return self.attempts[self.chosen]

    @property
    def baseline(self) -> Attempt:
        """What somebody knows who knows the target's frequencies, or its mean, alone."""
        return self.attempts[0]

    @property
    def choices(self) -> int:
        """Among how many models the choice was."""
        return self.rivals or sum(a.fate == "scored" for a in self.attempts) - 1

    def ranked(self) -> list[Attempt]:
        """The winner, then all that were scored from the best on, then those that were not."""
        sign = -1.0 if self.larger_is_better else 1.0
        rest = [a for a in self.attempts if a is not self.winner]
        scored = sorted((a for a in rest if a.fate == "scored"), key=lambda a: sign * a.score)
        return [self.winner, *scored, *(a for a in rest if a.fate != "scored")]


def _check_declared(record: Attempt | SearchLedger) -> None:
    """Refuse a record with a number, a word, or yes or no that is declared as another one of these."""
    for field in fields(record):
        if field.type in _PLAIN and not isinstance(getattr(record, field.name), _PLAIN[str(field.type)]):
            raise ValueError(f"a ledger whose {field.name} is no {field.type}")
