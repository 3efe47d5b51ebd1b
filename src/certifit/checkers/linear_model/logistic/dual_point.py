"""Logistic and softmax regression re-checked from the data: a feasible dual point and the gap it proves.

    P(β, b) = Σ wᵢ [A(ηᵢ) - η_{i,yᵢ}] + λ/2 |β|² + λ₁ |β|₁,    η = β x + b,    A = log Σ exp
    P >= D(p) = - Σ wᵢ A*(pᵢ) - Σⱼ (|vⱼ| - λ₁)₊² / (2λ),   v = Σ wᵢ (pᵢ - yᵢ) xᵢ

for all distributions pᵢ with Σ wᵢ (pᵢ - yᵢ) = 0. Moving p towards y until |v| <= λ₁ leaves a share τ of v and, since
A* is convex and A*(y) = 0, at least that of the entropies: P >= - τ Σ wᵢ A*(pᵢ) with τ = min(1, λ₁ / max |vⱼ|).

Plain float64 NumPy. Two classes are handled as softmax with the scores (0, η). Rows are centred before products are
formed, which a free intercept absorbs exactly; the intercept is re-optimised, so that the dual point is feasible up
to rounding. What is left is put right in one of two ways, with δ of the size of rounding, and the better bound is
taken:

- lessen the p of wrong classes by shares of at most δ: F_ck = Σ w p_k over the rows of class c is what flows from c
  to k, and shares φ_c - φ_k of the flows balance the classes where φ solves the Laplace equation of these flows;
- mix p' = (1 - δ) p + δ q with q the same for all rows.

Both cost at most a share δ of the entropies (which are concave, and 0 at y). The first moves v by at most
δ Σ w |p - y| |x|, the second by δ Σ w (p + q) |x|. `plain.dual_points` subtracts the rounding of all sums. Without a
penalty, or with a weak one, see `likelihood`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.special import xlogy

from certifit.checkers.linear_model.claims import LinearModelClaims
from certifit.checkers.linear_model.coordinates import centre, less, no_intercept
from certifit.checkers.plain.blocks import dense, float_rows
from certifit.checkers.plain.dual_points import DualPenalty, DualSums, lower_bound, summation_error
from certifit.core import Certificate
from certifit.rows import Array, Block, Matrix, Rows, Sums

LONG_SHARE = 4 * float(np.finfo(np.longdouble).eps / np.finfo(np.float64).eps)  # of rounding, in longer sums


class LogisticClaim(NamedTuple):
    """What a logistic regression says it has minimised."""

    lam1: float = 0.0  # of |β|₁
    lam: float = 0.0  # of |β|²/2
    intercept: bool = True  # whether there is a free intercept

    def penalty(self, beta: Array) -> float:
        """The penalty at β (k, d)."""
        with np.errstate(over="ignore"):
            return self.lam1 * float(np.abs(beta).sum()) + 0.5 * self.lam * float((beta**2).sum())


@dataclass(frozen=True)
class DualPointSums(Sums):
    """Sums at the mixed probabilities p' = stay p + (1 - stay) q."""

    loss: float  # Σ w [A(η) - η_y]
    entropy: float  # - Σ w A*(p'),  A*(p) = Σ_k p log p
    g: Array  # (k, d) Σ w (p' - y) (x - m)
    imbalance: Array  # (k,) Σ w (p' - y)
    misfit: Array  # (k,) Σ w |p' - y|: rounding of the imbalance is relative to it
    g_size: Array  # (k, d) Σ w |p' - y| |x - m|: rounding of g is relative to it
    expected: Array  # (k,) Σ w p'
    flows: Array  # (k, k) Σ w p' over the rows of each class
    total: Array  # (d,) Σ w |x - m|
    curvature: Array  # (k, k) Σ w (diag p - p pᵀ)


def onehot(y: Any, k: int) -> Array:
    """Class numbers y (rows,) as rows of zeros with a one (rows, k)."""
    return (y[:, None] == np.arange(k)).astype(np.float64)


def log_probabilities(beta: Array, b: Array, Z: Matrix) -> Array:
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


def weighted(block: Block) -> Block:
    """The rows that have a weight: those without contribute nothing, whatever their numbers."""
    used = block.w > 0
    return block if used.all() else Block(block.X[used], np.asarray(block.y)[used], block.w[used], block.start)


