"""Generalised linear models re-checked from the data: a dual point or the Hessian proves the distance to the optimum.

    P(β, b) = Σ wᵢ φᵢ(sᵢ) + λ₁ |β|₁ + λ₂/2 |β|²,    s = β·x + b,   φᵢ half the deviance at the score s + offset

Dual. Re-optimise b, so that uᵢ = φᵢ'(sᵢ) has Σ wᵢ uᵢ = 0; let v = Σ wᵢ uᵢ xᵢ. Then (Fenchel)
    P >= Σ wᵢ (φᵢ(sᵢ) - uᵢ sᵢ) - Σⱼ (|vⱼ| - λ₁)₊² / 2λ₂
by convexity; with λ₂ = 0 the dual point is τu, τ = min(1, λ₁ / max |vⱼ|), and no deviance is negative.
Hessian. Where |φ"'| <= R φ": see `checkers.linear_model.likelihood`; the only proof without a penalty.
Neither applies (the loss is not convex, or nothing bounds its third derivative): `stationary`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from certifit.checkers.linear_model.likelihood import (
    HESSIAN_LIMIT,
    SAFE,
    Coordinates,
    independent,
    inverse_of,
    largest_extent,
    self_concordant_gap,
    triangle_of,
)
from certifit.checkers.linear_model.logistic import centre
from certifit.checkers.plain.blocks import dense
from certifit.checkers.plain.response_losses import Spec, concordance, is_convex, loss
from certifit.core import Certificate, Check
from certifit.rows import Array, Block, Largest, Rows, Sums

PENALISED = "penalised deviance within gap of its minimum"
LIKELIHOOD = "deviance within gap of its minimum, which exists"
STATIONARY = (
    "one more Newton step lowers the objective by at most the decrement; nothing is claimed about other optima"
)
BALANCED = 1e-11  # Σ w u relative to Σ w |u| from which it counts as rounding
EPS = np.finfo(float).eps


@dataclass(frozen=True)
class _Slope(Sums):
    """The data term along the intercept."""

    loss: float
    u: float  # Σ w u
    size: float  # Σ w |u|
    h: float  # Σ w φ"


@dataclass(frozen=True)
class _Dual(Sums):
    loss: float
    v: Array  # Σ w u (x - m)  (d,)
    u: float
    weight: float  # Σ w


@dataclass(frozen=True)
class _Quadratic(Sums):
    loss: float
    g: Array  # (d1,)
    H: Array  # (d1, d1), or 0-d where not formed
    weight: float
    floor: float  # what rounding alone can make of the objective


def _apart(spec: Spec, block: Block) -> tuple[Array, Array, Array]:
    """y, the offset and the weights, trials included."""
    Y = np.asarray(block.y, dtype=np.float64)
    Y = Y[:, None] if Y.ndim == 1 else Y
    y, w, offset = Y[:, 0], block.w, np.zeros(len(Y))
    if spec.offset is not None:
        offset = offset + Y[:, spec.offset]
    if spec.exposure is not None:
        offset = offset + np.log(Y[:, spec.exposure])
    if spec.trials is not None:
        trials = Y[:, spec.trials]
        y, w = y / np.where(trials > 0, trials, 1.0), w * trials
    return y, offset, w


def _rows(
    spec: Spec, beta: Array, b: float, m: Array, block: Block
) -> tuple[Array, Array, Array, Array, Array, Array]:
    """Centred rows, weights, y, φ, u and φ" of the rows that have weight."""
    y, offset, w = _apart(spec, block)
    used = w > 0
    Z, y, w = dense(block.X)[used] - m, y[used], w[used]
    return Z, w, y, *loss(spec, Z @ beta + b + offset[used], y)


def _slope(spec: Spec, beta: Array, b: float, m: Array, block: Block) -> _Slope:
    _, w, _, phi, u, h = _rows(spec, beta, b, m, block)
    return _Slope(float(w @ phi), float(w @ u), float(w @ np.abs(u)), float(w @ h))


def _dual(spec: Spec, beta: Array, b: float, m: Array, block: Block) -> _Dual:
    Z, w, _, phi, u, _ = _rows(spec, beta, b, m, block)
    return _Dual(float(w @ phi), (w * u) @ Z, float(w @ u), float(w.sum()))


def _quadratic(spec: Spec, beta: Array, b: float, frame: Coordinates, hessian: bool, block: Block) -> _Quadratic:
    Z, w, y, phi, u, h = _rows(spec, beta, b, frame.m, block)
    Z = frame.scaled(Z)
    H = (Z * (w * h)[:, None]).T @ Z if hessian else np.zeros(())
    floor = float(w @ (1000 * EPS * y) ** 2) if spec.family == "gaussian" else 16 * EPS * float(w @ np.abs(y))
    return _Quadratic(float(w @ phi), (w * u) @ Z, H, float(w.sum()), floor)


def _reach(inverse: Array, frame: Coordinates, kept: Array, block: Block) -> Largest:
    Z = frame.scaled(dense(block.X)[block.w > 0] - frame.m)[:, kept]
    return Largest(float((Z @ inverse * Z).sum(axis=1).max(initial=0.0)))


