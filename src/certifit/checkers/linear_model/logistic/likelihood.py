"""Logistic and softmax regression re-checked by the Hessian: does the minimum exist, and how far is the fit from it?

This is the only proof without a penalty, and the better one where the penalty is weak; the bound is that of
`newton_bound`. If the classes can be separated there is no minimum: see `recession`.

A vector added to all classes' coefficients changes the penalty alone, so the loss is measured in the coefficients γ
of classes 1 … k-1 relative to class 0. With a subgradient r (k, d) of the objective and r̄ its mean over the classes,

    P(θ + δ) >= P(θ) + <r - r̄, δ> + curvature in γ + Σⱼ k (r̄ⱼ δ̄ⱼ + λ/2 δ̄ⱼ²),     δ̄ the mean of δ over the classes,

and the last sum costs at most k |r̄|² / 2λ; beside λ₁ alone r̄ is made 0 by the choice of the subgradient at
coefficients that are 0. A quadratic penalty has no third derivative and an L1 penalty is convex, so the bound
stands with both.

Rounding. The decrement ν is measured in the norm of H⁻¹. Rounding of scores by at most e moves it by at most
e sqrt(Σ w φ"), rounding of the sums by the norm of what each may be off; both are added to ν. An error of H by a
share ρ makes ν and the reach larger by at most 1 / sqrt(1 - ρ).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from certifit.checkers.linear_model.claims import LinearModelClaims
from certifit.checkers.linear_model.collinear import loose_check
from certifit.checkers.linear_model.coordinates import ScaledCoordinates, no_intercept, scaled_coordinates
from certifit.checkers.linear_model.logistic.dual_point import (
    LogisticClaim,
    allowed_gap,
    both_scores,
    centred_intercept,
    log_probabilities,
    onehot,
    residuals,
    ridge_error,
    weighted,
)
from certifit.checkers.linear_model.newton_bound import (
    NewtonBoundTuning,
    conditioned_inverse,
    independent,
    self_concordant_distance,
    self_concordant_gap,
    triangle_of,
)
from certifit.checkers.plain.dual_points import EPS, bound_below, summation_error
from certifit.core import Certificate, Check
from certifit.rows import Array, Block, Largest, Rows, Sums


class ScoreRounding(NamedTuple):
    """How far rounding can move a score: by a part that differs from row to row, and a part common to all rows."""

    row: float
    common: float

    @property
    def total(self) -> float:
        return self.row + self.common


@dataclass(frozen=True)
class LikelihoodQuadratic(Sums):
    """Loss, gradient and Hessian in the parameters of classes 1 … k-1 relative to class 0."""

    loss: float
    g: Array  # (k, d1) of every class; the first is minus the sum of the others
    H: Array  # (k-1, d1, k-1, d1), or 0-d where not formed
    misfit: Array  # (k,) Σ w (p - y)²
    spread: float  # Σ w Σ_k p (1 - p)
    weight: float  # Σ w

    def loss_error(self, score: ScoreRounding, imbalance: Array, share: float) -> float:
        """How far the loss may be off where scores are off by so much; imbalance (k,) is Σ w (p - y), off by `share`.

        What is the same for all rows moves the loss by the imbalance alone, which is nearly 0 at an optimum.
        """
        misfit = np.sqrt(self.misfit * self.weight)  # at least Σ w |p - y|
        common = np.minimum(np.abs(imbalance) + share * misfit, misfit)
        first = float(misfit.sum()) * score.row + float(common.sum()) * score.common
        return first + self.spread * score.total**2


def quadratic(
    beta: Array, b: Array, coordinates: ScaledCoordinates, hessian: bool, block: Block
) -> LikelihoodQuadratic:
    """Loss, gradient and, if asked for, Hessian of a block at β (k, d) and b (k,), the intercepts of centred rows."""
    block = weighted(block)
    centred, w, k = coordinates.centred(block), block.w, len(b)
    Z, log_p = coordinates.scaled(centred), log_probabilities(beta, b, centred)
    Y, P = onehot(block.y, k), np.exp(log_p)
    rest = P @ (1 - np.eye(k))  # 1 - p, summed from the others
    H = _hessian(Z, w, P, rest) if hessian else np.zeros(())
    loss = -float(w @ np.where(Y > 0, log_p, 0.0).sum(axis=1))
    away = residuals(P, Y)
    spread = float(w @ (P * rest).sum(axis=1))
    return LikelihoodQuadratic(loss, (w[:, None] * away).T @ Z, H, w @ away**2, spread, float(w.sum()))


class LikelihoodMeasure(NamedTuple):
    """Coefficients of every class, and what the rows sum up to at them."""

    coordinates: ScaledCoordinates
    beta: Array  # (k, d)
    b: Array  # (k,) intercepts of centred rows
    sums: LikelihoodQuadratic


def measured(coef: Array, intercept: Array, free: bool, rows: Rows, most: int) -> LikelihoodMeasure:
    """The sums at these coefficients, with the Hessian of up to `most` parameters; `free`: there is an intercept."""
    beta, b = both_scores(coef, intercept)
    coordinates = scaled_coordinates(rows, free)
    centred = centred_intercept(beta, b, coordinates.m)
    hessian = (len(b) - 1) * (rows.n_features + free) <= most
    sums = rows.sum(partial(quadratic, beta, centred, coordinates, hessian))
    return LikelihoodMeasure(coordinates, beta, centred, sums)


def _hessian(Z: Array, w: Array, P: Array, rest: Array) -> Array:
    """The Hessian (k-1, d1, k-1, d1) in blocks Σ w p_a (δ_ac - p_c) z zᵀ."""
    k, d1 = P.shape[1], Z.shape[1]
    H, scaled = np.empty((k - 1, d1, k - 1, d1)), np.empty_like(Z)

    def product(h: Array) -> Array:
        np.multiply(Z, np.sqrt(h)[:, None], out=scaled)
        return scaled.T @ scaled  # a symmetric product takes half the time

    for a in range(1, k):
        H[a - 1, :, a - 1] = product(w * P[:, a] * rest[:, a])
        for c in range(1, a):
            H[a - 1, :, c - 1] = H[c - 1, :, a - 1] = -product(w * P[:, a] * P[:, c])
    return H


def _reach(inverse: Array, coordinates: ScaledCoordinates, kept: Array, block: Block) -> Largest:
    """The largest |(e_a - e_c) ⊗ z|² in the norm of H⁻¹ (k-1, d1, k-1, d1), over rows z and pairs of classes."""
    Z = coordinates.rows(weighted(block))[:, kept]
    largest = (float(np.einsum("ij,ij->i", Z @ M, Z).max(initial=0.0)) for M in _pairs(inverse))
    return Largest(max(largest, default=0.0))


def _pairs(inverse: Array) -> Iterator[Array]:
    """The matrix (d1, d1) of |(e_a - e_c) ⊗ z|² in the norm of H⁻¹, for every pair of classes."""
    for a in range(len(inverse)):
        yield inverse[a, :, a]
        for c in range(a):
            yield inverse[a, :, a] + inverse[c, :, c] - inverse[a, :, c] - inverse[c, :, a]


class _Subgradient(NamedTuple):
    """A subgradient of the objective, put so that it is nearly 0 at an optimum."""

    r: Array  # (k-1, d1) in scaled coordinates, less its mean over the classes
    excess: float  # what its mean over the classes costs
    rounding: Array  # (k-1, d1) by how much rounding may have moved r


class _Decrement(NamedTuple):
    """The Newton decrement ν and the reach c of the rows, with all that rounding may hide."""

    nu: float
    c: float
    inverse: Array | None  # H⁻¹ (k-1, m, k-1, m), enlarged by what rounding may have taken from it
    kept: Array  # (m,) the columns in which H is regular
    checks: tuple[Check, ...] = ()  # of the coefficients of collinear columns


def certify(
    coef: Array,
    intercept: Array,
    claim: LogisticClaim,
    tol: float,
    rows: Rows,
    tuning: NewtonBoundTuning = NewtonBoundTuning(),
    here: LikelihoodMeasure | None = None,
) -> Certificate:
    """Check a fit by its Hessian, with any penalty or none; y are class numbers, w include class weights.

    `here` is what `measured` says of the same coefficients, where that is known.
    """
    if here is None:
        here = measured(coef, intercept, claim.intercept, rows, tuning.hessian_parameters)
    (coordinates, beta, centred, s), b = here, both_scores(coef, intercept)[1]
    own = () if claim.intercept else (no_intercept(b),)
    objective = s.loss + claim.penalty(beta)
    if s.g[1:].size > tuning.hessian_parameters:
        check = Check("gradient norm relative to the objective", float(np.linalg.norm(s.g[1:])) / objective, tol)
        return Certificate("stationary", LinearModelClaims.gradient, objective, tol=tol, checks=(check, *own))
    score = _score_rounding(beta, b, centred, coordinates)
    shifted = _best_common_shift(beta, claim) if len(coef) > 1 and claim.lam1 > 0 else beta
    slope = _subgradient(shifted, len(coef) > 1, claim, s, coordinates, objective, rows.n_rows)
    found = _decrement(slope, len(coef) > 1, claim, here, score.total, rows, tuning)
    reach = found.nu * found.c
    gap = np.inf
    if reach <= tuning.safe and all(check.passed for check in own):
        saved = max(0.0, claim.penalty(beta) - claim.penalty(shifted))
        gap = saved + slope.excess + self_concordant_gap(found.nu, found.c)
    imbalance = s.g[:, -1] if claim.intercept else np.full(len(s.g), np.inf)
    off = s.loss_error(score, imbalance, summation_error(rows.n_rows))
    bound = bound_below(objective, gap + off, objective, rows.n_rows)
    words = LinearModelClaims.penalised if claim.lam + claim.lam1 > 0 else LinearModelClaims.likelihood
    return Certificate(
        "optimal",
        words,
        objective,
        bound,
        tol,
        allowed_gap(objective, tol, rows.n_rows, off),
        (Check("decrement times reach", reach, tuning.safe), *own, *found.checks),
        parameter_error=_parameter_error(coef, objective - bound, claim, found, coordinates, score.total),
    )


def _score_rounding(beta: Array, b: Array, centred: Array, coordinates: ScaledCoordinates) -> ScoreRounding:
    """Every |z| is at most 1; the intercept of centred rows is summed with more digits."""
    sizes = np.abs(beta) @ coordinates.scale + np.abs(centred)
    moved = np.abs(beta) @ np.abs(coordinates.m) + np.abs(b)
    times = 2 * (beta.shape[1] + 4)
    row = times * EPS * float(sizes.max(initial=0.0))
    return ScoreRounding(row, times * float(np.finfo(np.longdouble).eps) * float(moved.max(initial=0.0)))


def _subgradient(
    beta: Array,
    several: bool,
    claim: LogisticClaim,
    s: LikelihoodQuadratic,
    coordinates: ScaledCoordinates,
    objective: float,
    n_rows: int,
) -> _Subgradient:
    """The smallest subgradient, or near it; `several` classes have a score each, two have one."""
    k, d = beta.shape
    share, scale = summation_error(n_rows), coordinates.scale
    # By Cauchy and Schwarz that is more than the rounding of Σ w (p - y) z.
    assert coordinates.squares is not None
    rounding = share * (1 + 1e-9) * np.sqrt(np.outer(s.misfit, coordinates.squares))
    r = s.g.copy()
    with np.errstate(over="ignore", invalid="ignore"):
        r[:, :d] += claim.lam * beta / scale
        rounding[:, :d] += 4 * EPS * (claim.lam * np.abs(beta) + claim.lam1) / scale
        box = claim.lam1 / scale
        if claim.lam1 > 0:
            r[:, :d] += box * _signs(beta, -r[:, :d] / box, several)
        excess = 0.0
        if several:
            mean = r[:, :d].mean(axis=0)
            r[:, :d] -= mean
            excess = _common_shift_cost(mean * scale, k, beta, claim, objective)
    return _Subgradient(r[1:], excess, rounding[1:])


def _best_common_shift(beta: Array, claim: LogisticClaim) -> Array:
    """β (k, d) moved by one vector for all classes, which leaves the loss as it is, to where its penalty is least.

    Of each column's penalty, a function of the shift t, the least is at a coefficient or where the slope is 0
    between.
    """
    k = len(beta)
    candidates = [*beta]
    if claim.lam > 0:
        candidates += [beta.mean(axis=0) + claim.lam1 * (k - 2 * i) / (claim.lam * k) for i in range(k + 1)]
    moved = beta - np.array(candidates)[:, None]  # (candidates, k, d)
    cost = claim.lam1 * np.abs(moved).sum(axis=1) + 0.5 * claim.lam * (moved**2).sum(axis=1)
    best = np.nan_to_num(cost, nan=np.inf).argmin(axis=0)
    return np.asarray(moved[best, :, np.arange(beta.shape[1])].T)


def _signs(beta: Array, wanted: Array, several: bool) -> Array:
    """A subgradient of |β|₁ (k, d), near `wanted` where β is 0; for several classes it sums to 0, where one does.

    Bisection for the shift t of each column: the sum of clip(wanted + t) rises with t.
    """
    zero = beta == 0
    if not several:
        return np.where(zero, np.clip(wanted, -1.0, 1.0), np.sign(beta))
    low, high = np.full(beta.shape[1], -1.0), np.full(beta.shape[1], 1.0)
    spread = np.abs(wanted).max(axis=0, initial=0.0)
    low, high = low - spread, high + spread
    for _ in range(100):  # bisection: as many halvings as a float has digits, and a few more
        t = 0.5 * (low + high)
        total = np.where(zero, np.clip(wanted + t, -1.0, 1.0), np.sign(beta)).sum(axis=0)
        low, high = np.where(total < 0, t, low), np.where(total < 0, high, t)
    return np.where(zero, np.clip(wanted + high, -1.0, 1.0), np.sign(beta))


def _common_shift_cost(mean: Array, k: int, beta: Array, claim: LogisticClaim, objective: float) -> float:
    """What the mean of the subgradient over the classes (d,), in the columns' own units, can gain."""
    if claim.lam > 0:
        return k * float((mean**2).sum()) / (2 * claim.lam)
    if claim.lam1 > 0:
        # No optimum has |β|₁ above objective / λ₁.
        return float(np.abs(mean).max(initial=0.0)) * (float(np.abs(beta).sum()) + objective / claim.lam1)
    return 0.0  # nothing but rounding: the loss does not change along a common shift


