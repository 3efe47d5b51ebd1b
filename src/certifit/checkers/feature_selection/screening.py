"""Proofs that columns are 0 in every optimum of an L1-penalised fit, from any coefficients near the optimum.

Any feasible dual point bounds the optimum, and its duality gap bounds its distance from the best dual point u*. A
column whose dual constraint is not tight anywhere within that distance cannot be used.

    P(β, b) = Σ wᵢ φᵢ(ηᵢ) + λ₁ |β|₁ + λ₂/2 |β|²,   η = β x + b
    D(u) = - Σ wᵢ φᵢ*(uᵢ) - Σⱼ (|vⱼ| - λ₁)₊² / 2λ₂,   v = Σ wᵢ uᵢ xᵢ;  λ₂ = 0: |vⱼ| <= λ₁;  b free: Σ wᵢ uᵢ = 0

Where φ" <= γ (squares 1, two classes 1/4, softmax 1/2) φ* is strongly convex, so that the best dual point u* obeys
Σ wᵢ |uᵢ - uᵢ*|² <= 2γ (D(u*) - D(u)) <= 2γ gap = r² for every feasible u, and |vⱼ - vⱼ*| <= r |xⱼ| with
|xⱼ|² = Σ wᵢ xᵢⱼ² (about the weighted mean where b is free, since u and u* are balanced). A column with |vⱼ*| < λ₁ is
0 in every optimum. Hence  |vⱼ| + r |xⱼ| < λ₁  proves it. Poisson and gamma losses have no such γ and are left out.
A target of squares is centred where b is free, and keeps its digits; what rounding may have added to a bound is
subtracted in `plain.dual_points`.
Reference: Ndiaye, Fercoq, Gramfort & Salmon, Gap safe screening rules for sparsity enforcing penalties (2017).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.special import expit, logsumexp, softmax, xlogy

from certifit.checkers.linear_model.logistic.dual_point import centred_intercept, lessened_share
from certifit.checkers.plain.blocks import dense
from certifit.checkers.plain.dual_points import EPS, DualPenalty, DualSums, lower_bound, summation_error
from certifit.core import Certificate, Check
from certifit.rows import Array, Block, Rows, Sums

BALANCED = 1e-12  # Σ w u relative to Σ w |u| up to which it counts as 0


class ScreeningLoss(NamedTuple):
    """A smooth loss φ of the scores η (n, k)."""

    value: Callable[[Array, Array], Array]  # φ (n,)
    slope: Callable[[Array, Array], Array]  # u = φ' (n, k)
    conjugate: Callable[[Array, Array], Array]  # φ*(u) (n,)
    smoothness: Callable[[int], float]  # γ for k scores
    curvature: Callable[[Array, Array], Array]  # Σ w φ" (k, k)


def _targets(y: Array, k: int) -> Array:
    """Return class numbers as zeros and ones (n, k); two classes have one column."""
    return (y[:, None] == (np.arange(k) if k > 1 else 1)).astype(np.float64)


def _logistic_value(eta: Array, y: Array) -> Array:
    both = eta if eta.shape[1] > 1 else np.column_stack([np.zeros(len(eta)), eta])
    return logsumexp(both, axis=1) - both[np.arange(len(y)), y.astype(int)]


def _probabilities(eta: Array) -> Array:
    return softmax(eta, axis=1) if eta.shape[1] > 1 else expit(eta)


def _logistic_conjugate(u: Array, y: Array) -> Array:
    p = np.clip(u + _targets(y, u.shape[1]), 0.0, 1.0)
    total = xlogy(p, p).sum(axis=1)
    return total if u.shape[1] > 1 else total + xlogy(1 - p, 1 - p).sum(axis=1)


def _logistic_curvature(eta: Array, w: Array) -> Array:
    p = _probabilities(eta)
    if eta.shape[1] == 1:
        return np.array([[w @ (p[:, 0] * (1 - p[:, 0]))]])
    return np.diag(w @ p) - (p * w[:, None]).T @ p


LOSSES = {
    "squared": ScreeningLoss(
        lambda eta, y: 0.5 * (eta[:, 0] - y) ** 2,
        lambda eta, y: eta - y[:, None],
        lambda u, y: u[:, 0] * (0.5 * u[:, 0] + y),
        lambda k: 1.0,
        lambda eta, w: np.array([[w.sum()]]),
    ),
    "logistic": ScreeningLoss(
        _logistic_value,
        lambda eta, y: _probabilities(eta) - _targets(y, eta.shape[1]),
        _logistic_conjugate,
        lambda k: 0.25 if k == 1 else 0.5,
        _logistic_curvature,
    ),
}


@dataclass(frozen=True)
class ScreeningProblem:
    """The objective P of a fit on some rows; y are class numbers 0 … k-1, or numbers."""

    loss: str  # a name in LOSSES
    lam1: float  # λ₁
    lam2: float  # λ₂
    intercept: bool
    m: Array  # weighted mean of the rows where the intercept is free, else 0  (d,)
    y_mean: float  # that of the target, for squares
    length: Array  # sqrt(Σ w (x - m)²)  (d,)
    weight: float  # Σ w

    def at(self, alpha: float, l1_ratio: float) -> ScreeningProblem:
        """Return the problem with this strength, per unit of weight."""
        total = alpha * self.weight
        return replace(self, lam1=total * l1_ratio, lam2=total * (1 - l1_ratio))


class Screening(NamedTuple):
    """The objective and bound at some coefficients, and the columns that these prove to be 0."""

    objective: float  # P at the coefficients
    loss: float  # its data term
    bound: float  # D
    proved: Array  # (d,) bool: 0 in every optimum

    @property
    def relative_gap(self) -> float:
        return max(0.0, self.objective - self.bound) / max(abs(self.objective), np.finfo(float).tiny)


@dataclass(frozen=True)
class _DualSums(Sums):
    """The sums over rows at given coefficients; u = φ' is the dual point before scaling by τ."""

    loss: float  # Σ w φ
    conjugate: float  # Σ w φ*(τu)
    v: Array  # Σ w u (x - m)  (k, d)
    v_size: Array  # Σ w |u| |x - m|  (k, d)
    u: Array  # Σ w u  (k,)
    size: Array  # Σ w |u|  (k,)
    conjugate_size: float  # sizes of the terms of the conjugate
    flows: Array  # (k, k) Σ w p over the rows of each class; of one score the sums of both signs (2, 2)
    h: Array  # Σ w φ"  (k, k)


