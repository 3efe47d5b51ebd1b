"""Fits on rows that lack a class, re-checked: it has probability 0, which only an intercept of -∞ gives.

With a free intercept, the loss of rows without class c falls for ever as b_c goes to -∞, where β_c only costs: the
infimum is the minimum of the same problem without c, and β_c = 0. Where two classes of more are left, their softmax
has one score with β = β₂ - β₁ and b = b₂ - b₁; the penalty of β₂ = -β₁ = β/2 is λ₁ |β|₁ + (λ₂/2) |β|²/2.
"""

from __future__ import annotations

import numpy as np

from certifit.checkers.linear_model.logistic import proof
from certifit.checkers.linear_model.logistic.dual_point import LogisticClaim
from certifit.rows import Array, ArrayRows


def present_classes(rows: ArrayRows) -> Array:
    """The numbers of the classes with a row of positive weight, sorted."""
    assert rows.y is not None
    return np.unique(rows.y[rows.w > 0])


def renumbered(rows: ArrayRows, there: Array) -> ArrayRows:
    """The rows of these classes, which are numbered from 0."""
    assert rows.y is not None
    kept = rows.take(np.flatnonzero(np.isin(rows.y, there)))
    assert kept.y is not None
    return ArrayRows(kept.X, np.searchsorted(there, kept.y), kept.w)


def is_proved(fit: tuple[Array, Array], claim: LogisticClaim, tol: float, rows: ArrayRows, close: float) -> bool:
    """Whether coefficients (k, d) and intercepts (k,) are best for these rows, of which some may lack a class."""
    coef, intercept = fit
    there, k = present_classes(rows), max(2, len(coef))
    # Without an intercept, what a class without rows costs is finite, and so is its best fit.
    if len(there) == k or not claim.intercept:
        return proof.certify(coef, intercept, claim, tol, rows).holds
    if k == 2:
        return not coef.any() and float(intercept[0]) == (np.inf if there[0] == 1 else -np.inf)
    gone = np.setdiff1d(np.arange(k), there)
    beta, b = coef[there], intercept[there]
    if coef[gone].any() or (intercept[gone] != -np.inf).any() or not np.isfinite(b).all():
        return False
    if len(there) == 1:
        return not beta.any()
    if len(there) == 2:
        # A part that both have in common changes no probability, and costs its penalty.
        if np.abs(beta.sum(axis=0)).max() > close * np.abs(beta).max():
            return False
        beta, b, claim = beta[1:] - beta[:1], b[1:] - b[:1], LogisticClaim(claim.lam1, claim.lam / 2, True)
    return proof.certify(beta, b, claim, tol, renumbered(rows, there)).holds
