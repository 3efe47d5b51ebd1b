"""The base class of all selectors, which takes the kept columns out of any source of rows, and two small helpers."""

from __future__ import annotations

import warnings
from functools import partial
from numbers import Integral, Real
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import check_is_fitted

from certifit.core import Estimator
from certifit.exceptions import DataError
from certifit.rows import Array, ArrayRows, Block


class Selector(SelectorMixin, Estimator):
    """A selector has scikit-learn's interface, such as get_support, and its `transform` takes any table."""

    support_: Array  # (d,) bool

    def _get_support_mask(self) -> Array:
        check_is_fitted(self)
        return self.support_

    def transform(self, X: Any) -> Any:
        """Return the columns that were kept, as an array, or as a CSR matrix where X is sparse."""
        rows = self._rows(X)
        if not self.support_.any():
            words = "No features were selected: every column was left out. Loosen the settings of the selector."
            warnings.warn(words, UserWarning, stacklevel=2)
        if isinstance(rows, ArrayRows) and sparse.issparse(X):
            return rows.X[:, self.support_]
        columns = np.flatnonzero(self.support_)
        if not isinstance(rows, ArrayRows):
            return rows.map(partial(_take_columns, columns))
        found = np.empty((rows.n_rows, len(columns)), rows.dtype)
        rows.each(partial(_write_columns, columns, found))
        return found

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return minus the objective on these rows."""
        return -self.objective(X, y, sample_weight).total

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _take_columns(columns: Array, block: Block) -> Array:
    return np.take(block.X, columns, axis=1)


def _write_columns(columns: Array, found: Array, block: Block) -> None:
    """Write the columns of a block to its place; columns out of range are impossible, and clipping needs no copy."""
    np.take(block.X, columns, axis=1, out=found[block.start : block.start + len(block.w)], mode="clip")


def column_count(asked: Any, d: int, name: str) -> int:
    """Return how many columns a setting asks for, given as a number or as a share of the d columns, rounded up."""
    if isinstance(asked, Integral) and not isinstance(asked, bool):
        if 1 <= int(asked) <= d:
            return int(asked)
    elif isinstance(asked, Real) and not isinstance(asked, bool) and 0 < float(asked) <= 1:
        return int(np.ceil(float(asked) * d))
    raise DataError(
        got=f"{name}={asked!r} for {d} columns",
        wanted=f"a whole number from 1 to {d}, or a share above 0 and at most 1.0",
    )


def best_first(scores: Array) -> Array:
    """Return column numbers from the best score to the worst, the first column first among equal scores."""
    return np.argsort(-scores, kind="stable")
