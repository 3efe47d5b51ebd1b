"""What every selector of columns shares: taking the columns that it keeps out of any source of rows."""

from __future__ import annotations

from functools import partial
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import check_is_fitted

from certifit.core import Estimator
from certifit.exceptions import DataError
from certifit.rows import Array, ArrayRows, Block


class Selector(SelectorMixin, Estimator):
    """scikit-learn's selector (get_support, inverse_transform, names), whose `transform` takes any table."""

    support_: Array  # (d,) bool

    def _get_support_mask(self) -> Array:
        check_is_fitted(self)
        return self.support_

    def transform(self, X: Any) -> Any:
        """The columns that were kept: an array, or a CSR matrix where X is sparse."""
        rows = self._rows(X)
        if isinstance(rows, ArrayRows):
            return rows.X[:, self.support_]
        return rows.map(partial(_take_columns, self.support_))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _take_columns(support: Array, block: Block) -> Array:
    return block.X[:, support]


def column_count(asked: Any, d: int, name: str) -> int:
    """The number of columns that a setting asks for, as a number or as a share of the d columns, rounded up."""
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
    """Column numbers from the best score to the worst; among equal scores the first column comes first."""
    return np.argsort(-scores, kind="stable")
