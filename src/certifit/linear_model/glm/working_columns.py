"""Least squares beside an L1 penalty on many columns, of which most have the coefficient 0 and need no Hessian.

The Hessian is measured in a working set of columns that grows until the duality gap, which needs the slopes of all
columns and no Hessian, is small enough. With r = y - η in balance (Σ w r = 0 where the intercept is free; moving the
intercept to its best value makes it so) and v = Σ w r z, the dual points r, beside a ridge penalty λ₂, and τr with
τ = min(1, λ₁ / max |v|) prove

    P >= D - Σⱼ (|vⱼ| - λ₁)₊² / 2λ₂,     P >= τD,      D = Σ w r y - Σ w r² / 2,    Σ w r y = Σ w r² + β·v.
References: Massias, Gramfort & Salmon, "Celer: a fast solver for the Lasso with dual extrapolation" (2018);
Fercoq, Gramfort & Salmon, "Mind the duality gap: safer rules for the Lasso" (2015).
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from functools import partial

import numpy as np

from certifit.checkers.linear_model.claims import LinearModelClaims
from certifit.checkers.plain.dual_points import bound_below, summation_error
from certifit.core import Certificate, Solution
from certifit.linear_model.glm.block_statistics import GlmPass, GlmRequest, measure, measure_gram
from certifit.linear_model.glm.solve import GlmProblem
from certifit.numerics.moments import check_overflow
from certifit.optimise.line_search import DescentPoint, DescentState, Direction
from certifit.optimise.proximal_newton import Proximal, ProximalTuning
from certifit.optimise.sparse_curvature import SparseCurvature
from certifit.rows import Array


@dataclass
class WorkingSetSquares(GlmProblem):
    """Squares and an L1 penalty over θ (m,), proved by duality."""

    column_sums: Array | None = field(default=None, init=False)  # (m,) Σ w z; known after the first pass
    last: tuple[Array, GlmPass] | None = field(default=None, init=False)  # the last θ, and what was measured there
    seen: DescentPoint | None = field(default=None, init=False)  # the last point, without a Hessian

    def rule(self, m: int) -> Direction:
        """Steps in a working set of columns, of whose Hessian there is but one."""
        return Proximal(working=True, wants_hessian=False, quadratic=True, tuning=ProximalTuning.of_columns(m))

    def measure(self, state: DescentState[Direction]) -> GlmPass:
        """One pass over all rows; where only the Hessian is missing, for that alone."""
        columns, first = state.rule.columns, self.last is None
        if self.last is not None and state.base is not None and state.rule.wants_hessian:
            assert columns is not None
            H = self.rows.sum(partial(measure_gram, columns, self.coordinates, self.layout))
            return replace(self.last[1], H=H)
        request = GlmRequest(hessian=False, totals=first, column_sums=first)
        found = self.rows.sum(partial(measure, state.x, self.coordinates, self.loss, self.layout, request))
        if isinstance(found.columns, np.ndarray):
            self.column_sums = found.columns
        self.last = state.x, found
        return found

    def point(self, theta: Array, s: GlmPass, columns: Array | None = None) -> DescentPoint:
        """Add the penalty to what a pass measured, and the gap."""
        assert self.totals is not None
        held = self.penalised(len(theta))
        lam1, lam2 = (lam * held for lam in self.penalty.strengths(self.totals.weight))
        hessian: Array | SparseCurvature | None = None
        if isinstance(s.H, SparseCurvature):
            assert columns is not None
            hessian = s.H.with_ridge(lam2[columns])
        elif isinstance(s.H, np.ndarray):
            hessian = check_overflow(s.H)
            hessian[np.diag_indices(len(hessian))] += lam2 if columns is None else lam2[columns]
        if hessian is not None and self.seen is not None and np.array_equal(self.seen.x, theta):
            return self.seen._replace(hessian=hessian)
        half = max(0.0, s.loss + self.totals.constant)
        value = half + self.penalty_at(theta)
        gradient = check_overflow(s.g) + lam2 * theta
        v, balanced = s.g, half
        if self.coordinates.intercept:
            assert self.column_sums is not None
            v = s.g - self.column_sums * (s.g[-1] / self.totals.weight)
            balanced = max(0.0, half - 0.5 * s.g[-1] ** 2 / self.totals.weight)
        self.proved = True
        gap = value - self._bound(theta * held, v * held, balanced)
        relative = max(0.0, gap) / max(value, self.totals.floor, np.finfo(float).tiny)
        screen = v + lam2 * theta
        self.seen = DescentPoint(theta, value, gradient, relative, None, lam1, screen, rounding=self.totals.floor)
        return self.seen._replace(hessian=hessian)

    def _bound(self, beta: Array, v: Array, half: float) -> float:
        """The better bound of the two, with the slopes v (here of -r) and `half` = Σ w r² / 2."""
        assert self.totals is not None
        lam1, lam2 = self.penalty.strengths(self.totals.weight)
        dual, worst = half - float(beta @ v), float(np.abs(v).max(initial=0.0))
        bounds = [0.0, dual * min(1.0, lam1 / worst) if worst > 0 else dual]
        if lam2 > 0:
            bounds.append(dual - float((np.maximum(np.abs(v) - lam1, 0.0) ** 2).sum()) / (2 * lam2))
        return max(bounds)

    def certificate(self, best: Solution[DescentState[Direction]], tol: float) -> Certificate | None:
        """From the last pass; None where rounding counts, or nothing is proved."""
        assert self.totals is not None
        if best.status != "converged" or tol < self.tuning.strict_tol:
            return None
        n_rows, value = self.rows.n_rows, best.objective
        size = value + abs(self.totals.constant) + self.totals.floor
        rounding = 2 * summation_error(n_rows) * size
        if not rounding <= self.tuning.rounding_share * tol * value:
            return None
        bound = bound_below(value, best.gain * max(value, self.totals.floor), size, n_rows)
        words = LinearModelClaims.of_deviance(penalised=True, positive=False)
        errors = self._parameter_error(value - bound)
        return Certificate("optimal", words, value, bound, tol, tol * value + rounding, parameter_error=errors)

    def _parameter_error(self, gap: float) -> tuple[tuple[float, ...], ...]:
        """How far each coefficient can be from the minimiser's by strong convexity; () without a ridge penalty."""
        assert self.totals is not None
        _, lam2 = self.penalty.strengths(self.totals.weight)
        if lam2 == 0:
            return ()
        radius = float(np.sqrt(2 * gap / lam2)) * (1 + 1e-9)
        return ((radius,) * self.rows.n_features + (np.inf if self.coordinates.intercept else 0.0,),)


def with_working_sets(problem: GlmProblem) -> GlmProblem:
    """The same problem, solved in working sets where its whole Hessian would be too large to be worth its while."""
    shrunk = problem.penalty.alpha * problem.penalty.l1_ratio > 0 and not problem.penalty.positive
    wide = problem.rows.n_features > problem.tuning.hessian_columns
    if not (shrunk and wide and problem.loss.concordance == 0):
        return problem
    return WorkingSetSquares(**{f.name: getattr(problem, f.name) for f in fields(problem) if f.init})
