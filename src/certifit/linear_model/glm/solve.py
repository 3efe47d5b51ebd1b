"""Minimising a generalised linear model's penalised deviance over any rows, with a proof from the passes themselves.

    P(θ) = Σ wᵢ φ(ηᵢ, yᵢ) + λ₂/2 |β|² + λ₁ |β|₁

| when | method | proof |
|---|---|---|
| λ₁ > 0 | proximal Newton | self-concordance, where the loss has a constant R |
| the same, squares, many columns | proximal Newton in working sets (`working_columns`) | duality |
| β >= 0 (`positive`) | Newton under the constraint | the same, by the slopes that the constraint leaves |
| long tables, R > 0 | Newton from the subsample's solution and Hessian | the same, by the subsample's Hessian |
| else | Newton | the same |

Where the loss has no R nothing is proved here: the loop stops at the decrease that a step promises, with some
caution, and the checker says what holds.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import NamedTuple, NoReturn

import numpy as np

from certifit.checkers.plain.response_columns import ResponseLayout
from certifit.core import Solution, Step, fixed_point
from certifit.core.loop import Watcher
from certifit.exceptions import DataError
from certifit.linear_model.coefficient_error import PassRounding
from certifit.linear_model.glm.block_statistics import GlmPass, GlmRequest, GlmTotals, measure
from certifit.linear_model.glm.coordinates import GlmCoordinates
from certifit.linear_model.glm.tuning import GlmTuning
from certifit.losses.response_losses import ResponseLoss
from certifit.numerics.factor import factor
from certifit.numerics.moments import check_overflow
from certifit.optimise.line_search import DescentPoint, DescentState, Direction, descend
from certifit.optimise.newton import Newton, NewtonTuning
from certifit.optimise.nonnegative_newton import NonnegativeNewton, nonnegative_subgradient
from certifit.optimise.proximal_newton import Proximal, subgradient
from certifit.optimise.self_concordance import ConcordanceProof, HessianPoint, RowReach
from certifit.rows import Array, Rows


class ElasticNetPenalty(NamedTuple):
    """The penalty alpha (l1_ratio |β|₁ + (1 - l1_ratio)/2 |β|²), per unit of row weight or for all rows together."""

    alpha: float
    l1_ratio: float = 0.0
    per_row: bool = True
    positive: bool = False  # whether coefficients are held at 0 or above

    @property
    def biased(self) -> bool:
        """Whether the fit is not that of maximum likelihood."""
        return self.alpha > 0 or self.positive

    @property
    def smooth(self) -> bool:
        """Whether there is a penalty, and that is |β|² alone."""
        return self.alpha > 0 and self.l1_ratio == 0 and not self.positive

    def strengths(self, weight: float) -> tuple[float, float]:
        """The strengths λ₁ and λ₂ beside a sum over rows of this weight."""
        total = self.alpha * (weight if self.per_row else 1.0)
        return self.l1_ratio * total, (1 - self.l1_ratio) * total


class SubsampleSeed(NamedTuple):
    """A subsample's solution: a start for all rows, and a Hessian that is smaller than that of all rows."""

    theta: Array  # (m,)
    H: Array  # (m, m) data term, summed over the subsample
    weight: float  # Σ w over the subsample
    times: float  # rows of the whole table for each row of the subsample