def _decrement(
    slope: _Subgradient,
    several: bool,
    claim: LogisticClaim,
    here: LikelihoodMeasure,
    score: float,
    rows: Rows,
    tuning: NewtonBoundTuning,
) -> _Decrement:
    coordinates, beta, b, s = here
    k, d = len(s.g), rows.n_features
    nothing = _Decrement(np.inf, np.inf, None, np.zeros(0, int))
    H = s.H
    if claim.lam > 0:
        tie = np.eye(k - 1) - (1 / k if several else 0.0)
        H = H.copy()
        with np.errstate(over="ignore", divide="ignore"):
            H[:, np.arange(d), :, np.arange(d)] += (claim.lam / coordinates.scale**2)[:, None, None] * tie
    if not (np.isfinite(H).all() and np.isfinite(slope.r).all() and np.isfinite(slope.excess)):
        return nothing
    kept = np.arange(H.shape[1])
    checks: tuple[Check, ...] = ()
    inverse = _enlarged_inverse(H, score, rows.n_rows)
    if inverse is None and claim.lam + claim.lam1 == 0:
        # No curvature somewhere: collinear columns, or rows that are fitted perfectly.
        R = rows.sum(partial(triangle_of, coordinates)).R
        kept = independent(R)
        if len(kept) < R.shape[1]:
            checks = (loose_check(beta[1:] - beta[0], b[1:] - b[0], coordinates, R),)
        inverse = _enlarged_inverse(H[:, kept][..., kept], score, rows.n_rows)
    if inverse is None:
        return nothing
    r, off = slope.r[:, kept], slope.rounding[:, kept]
    with np.errstate(over="ignore", invalid="ignore"):
        square = float(np.einsum("aj,ajbl,bl", r, inverse, r))
    nu = np.sqrt(max(square, 0.0))  # NaN stays, and proves nothing
    nu += np.sqrt(float(np.einsum("aj,ajbl,bl", off, np.abs(inverse), off))) + score * np.sqrt(s.spread)
    c = float(np.sqrt(max(np.abs(M).sum() for M in _pairs(inverse))))  # every |z| is at most 1
    if not nu * c <= tuning.near:
        c = float(np.sqrt(rows.sum(partial(_reach, inverse, coordinates, kept)).value))
    return _Decrement(float(nu), c, inverse, kept, checks)