def _sums(beta: Array, b: Array, m: Array, stay: float, q: Array, block: Block) -> DualPointSums:
    block = weighted(block)
    Z, w, Y = less(float_rows(block.X), m), block.w, onehot(block.y, len(b))
    log_p = log_probabilities(beta, b, Z)
    p = np.exp(log_p)
    mixed = stay * p + (1 - stay) * q
    away = residuals(mixed, Y)
    wide, weighted_away = abs(Z), w[:, None] * away
    return DualPointSums(
        -float(w @ np.where(Y > 0, log_p, 0.0).sum(axis=1)),
        -float(w @ negative_entropy(mixed)),
        weighted_away.T @ Z,
        w @ away,
        w @ np.abs(away),
        np.abs(weighted_away).T @ wide,
        w @ mixed,
        (Y * w[:, None]).T @ mixed,
        w @ wide,
        np.diag(w @ p) - (p * w[:, None]).T @ p,
    )


def both_scores(coef: Array, intercept: Array) -> tuple[Array, Array]:
    """coef (1, d) of a two-class model as the pair of scores (0, η); otherwise as they are."""
    coef = np.asarray(coef, np.float64)
    intercept = np.broadcast_to(np.asarray(intercept, np.float64).ravel(), len(coef))
    if len(coef) > 1:
        return coef, intercept
    return np.vstack([np.zeros_like(coef), coef]), np.append(0.0, intercept)


def centred_intercept(beta: Array, b: Array, m: Array) -> Array:
    """The intercepts b + β m (k,) for columns less m; both may be large and cancel, so more digits are used."""
    return np.asarray(b + beta.astype(np.longdouble) @ m.astype(np.longdouble), np.float64)


def allowed_gap(objective: float, tol: float, n_rows: int, off: float = 0.0, most: float = 1e-9) -> float:
    """The gap that a tolerance allows, and what rounding may add: the terms of the objective are all positive.

    An error of the scores may move the objective by `off`, which excuses at most a share `most` of it.
    """
    return (tol + 8 * summation_error(n_rows)) * abs(objective) + min(2 * off, most * abs(objective))


def certify(coef: Array, intercept: Array, claim: LogisticClaim, tol: float, rows: Rows) -> Certificate:
    """Check β (k, d), or (1, d) for two classes, with λ + λ₁ > 0; y are class numbers, w include class weights."""
    balanced = 1e-12  # imbalance Σ w (p - y), relative to Σ w |p - y|, at which the intercept is good enough
    beta, b = both_scores(coef, intercept)
    m = np.zeros(rows.n_features)
    if claim.intercept:
        m = centre(rows)
        b = centred_intercept(beta, b, m)
        b = b - b.mean()  # common to all classes: changes nothing, and may be large where columns lie far from 0

    def at(b: Array, stay: float = 1.0, q: Array | None = None) -> DualPointSums:
        return rows.sum(partial(_sums, beta, b, m, stay, np.zeros(len(b)) if q is None else q))

    here = at(b)
    objective = here.loss + claim.penalty(beta)
    plain = True  # whether p' is p
    if claim.intercept:
        here, b, plain = _feasible(at, b, here, balanced)
    first = 1 if len(coef) == 1 else 0  # a two-class model has one score
    bound, limit = _bound(here, first, claim, rows.n_rows), allowed_gap(objective, tol, rows.n_rows)
    if plain and objective - bound > limit:
        here = _with_long_slopes(here, rows.sum(partial(_long_slopes, beta, b, m)))
        bound = max(bound, _bound(here, first, claim, rows.n_rows, LONG_SHARE))
    bound = max(0.0, bound) if np.isfinite(objective) else bound  # no loss is negative
    checks = () if claim.intercept else (no_intercept(b),)
    error = ridge_error(coef, objective - bound, claim)
    return Certificate(
        "optimal", LinearModelClaims.penalised, objective, bound, tol, limit, checks, parameter_error=error
    )


@dataclass(frozen=True)
class SupportSums(Sums):
    """The losses, their gradient and Hessian in the coefficients in use and the intercepts."""

    loss: float
    g: Array  # (m,)
    H: Array  # (m, m)


