"""Folds that test later rows than those they learn from: no time, and no group, is on both sides."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from certifit.checkers.model_selection.splits import Split
from certifit.exceptions import DataError
from certifit.rows import Array


def later_splits(times: Array, groups: Array | None, folds: int, names: tuple[str, str]) -> Sequence[Split]:
    """At most so many splits of rows by their times (n,), each about as many tested rows; `names` are the columns'.

    The borders are scikit-learn's TimeSeriesSplit's, moved back to where a time begins. Of rows to learn from, those
    of groups that are tested are left out.

    >>> [(a.tolist(), b.tolist()) for a, b in later_splits(np.array([1, 2, 2, 3, 3, 4]), None, 2, ("year", ""))]
    [([0], [1, 2]), ([0, 1, 2], [3, 4, 5])]
    """
    n, order = len(times), np.argsort(times, kind="stable")
    ordered = times[order]
    starts = np.flatnonzero(np.diff(ordered)) + 1  # of all times but the first
    if len(starts) < 2:
        raise DataError(
            got=f"{len(starts) + 1} different times in column {names[0]!r}",
            wanted="three at least: one to learn from, and two to test",
        )
    size = max(1, n // (folds + 1))
    wanted = n - size * np.arange(min(folds, n - 1), 0, -1)
    borders = np.unique(starts[np.maximum(np.searchsorted(starts, wanted, "right") - 1, 0)])
    if len(borders) < 2:  # most rows have the first time
        borders = starts[np.linspace(0, len(starts) - 1, min(folds, len(starts))).astype(int)]
    found: list[Split] = []
    for begin, end in zip(borders, [*borders[1:], n], strict=True):
        train, test = np.sort(order[:begin]), np.sort(order[begin:end])
        if groups is not None:
            train = train[~np.isin(groups[train], groups[test])]
        if not len(train):
            raise DataError(
                got=f"no row before those of fold {len(found) + 1} by {names[0]!r} that is of another {names[1]!r}",
                wanted="rows of other groups to learn from",
                fix="Take fewer folds (--cv), or one of both columns.",
            )
        found.append((train, test))
    return found
