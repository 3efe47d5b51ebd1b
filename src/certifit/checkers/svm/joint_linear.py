"""Checker of joint linear machines: it recomputes the objective and proves how near it is to its minimum.

Claim, bound and feasibility are those of `checkers.svm.joint`, where any candidate becomes a feasible dual point.
Candidates are tried in this order until a bound is near enough to the objective; the largest bound counts.

| candidate | when it is tried |
|---|---|
| dual variables that the model stores | where there are any |
| q of the loss smoothed over h, for seven h, with free biases moved to where q balances | if those do not suffice |
| proximal method of multipliers (Rockafellar 1976) for rows near the bends of the loss | if still none suffices |

q of the loss smoothed over h is the projection of u z / h onto the set of q whose maximum the loss is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import numpy as np

from certifit.checkers.linear_model.coordinates import centre, no_intercept
from certifit.checkers.plain.blocks import dense
from certifit.checkers.plain.hinges import PlainMulticlassHinge
from certifit.checkers.svm.joint import (
    CLAIM,
    EPS,
    ClaimedJointSvm,
    RowLengths,
    class_coefficients,
    feasible,
    lower_bound,
    objective,
    score_rounding,
    slacks,
)
from certifit.checkers.svm.linear_machines.linear_rows import (
    LONG_EPS,
    SLACK_ROUNDING,
    MultiplierTuning,
    coefficient_error,
    gradient_worth,
    long_scores,
    minimise_by_newton,
    rounding_check,
    scores_and_lengths,
    targets,
    weighted_row_sum,
    weights,
)
from certifit.core import Certificate, Check
from certifit.rows import Array, Rows


@dataclass(frozen=True)
class JointSvmCheckTuning:
    """Numbers that steer which dual points are tried; no bound is wrong for any of them."""

    widths: tuple[float, ...] = tuple(10.0 ** -np.arange(0.0, 7.0, 1.0))  # h, in units of the margin
    near_rows: int = 2048  # rows near a bend that are solved for, or
    near_rows_per_parameter: int = 4  # so many for each parameter, if that is more
    most_parameters: int = 1000  # beyond which no system is solved
    narrowest: float = 1e-3  # h of the first proximal term, in units of the margin
    slight: float = 0.1  # share of the tolerance: where rounding is more, scores get a longer type, of
    longer_work: int = 20_000_000  # rows times coefficients at most
    multipliers: MultiplierTuning = field(default_factory=MultiplierTuning)


def certify(
    coef: Array,
    intercept: Array,
    claimed: ClaimedJointSvm,
    tol: float,
    rows: Rows,
    dual: Array | None = None,
    tuning: JointSvmCheckTuning | None = None,
) -> Certificate:
    """Check β (k, d) and b (k,), or the differences (1, d) and (1,) of two classes.

    y are class numbers, w include class weights; `dual` (k, n) is α.
    """
    shown = coef
    if len(coef) == 1:
        coef, intercept = np.vstack([-coef, coef]) / 2, np.append(-intercept, intercept) / 2
    m = centre(rows) if claimed.rho == 0 else np.zeros(rows.n_features)
    b = intercept + coef @ m
    checks = (no_intercept(b),) if claimed.rho is None else ()
    if claimed.rho == 0:
        # A constant added to all biases changes no loss, but would change what the model says of rows.
        unit = 1.0 + float(np.abs(intercept).max())
        checks = (Check("biases sum to, relative", abs(float(intercept.sum())) / unit, 1e-6),)
        b = b - b.mean()  # common to all classes: changes nothing, and may be large where columns lie far from 0
    F = rows.map(partial(scores_and_lengths, coef, b, m))
    F, length = F[:, :-1], F[:, -1]
    y, u = rows.map(targets).astype(np.int64), claimed.C * rows.map(weights)
    tuning, square = tuning or JointSvmCheckTuning(), float((coef**2).sum())
    value = objective(claimed, F, y, u, square, b)
    size = float(np.linalg.norm(coef)) * length + float((np.abs(coef) @ np.abs(m)).max()) + float(np.abs(b).max())
    blur = SLACK_ROUNDING * claimed.loss.margin + (SLACK_ROUNDING + EPS * rows.n_features) * size
    off = score_rounding(claimed, F, y, u, blur)
    if off > tuning.slight * tol * value and rows.n_rows * coef.size <= tuning.longer_work:
        exact = rows.map(partial(long_scores, coef, intercept, m, claimed.rho == 0))
        value, F = objective(claimed, exact, y, u, square, b), exact.astype(np.float64)
        off = score_rounding(claimed, exact, y, u, blur * (LONG_EPS / EPS))
    off += 8 * EPS * value
    check = _JointCheck(claimed, np.column_stack([coef, b]), F, y, u, length, m, rows, tuning)
    best, given = max(check.bounds(dual, value, tol * value))
    checks = (*checks, rounding_check(off + given, value, coef))
    limit, bound = (tol + 1e-12) * value + off + given, min(best, value)
    # Two classes have β = ∓ coef_ / 2: the objective contains ½ · ½ |coef_|².
    gaps = np.full(len(shown), (2.0 if len(shown) == 1 else 1.0) * (value + off - bound))
    error = coefficient_error(shown, gaps, claimed.rho)
    at_zero = objective(claimed, np.zeros_like(F), y, u, 0.0, np.zeros(len(coef)))
    return Certificate(
        "optimal", CLAIM, value, bound, tol, limit, checks, scale=max(value, at_zero), parameter_error=error
    )


class _JointCheck(NamedTuple):
    claimed: ClaimedJointSvm
    theta: Array  # (k, d + 1) β and b
    F: Array  # (n, k) scores
    y: Array  # (n,)
    u: Array  # (n,)
    length: Array  # (n,) |x - m|
    m: Array  # (d,)
    rows: Rows
    tuning: JointSvmCheckTuning

    def _bound(self, alpha: Array) -> tuple[float, float]:
        """The bound that any candidate α (n, k) proves once it is made feasible, and what rounding took of it."""
        alpha = feasible(self.claimed, np.where(np.isfinite(alpha), alpha, 0.0), self.y, self.u)
        v = self.rows.sum(partial(weighted_row_sum, alpha, self.m))
        size = float((np.abs(alpha).sum(axis=1) * self.length).sum())
        lengths = RowLengths(size, float(self.length[self.u > 0].max(initial=0.0)))
        return lower_bound(self.claimed, alpha, self.y, self.u, float(np.linalg.norm(v)), lengths)

    def bounds(self, stored: Array | None, value: float, allowed: float) -> Iterator[tuple[float, float]]:
        """One bound after another, until one misses the objective by no more than allowed."""
        if stored is not None and stored.shape == self.F.T.shape:
            found = self._bound(np.asarray(stored, np.float64).T)
            yield found
            if value - found[0] <= allowed:
                return
        best, start, offset = -np.inf, (self.tuning.widths[0], np.zeros(self.F.shape)), np.zeros((len(self.theta), 1))
        for h in np.array(self.tuning.widths) * self.claimed.loss.margin:
            q, offset = self._smoothed_dual(h, offset)
            found = self._bound(class_coefficients(q, self.y))
            if found[0] > best:
                best, start = found[0], (h, q)
            yield found
        # A model nearly all of whose objective is unproved is no minimum: no dual point will show it to be one.
        if allowed < value - best < 0.95 * abs(value) and self.theta.size <= self.tuning.most_parameters:
            yield self._bound(self._with_proximal_multipliers(*start, allowed))

    def _smoothed_dual(self, h: float, offset: Array) -> tuple[Array, Array]:
        """q (n, k) of the loss smoothed over h, free biases moved, from `offset` (k, 1), to where it balances."""
        ones, start = np.ones((len(self.y), 1)), np.zeros((len(self.theta), 1))
        smooth = self._smoothed(h)
        if self.claimed.rho == 0:
            biases = _Regularised(smooth, ones, np.array([0.0]), start)
            offset = minimise_by_newton(biases, offset, 0.0, self.tuning.multipliers).theta
        return smooth.maximiser(ones @ offset.T), offset

    def _smoothed(self, h: float) -> _SmoothedLoss:
        return _SmoothedLoss(self.claimed.loss, self.y, self.u, self.F, h, np.zeros_like(self.F))

    def _with_proximal_multipliers(self, h: float, q: Array, allowed: float) -> Array:
        """α (n, k) that is exact for the rows near a bend of the loss, if the others are where it is linear."""
        loss, (n, k), tuning = self.claimed.loss, self.F.shape, self.tuning
        count = min(n, max(tuning.near_rows, tuning.near_rows_per_parameter * self.theta.size))
        h = max(tuning.narrowest * loss.margin, h)
        near = self._rows_near_a_bend(count, h)
        far = class_coefficients(self._smoothed(EPS).maximiser(np.zeros_like(self.F)), self.y)
        far[near] = 0.0
        Z, G = dense(self.rows.take(near).X) - self.m, np.ones(self.rows.n_features)
        c = self.rows.sum(partial(weighted_row_sum, far, self.m))
        if self.claimed.rho is not None:
            Z, G = np.column_stack([Z, np.ones(count)]), np.append(G, self.claimed.rho)
            c = np.column_stack([c, far.sum(axis=0)])
        rows = _SmoothedLoss(loss, self.y[near], self.u[near], np.zeros((count, k)), h, q[near])
        objective = _Regularised(rows, Z, G, c)
        far[near] = objective.maximise_dual(self.theta[:, : len(G)], allowed, tuning.multipliers)
        return far

    def _rows_near_a_bend(self, count: int, h: float) -> Array:
        """The rows whose q lie farthest within their limits, then those whose slacks are nearest to each other."""
        u = self.u
        q = self._smoothed(h).maximiser(np.zeros_like(self.F))
        inner = np.minimum(q, u[:, None] - q).max(axis=1) / np.where(u > 0, u, 1.0)
        z = np.sort(slacks(self.claimed.loss, self.F, self.y), axis=1)
        closeness = np.where(inner > 0, 1 + inner, -np.abs(np.diff(z, axis=1)).min(axis=1))
        return np.sort(np.argpartition(np.where(u > 0, -closeness, np.inf), count - 1)[:count])


class _SmoothedLoss(NamedTuple):
    """Σ max over q in the loss's set of q·z - h/(2u) |q - centre|²: Σ u L, smoothed."""

    loss: PlainMulticlassHinge
    y: Array  # (n,)
    u: Array  # (n,)
    F: Array  # (n, k) scores, to which more are added
    h: float
    centre: Array  # (n, k)

    def maximiser(self, more: Array) -> Array:
        """The best q (n, k) at the scores F + more."""
        z = slacks(self.loss, self.F + more, self.y)
        return self.loss.project(self.centre + self.u[:, None] / self.h * z, self.y, self.u)

    def value(self, more: Array, q: Array) -> float:
        z = slacks(self.loss, self.F + more, self.y)
        counted = self.u > 0
        distance = ((q - self.centre)[counted] ** 2).sum(axis=1) / self.u[counted]
        return float((q * z).sum()) - 0.5 * self.h * float(distance.sum())


