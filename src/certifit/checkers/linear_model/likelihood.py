"""Logistic and softmax regression re-checked by the Hessian: does the minimum exist, and how far is the fit from it?

This is the only proof without a penalty, and the better one where the penalty is weak; the bound is that of
`newton_bound`. If the classes can be separated there is no minimum: see `recession`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from certifit.checkers.linear_model.claims import LinearModelClaims
from certifit.checkers.linear_model.coordinates import ScaledCoordinates, no_intercept, scaled_coordinates
from certifit.checkers.linear_model.logistic import both_scores, log_probabilities, onehot, residuals
from certifit.checkers.linear_model.newton_bound import (
    NewtonBoundTuning,
    independent,
    inverse_of,
    self_concordant_gap,
    triangle_of,
)
from certifit.checkers.plain.blocks import dense
from certifit.core import Certificate, Check
from certifit.rows import Array, Block, Largest, Rows, Sums


@dataclass(frozen=True)
class LikelihoodQuadratic(Sums):
    """Loss, gradient and Hessian in the parameters of classes 1 … k-1 relative to class 0."""

    loss: float
    g: Array  # (k-1, d1)
    H: Array  # (k-1, d1, k-1, d1), or 0-d where not formed


def _quadratic(
    beta: Array, b: Array, coordinates: ScaledCoordinates, hessian: bool, block: Block
) -> LikelihoodQuadratic:
    Z, w, k = coordinates.rows(block), block.w, len(b)
    log_p = log_probabilities(beta, b, dense(block.X) - coordinates.m)
    Y, P = onehot(block.y, k), np.exp(log_p)
    H = np.zeros(())
    if hessian:
        p, rest = P[:, 1:], P @ (1 - np.eye(k))  # 1 - p, summed from the others
        curvature = -p[:, :, None] * p[:, None, :]
        curvature[:, np.arange(k - 1), np.arange(k - 1)] = p * rest[:, 1:]
        H = np.einsum("i,iab,ij,il->ajbl", w, curvature, Z, Z, optimize=True)
    loss = -float(w @ np.where(Y > 0, log_p, 0.0).sum(axis=1))
    return LikelihoodQuadratic(loss, (w[:, None] * residuals(P, Y)[:, 1:]).T @ Z, H)


def _reach(inverse: Array, coordinates: ScaledCoordinates, kept: Array, block: Block) -> Largest:
    """The largest |(e_a - e_c) ⊗ z|² in the norm of H⁻¹ (k-1, d1, k-1, d1), over rows z and pairs of classes."""
    Z = coordinates.rows(block)[block.w > 0][:, kept]
    largest = 0.0
    for a in range(len(inverse)):
        for c in range(a + 1):
            M = inverse[a, :, a]
            if a != c:
                M = M + inverse[c, :, c] - inverse[a, :, c] - inverse[c, :, a]
            largest = max(largest, float((Z @ M * Z).sum(axis=1).max(initial=0.0)))
    return Largest(largest)


def certify(
    coef: Array,
    intercept: Array,
    fit_intercept: bool,
    tol: float,
    rows: Rows,
    lam: float = 0.0,
    tuning: NewtonBoundTuning = NewtonBoundTuning(),
) -> Certificate:
    """Check a fit by its Hessian, unpenalised or with λ/2 |β|²; y are class numbers, w include class weights.

    A quadratic penalty has no third derivative, so the bound stands with it. In the coefficients γ of classes
    1 … k-1 relative to class 0 it is λ/2 (Σ |γ|² - |Σ γ|²/k): the best that a common shift of all classes leaves.
    """
    beta, b = both_scores(coef, intercept)
    own = () if fit_intercept else (no_intercept(b),)
    coordinates = scaled_coordinates(rows, fit_intercept)
    k, d1 = len(b), rows.n_features + fit_intercept
    hessian = (k - 1) * d1 <= tuning.hessian_parameters
    s = rows.sum(partial(_quadratic, beta, b + beta @ coordinates.m, coordinates, hessian))
    objective = s.loss + 0.5 * lam * float((beta**2).sum())
    excess = 0.0  # penalty that a common shift would save
    if lam > 0 and hessian:
        gamma = beta[1:] - beta[0]
        tie = np.eye(k - 1) - (1 / k if len(coef) > 1 else 0.0)
        excess = objective - s.loss - 0.5 * lam * float((gamma * (tie @ gamma)).sum())
        d = rows.n_features
        s.g[:, :d] += lam * (tie @ gamma) / coordinates.scale
        s.H[:, np.arange(d), :, np.arange(d)] += (lam / coordinates.scale**2)[:, None, None] * tie
    if not hessian:
        check = Check("gradient norm relative to the objective", float(np.linalg.norm(s.g)) / objective, tol)
        return Certificate("stationary", LinearModelClaims.gradient, objective, tol=tol, checks=(check, *own))
    kept = np.arange(d1)
    inverse = inverse_of(s.H)
    if inverse is None and lam == 0:  # no curvature somewhere: collinear columns, or rows that are fitted perfectly
        kept = independent(rows.sum(partial(triangle_of, coordinates)).R)
        inverse = inverse_of(s.H[:, kept][..., kept])
    nu = c = np.inf
    if inverse is not None and all(check.passed for check in own):
        g = s.g[:, kept]
        nu = float(np.sqrt(np.einsum("aj,ajbl,bl", g, inverse, g)))
        c = float(np.sqrt(rows.sum(partial(_reach, inverse, coordinates, kept)).value))
    reach = nu * c
    gap = max(0.0, excess) + (self_concordant_gap(nu, c) if reach <= tuning.safe else np.inf)
    checks = (Check("decrement times reach", reach, tuning.safe), *own)
    claim = LinearModelClaims.likelihood if lam == 0 else LinearModelClaims.penalised
    return Certificate("optimal", claim, objective, objective - gap, tol, (tol + 1e-12) * objective, checks)