def certify(coef: Array, intercept: float, spec: Spec, tol: float, rows: Rows) -> Certificate:
    """Check a fitted model's coefficients (d,) and intercept."""
    beta = np.asarray(coef, dtype=np.float64).ravel()
    m = centre(rows) if spec.intercept else np.zeros(rows.n_features)
    b = float(intercept) + float(beta @ m)
    own = () if spec.intercept else (Check("intercept, which must be 0", abs(float(intercept)), 0.0),)
    extent = rows.sum(partial(largest_extent, m)).value
    frame = Coordinates(m, np.where(extent > 0, extent, 1.0), spec.intercept)
    d1 = len(beta) + spec.intercept
    s = rows.sum(partial(_quadratic, spec, beta, b, frame, d1 <= HESSIAN_LIMIT))
    total = spec.alpha * (s.weight if spec.per_row else 1.0)
    lam1, lam2 = total * spec.l1_ratio, total * (1 - spec.l1_ratio)
    with np.errstate(over="ignore"):
        penalty = float((lam1 * np.abs(beta)).sum()) + 0.5 * float(((np.sqrt(lam2) * beta) ** 2).sum())
    objective = s.loss + penalty
    limit = (tol + 1e-12) * objective + s.floor
    claim = PENALISED if spec.alpha > 0 else LIKELIHOOD
    decrement, reach = _decrement(spec, beta, lam1, lam2, s, frame, rows)
    if not is_convex(spec) or (spec.alpha == 0 and concordance(spec) is None):
        check = Check("half the squared Newton decrement", 0.5 * decrement**2, limit)
        return Certificate("stationary", STATIONARY, objective, tol=tol, checks=(check, *own))
    gaps = []
    if concordance(spec) is not None and decrement * reach <= SAFE:
        gaps.append(self_concordant_gap(decrement, reach) if reach > 0 else 0.5 * decrement**2)
    if spec.alpha > 0 and not (gaps and gaps[0] <= limit):
        gaps.append(_dual_gap(spec, beta, b, m, lam1, lam2, objective, rows))
    gap = min(gaps, default=np.inf) if all(check.passed for check in own) else np.inf
    return Certificate("optimal", claim, objective, objective - gap, tol, limit, own)


def _decrement(
    spec: Spec, beta: Array, lam1: float, lam2: float, s: _Quadratic, frame: Coordinates, rows: Rows
) -> tuple[float, float]:
    """ν = sqrt(g·H⁻¹g) with g the smallest subgradient, and c, R times the largest row in the norm of H⁻¹."""
    if s.H.ndim == 0:
        return np.inf, np.inf
    d, H, g = len(beta), s.H.copy(), s.g.copy()
    smooth = g[:d] + lam2 * beta / frame.scale
    if lam2 > 0:
        with np.errstate(over="ignore", divide="ignore"):
            H[np.arange(d), np.arange(d)] += lam2 / frame.scale / frame.scale
    if not np.isfinite(H).all():
        return np.inf, np.inf
    box = lam1 / frame.scale
    at_zero = np.sign(smooth) * np.maximum(np.abs(smooth) - box, 0.0)
    g[:d] = np.where(beta == 0, at_zero, smooth + box * np.sign(beta))
    kept = np.arange(len(g))
    inverse = inverse_of(H[None, :, None, :])
    if inverse is None and spec.alpha == 0:
        kept = independent(rows.sum(partial(triangle_of, frame)).R)
        inverse = inverse_of(H[np.ix_(kept, kept)][None, :, None, :])
    if inverse is None:
        return np.inf, np.inf
    inverse = inverse[0, :, 0]
    nu = float(np.sqrt(max(0.0, float(g[kept] @ inverse @ g[kept]))))
    R = concordance(spec)
    if not R:
        return nu, 0.0 if R == 0.0 else np.inf
    return nu, R * float(np.sqrt(rows.sum(partial(_reach, inverse, frame, kept)).value))


def _dual_gap(
    spec: Spec,
    beta: Array,
    b: float,
    m: Array,
    lam1: float,
    lam2: float,
    objective: float,
    rows: Rows,
) -> float:
    """P - D at the dual point of (β, best b); infinite where no balanced point is found."""
    if spec.intercept:
        balanced = _balance(spec, beta, b, m, rows)
        if balanced is None:
            return np.inf
        b = balanced
    s = rows.sum(partial(_dual, spec, beta, b, m))
    value = s.loss - float(beta @ s.v) - (b * s.u if not spec.intercept else 0.0)
    slack = abs(b * s.u) if spec.intercept else 0.0  # what the rest of the imbalance can be worth
    if lam2 > 0:
        dual = value - float((np.maximum(np.abs(s.v) - lam1, 0.0) ** 2).sum()) / (2 * lam2)
    else:
        worst = float(np.abs(s.v).max(initial=0.0))
        dual = min(1.0, lam1 / worst if worst > 0 else 1.0) * value
    return objective - max(0.0, dual - slack)


def _balance(spec: Spec, beta: Array, b: float, m: Array, rows: Rows) -> float | None:
    """The intercept at which Σ w u = 0, by Newton's method with step control."""
    here = rows.sum(partial(_slope, spec, beta, b, m))
    for _ in range(60):
        if abs(here.u) <= BALANCED * here.size:
            return b
        step = float(np.clip(here.u / here.h if here.h > 0 else np.copysign(np.inf, here.u), -2.0, 2.0))
        for _ in range(30):
            trial = rows.sum(partial(_slope, spec, beta, b - step, m))
            if np.isfinite(trial.loss) and abs(trial.u) < abs(here.u):
                break
            step /= 2
        else:
            return None
        b, here = float(b - step), trial
    return b if abs(here.u) <= BALANCED * here.size else None