@dataclass(frozen=True)
class _ColumnSpread(Sums):
    """The sums of columns and their squares about given points."""

    weight: float  # Σ w
    z: Array  # Σ w (x - m)  (d,)
    zz: Array  # Σ w (x - m)²  (d,)
    y: float  # Σ w (y - its first value), of numbers


def _column_spread(m: Array, first: float, block: Block) -> _ColumnSpread:
    positive = block.w > 0
    Z, w, y = dense(block.X)[positive] - m, block.w[positive], np.asarray(block.y)[positive]
    return _ColumnSpread(float(w.sum()), w @ Z, w @ Z**2, float(w @ (y - first)))


def screening_problem(loss: str, intercept: bool, rows: Rows) -> ScreeningProblem:
    """Return the objective on these rows, with strengths 0 until `at` sets them."""
    block = next(iter(rows))
    m = dense(block.X[:1])[0] if intercept else np.zeros(rows.n_features)
    first = float(np.asarray(block.y)[0]) if intercept and loss == "squared" else 0.0
    s = rows.sum(partial(_column_spread, m, first))
    y_mean = 0.0
    if intercept:
        m, y_mean = m + s.z / s.weight, first + s.y / s.weight if loss == "squared" else 0.0
        s = rows.sum(partial(_column_spread, m, first))
    return ScreeningProblem(loss, 0.0, 0.0, intercept, m, y_mean, np.sqrt(s.zz), s.weight)


def _dual_sums(p: ScreeningProblem, beta: Array, b: Array, scale: float, block: Block) -> _DualSums:
    positive = block.w > 0
    assert block.y is not None
    Z, y, w = dense(block.X)[positive] - p.m, np.asarray(block.y)[positive], block.w[positive]
    loss, eta = LOSSES[p.loss], Z @ beta.T + b
    y = y - p.y_mean if p.loss == "squared" else y
    u = loss.slope(eta, y)
    wu = w[:, None] * u
    # Entropies are computed from p, so that those next to 0 are off by up to eps log(eps).
    sharp = 64 * EPS / summation_error(len(w))
    size = np.abs(u) * (0.5 * np.abs(u) + np.abs(y)[:, None]) if p.loss == "squared" else np.abs(u) + sharp
    conjugate = loss.conjugate(scale * u, y)
    return _DualSums(
        float(w @ loss.value(eta, y)),
        float(w @ conjugate),
        wu.T @ Z,
        np.abs(wu).T @ np.abs(Z),
        wu.sum(axis=0),
        np.abs(wu).sum(axis=0),
        float(w @ (np.abs(conjugate) + size.sum(axis=1))),
        _flows(u, y, w),
        loss.curvature(eta, w),
    )


def _flows(u: Array, y: Array, w: Array) -> Array:
    """What flows from each class to each other (k, k), by the slopes u; of one score, of both signs (2, 2)."""
    if u.shape[1] == 1:
        up, down = float(w @ np.maximum(u[:, 0], 0.0)), float(w @ np.maximum(-u[:, 0], 0.0))
        return np.array([[0.0, up], [down, 0.0]])
    Y = _targets(y, u.shape[1])
    return np.asarray((Y * w[:, None]).T @ np.where(Y > 0, 0.0, u))


class _Balanced(NamedTuple):
    """The intercept at which the dual point is feasible, Σ w u = 0."""

    b: Array  # (k,)
    sums: _DualSums
    found: bool  # whether Newton's method reached Σ w u = 0
    loss: float  # at the intercept that was given


