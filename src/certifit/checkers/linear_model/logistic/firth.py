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

from certifit.checkers.linear_model.claims import LinearModelClaims
from certifit.checkers.linear_model.coordinates import ScaledCoordinates, no_intercept, scaled_coordinates
from certifit.checkers.linear_model.newton_bound import inverse_of
from certifit.core import Certificate, Check
from certifit.rows import Array, Block, Rows, Sums


def stationary(
    objective: float, residual: float, weight: float, tol: float, further: tuple[Check, ...] = ()
) -> Certificate:
    """The certificate of modified scores of this size, on rows of this total weight.

    They may be `tol` standard errors, and the rounding of that many terms.
    """
    limit = tol + 1e-12 * float(np.sqrt(weight))
    checks = (Check("modified scores, in standard errors", residual, limit), *further)
    return Certificate("stationary", LinearModelClaims.firth, objective, tol=tol, checks=checks)


@dataclass(frozen=True)
class FirthSums(Sums):
    """Sums at the fitted coefficients."""

    loss: float
    g: Array  # (d1,) Σ w (p - y) z
    information: Array  # (d1, d1) Σ w p (1 - p) z zᵀ
    gram: Array  # (d1, d1) Σ w z zᵀ
    weight: float  # Σ w


def _sums(gamma: Array, coordinates: ScaledCoordinates, block: Block) -> FirthSums:
    Z, w, sign = coordinates.rows(block), block.w, np.where(np.asarray(block.y) > 0, 1.0, -1.0)
    eta = Z @ gamma
    r = -sign * expit(-sign * eta)  # p - y
    h = expit(eta) * expit(-eta)
    return FirthSums(
        -float(w @ log_expit(sign * eta)), (w * r) @ Z, (Z.T * (w * h)) @ Z, (Z.T * w) @ Z, float(w.sum())
    )


def _penalty_scores(gamma: Array, coordinates: ScaledCoordinates, inverse: Array, block: Block) -> Array:
    """The part Σ w h (p - ½) z (d1,) of the modified scores that comes from the penalty."""
    Z = coordinates.rows(block)
    p = expit(Z @ gamma)
    leverage = p * expit(-(Z @ gamma)) * np.einsum("ij,jl,il->i", Z, inverse, Z)
    return (block.w * leverage * (p - 0.5)) @ Z


def certify(coef: Array, intercept: Array, fit_intercept: bool, tol: float, rows: Rows) -> Certificate:
    """Check β (1, d) and b; y are class numbers 0 and 1, w include class weights."""
    beta, b = np.asarray(coef, np.float64).ravel(), np.asarray(intercept, np.float64).ravel()
    coordinates = scaled_coordinates(rows, fit_intercept)
    gamma = beta * coordinates.scale
    if fit_intercept:
        gamma = np.append(gamma, b[0] + beta @ coordinates.m)
    s = rows.sum(partial(_sums, gamma, coordinates))
    inverse = inverse_of(s.information[None, :, None, :])
    objective, residual = np.inf, np.inf
    if inverse is not None:
        inverse = inverse[0, :, 0]
        lost = np.linalg.slogdet(s.gram / 4)[1] - np.linalg.slogdet(s.information)[1]
        objective = s.loss + 0.5 * float(lost)
        score = s.g + rows.sum(partial(_penalty_scores, gamma, coordinates, inverse))
        residual = float(np.sqrt(max(0.0, score @ inverse @ score)))
    return stationary(objective, residual, s.weight, tol, () if fit_intercept else (no_intercept(b),))
