"""Whether two classes can be separated, by a linear program: the judge of proofs that they can or cannot."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import linprog


def separable(X: Any, y: Any, strictly: bool, intercept: bool = True) -> bool:
    """Whether a hyperplane leaves no row of two classes on the wrong side, and some (strictly: all) on the right."""
    s = np.where(y == y.max(), 1.0, -1.0)
    Z = X - X.mean(axis=0) if intercept else X
    Z = Z / np.where(np.abs(Z).max(axis=0) > 0, np.abs(Z).max(axis=0), 1.0)
    A = s[:, None] * (np.column_stack([Z, np.ones(len(Z))]) if intercept else Z)
    d = A.shape[1]
    if strictly:  # largest t with A v >= t, |v| <= 1
        c, rows = np.append(np.zeros(d), -1.0), np.column_stack([-A, np.ones(len(A))])
        found = linprog(c, rows, np.zeros(len(A)), bounds=[(-1, 1)] * d + [(None, 1)])
        return found.x is not None and found.x[-1] > 1e-7
    found = linprog(-A.sum(axis=0), -A, np.zeros(len(A)), bounds=[(-1, 1)] * d)
    return found.x is not None and float((A @ found.x).max()) > 1e-7
