"""Checker of linear support vector machines: it recomputes the objective and proves how near it is to its minimum.

**The claim.** Coefficients β and intercept b minimise, up to the gap,

    P(β, b) = ½ |β|² + ρ/2 b² + Σᵢ uᵢ φ(zᵢ),   zᵢ = qᵢ - sᵢ (β·xᵢ + b),   u = C w,   φ a hinge (`plain.hinges`)

Labels are s = ±1 with q = 1; numbers y to be met within ε give each row two slacks, s = ±1 with q = s y - ε. ρ = 0
means a free intercept. P itself is recomputed from the data.

**The bound.** φ(z) = max over 0 <= a <= top of a (z + e) - a²/2κ. Putting any such a in place of the best one makes P
smaller, and what is left is a quadratic in β and b with a known minimum. So for all 0 <= aᵢ <= top uᵢ

    P >= Σ [aᵢ (qᵢ + e) - aᵢ² / (2κuᵢ)] - ½ |v|² - v_b² / (2ρ),   v = Σ aᵢ sᵢ xᵢ,   v_b = Σ aᵢ sᵢ

where v_b = 0 is needed if the intercept is free. This is the bound of a *dual point* a (`_bound`).

**Why a is feasible.** `plain.dual_points` clips any candidate to its limits, which are 0 for rows without weight, and
scales the heavier sign down until v_b = 0 for a free intercept; it verifies both before a bound is made of it, and
gives away what rounding may have added. Hence a bad candidate makes a weak bound, never a wrong one, and nothing
that suggests candidates needs to be trusted:

| candidate | when it is tried |
|---|---|
| slopes φ' at the slacks; for the hinge, of its kink rounded over 14 widths | always |
| dual variables that the model stores | where there are any |
| slopes, but least squares for as many rows at the kink as there are unknowns | for the hinge, if none suffices |
| slopes, but the proximal method of multipliers (Rockafellar 1976) near the bend | if still none suffices |

The largest bound counts. Rows are taken about their centre m, which a free intercept makes up for. Of very many rows,
dual points are sums over blocks (`many_rows`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq, lsq_linear

from certifit.checkers.linear_model.coordinates import centre, no_intercept
from certifit.checkers.plain.blocks import dense
from certifit.checkers.plain.dual_points import DualPenalty, DualSums, is_feasible, make_feasible
from certifit.checkers.plain.dual_points import lower_bound as bound_of_dual_point
from certifit.checkers.plain.hinges import PlainHinge, plain_rounded_hinge
from certifit.checkers.svm.linear_machines.claimed import CLAIM, ClaimedLinearSvm, FittedMachines, ProvedBound
from certifit.checkers.svm.linear_machines.linear_rows import (
    SLACK_ROUNDING,
    MultiplierTuning,
    coefficient_error,
    gradient_worth,
    minimise_by_newton,
    rounding_check,
    scores_and_lengths,
    targets,
    weighted_row_sum,
    weights,
)
from certifit.checkers.svm.linear_machines.many_rows import ManyRowsCheck, ManyRowsTuning
from certifit.core import Certificate, Check
from certifit.rows import Array, Rows

EPS = float(np.finfo(float).eps)


@dataclass(frozen=True)
class LinearSvmCheckTuning:
    """Numbers that steer which dual points are tried; no bound is wrong for any of them."""

    widths: tuple[float, ...] = tuple(10.0 ** -np.arange(0.0, 7.0, 0.5))  # of the rounded kink, in sizes of a target
    near_rows: int = 2048  # slacks near the bend that are solved for, or
    near_rows_per_column: int = 8  # so many for each parameter, if that is more
    most_columns: int = 4000  # columns beyond which no system is solved
    narrowest: float = 1e-3  # width of the first proximal term, in sizes of a target
    multipliers: MultiplierTuning = field(default_factory=MultiplierTuning)
    most_slacks: int = 500_000  # beyond which dual points are sums over blocks, and nothing is kept row by row
    many_rows: ManyRowsTuning = field(default_factory=ManyRowsTuning)


class SignedSlacks(NamedTuple):
    """The slacks of all rows (m,); where rows have two, the second ones after all first ones."""

    z: Array
    s: Array
    q: Array
    u: Array
    length: Array  # |x - m| of the row


class LinearDualPoint(NamedTuple):
    """A feasible dual point, as it enters the bound."""

    a: Array  # (m,)
    v: Array  # (d,)


def certify(
    coef: Array,
    intercept: Array,
    claimed: ClaimedLinearSvm,
    tol: float,
    rows: Rows,
    dual: Array | None = None,
    tuning: LinearSvmCheckTuning | None = None,
) -> Certificate:
    """Check β (k, d) and b (k,), machine by machine.

    y are class numbers or numbers, w include class weights; `dual` (k, n) is Σ s a of each row's slacks.
    """
    tuning = tuning or LinearSvmCheckTuning()
    m = centre(rows) if claimed.rho == 0 else np.zeros(rows.n_features)
    b = intercept + coef @ m
    fitted = FittedMachines(claimed, coef, b, m, rows)
    many = dual is None and fitted.slacks > tuning.most_slacks
    judged = _judge_by_sums(fitted, tol, tuning) if many else _judge_by_rows(fitted, tol, dual, tuning)
    objective, rounding = float(judged.value.sum()), float((judged.rounding + judged.given_away).sum())
    checks = (no_intercept(b),) if claimed.rho is None else ()
    checks = (*checks, rounding_check(rounding, objective, coef))
    if fitted.settled:
        checks = (*checks, Check("intercepts off the middle of the best ones by, relative", judged.aside, 1e-6))
    return Certificate(
        "optimal",
        CLAIM,
        objective,
        float(np.minimum(judged.bound, judged.value).sum()),
        tol,
        (tol + 1e-12) * objective + rounding,
        checks,
        scale=max(objective, float(judged.at_zero.sum())),
        parameter_error=coefficient_error(coef, judged.value + judged.rounding - judged.bound, claimed.rho),
    )


class JudgedMachines(NamedTuple):
    """What is known of each machine (k,)."""

    value: Array
    rounding: Array  # of the value
    at_zero: Array  # losses where all parameters are 0
    bound: Array
    given_away: Array  # to rounding, in the bound
    aside: float  # how far intercepts are from the middle of the best ones


def _judge_by_rows(
    fitted: FittedMachines, tol: float, dual: Array | None, tuning: LinearSvmCheckTuning
) -> JudgedMachines:
    """Dual points are kept row by row."""
    found, aside = [], 0.0
    for c, machine in enumerate(_machines(fitted, tuning)):
        stored = [] if dual is None else [machine.at.s * np.tile(dual[c], fitted.slacks // fitted.rows.n_rows)]
        proved = machine.lower_bound(stored, tol * machine.objective)
        found.append((machine.objective, machine.rounding, machine.objective_at_zero, *proved))
        aside = float(np.maximum(aside, machine.aside)) if fitted.settled else 0.0
    value, rounding, at_zero, bound, given_away = np.array(found).T
    return JudgedMachines(value, rounding, at_zero, bound, given_away, aside)


def _judge_by_sums(fitted: FittedMachines, tol: float, tuning: LinearSvmCheckTuning) -> JudgedMachines:
    """Dual points are sums over blocks of rows; scores are kept where the middle of best intercepts is claimed."""
    check = ManyRowsCheck(fitted, tuning.many_rows)
    widths = check.widths()
    at = check.costs(widths)
    value = at.loss + check.penalty
    proved = np.array(check.bounds(tol * value, at, widths))
    aside = [machine.aside for machine in _machines(fitted, tuning)] if fitted.settled else [0.0]
    rounding = at.rounding + 8 * EPS * np.abs(value)
    return JudgedMachines(value, rounding, at.loss_at_zero, proved[:, 0], proved[:, 1], float(np.max(aside)))


def _machines(fitted: FittedMachines, tuning: LinearSvmCheckTuning) -> Iterator[_MachineCheck]:
    """One machine after another, with the slacks of all rows."""
    claimed, coef, b, m, rows = fitted
    eta = rows.map(partial(scores_and_lengths, coef, b, m))
    y, w = rows.map(targets), rows.map(weights)
    for c in range(len(coef)):
        at = _slacks(eta[:, c], eta[:, -1], y, w, claimed, c if len(coef) > 1 else 1)
        yield _MachineCheck(claimed, at, coef[c], b[c], m, rows, tuning)


def _slacks(eta: Array, length: Array, y: Array, w: Array, claimed: ClaimedLinearSvm, code: int) -> SignedSlacks:
    u = claimed.C * w
    if claimed.epsilon is None:
        s, q = np.where(y == code, 1.0, -1.0), np.ones(len(y))
    else:
        s, u, eta, length = np.repeat([1.0, -1.0], len(y)), np.tile(u, 2), np.tile(eta, 2), np.tile(length, 2)
        q = s * np.tile(y, 2) - claimed.epsilon
    return SignedSlacks(q - s * eta, s, q, u, length)


@dataclass(frozen=True)
class _MachineCheck:
    """One machine: its objective, and lower bounds on the minimum."""

    claimed: ClaimedLinearSvm
    at: SignedSlacks
    beta: Array  # (d,)
    b: float
    m: Array  # (d,)
    rows: Rows
    tuning: LinearSvmCheckTuning

    @cached_property
    def objective(self) -> float:
        losses = float((self.at.u * self.claimed.hinge.value(self.at.z)).sum())
        return losses + 0.5 * float(self.beta @ self.beta) + 0.5 * (self.claimed.rho or 0.0) * float(self.b**2)

    @property
    def objective_at_zero(self) -> float:
        """The losses where all parameters are 0: the size of what the objective sums up."""
        return float((self.at.u * self.claimed.hinge.value(self.at.q)).sum())

    @property
    def rounding(self) -> float:
        """How far the objective can be off: φ moves by at most its slope times what rounding moves a slack by."""
        z, _, q, u, length = self.at
        score = float(np.linalg.norm(self.beta)) * length + float(np.abs(self.beta) @ np.abs(self.m)) + abs(self.b)
        off = SLACK_ROUNDING * np.abs(q) + (SLACK_ROUNDING + EPS * len(self.beta)) * score
        return float((u * self.claimed.hinge.slope(z + off) * off).sum()) + 8 * EPS * abs(self.objective)

    @property
    def aside(self) -> float:
        """How far the intercept is from the middle of the best ones, beyond rounding, in sizes of a target."""
        z, s, q, u, length = self.at
        # z = q - s (β·x + b): a change of b by s (z + e) puts a row where its loss begins
        off = abs(self.claimed.best_step(s * (z + self.claimed.e), s, u))
        size = float(np.linalg.norm(self.beta)) * length + float(np.abs(self.beta) @ np.abs(self.m)) + abs(self.b)
        rounding = (SLACK_ROUNDING + EPS * len(self.beta)) * float((np.abs(q) + size).max())
        # In a tube far wider than the targets' spread nothing but the intercept predicts.
        y = s * (q + self.claimed.epsilon) if self.claimed.epsilon is not None else np.zeros(1)
        return max(0.0, off - rounding) / (float(np.abs(y - np.median(y)).mean()) or self.unit)

    @cached_property
    def unit(self) -> float:
        """The size of a target."""
        target = self.at.s * self.at.q if self.claimed.epsilon is not None else np.zeros(1)
        return float(np.abs(target - np.median(target)).mean()) or 1.0

    @cached_property
    def theta(self) -> Array:
        """β and, where there is one, b (d1,)."""
        return self.beta if self.claimed.rho is None else np.append(self.beta, self.b)

    @cached_property
    def G(self) -> Array:
        """Weights of θ²/2 in the objective (d1,)."""
        ones = np.ones(self.rows.n_features)
        return ones if self.claimed.rho is None else np.append(ones, self.claimed.rho)

    # ---------------------------------------------------------------------------------------- what has to be right
    def _feasible_points(self, candidates: Sequence[Array]) -> list[LinearDualPoint]:
        """Feasible points from these (m,): within the limits, with signs in balance where the intercept is free."""
        if not candidates:
            return []
        s, limit, n = self.at.s, self.claimed.hinge.largest_dual(self.at.u), self.rows.n_rows
        points = [make_feasible(a, limit, s if self.claimed.rho == 0 else None) for a in candidates]
        signed = (np.stack(points, axis=1) * s[:, None]).reshape(-1, n, len(points)).sum(axis=0)  # (n, points)
        v = self.rows.sum(partial(weighted_row_sum, signed, self.m))
        return [LinearDualPoint(a, v[j]) for j, a in enumerate(points)]

    def _bound(self, point: LinearDualPoint) -> ProvedBound:
        """The bound at the top of this file, at the best feasible multiple t of this dual point; never below 0."""
        (_, s, q, u, length), claimed, t = self.at, self.claimed, self._best_multiple(point)
        a, limit = t * point.a, claimed.hinge.largest_dual(u)
        if not is_feasible(a, limit):
            return ProvedBound(0.0, 0.0)
        linear, soft = a * (q + claimed.e), self._softness(a)
        square, signed = t * float(np.linalg.norm(point.v)), a * s
        sums = DualSums(
            gain=float(linear.sum()) - soft,
            gain_size=float(np.abs(linear).sum()) + soft,
            v=np.array([square]),
            v_size=np.array([float((a * length).sum())]),
            balance=np.array(signed.sum()),
            mass=np.array(a.sum()),
        )
        found = bound_of_dual_point(sums, DualPenalty(0.0, 1.0, claimed.rho), len(a))
        exact = sums.gain - 0.5 * square * square  # a power of a float would raise where it overflows
        exact -= float(np.square(sums.balance)) / (2 * claimed.rho) if claimed.rho else 0.0
        return ProvedBound(found, max(0.0, exact - found)) if found > 0 else ProvedBound(0.0, 0.0)

    def _softness(self, a: Array) -> float:
        """Σ a² / (2κu), of the rows with weight."""
        counted = self.at.u > 0
        return float((a[counted] ** 2 / self.at.u[counted]).sum()) / (2 * self.claimed.kappa)

    def _best_multiple(self, point: LinearDualPoint) -> float:
        """The t >= 0 for which the bound of t a is largest; at most 1 where a has upper limits."""
        a, v = point
        linear, rho = float((a * (self.at.q + self.claimed.e)).sum()), self.claimed.rho
        square = float(v @ v) + 2 * self._softness(a)
        if rho:
            square += float(np.square((a * self.at.s).sum())) / rho
        if not (linear > 0 and np.isfinite(square)):
            return 0.0
        most = 1.0 if np.isfinite(self.claimed.top) or square <= 0 else np.inf
        return min(most, linear / square if square > 0 else 1.0)

    # ----------------------------------------------------------------------- which points are tried: see the table
    def lower_bound(self, stored: Sequence[Array], allowed: float) -> ProvedBound:
        """The largest bound found; costlier points are tried where it misses the objective by more than allowed."""
        hinge, tuning, value = self.claimed.hinge, self.tuning, self.objective
        widths = (self.unit * np.array(tuning.widths)).tolist()
        smooth = [hinge] if np.isfinite(hinge.kappa) else [plain_rounded_hinge(h) for h in widths]
        points = [*self._feasible_points([*map(self._slopes, smooth)]), *self._feasible_points(stored)]
        bounds = [self._bound(point) for point in points]
        best = max(bounds)
        if value - best.value <= allowed or self.rows.n_features > tuning.most_columns:
            return best
        if np.isinf(hinge.kappa):
            for count in self._counts_at_the_kink():
                at_kink = self._bound_with(*self._least_squares_multipliers(count))
                best = max(best, at_kink)
                if value - at_kink.value <= allowed:
                    return best
        i = int(np.argmax([bound.value for bound in bounds[: len(smooth)]]))
        width = max(smooth[i].e, tuning.narrowest * self.unit)
        return max(best, self._bound_with(*self._proximal_multipliers(points[i].a, width, allowed)))

    def _slopes(self, smooth: PlainHinge) -> Array:
        """u φ' at the slacks, after a free intercept was moved to where these balance."""
        return self.at.u * smooth.slope(self.at.z - self.at.s * self._balancing_offset(smooth))

    def _balancing_offset(self, smooth: PlainHinge) -> float:
        """How much to add to a free intercept so that Σ u φ' s = 0."""
        z, s, _, u, _ = self.at
        if self.claimed.rho != 0 or not u.any():
            return 0.0

        def excess(t: float) -> float:
            return float((u * s) @ smooth.slope(z - s * t))

        curved = 1 / smooth.kappa if np.isfinite(smooth.top) else 0.0
        reach = 1.0 + float(np.abs(z[u > 0]).max()) + smooth.e + curved
        if not excess(-reach) >= 0 >= excess(reach):
            return 0.0
        return float(brentq(excess, -reach, reach, xtol=1e-15 * reach, rtol=1e-15))

    def _bound_with(self, near: Array, multipliers: Callable[[Array, Array], Array]) -> ProvedBound:
        """The bound of the slopes, but with multipliers(A, c) for the slacks `near`.

        A are the rows s (x - m, 1) of these (near, d1), and c is the sum of a s (x - m, 1) over all others (d1,).
        """
        s, n = self.at.s, self.rows.n_rows
        a = self.at.u * self.claimed.hinge.slope(self.at.z)
        a[near] = 0.0
        signed = (a * s).reshape(-1, n).sum(axis=0)
        c = self.rows.sum(partial(weighted_row_sum, signed[:, None], self.m))[0]
        row, place = np.unique(near % n, return_inverse=True)
        A = s[near][:, None] * (dense(self.rows.take(row).X) - self.m)[place]
        if self.claimed.rho is not None:
            A, c = np.column_stack([A, s[near]]), np.append(c, signed.sum())
        a[near] = multipliers(A, c)
        return self._bound(self._feasible_points([a])[0])

    @cached_property
    def _away(self) -> Array:
        """How far each slack is from the kink (m,); infinite without weight."""
        return np.where(self.at.u > 0, np.abs(self.at.z), np.inf)

    def _counts_at_the_kink(self) -> list[int]:
        """How many rows are taken to be at the kink: as many as parameters, and those before the widest jump.

        Columns that are combinations of others leave fewer there, and multipliers of rows that are not at the kink
        may then have any value that solves the equations.
        """
        n = self.rows.n_rows
        most = min(n, len(self.theta))
        nearest = np.sort(self._away.reshape(-1, n).min(axis=0))[: most + 1]
        sizes = np.log(np.maximum(nearest[np.isfinite(nearest)], np.finfo(float).tiny))
        jump = int(np.argmax(np.diff(sizes))) + 1 if len(sizes) > 1 else most
        return [most] if jump == most else [most, jump]

    def _least_squares_multipliers(self, count: int) -> tuple[Array, Callable[[Array, Array], Array]]:
        """For so many rows nearest to the kink: a with c + Aᵀa = Gθ, as at the minimum."""
        of_rows = self._away.reshape(-1, self.rows.n_rows).min(axis=0)
        near = np.flatnonzero(self._away <= np.partition(of_rows, count - 1)[count - 1])
        u = self.at.u[near]

        def multipliers(A: Array, c: Array) -> Array:
            size = np.abs(A).max(axis=0, initial=0.0)
            size[size == 0] = 1.0
            missing = (self.G * self.theta - c) / size
            # In units of the largest part that is missing, and not of the limits, which may have any size: the solver
            # stops at absolute sizes.
            most = float(np.abs(missing).max(initial=0.0)) or 1.0
            limits = np.maximum(u / most, np.finfo(float).tiny)
            found = lsq_linear((A / size).T, missing / most, (0.0, limits), "bvls", tol=EPS, max_iter=20).x
            return np.minimum(most * found, u)

        return near, multipliers

    def _proximal_multipliers(
        self, a: Array, width: float, allowed: float
    ) -> tuple[Array, Callable[[Array, Array], Array]]:
        """For the slacks nearest to where the loss is curved: the dual's maximum over these, from a."""
        z, _, q, u, _ = self.at
        hinge, tuning = self.claimed.hinge, self.tuning
        away = np.maximum(-hinge.e - z, z + hinge.e - hinge.top / hinge.kappa)  # negative where φ is curved
        count = min(len(z), max(tuning.near_rows, tuning.near_rows_per_column * len(self.theta)))
        near = np.sort(np.argpartition(np.where(u > 0, away, np.inf), count - 1)[:count])

        def multipliers(A: Array, c: Array) -> Array:
            top, counted = hinge.largest_dual(u[near]), np.where(u > 0, u, 1.0)[near]
            first = _ProximalDual(hinge, A, q[near] + hinge.e, counted, top, self.G, c, 2 * width / counted, a[near])
            return first.maximise(self.theta, allowed, tuning.multipliers)

        return near, multipliers


