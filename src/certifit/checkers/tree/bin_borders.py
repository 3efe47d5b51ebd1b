"""Bins of columns: whether their borders ascend and are fine enough, and a tree and its rows in terms of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from certifit.checkers.tree.plain_tree import PlainTree
from certifit.core import Check
from certifit.exceptions import DataError
from certifit.rows import Array


@dataclass(frozen=True)
class BinBorders:
    """The borders between the bins of each column; the number of borders below a value is its code."""

    columns: tuple[Array, ...]  # each (bins - 1,)
    most: int  # bins that a column may have

    def codes(self, X: Array) -> Array:
        """The codes of values (n, d), NaN for missing ones."""
        found = np.empty(X.shape)
        for j, border in enumerate(self.columns):
            x = X[:, j].astype(np.float64)
            found[:, j] = np.where(np.isnan(x), np.nan, np.searchsorted(border, x, side="left"))
        return found

    def strange_thresholds(self, tree: PlainTree) -> int:
        """How many thresholds are neither a border of their column nor infinite."""
        column, threshold = tree.column[tree.inner], tree.threshold[tree.inner]
        found = 0
        for j in np.unique(column):
            asked = threshold[(column == j) & (threshold < np.inf)]
            found += int((~np.isin(asked, self.columns[j])).sum())
        return found

    def tree_of_codes(self, tree: PlainTree) -> PlainTree:
        """The tree that does with codes what this one does with values."""
        threshold = tree.threshold.copy()
        for j, border in enumerate(self.columns):
            here = tree.inner[tree.column[tree.inner] == j]
            threshold[here] = np.searchsorted(border, threshold[here], side="left")
        return replace(tree, threshold=threshold)


def read_borders(found: Any, d: int, most: int) -> BinBorders:
    """The borders that a model says it has."""
    borders = tuple(np.asarray(b, np.float64) for b in found)
    if len(borders) != d or any(b.ndim != 1 or len(b) > most - 1 for b in borders):
        raise DataError(got=f"borders_ that are not up to {most - 1} for each of {d} columns", wanted="the fit's own")
    return BinBorders(borders, most)


def check_borders(bins: BinBorders, columns: Sequence[Array], w: Array, all_rows: bool) -> tuple[Check, ...]:
    """Whether borders ascend, and cut columns (n,) into bins that are single values or hold few of the rows.

    No columns are given where rows are not in memory; not `all_rows`: these are some of them.
    """
    unordered = sum(not (np.isfinite(b).all() and (np.diff(b) > 0).all()) for b in bins.columns)
    pairs = zip(bins.columns, columns, strict=True) if len(columns) and not unordered else ()
    coarse = sum(_is_coarse(np.asarray(x, np.float64), w, border, bins.most, all_rows) for border, x in pairs)
    return (
        Check("columns whose borders do not ascend", float(unordered), 0.0),
        Check("columns with bins that are too coarse", float(coarse), 0.0),
    )


def _is_coarse(x: Array, w: Array, border: Array, most: int, all_rows: bool) -> bool:
    """Whether a bin of several values holds five times its share, or a column of few values has such a bin."""
    known = ~np.isnan(x) & (w > 0)
    x, w = x[known], w[known]
    if not len(x):
        return False
    code = np.searchsorted(border, x, side="left")
    low, high = np.full(len(border) + 1, np.inf), np.full(len(border) + 1, -np.inf)
    np.minimum.at(low, code, x)
    np.maximum.at(high, code, x)
    several = high > low
    if not several.any():
        return False
    # Of a few rows only, a column may seem to have few values.
    few = all_rows and len(np.unique(x)) <= most
    return few or bool((np.bincount(code, w, len(low))[several] > 5 * w.sum() / most).any())
