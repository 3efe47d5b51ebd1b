"""Logistic and softmax regression re-checked from the data: a feasible dual point and the gap it proves.

    P(β, b) = Σ wᵢ [A(ηᵢ) - η_{i,yᵢ}] + λ/2 |β|² + λ₁ |β|₁,    η = β x + b,    A = log Σ exp
    P >= D(p) = - Σ wᵢ A*(pᵢ) - Σⱼ (|vⱼ| - λ₁)₊² / (2λ),   v = Σ wᵢ (pᵢ - yᵢ) xᵢ

for all distributions pᵢ with Σ wᵢ (pᵢ - yᵢ) = 0. Moving p towards y until |v| <= λ₁ leaves a share τ of v and, since
A* is convex and A*(y) = 0, at least that of the entropies: P >= - τ Σ wᵢ A*(pᵢ) with τ = min(1, λ₁ / max |vⱼ|).

Plain float64 NumPy. Two classes are handled as softmax with the scores (0, η). Rows are centred before products are
formed, which a free intercept absorbs exactly; the intercept is re-optimised, so that the dual point is feasible.
Without a penalty, or with a weak one, see `checkers.linear_model.likelihood`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.special import xlogy

from certifit.checkers.linear_model.claims import LinearModelClaims
from certifit.checkers.linear_model.coordinates import centre, no_intercept
from certifit.checkers.plain.blocks import dense
from certifit.core import Certificate, Check
from certifit.rows import Array, Block, Rows, Sums


@dataclass(frozen=True)
class DualPointSums(Sums):
    """Sums at the mixed probabilities p' = stay p + (1 - stay) q."""

    loss: float  # Σ w [A(η) - η_y]
    conjugate: float  # Σ w A*(p'),  A*(p) = Σ_k p log p
    g: Array  # (k, d) Σ w (p' - y) (x - m)
    imbalance: Array  # (k,) Σ w (p' - y)
    misfit: float  # Σ w |p' - y|: rounding of g and of the imbalance is relative to it
    expected: Array  # (k,) Σ w p'
    curvature: Array  # (k, k) Σ w (diag p - p pᵀ)


def onehot(y: Any, k: int) -> Array:
    """Class numbers y (rows,) as rows of zeros with a one (rows, k)."""
    return (y[:, None] == np.arange(k)).astype(np.float64)


def log_probabilities(beta: Array, b: Array, Z: Array) -> Array:
    """log p (rows, k), accurate also where p is nearly 1."""
    eta = Z @ beta.T + b
    below = eta - eta.max(axis=1, keepdims=True)
    others = np.exp(below)
    others[np.arange(len(eta)), eta.argmax(axis=1)] = 0.0
    return below - np.log1p(others.sum(axis=1, keepdims=True))


def residuals(p: Array, Y: Array) -> Array:
    """p - Y; 1 - p of a row's own class is summed from the others, which keeps its digits."""
    others = np.where(Y > 0, 0.0, p)
    return np.where(Y > 0, -others.sum(axis=1, keepdims=True), p)


def negative_entropy(p: Array) -> Array:
    """Σ_k p log p of each row (rows,); the largest p enters as 1 - the others."""
    rows, top = np.arange(len(p)), p.argmax(axis=1)
    others = p.copy()
    others[rows, top] = 0.0
    return xlogy(others, others).sum(axis=1) + p[rows, top] * np.log1p(-others.sum(axis=1))


def _sums(beta: Array, b: Array, m: Array, stay: float, q: Array, block: Block) -> DualPointSums:
    Z, w, Y = dense(block.X) - m, block.w, onehot(block.y, len(b))
    log_p = log_probabilities(beta, b, Z)
    p = np.exp(log_p)
    mixed = stay * p + (1 - stay) * q
    away = residuals(mixed, Y)
    return DualPointSums(
        -float(w @ np.where(Y > 0, log_p, 0.0).sum(axis=1)),
        float(w @ negative_entropy(mixed)),
        (w[:, None] * away).T @ Z,
        w @ away,
        float(w @ np.abs(away).sum(axis=1)),
        w @ mixed,
        np.diag(w @ p) - (p * w[:, None]).T @ p,
    )