def _enlarged_inverse(H: Array, score: float, n_rows: int) -> Array | None:
    """The inverse of a Hessian (k-1, m, k-1, m), enlarged by what rounding may have taken; None where that is all.

    Scores that are off by `score` make every row's part smaller by at most the factor e^(-2 score), whatever the
    direction, since |f"'| <= R f". Sums of n rows are off by n eps of the sizes of their terms, and p by a few eps;
    the sizes are at most the roots of the products of two entries of the diagonal, since
    p_a p_c <= sqrt(p_a (1 - p_a) p_c (1 - p_c)).
    """
    size = H.shape[0] * H.shape[1]
    found = conditioned_inverse(H.reshape(size, size))
    if found is None:
        return None
    larger = found.inflation(summation_error(n_rows) + 16 * EPS) * float(np.exp(min(score, 100.0)))
    return (larger**2 * found.inverse).reshape(H.shape) if np.isfinite(larger) else None


def _parameter_error(
    coef: Array, gap: float, claim: LogisticClaim, found: _Decrement, coordinates: ScaledCoordinates, score: float
) -> tuple[tuple[float, ...], ...]:
    """How far each coefficient, and then the intercept, of each score can be from a minimiser's.

    Several classes' intercepts, and without a penalty their coefficients, are determined up to a vector common to
    all: they are compared with the minimiser that has the same mean over the classes.
    """
    several, d, n_columns = len(coef) > 1, coef.shape[1], coef.shape[1] + claim.intercept
    distance = self_concordant_distance(found.nu, found.c)
    by_ridge = ridge_error(coef, gap, claim)
    if found.inverse is None or len(found.kept) < n_columns or not np.isfinite(distance * gap):
        return by_ridge
    if several and claim.lam1 > 0:  # which of the minimisers with equal scores it is depends on all signs
        return by_ridge
    k = len(coef) if several else 2
    away = np.eye(k)[:, 1:] - (1 / k if several else 0.0)  # (k, k-1) from contrasts to centred scores
    error = np.zeros((k, d + 1))
    for row, a in enumerate(away):
        inverse = np.einsum("a,ajbl,b->jl", a, found.inverse, a)
        error[row, :n_columns] = coordinates.parameter_error(inverse, distance)
    error = error[-len(coef) :]
    error[:, :d] += 4 * EPS * np.abs(coef)
    if several and claim.lam > 0:  # the minimiser's coefficients sum to 0
        error[:, :d] += np.abs(coef.mean(axis=0))
    if claim.intercept:
        error[:, d] += score
    if by_ridge:
        error = np.minimum(error, np.array(by_ridge))
    return tuple(map(tuple, error.tolist()))