def _balance(p: ScreeningProblem, beta: Array, b: Array, rows: Rows) -> _Balanced:
    """Find the intercept at which Σ w u = 0 by Newton's method."""
    start = here = rows.sum(partial(_dual_sums, p, beta, b, 1.0))
    limit = np.inf if p.loss == "squared" else 2.0  # of a step; for squares one full step is exact
    for _ in range(50 if p.intercept else 0):
        if (np.abs(here.u) <= 0.01 * BALANCED * here.size).all():
            break
        step = np.clip(np.linalg.lstsq(here.h, here.u)[0], -limit, limit)
        trial = rows.sum(partial(_dual_sums, p, beta, b - step, 1.0))
        if not trial.loss <= here.loss and not np.abs(trial.u).max() < np.abs(here.u).max():
            break  # a step that improves nothing is only rounding
        b, here = b - step, trial
    found = not p.intercept or bool((np.abs(here.u) <= BALANCED * here.size).all())
    return _Balanced(b, here, found, start.loss)


def screen(p: ScreeningProblem, coef: Array, intercept: Array, rows: Rows) -> Screening:
    """Return the gap at these coefficients, (k, d) or (1, d) for two classes or numbers, and the columns proved 0."""
    beta = np.atleast_2d(np.asarray(coef, np.float64))
    given = np.broadcast_to(np.asarray(intercept, np.float64).ravel(), len(beta))
    b, s, _, loss = _balance(p, beta, centred_intercept(beta, given - p.y_mean, p.m), rows)
    objective = loss + p.lam1 * float(np.abs(beta).sum()) + 0.5 * p.lam2 * float((beta**2).sum())
    share = summation_error(rows.n_rows)
    # What is left of the balance is put right by lessening slopes by a share of at most δ: see
    # `linear_model.logistic`.
    off = np.abs(s.u) + share * s.size
    delta = lessened_share(s.flows, np.repeat(off, 2) if len(off) == 1 else off) if p.intercept else 0.0
    if not delta < 1:
        return Screening(objective, loss, -np.inf, np.zeros(beta.shape[1], bool))
    v_size = (1 + delta / share) * s.v_size
    worst = float((np.abs(s.v) + share * v_size).max(initial=0.0))
    scale = 1.0 if p.lam2 > 0 or worst <= p.lam1 else p.lam1 / worst  # makes the dual point feasible
    if scale < 1:
        s = rows.sum(partial(_dual_sums, p, beta, b, scale))
    nothing = np.zeros(())
    sums = DualSums(-(1 - delta) * s.conjugate, s.conjugate_size, scale * s.v, scale * v_size, nothing, nothing)
    bound = lower_bound(sums, DualPenalty(p.lam1 * (1 + 8 * EPS), p.lam2, None), rows.n_rows)
    if np.isfinite(objective):
        bound = max(bound, 0.0)  # no loss is negative
    gap = max(0.0, objective - bound) + share * abs(objective)
    radius = np.sqrt(2 * LOSSES[p.loss].smoothness(len(beta)) * gap)
    edge = scale * (np.abs(s.v) + share * v_size).max(axis=0) + radius * p.length * (1 + 1e-9)
    return Screening(objective, loss, bound, edge < p.lam1)


def largest_strength(p: ScreeningProblem, k: int, l1_ratio: float, rows: Rows) -> float:
    """Return the smallest strength, per unit of weight, at which every coefficient is 0."""
    beta = np.zeros((k, rows.n_features))
    null = _balance(p, beta, np.zeros(k), rows).sums  # squares: of the centred target
    return float(np.abs(null.v).max(initial=0.0)) / (l1_ratio * p.weight)


class PathClaim(NamedTuple):
    """The claims of a selector about a path of fits."""

    chosen: int  # which strength was chosen
    alpha: float  # that strength
    proved: Array  # (strengths, d) bool, columns that it calls proved
    kept: Array  # (d,) bool, columns that it keeps
    used: Array  # (d,) bool, columns with a coefficient that is not 0
    missing: int  # strengths that were asked for and not fitted


def certify_path(
    path: tuple[Screening, ...], claim: PathClaim, tol: float, n_rows: int, further: tuple[Check, ...] = ()
) -> Certificate:
    """Compare a claim with what the coefficients at every strength of the path prove."""
    allowance = 8 * summation_error(n_rows)
    chosen, proved = path[claim.chosen], np.array([s.proved for s in path])
    checks = (
        Check("largest relative gap of the path", max(s.relative_gap for s in path), tol + allowance),
        Check("columns called proved without a proof", float((claim.proved & ~proved).any(axis=0).sum()), 0.0),
        Check("columns kept that are proved 0", float((claim.kept & chosen.proved).sum()), 0.0),
        Check("columns kept without a coefficient, or the reverse", float((claim.kept != claim.used).sum()), 0.0),
        Check("strengths asked for and not fitted", float(claim.missing), 0.0),
        *further,
    )
    limit = (tol + allowance) * abs(chosen.objective)
    facts: dict[str, float | str] = {
        "strength chosen": claim.alpha,
        "columns proved 0": float(chosen.proved.sum()),
        "columns kept": float(claim.kept.sum()),
    }
    words = "at the strength chosen the penalised loss is within gap of its minimum, in which the columns named are 0"
    return Certificate("optimal", words, chosen.objective, chosen.bound, tol, limit, checks, facts)
