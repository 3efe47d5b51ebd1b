"""Firth's logistic regression re-checked from the data: do the modified score equations hold?

    Σ wᵢ [pᵢ - yᵢ + hᵢ (pᵢ - ½)] zᵢ = 0,    hᵢ = pᵢ (1 - pᵢ) zᵢ·I⁻¹zᵢ,    I = Σ wᵢ pᵢ (1 - pᵢ) zᵢ zᵢᵀ

The left side is measured in the norm of I⁻¹: no coefficient's next scoring step is longer than that many of its
standard errors. The penalised likelihood need not be concave, so nothing is said about other solutions. Plain NumPy.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.special import expit, log_expit

from certifit.checkers.linear_model.likelihood import Coordinates, inverse_of, largest_extent
from certifit.checkers.linear_model.logistic import centre, no_intercept
from certifit.core import Certificate, Check
from certifit.rows import Array, Block, Rows, Sums

CLAIM = "the modified score equations hold: a further step moves no coefficient; nothing global is claimed"
RESIDUAL = "modified scores, in standard errors"


def limit(tol: float, weight: float) -> float:
    """What the residual may be on rows of this total weight: `tol` and the rounding of that many terms."""
    return tol + 1e-12 * float(np.sqrt(weight))


@dataclass(frozen=True)
class _Scores(Sums):
    loss: float
    g: Array  # Σ w (p - y) z  (d1,)
    information: Array  # Σ w p (1 - p) z zᵀ  (d1, d1)
    gram: Array  # Σ w z zᵀ  (d1, d1)
    weight: float  # Σ w


def _scores(gamma: Array, frame: Coordinates, block: Block) -> _Scores:
    Z, w, sign = frame.rows(block), block.w, np.where(np.asarray(block.y) > 0, 1.0, -1.0)
    eta = Z @ gamma
    r = -sign * expit(-sign * eta)  # p - y
    h = expit(eta) * expit(-eta)
    return _Scores(-float(w @ log_expit(sign * eta)), (w * r) @ Z, (Z.T * (w * h)) @ Z, (Z.T * w) @ Z, float(w.sum()))


def _bias(gamma: Array, frame: Coordinates, inverse: Array, block: Block) -> Array:
    Z = frame.rows(block)
    p = expit(Z @ gamma)
    leverage = p * expit(-(Z @ gamma)) * np.einsum("ij,jl,il->i", Z, inverse, Z)
    return (block.w * leverage * (p - 0.5)) @ Z


def certify(coef: Array, intercept: Array, fit_intercept: bool, tol: float, rows: Rows) -> Certificate:
    """Check β (1, d) and b; y are class numbers 0 and 1, w include class weights."""
    beta, b = np.asarray(coef, np.float64).ravel(), np.asarray(intercept, np.float64).ravel()
    m = centre(rows) if fit_intercept else np.zeros(rows.n_features)
    extent = rows.sum(partial(largest_extent, m)).value
    frame = Coordinates(m, np.where(extent > 0, extent, 1.0), fit_intercept)
    gamma = beta * frame.scale
    if fit_intercept:
        gamma = np.append(gamma, b[0] + beta @ m)
    s = rows.sum(partial(_scores, gamma, frame))
    inverse = inverse_of(s.information[None, :, None, :])
    objective, residual = np.inf, np.inf
    if inverse is not None:
        inverse = inverse[0, :, 0]
        lost = np.linalg.slogdet(s.gram / 4)[1] - np.linalg.slogdet(s.information)[1]
        objective = s.loss + 0.5 * float(lost)
        score = s.g + rows.sum(partial(_bias, gamma, frame, inverse))
        residual = float(np.sqrt(max(0.0, score @ inverse @ score)))
    checks = (Check(RESIDUAL, residual, limit(tol, s.weight)), *(() if fit_intercept else (no_intercept(b),)))
    return Certificate("stationary", CLAIM, objective, tol=tol, checks=checks)
