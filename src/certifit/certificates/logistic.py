"""Logistic and softmax regression re-checked from the data: a feasible dual point and the gap it proves.

    P(β, b) = Σ wᵢ [A(ηᵢ) - η_{i,yᵢ}] + λ/2 |β|²,    η = β x + b,    A = log Σ exp
    P >= D(p) = - Σ wᵢ A*(pᵢ) - |Σ wᵢ (pᵢ - yᵢ) xᵢ|² / (2λ)   for all distributions pᵢ with Σ wᵢ (pᵢ - yᵢ) = 0

Plain float64 NumPy. Two classes are handled as softmax with the scores (0, η). Rows are centred before products are
formed, which a free intercept absorbs exactly; the intercept is re-optimised, so that the dual point is feasible.
Without a penalty see `certificates.likelihood`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import logsumexp, xlogy

from certifit.core import Array, Block, Certificate, Check, Rows, Sums

CLAIM = "penalised negative log-likelihood within gap of its minimum"


@dataclass(frozen=True)
class _Mean(Sums):
    weight: float
    x: Array  # Σ w (x - origin)  (d,)


@dataclass(frozen=True)
class Scores(Sums):
    """Sums at the mixed probabilities p' = stay p + (1 - stay) q."""

    loss: float  # Σ w [A(η) - η_y]
    conjugate: float  # Σ w A*(p'),  A*(p) = Σ_k p log p
    g: Array  # Σ w (p' - y) (x - m)  (k, d)
    imbalance: Array  # Σ w (p' - y)  (k,)
    expected: Array  # Σ w p'  (k,)
    curvature: Array  # Σ w (diag p - p pᵀ)  (k, k)


def dense(X: Any) -> Array:
    return np.asarray(X.toarray() if sparse.issparse(X) else X, dtype=np.float64)


def onehot(y: Any, k: int) -> Array:
    return (y[:, None] == np.arange(k)).astype(np.float64)


def log_probabilities(beta: Array, b: Array, Z: Array) -> Array:
    """log p (rows, k)."""
    eta = Z @ beta.T + b
    return eta - logsumexp(eta, axis=1, keepdims=True)


def _mean(origin: Array, block: Block) -> _Mean:
    return _Mean(block.w.sum(), block.w @ (dense(block.X) - origin))


def centre(rows: Rows) -> Array:
    """Weighted column means (d,), accurate at any offset."""
    origin = dense(next(iter(rows)).X[:1])[0]
    mean = rows.sum(partial(_mean, origin))
    return origin + mean.x / mean.weight


def _scores(beta: Array, b: Array, m: Array, stay: float, q: Array, block: Block) -> Scores:
    Z, w, Y = dense(block.X) - m, block.w, onehot(block.y, len(b))
    log_p = log_probabilities(beta, b, Z)
    p = np.exp(log_p)
    mixed = stay * p + (1 - stay) * q
    return Scores(
        -float(w @ np.where(Y > 0, log_p, 0.0).sum(axis=1)),
        float(w @ xlogy(mixed, mixed).sum(axis=1)),
        (w[:, None] * (mixed - Y)).T @ Z,
        w @ (mixed - Y),
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


def certify(coef: Array, intercept: Array, lam: float, fit_intercept: bool, tol: float, rows: Rows) -> Certificate:
    """Check β (k, d), or (1, d) for two classes, with λ > 0; y are class numbers, w include class weights."""
    two = len(coef) == 1
    beta, b = both_scores(coef, intercept)
    m = centre(rows) if fit_intercept else np.zeros(rows.n_features)
    b = b + beta @ m

    def at(b: Array, stay: float = 1.0, q: Array | None = None) -> Scores:
        return rows.sum(partial(_scores, beta, b, m, stay, np.zeros(len(b)) if q is None else q))

    here = at(b)
    objective = here.loss + 0.5 * lam * float((beta**2).sum())
    checks: tuple[Check, ...] = ()
    if fit_intercept:
        here = _feasible(at, b, here)
        worst, allowed = float(np.abs(here.imbalance).max()), 1e-9 * float(here.expected.sum())
        checks = (Check("classes balance in the dual point", worst, allowed),)
    g = here.g[1:] if two else here.g  # a two-class model has one score
    bound = -here.conjugate - float((g**2).sum()) / (2 * lam)
    return Certificate("optimal", CLAIM, objective, bound, tol, (tol + 1e-12) * abs(objective), checks)


def _feasible(at: Callable[..., Scores], b: Array, here: Scores) -> Scores:
    """Sums at a dual point with Σ w (p' - y) = 0: the best intercept by Newton, then a mixture that mends the rest.

    p' = τ p + (1 - τ) q with q the same for all rows; τ = min_k (Σ w y)_k / (Σ w p)_k keeps q non-negative.
    """
    for _ in range(50):
        if np.abs(here.imbalance).max() <= 1e-14 * here.expected.sum():
            break
        step = np.linalg.lstsq(here.curvature, here.imbalance)[0]
        step *= min(1.0, 2.0 / max(2.0, float(np.abs(step).max())))
        trial = at(b - step)
        if not trial.loss <= here.loss * (1 + 1e-14):
            break
        b, here = b - step, trial
    target = here.expected - here.imbalance
    stay = min(1.0, float((target / here.expected).min()))
    if stay == 1.0:
        return here
    q = np.clip(target - stay * here.expected, 0.0, None)
    return at(b, stay, q / q.sum())
