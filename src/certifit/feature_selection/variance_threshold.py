"""Selection of the columns that vary: those whose variance is above a threshold.

    keep column j where  Σ wᵢ (xᵢⱼ - mⱼ)² / Σ wᵢ > threshold,     missing entries left out

With threshold 0 the variance is replaced by the range of the column where that is smaller: a constant column has
range 0, whatever rounding makes of its variance.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from certifit.checkers.feature_selection import univariate as checker
from certifit.core import Attributes, Objective, Setting
from certifit.exceptions import DataError
from certifit.feature_selection.score_sums import column_moments, column_ranges
from certifit.feature_selection.selector import Selector
from certifit.rows import Array, Rows


class VarianceThreshold(Selector):
    """Keep the columns whose variance is above a threshold.

    Parameters
    ----------
    threshold : float, default=0.0
        0 keeps every column that is not constant.

    Attributes
    ----------
    variances_ : (d,); with threshold 0 the range of a column where that is smaller; NaN where all entries are missing
    support_ : (d,) bool, the columns kept, from the variances and the threshold
    certificate_ : Certificate

    Examples
    --------
    >>> model = VarianceThreshold().fit([[0, 2, 0, 3], [0, 1, 4, 3], [0, 1, 1, 3]])
    >>> model.get_support()
    array([False,  True,  True, False])
    >>> model.certificate_.kind, model.certificate_.holds
    ('exact', True)
    """

    settings: ClassVar[Any] = {"threshold": Setting(float, least=0)}
    sparse = True
    missing = True
    tol: ClassVar[float] = 1e-9  # relative difference of a variance up to which it counts as exact

    variances_: Array

    def __init__(self, threshold=0.0):
        self.threshold = threshold

    @property
    def support_(self) -> Array:  # type: ignore[override]
        """Return the columns that the threshold keeps (d,)."""
        if "variances_" not in vars(self):
            raise AttributeError("support_ is known once the selector is fitted")
        return self.variances_ > self.threshold

    def _get_support_mask(self) -> Array:
        check_is_fitted(self)
        return self.support_

    def _fit(self, rows: Rows, previous: Attributes) -> Attributes:
        variances = column_variances(rows, self.threshold == 0)
        if not (variances > self.threshold).any():
            raise DataError(
                got=f"columns of n_samples={rows.n_rows} rows that vary by at most threshold={self.threshold:g} "
                f"(No feature in X meets the variance threshold {self.threshold:.5f}"
                f"{', and X contains only one sample' if rows.n_rows == 1 else ''})",
                wanted="at least one column that varies more",
                fix="Lower the threshold, or check that the columns are not constant.",
            )
        return {
            "variances_": variances,
            "certificate_": checker.certify_variances(variances, variances, self.threshold, self.tol),
        }

    def objective(self, X: Any, y: Any = None, sample_weight: Any = None) -> Objective:
        """Return the sum of the variances, on these rows, of the columns that were left out."""
        variances = column_variances(self._rows(X, None, sample_weight), self.threshold == 0)
        total = float(np.nansum(variances[~self.support_]))
        return Objective(total, total, 0.0)


def column_variances(rows: Rows, with_ranges: bool) -> Array:
    """Return the variance of each column (d,), or its range where that is wanted and smaller."""
    m = column_moments(rows)
    variances = np.where(m.weight[0] > 0, m.ssd[0] / np.where(m.weight[0] > 0, m.weight[0], 1.0), np.nan)
    return np.fmin(variances, column_ranges(rows).width) if with_ranges else variances