class _ProximalDual(NamedTuple):
    """min over θ of ½ Σ G θ² - c·θ + Σ max over 0 <= a <= top of a (q - Aθ) - soft/2 a² - firm/2 (a - centre)².

    Without the last term this is the problem of the slacks near the bend; with it, a smooth function of θ.
    """

    hinge: PlainHinge
    A: Array  # (near, d1)
    q: Array  # (near,), e included
    u: Array  # (near,) weights; 1 where they are 0, since top is 0 there
    top: Array  # (near,)
    G: Array  # (d1,)
    c: Array  # (d1,)
    firm: Array  # (near,)
    centre: Array  # (near,)

    @property
    def soft(self) -> Array:
        return 1 / (self.hinge.kappa * self.u)

    def value_and_dual(self, theta: Array) -> tuple[float, Array]:
        z, soft, firm = self.q - self.A @ theta, self.soft, self.firm
        a = np.clip((firm * self.centre + z) / (firm + soft), 0.0, self.top)
        value = 0.5 * float(self.G @ theta**2) - float(self.c @ theta)
        return value + float((a * z - 0.5 * soft * a**2 - 0.5 * firm * (a - self.centre) ** 2).sum()), a

    def gradient(self, theta: Array, a: Array) -> Array:
        return self.G * theta - self.c - self.A.T @ a

    def hessian(self, a: Array) -> Array:
        free = (a > 0) & (a < self.top)
        return np.diag(self.G) + (self.A[free] / (self.firm + self.soft)[free][:, None]).T @ self.A[free]

    def maximise(self, theta: Array, allowed: float, tuning: MultiplierTuning) -> Array:
        """The best a without the proximal term: each round's a is the next round's centre (Rockafellar 1976)."""
        at, best = self, (np.inf, self.centre)
        for _ in range(tuning.rounds):
            theta, a, stuck = minimise_by_newton(at, theta, allowed, tuning)
            z = self.q - self.A @ theta
            losses = (self.u * self.hinge.value(z - self.hinge.e))[self.top > 0]
            gap = float(losses.sum() - (a * z - 0.5 * self.soft * a**2).sum())
            gap += gradient_worth(at.gradient(theta, a), self.G, theta)
            best = min(best, (gap, a), key=lambda found: found[0])
            if gap <= 0.1 * allowed:
                break
            firm = at.firm * tuning.stiffer if stuck else at.firm / tuning.stiffer
            at = at._replace(firm=firm, centre=a)
        return best[1]