def _support_sums(used: Array, theta: Array, m: Array, block: Block) -> SupportSums:
    """Sum a block's part at θ (m,), the entries of [β, b] (scores, d + 1) that are `used`."""
    block = weighted(block)
    Z = np.column_stack([dense(block.X) - m, np.ones(len(block.w))])
    full = np.zeros(used.shape)
    full[used] = theta
    beta = np.vstack([np.zeros_like(full), full]) if len(full) == 1 else full
    log_p, Y = log_probabilities(beta, np.zeros(len(beta)), Z), onehot(block.y, len(beta))
    p = np.exp(log_p)
    loss = -float(block.w @ np.where(Y > 0, log_p, 0.0).sum(axis=1))
    away, p = residuals(p, Y)[:, -len(full) :], p[:, -len(full) :]
    score, column = np.nonzero(used)
    rows = Z[:, column]
    # p_a (δ_ac - p_c) of every pair of entries, as a product of their rows.
    own = (score[:, None] == score) * ((rows * (block.w[:, None] * p)[:, score]).T @ rows)
    both = rows * p[:, score] * np.sqrt(block.w)[:, None]
    return SupportSums(loss, ((away * block.w[:, None])[:, score] * rows).sum(axis=0), own - both.T @ both)


def polished(
    coef: Array, intercept: Array, claim: LogisticClaim, rows: Rows, steps: int = 30
) -> tuple[Array, Array] | None:
    """Coefficients (scores, d) and intercepts nearer to the minimum of penalised losses.

    By Newton's method; beside an L1 penalty in the coefficients that are not 0, which are left out where they come
    to 0: of collinear columns one is enough. None where numbers overflow.
    """
    coef = np.asarray(coef, np.float64)
    m = centre(rows) if claim.intercept else np.zeros(rows.n_features)
    free = centred_intercept(coef, np.broadcast_to(np.ravel(intercept), len(coef)), m)
    used = np.column_stack([(coef != 0) | (claim.lam1 == 0), np.full(len(coef), claim.intercept)])
    theta = np.column_stack([coef, free])[used]
    base, step, share, least = theta, np.zeros(len(theta)), 1.0, np.inf
    for _ in range(steps):
        s, penalised = rows.sum(partial(_support_sums, used, theta, m)), np.nonzero(used)[1] < coef.shape[1]
        value = s.loss + claim.penalty(theta[penalised])
        if not (np.isfinite(s.H).all() and value <= least * (1 + 1e-12)):
            share /= 2  # the step went too far
            theta = base + share * step
            continue
        kept = (theta != 0) | ~penalised | (claim.lam1 == 0)
        used[used] = kept
        theta, penalised, g, H = theta[kept], penalised[kept], s.g[kept], s.H[np.ix_(kept, kept)]
        sign = np.sign(theta) * penalised * (claim.lam1 > 0)
        g, H = g + claim.lam1 * sign + claim.lam * theta * penalised, H + np.diag(claim.lam * penalised)
        size = np.sqrt(np.maximum(np.diag(H), 1e-300))
        # A ridge next to nothing leaves directions in which only the penalty changes a long way to go.
        base, least = theta, value
        step = -np.linalg.solve(H / size / size[:, None] + 1e-12 * np.eye(len(g)), g / size) / size
        if np.abs(step / (np.abs(theta) + 1e-300)).max(initial=0.0) < 1e-14:
            break
        with np.errstate(divide="ignore", invalid="ignore"):
            ways = np.where(step * sign < 0, -theta / step, np.inf)
        share = min(1.0, float(ways.min(initial=np.inf)))
        theta = np.where(ways <= share, 0.0, theta + share * step)
    out = np.zeros(used.shape)
    out[used] = base
    if not np.isfinite(least):
        return None
    beta, b = out[:, :-1], out[:, -1]
    return beta, np.asarray(b - beta.astype(np.longdouble) @ m, np.float64)


def _long_slopes(beta: Array, b: Array, m: Array, block: Block) -> Array:
    """Σ w (p - y) (x - m, 1) (k, d + 1) in the longest numbers that there are.

    Columns that are not centred may cancel, and beside a weak L1 penalty every digit of the slopes counts.
    """
    block = weighted(block)
    X = float_rows(block.X)
    away = residuals(np.exp(log_probabilities(beta, b, less(X, m))), onehot(block.y, len(b)))
    Z, long = less(X.astype(np.longdouble), m), (away.astype(np.longdouble) * block.w[:, None]).T
    return np.column_stack([long @ Z, long.sum(axis=1)])


def _with_long_slopes(here: DualPointSums, g: Array) -> DualPointSums:
    """The sums with these slopes, whose rounding is that of the longer type, and of storing them."""
    slopes = g.astype(np.float64)
    return replace(
        here, g=slopes[:, :-1], imbalance=slopes[:, -1], g_size=LONG_SHARE * here.g_size + np.abs(slopes[:, :-1]) / 32
    )