@dataclass
class GlmProblem:
    """What to minimise over θ (m,), and what is known of it so far."""

    rows: Rows
    loss: ResponseLoss
    coordinates: GlmCoordinates
    layout: ResponseLayout
    penalty: ElasticNetPenalty
    tol: float  # relative gap to prove
    tuning: GlmTuning = field(default_factory=GlmTuning)
    seed: SubsampleSeed | None = None
    totals: GlmTotals | None = field(default=None, init=False)  # known after the first pass
    proof: ConcordanceProof = field(init=False)
    proved: bool = field(default=False, init=False)  # whether the last point's gap is a bound
    distance: float = field(default=np.inf, init=False)  # Newton decrement ν at the last point
    before: float = field(default=np.inf, init=False)  # ν at the point before it
    stepped: bool = field(default=False, init=False)  # whether a step from β = 0 was asked for
    rounding: PassRounding | None = field(default=None, init=False)  # of the last point
    curved: tuple[Array, Array] | None = field(default=None, init=False)  # last point with a Hessian of all columns

    def __post_init__(self) -> None:
        anchor = None
        if self.seed is not None:  # the Hessian of some rows is at most that of all
            _, lam2 = self.penalty.strengths(self.seed.weight)
            H = self.seed.H + lam2 * np.diag(self.penalised(len(self.seed.theta)))
            anchor = HessianPoint.at(self.seed.theta, H)
        self.proof = ConcordanceProof(self.loss.concordance or 0.0, anchor, passing=not self.penalty.biased)

    def rule(self, m: int) -> Direction:
        """How steps over θ (m,) are chosen."""
        if self.penalty.positive:
            return NonnegativeNewton(self.penalised(m) > 0)
        if self.penalty.alpha * self.penalty.l1_ratio > 0:
            return Proximal()
        if self.seed is not None:
            _, lam2 = self.penalty.strengths(self.seed.times * self.seed.weight)
            H = self.seed.times * self.seed.H + lam2 * np.diag(self.penalised(m))
            return Newton(inverse=factor(H), wants_hessian=False, trial=not self.penalty.biased)
        if self.loss.concordance == 0 and self.penalty.biased:  # one Hessian is that of every point
            return Newton(tuning=NewtonTuning(near=np.inf))
        return Newton()

    def measure(self, state: DescentState[Direction]) -> GlmPass:
        """One pass over all rows."""
        request = GlmRequest(state.rule.wants_hessian, self.totals is None, self.proof.request)
        return self.rows.sum(partial(measure, state.x, self.coordinates, self.loss, self.layout, request))

    def update(self, state: DescentState[Direction], s: GlmPass) -> Step[DescentState[Direction]]:
        """The next state; where nothing is proved, the promised gain is taken with caution."""
        if self.totals is None:
            assert isinstance(s.totals, GlmTotals)
            self.totals = s.totals
        if state.base is None and not np.isfinite(s.loss):
            refuse_start(self.loss)
        point = self.point(state.x, s, state.rule.columns)
        step = descend(state, point, enough=self.tol if self.proved else -np.inf)
        return step if self.proved else step._replace(gain=self.tuning.caution * step.gain)

    def data_hessian(self, theta: Array) -> Array | None:
        """The Hessian (m, m) of the data term at θ, if the last pass that measured one was there."""
        found = self.curved
        return found[1] if found is not None and np.array_equal(found[0], theta) else None

    def penalised(self, m: int) -> Array:
        """1 for each parameter (m,) that is penalised, 0 for the intercept."""
        return _penalised(m, self.coordinates.intercept)

    def penalty_at(self, theta: Array) -> float:
        """The penalty at θ (m,)."""
        assert self.totals is not None
        lam1, lam2 = self.penalty.strengths(self.totals.weight)
        counted = theta * self.penalised(len(theta))
        return 0.5 * lam2 * float(counted @ counted) + lam1 * float(np.abs(counted).sum())

    def point(self, theta: Array, s: GlmPass, columns: Array | None = None) -> DescentPoint:
        """Add the penalty to what a pass measured, and the gap; the Hessian, if there is one, is in these columns."""
        assert self.totals is not None
        if np.isfinite(s.loss):
            check_overflow(s.g)
            check_overflow(np.asarray(s.H))
        lam1, lam2 = (lam * self.penalised(len(theta)) for lam in self.penalty.strengths(self.totals.weight))
        if not np.isfinite(s.loss):
            return DescentPoint(theta, np.inf, s.g, np.inf, None)
        value = max(0.0, s.loss + self.totals.constant) + self.penalty_at(theta)
        gradient = s.g + lam2 * theta
        hessian = s.H + np.diag(lam2) if isinstance(s.H, np.ndarray) else None
        if isinstance(s.H, np.ndarray) and columns is None:
            self.curved = theta, s.H
        self.rounding = self._rounding(theta, s)
        assert isinstance(s.reach, RowReach)
        self.proof.learn(theta, s.reach, hessian)
        held = self.penalised(len(theta)) > 0
        slope = nonnegative_subgradient(gradient, lam1, held, theta) if self.penalty.positive else None
        gap = self._gap(theta, subgradient(gradient, lam1, theta) if slope is None else slope)
        relative = self._relative(gap, value, hessian is not None)
        if self._is_one_step_away(theta):
            relative = max(relative, 2 * self.tol)
        known = self.proof.factor_of(hessian)
        return DescentPoint(theta, value, gradient, relative, hessian, lam1, rounding=self.totals.floor, factor=known)

    def _is_one_step_away(self, theta: Array) -> bool:
        """Whether a ridge fit of squares has not left β = 0 yet: a strong penalty proves that close at once.

        One step solves it, and coefficients of exactly 0 are no answer of a ridge penalty, unless no column varies:
        then they are 0 after that step too.
        """
        untouched = not (theta * self.penalised(len(theta))).any()
        away = untouched and self.loss.concordance == 0 and self.penalty.smooth and self.distance > 0
        first, self.stepped = not self.stepped, self.stepped or away
        return away and first

    def _rounding(self, theta: Array, s: GlmPass) -> PassRounding:
        """What rounding may have done to a pass: in every φ' with an R > 0 no term is above |φ'| + 4 φ" + 2 |y|."""
        assert self.totals is not None
        slope = s.slope
        if self.loss.concordance:
            slope += 4 * s.curvature + 2 * abs(self.totals.y) * (self.loss.family.name == "negative_binomial")
        lam1, lam2 = self.penalty.strengths(self.totals.weight)
        penalty = (lam1 + lam2 * np.abs(theta)) * self.penalised(len(theta))
        return PassRounding(self.rows.n_rows, slope, s.curvature, float(s.score.value), penalty)

    def _gap(self, theta: Array, g: Array) -> float:
        """A proved bound on P(θ) - min P, else the decrease that a Newton step promises; inf: the rule says."""
        assert self.proof.anchor is not None
        decrement = self.proof.anchor.decrement(g)
        self.distance = np.sqrt(decrement)
        gap = np.inf if self.loss.concordance is None else self.proof.gap(theta, g)
        self.proved = bool(np.isfinite(gap))
        if self.proved or self.penalty.positive or self.penalty.alpha * self.penalty.l1_ratio > 0:
            return gap
        return 0.5 * decrement

    def _relative(self, gap: float, value: float, fresh: bool) -> float:
        """The gap relative to the objective: at most `tol` once all that is asked for is reached.

        Maximum likelihood goes on until the coefficients are close in standard errors, or only rounding is left.
        """
        assert self.totals is not None
        relative = gap / max(value, self.totals.floor, np.finfo(float).tiny)
        if self.penalty.biased:
            return relative
        free = 2 * value / max(1.0, self.totals.rows - self.coordinates.size(self.rows.n_features))
        unit = np.sqrt(free) if self.loss.family.free_dispersion else 1.0
        share = self.tuning.error_share if self.seed is None else self.tuning.error_share_long
        close = self.tuning.error_share_squares if self.loss.concordance == 0 else share
        asked = max(relative, self.tol * self.distance / max(close * unit, np.finfo(float).tiny))
        # With a fresh Hessian, Newton's method at least halves the distance until only rounding is left.
        stuck = fresh and relative <= self.tol and self.distance > 0.5 * self.before
        self.before = self.distance
        return relative if stuck else asked


@lru_cache(maxsize=16)
def _penalised(m: int, intercept: bool) -> Array:
    ones = np.ones(m)
    ones[m - intercept :] = 0.0
    ones.flags.writeable = False
    return ones


def refuse_start(loss: ResponseLoss) -> NoReturn:
    """An error: there is nowhere to start from."""
    raise DataError(
        got=f"no coefficients for which every mean is in the range of the {loss.family.name} family",
        wanted=f"a start for the {loss.link.name} link",
        fix="Use link='log', or fit an intercept.",
    )


def minimise(
    problem: GlmProblem, theta: Array, *, max_iter: int, max_time: float | None = None, watcher: Watcher | None = None
) -> Solution[DescentState[Direction]]:
    """Solve from θ (m,) until the relative gap is at most `problem.tol`."""
    return fixed_point(
        problem.measure,
        problem.update,
        DescentState(theta, problem.rule(len(theta))),
        tol=problem.tol,
        max_iter=max_iter,
        max_time=max_time,
        watcher=watcher,
    )
