"""How much worse a model becomes when one column is shuffled: permutation importance (Breiman 2001)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from certifit.rows import Array


@dataclass(frozen=True)
class ImportanceTuning:
    """How many rows are asked how often."""

    most_rows: int = 1000
    repeats: int = 5
    most_columns: int = 60  # that are shuffled, those first in the list first
    errors: float = 1.96  # standard errors on each side of an interval


class ColumnImportance(NamedTuple):
    """By how much the mean loss grows when a column is shuffled, with an interval of 95 %."""

    name: str
    growth: float
    low: float
    high: float

    @property
    def matters(self) -> bool:
        return self.low > 0


def shuffled_importance(
    losses: Callable[[Any], Array],
    X: Any,
    columns: Sequence[tuple[str, Any]],
    tuning: ImportanceTuning = ImportanceTuning(),
) -> list[ColumnImportance]:
    """The importance of some columns, the largest first.

    `losses(X)` gives the loss of every row (n,) of X, an array (n, d) or a data frame; `columns` are names and the
    places of what belongs to each. The interval is over rows: each row's mean growth over the repeats.
    """
    rng, n = np.random.default_rng(0), len(X)
    usual, found = losses(X), []
    for name, place in columns[: tuning.most_columns]:
        growth = np.zeros(n)
        for _ in range(tuning.repeats):
            growth += losses(_shuffled(X, place, rng.permutation(n))) - usual
        growth /= tuning.repeats
        reach = tuning.errors * float(growth.std(ddof=1)) / np.sqrt(n) if n > 1 else np.inf
        mean = float(growth.mean())
        found.append(ColumnImportance(name, mean, mean - reach, mean + reach))
    return sorted(found, key=lambda column: -column.growth)


def _shuffled(X: Any, place: Any, order: Array) -> Any:
    """X with the rows of some columns in another order."""
    if isinstance(X, np.ndarray):
        moved = X.copy()
        moved[:, place] = X[order][:, place]
        return moved
    moved = X.copy()
    moved[place] = X[place].to_numpy()[order] if not hasattr(X[place], "array") else X[place].array.take(order)
    return moved