class _Regularised(NamedTuple):
    """A smoothed loss at the scores F + Z θᵀ, plus ½ Σ G θ² - c·θ, as a function of θ (k, d1)."""

    rows: _SmoothedLoss
    Z: Array  # (n, d1)
    G: Array  # (d1,)
    c: Array  # (k, d1)

    def value_and_dual(self, theta: Array) -> tuple[float, Array]:
        more = self.Z @ theta.T
        q = self.rows.maximiser(more)
        penalty = 0.5 * float((self.G * theta**2).sum())
        return self.rows.value(more, q) + penalty - float((self.c * theta).sum()), q

    def gradient(self, theta: Array, q: Array) -> Array:
        return self.G * theta - self.c - class_coefficients(q, self.rows.y).T @ self.Z

    def hessian(self, q: Array) -> Array:
        """(e_j - e_k) (e_j - e_k)ᵀ ⊗ Σ ties z zᵀ, added up over pairs of classes j, k.

        Adding one number to all scores changes nothing: free biases get a curvature against that.
        """
        (loss, y, u, _, h, _), Z = self.rows, self.Z
        k, d1 = q.shape[1], Z.shape[1]
        H = np.zeros((k, d1, k, d1))
        for i in range(k):
            for j in range(i):
                tie = u / h * loss.ties(q, y, u, i, j)
                S = (Z * tie[:, None])[tie > 0].T @ Z[tie > 0]
                H[i, :, i] += S
                H[j, :, j] += S
                H[i, :, j] -= S
                H[j, :, i] -= S
        free = np.flatnonzero(self.G == 0)
        H[:, free[:, None], :, free] += np.mean([H[c, free, c, free].sum() for c in range(k)]) / k + EPS
        flat = H.reshape(k * d1, k * d1)
        flat[np.diag_indices(k * d1)] += np.tile(self.G, k)
        return flat

    def maximise_dual(self, theta: Array, allowed: float, tuning: MultiplierTuning) -> Array:
        """α (n, k) of the minimum without smoothing: the proximal method of multipliers, from θ and the centre."""
        Z, G, c, (loss, y, u, _, _, q) = self.Z, self.G, self.c, self.rows
        best, smooth = (np.inf, class_coefficients(q, y)), self.rows
        for _ in range(tuning.rounds):
            theta = minimise_by_newton(self._replace(rows=smooth), theta, allowed, tuning).theta
            F = Z @ theta.T
            q = smooth.maximiser(F)
            alpha = class_coefficients(q, y)
            z = slacks(loss, F, y)
            gap = float(u @ loss.value(z) - (q * z).sum())
            gap += gradient_worth(G * theta - c - alpha.T @ Z, G, theta)
            best = min(best, (gap, alpha), key=lambda found: found[0])
            if gap <= 0.1 * allowed:
                break
            smooth = smooth._replace(h=smooth.h / tuning.stiffer, centre=q)
        return best[1]
