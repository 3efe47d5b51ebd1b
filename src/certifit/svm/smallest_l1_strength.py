"""The smallest C with which an L1-penalised classifier uses any column at all."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from certifit.core import Setting
from certifit.exceptions import DataError


def l1_min_c(
    X: Any, y: Any, *, loss: str = "squared_hinge", fit_intercept: bool = True, intercept_scaling: float = 1.0
) -> float:
    """The largest C at which every coefficient of an L1-penalised classifier is 0; above it some are not.

    With an intercept, that is counted as the coefficient of one more column of the number intercept_scaling,
    penalised as the others are, as scikit-learn's `LinearSVC` does.

    Parameters
    ----------
    X : array or CSR matrix (n, d)
    y : (n,) labels
    loss : 'squared_hinge' or 'log', default='squared_hinge'
        Of `LinearSVC(penalty="l1")` or of `LogisticRegression(penalty="l1")`.
    fit_intercept : bool, default=True
    intercept_scaling : float, default=1.0

    Returns
    -------
    C : float

    Examples
    --------
    >>> from certifit import l1_min_c
    >>> l1_min_c([[-1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [0, 1, 1], fit_intercept=False)
    0.25
    """
    Setting(choices=("squared_hinge", "log")).check("loss", loss)
    Setting(float, above=0, below=np.inf).check("intercept_scaling", intercept_scaling)
    table = X if sparse.issparse(X) else np.asarray(X, dtype=np.float64)
    labels, codes = np.unique(np.asarray(y), return_inverse=True)
    signs = np.where(codes[:, None] == np.arange(len(labels)), 1.0, -1.0)[:, 1 if len(labels) == 2 else 0 :]
    steepest = float(np.abs(np.asarray(table.T @ signs)).max(initial=0.0))
    if fit_intercept:
        steepest = max(steepest, intercept_scaling * float(np.abs(signs.sum(axis=0)).max(initial=0.0)))
    if steepest == 0:
        raise DataError(
            got="columns none of which says anything about y",
            wanted="some column that varies with the labels",
            fix="Ill-posed l1_min_c calculation: l1 will always select zero coefficients for this data.",
        )
    return (0.5 if loss == "squared_hinge" else 2.0) / steepest


__all__ = ["l1_min_c"]