def both_scores(coef: Array, intercept: Array) -> tuple[Array, Array]:
    """coef (1, d) of a two-class model as the pair of scores (0, η); otherwise as they are."""
    coef = np.asarray(coef, np.float64)
    intercept = np.broadcast_to(np.asarray(intercept, np.float64).ravel(), len(coef))
    if len(coef) > 1:
        return coef, intercept
    return np.vstack([np.zeros_like(coef), coef]), np.append(0.0, intercept)


def certify(
    coef: Array, intercept: Array, lam: float, fit_intercept: bool, tol: float, rows: Rows, lam1: float = 0.0
) -> Certificate:
    """Check β (k, d), or (1, d) for two classes, with λ + λ₁ > 0; y are class numbers, w include class weights."""
    balanced = 1e-12  # imbalance Σ w (p - y), relative to Σ w |p - y|, that counts as rounding
    two = len(coef) == 1
    beta, b = both_scores(coef, intercept)
    m = np.zeros(rows.n_features)
    if fit_intercept:
        m = centre(rows)
        b = b + beta @ m
        b = b - b.mean()  # common to all classes: changes nothing, and may be large where columns lie far from 0

    def at(b: Array, stay: float = 1.0, q: Array | None = None) -> DualPointSums:
        return rows.sum(partial(_sums, beta, b, m, stay, np.zeros(len(b)) if q is None else q))

    here = at(b)
    with np.errstate(over="ignore"):
        objective = here.loss + 0.5 * lam * float((beta**2).sum()) + lam1 * float(np.abs(beta).sum())
    checks: tuple[Check, ...] = ()
    slack = 0.0
    if not fit_intercept:
        checks = (no_intercept(b),)
    else:
        b, here = _feasible(at, b, here, balanced)
        checks = (Check("classes balance to", float(np.abs(here.imbalance).max()), balanced * here.misfit),)
        # The rest of the imbalance changes the bound by at most this.
        slack = 2 * float(np.abs(b * here.imbalance).sum())
    g = here.g[1:] if two else here.g  # a two-class model has one score
    bound = max(0.0, _dual(g, -here.conjugate, lam, lam1) - slack)  # no loss is negative
    limit = (tol + 1e-12) * abs(objective)
    return Certificate("optimal", LinearModelClaims.penalised, objective, bound, tol, limit, checks)


def _dual(v: Array, entropy: float, lam: float, lam1: float) -> float:
    """The better of the two bounds at the top of this file, at v (k, d)."""
    worst = float(np.abs(v).max(initial=0.0))
    share = lam1 / worst if worst > lam1 else 1.0
    above = float((np.maximum(np.abs(v) - lam1, 0.0) ** 2).sum())
    return max(share * entropy, entropy - above / (2 * lam) if lam > 0 else -np.inf)


def _feasible(
    at: Callable[..., DualPointSums], b: Array, here: DualPointSums, balanced: float
) -> tuple[Array, DualPointSums]:
    """Sums at a dual point with Σ w (p' - y) = 0: the best intercept by Newton or, where that fails, a mixture.

    p' = τ p + (1 - τ) q with q the same for all rows; τ = min_k (Σ w y)_k / (Σ w p)_k keeps q non-negative.
    """
    for _ in range(50):
        if np.abs(here.imbalance).max() <= 0.01 * balanced * here.misfit:
            return b, here
        step = np.linalg.lstsq(here.curvature, here.imbalance)[0]
        if not np.isfinite(step).all():
            break  # every row is classified for certain: no curvature to go by
        step *= min(1.0, 2.0 / max(2.0, float(np.abs(step).max())))
        trial = at(b - step)
        if not (trial.loss < here.loss or np.abs(trial.imbalance).max() < np.abs(here.imbalance).max()):
            break  # nothing but rounding is left
        b, here = b - step, trial
    if np.abs(here.imbalance).max() <= balanced * here.misfit:
        return b, here
    over = here.imbalance > 0  # classes expected too often
    leave = float((here.imbalance[over] / here.expected[over]).max())  # 1 - τ
    q = np.clip(leave * here.expected - here.imbalance, 0.0, None)
    return b, at(b, 1 - leave, q / q.sum())
