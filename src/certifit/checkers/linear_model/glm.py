"""Generalised linear models re-checked from the data: a dual point or the Hessian proves the distance to the optimum.

    P(β, b) = Σ wᵢ φᵢ(sᵢ) + λ₁ |β|₁ + λ₂/2 |β|²,    s = β·x + b,   φᵢ half the deviance at the score s + offset

| proof | when | how |
|---|---|---|
| Hessian | |φ"'| <= R φ"; the only one without a penalty | the bound of `newton_bound` |
| dual point | the loss is convex and there is a penalty | see below |
| none: `stationary` | the loss is not convex, or no penalty and no R | half the squared Newton decrement is small |

Dual point. Re-optimise b, so that uᵢ = φᵢ'(sᵢ) has Σ wᵢ uᵢ = 0; let v = Σ wᵢ uᵢ xᵢ. Then (Fenchel)
    P >= Σ wᵢ (φᵢ(sᵢ) - uᵢ sᵢ) - Σⱼ (|vⱼ| - λ₁)₊² / 2λ₂
by convexity; with λ₂ = 0 the dual point is τu, τ = min(1, λ₁ / max |vⱼ|), and no deviance is negative.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from certifit.checkers.linear_model.claims import LinearModelClaims
from certifit.checkers.linear_model.coordinates import ScaledCoordinates, scaled_coordinates
from certifit.checkers.linear_model.newton_bound import (
    NewtonBoundTuning,
    independent,
    inverse_of,
    self_concordant_gap,
    triangle_of,
)
from certifit.checkers.plain.blocks import dense
from certifit.checkers.plain.response_columns import response_columns
from certifit.checkers.plain.response_losses import GlmClaim, concordance, is_convex, loss
from certifit.core import Certificate, Check
from certifit.rows import Array, Block, Largest, Rows, Sums


class GlmPoint(NamedTuple):
    """A model's coefficients, for columns less their centre m."""

    claim: GlmClaim
    beta: Array  # (d,)
    b: float
    m: Array  # (d,)


class RowTerms(NamedTuple):
    """What the rows with a positive weight contribute at a point."""

    Z: Array  # (rows, d) centred
    w: Array  # (rows,) row weights times trials
    y: Array  # (rows,)
    phi: Array  # (rows,) half the deviance
    u: Array  # (rows,) its derivative in the score
    h: Array  # (rows,) its second derivative


@dataclass(frozen=True)
class InterceptSlope(Sums):
    """The data term along the intercept."""

    loss: float
    u: float  # Σ w u
    size: float  # Σ w |u|
    h: float  # Σ w φ"


@dataclass(frozen=True)
class GlmDualSums(Sums):
    """Sums that make a dual point."""

    loss: float
    v: Array  # (d,) Σ w u (x - m)
    u: float  # Σ w u
    weight: float  # Σ w


@dataclass(frozen=True)
class GlmQuadratic(Sums):
    """Loss, gradient and Hessian in scaled coordinates."""

    loss: float
    g: Array  # (d1,)
    H: Array  # (d1, d1), or 0-d where not formed
    weight: float  # Σ w
    floor: float  # how large rounding alone can make the objective


def _row_terms(at: GlmPoint, block: Block) -> RowTerms:
    y, offset, w = response_columns(at.claim.layout, block)
    used = w > 0
    Z, y, w = dense(block.X)[used] - at.m, y[used], w[used]
    return RowTerms(Z, w, y, *loss(at.claim, Z @ at.beta + at.b + offset[used], y))


def _slope(at: GlmPoint, block: Block) -> InterceptSlope:
    _, w, _, phi, u, h = _row_terms(at, block)
    return InterceptSlope(float(w @ phi), float(w @ u), float(w @ np.abs(u)), float(w @ h))


def _dual_sums(at: GlmPoint, block: Block) -> GlmDualSums:
    Z, w, _, phi, u, _ = _row_terms(at, block)
    return GlmDualSums(float(w @ phi), (w * u) @ Z, float(w @ u), float(w.sum()))


def _quadratic(at: GlmPoint, coordinates: ScaledCoordinates, hessian: bool, block: Block) -> GlmQuadratic:
    Z, w, y, phi, u, h = _row_terms(at, block)
    Z, eps = coordinates.scaled(Z), np.finfo(float).eps
    H = (Z * (w * h)[:, None]).T @ Z if hessian else np.zeros(())
    floor = float(w @ (1000 * eps * y) ** 2) if at.claim.family == "gaussian" else 16 * eps * float(w @ np.abs(y))
    return GlmQuadratic(float(w @ phi), (w * u) @ Z, H, float(w.sum()), floor)


def _reach(inverse: Array, coordinates: ScaledCoordinates, kept: Array, block: Block) -> Largest:
    """The largest row, squared, in the norm of H⁻¹ (m, m)."""
    Z = coordinates.scaled(dense(block.X)[block.w > 0] - coordinates.m)[:, kept]
    return Largest(float((Z @ inverse * Z).sum(axis=1).max(initial=0.0)))