def ridge_error(coef: Array, gap: float, claim: LogisticClaim) -> tuple[tuple[float, ...], ...]:
    """How far each coefficient can be from the minimiser's by strong convexity alone: λ/2 |β - β*|² <= gap.

    An intercept is not penalised: nothing follows about it.
    """
    if not (claim.lam > 0 and np.isfinite(gap)):
        return ()
    radius = float(np.sqrt(2 * max(0.0, gap) / claim.lam))
    return tuple((radius,) * coef.shape[1] + ((np.inf,) if claim.intercept else (0.0,)) for _ in coef)


def _bound(here: DualPointSums, first: int, claim: LogisticClaim, n_rows: int, balance_share: float = 1.0) -> float:
    """The lower bound of this dual point; the scores of classes before `first` have no coefficients.

    `balance_share` is how much smaller the rounding of the imbalance is than that of a sum in float64.
    """
    share = summation_error(n_rows)
    # The entropy's own class is 1 - the others, which is off by eps log(eps) where the row is misclassified.
    size = abs(here.entropy) + 2 * float(here.misfit.sum())
    penalty = DualPenalty(claim.lam1, claim.lam, None)

    def bound(delta: float, moved: Array) -> float:
        if not delta < 1:
            return -np.inf
        slope = here.g_size + delta / share * moved
        sums = DualSums((1 - delta) * here.entropy, size, here.g[first:], slope[first:], np.zeros(()), np.zeros(()))
        return lower_bound(sums, penalty, n_rows)

    if not claim.intercept:
        return bound(0.0, here.g_size)
    off = np.abs(here.imbalance) + balance_share * share * here.misfit
    with np.errstate(divide="ignore", invalid="ignore"):
        mixture = float(np.nan_to_num(off / here.expected, nan=np.inf, posinf=np.inf).max())
    return max(bound(lessened_share(here.flows, off), here.g_size), bound(mixture, 2 * here.total[None]))


def lessened_share(flows: Array, off: Array) -> float:
    """The largest share by which a flow between classes must be lessened to balance imbalances up to `off` (k,)."""
    if not np.isfinite(flows).all():
        return np.inf
    both = np.minimum(flows, flows.T)
    np.fill_diagonal(both, 0.0)
    values, vectors = np.linalg.eigh(np.diag(both.sum(axis=0)) - both)
    if not values[1] > 1e-10 * values[-1]:  # classes between which nothing flows
        return np.inf
    potential = np.abs((vectors[:, 1:] / values[1:]) @ vectors[:, 1:].T) @ off
    return 2 * float(potential.max())


def _feasible(
    at: Callable[..., DualPointSums], b: Array, here: DualPointSums, balanced: float
) -> tuple[DualPointSums, Array, bool]:
    """Sums at a dual point with Σ w (p' - y) = 0: the best intercept by Newton or, where that fails, a mixture.

    p' = τ p + (1 - τ) q with q the same for all rows; τ = min_k (Σ w y)_k / (Σ w p)_k keeps q non-negative. Also
    returned are the intercepts and whether p' is p.
    """
    for _ in range(50):
        if (np.abs(here.imbalance) <= 0.01 * balanced * here.misfit).all():
            return here, b, True
        if not (np.isfinite(here.curvature).all() and np.isfinite(here.imbalance).all()):
            return here, b, True
        step = np.linalg.lstsq(here.curvature, here.imbalance)[0]
        if not np.isfinite(step).all():
            break  # every row is classified for certain: no curvature to go by
        step *= min(1.0, 2.0 / max(2.0, float(np.abs(step).max())))
        trial = at(b - step)
        if not (trial.loss < here.loss or np.abs(trial.imbalance).max() < np.abs(here.imbalance).max()):
            break  # nothing but rounding is left
        b, here = b - step, trial
    if (np.abs(here.imbalance) <= balanced * here.misfit).all():
        return here, b, True
    over = here.imbalance > 0  # classes expected too often
    leave = float((here.imbalance[over] / here.expected[over]).max(initial=0.0))  # 1 - τ
    q = np.clip(leave * here.expected - here.imbalance, 0.0, None)
    return (at(b, 1 - leave, q / q.sum()), b, False) if q.sum() > 0 else (here, b, True)
