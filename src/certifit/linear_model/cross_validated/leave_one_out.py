"""Leave-one-out predictions of ridge regression for many strengths, from one singular value decomposition.

The fit without row i predicts yᵢ - rᵢ / (1 - hᵢ) there, with r and h the residuals and leverages of the fit to all
rows: `checkers.linear_model.cross_validated.leave_one_out` has the identity, and works it out another way.
Reference: Golub, Heath & Wahba, Generalized cross-validation as a method for choosing a good ridge parameter (1979).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import svd

from certifit.checkers.linear_model.cross_validated.squares import centred
from certifit.exceptions import DataError
from certifit.rows import Array, ArrayRows


@dataclass(frozen=True)
class LeaveOneOutTuning:
    """How large a table may be that is decomposed."""

    entries: int = 200_000_000


def leave_one_out(
    data: ArrayRows, y: Array, alphas: Array, free: bool, tuning: LeaveOneOutTuning = LeaveOneOutTuning()
) -> Array:
    """The prediction of every row by the fit without it (a, n, t), for targets y (n, t)."""
    if data.n_rows * data.n_features > tuning.entries:
        raise DataError(
            got=f"{data.n_rows} rows of {data.n_features} columns for leave-one-out",
            wanted=f"at most {tuning.entries} entries, which are decomposed",
            fix="Use cv=5.",
        )
    if free and (weighted := np.count_nonzero(data.w)) < 2:
        raise DataError(
            got=f"{weighted} sample of positive weight for leave-one-out",
            wanted="at least 2, so that a row is left for the intercept",
            fix="Use Ridge, which chooses nothing.",
        )
    rows = centred(data, y, free)
    plain, root = rows.dense(), np.sqrt(rows.w)[:, None]
    U, s, Vt = svd(plain * root, full_matrices=False)
    along, out = U.T @ (rows.y * root), []
    inside = plain @ Vt.T  # rows in singular directions
    middle = np.sqrt(rows.w / rows.w.sum())[:, None] if free else np.zeros_like(root)
    beside = U - middle @ (middle.T @ U)
    for alpha in alphas.tolist():
        shrunk, kept = s / (s**2 + alpha), alpha / (s**2 + alpha)
        left = rows.y - inside @ (shrunk[:, None] * along)
        if len(s) == len(U):  # the directions are all there are, and what a weak penalty leaves does not cancel
            share = beside**2 @ kept
            scaled = beside @ (kept[:, None] * (beside.T @ (rows.y * root)))
            left = np.where(root > 0, scaled / np.where(root > 0, root, 1.0), left)
        else:
            share = 1 - (U**2) @ (s * shrunk) - middle[:, 0] ** 2
        out.append(np.asarray(y, dtype=np.float64) - left / share[:, None])
    return np.array(out)