def certify(
    coef: Array,
    intercept: float,
    claim: GlmClaim,
    tol: float,
    rows: Rows,
    tuning: NewtonBoundTuning = NewtonBoundTuning(),
) -> Certificate:
    """Check a fitted model's coefficients (d,) and intercept."""
    beta = np.asarray(coef, dtype=np.float64).ravel()
    coordinates = scaled_coordinates(rows, claim.intercept)
    m = coordinates.m
    at = GlmPoint(claim, beta, float(intercept) + float(beta @ m), m)
    own = () if claim.intercept else (Check("intercept, which must be 0", abs(float(intercept)), 0.0),)
    s = rows.sum(partial(_quadratic, at, coordinates, len(beta) + claim.intercept <= tuning.hessian_parameters))
    total = claim.alpha * (s.weight if claim.per_row else 1.0)
    lam1, lam2 = total * claim.l1_ratio, total * (1 - claim.l1_ratio)
    with np.errstate(over="ignore"):
        penalty = float((lam1 * np.abs(beta)).sum()) + 0.5 * float(((np.sqrt(lam2) * beta) ** 2).sum())
    objective = s.loss + penalty
    limit = (tol + 1e-12) * objective + s.floor
    decrement, reach = _decrement(at, (lam1, lam2), s, coordinates, rows)
    if not is_convex(claim) or (claim.alpha == 0 and concordance(claim) is None):
        check = Check("half the squared Newton decrement", 0.5 * decrement**2, limit)
        return Certificate("stationary", LinearModelClaims.stationary, objective, tol=tol, checks=(check, *own))
    gaps = []
    if concordance(claim) is not None and decrement * reach <= tuning.safe:
        gaps.append(self_concordant_gap(decrement, reach) if reach > 0 else 0.5 * decrement**2)
    if claim.alpha > 0 and not (gaps and gaps[0] <= limit):
        gaps.append(_dual_gap(at, (lam1, lam2), objective, rows))
    gap = min(gaps, default=np.inf) if all(check.passed for check in own) else np.inf
    words = LinearModelClaims.penalised_deviance if claim.alpha > 0 else LinearModelClaims.deviance
    return Certificate("optimal", words, objective, objective - gap, tol, limit, own)


def _decrement(
    at: GlmPoint, penalty: tuple[float, float], s: GlmQuadratic, coordinates: ScaledCoordinates, rows: Rows
) -> tuple[float, float]:
    """ν = sqrt(g·H⁻¹g) with g the smallest subgradient, and c, R times the largest row in the norm of H⁻¹."""
    if s.H.ndim == 0:
        return np.inf, np.inf
    (lam1, lam2), beta, scale = penalty, at.beta, coordinates.scale
    d, H, g = len(beta), s.H.copy(), s.g.copy()
    smooth = g[:d] + lam2 * beta / scale
    if lam2 > 0:
        with np.errstate(over="ignore", divide="ignore"):
            H[np.arange(d), np.arange(d)] += lam2 / scale / scale
    if not np.isfinite(H).all():
        return np.inf, np.inf
    box = lam1 / scale
    at_zero = np.sign(smooth) * np.maximum(np.abs(smooth) - box, 0.0)
    g[:d] = np.where(beta == 0, at_zero, smooth + box * np.sign(beta))
    kept = np.arange(len(g))
    inverse = inverse_of(H[None, :, None, :])
    if inverse is None and at.claim.alpha == 0:
        kept = independent(rows.sum(partial(triangle_of, coordinates)).R)
        inverse = inverse_of(H[np.ix_(kept, kept)][None, :, None, :])
    if inverse is None:
        return np.inf, np.inf
    inverse = inverse[0, :, 0]
    nu = float(np.sqrt(max(0.0, float(g[kept] @ inverse @ g[kept]))))
    R = concordance(at.claim)
    if not R:
        return nu, 0.0 if R == 0.0 else np.inf
    return nu, R * float(np.sqrt(rows.sum(partial(_reach, inverse, coordinates, kept)).value))


def _dual_gap(at: GlmPoint, penalty: tuple[float, float], objective: float, rows: Rows) -> float:
    """P - D at the dual point of (β, best b); infinite where no balanced point is found."""
    lam1, lam2 = penalty
    if at.claim.intercept:
        balanced = _balance(at, rows)
        if balanced is None:
            return np.inf
        at = at._replace(b=balanced)
    s = rows.sum(partial(_dual_sums, at))
    value = s.loss - float(at.beta @ s.v) - (at.b * s.u if not at.claim.intercept else 0.0)
    # The rest of the imbalance changes the bound by at most this.
    slack = abs(at.b * s.u) if at.claim.intercept else 0.0
    if lam2 > 0:
        dual = value - float((np.maximum(np.abs(s.v) - lam1, 0.0) ** 2).sum()) / (2 * lam2)
    else:
        worst = float(np.abs(s.v).max(initial=0.0))
        dual = min(1.0, lam1 / worst if worst > 0 else 1.0) * value
    return objective - max(0.0, dual - slack)


def _balance(at: GlmPoint, rows: Rows, rounding: float = 1e-11) -> float | None:
    """The intercept at which Σ w u = 0 up to `rounding` times Σ w |u|, by Newton's method with step control."""
    b, here = at.b, rows.sum(partial(_slope, at))
    for _ in range(60):
        if abs(here.u) <= rounding * here.size:
            return b
        step = float(np.clip(here.u / here.h if here.h > 0 else np.copysign(np.inf, here.u), -2.0, 2.0))
        for _ in range(30):
            trial = rows.sum(partial(_slope, at._replace(b=b - step)))
            if np.isfinite(trial.loss) and abs(trial.u) < abs(here.u):
                break
            step /= 2
        else:
            return None
        b, here = float(b - step), trial
    return b if abs(here.u) <= rounding * here.size else None
