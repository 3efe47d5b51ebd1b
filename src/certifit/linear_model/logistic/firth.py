"""Firth's bias-reduced logistic regression: finite also where the classes are separable.

    min over θ of   Σᵢ wᵢ φ(θ·zᵢ, yᵢ) + ½ log |I(0)| / |I(θ)|,    I(θ) = Σᵢ wᵢ pᵢ (1 - pᵢ) zᵢ zᵢᵀ

The penalty is Jeffreys' prior, put so that it is 0 at θ = 0, nowhere negative and the same in any units. Its gradient
needs every row's leverage hᵢ = pᵢ (1 - pᵢ) zᵢ·I⁻¹zᵢ, hence two passes per step. With the leverages held fixed it is a
logistic regression in which each row comes with hᵢ/2 successes and hᵢ/2 failures more: its Hessian gives the steps.
References: Firth, "Bias reduction of maximum likelihood estimates" (1993); Heinze & Schemper, "A solution to the
problem of separation in logistic regression" (2002); Kosmidis & Firth (2021): the estimate is always finite.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

from certifit.checkers.linear_model.logistic import firth as checker
from certifit.core import Certificate, Solution, fixed_point
from certifit.exceptions import DataError
from certifit.linear_model.linear_rows import moment, sandwich, shift_rows
from certifit.linear_model.logistic.block_statistics import LogisticPass, LogisticRequest, measure
from certifit.linear_model.logistic.problem import LogisticRows
from certifit.linear_model.logistic.solve import LogisticLimits
from certifit.losses.softmax import logistic_curvature
from certifit.numerics.factor import factor
from certifit.numerics.moments import check_overflow
from certifit.optimise.line_search import DescentPoint, DescentState, descend
from certifit.optimise.newton import Newton
from certifit.rows import Array, Block, Rows, Sums


class Firth:
    """A task (see `problem.LogisticTask`) for two classes and linearly independent columns."""

    symmetric = False
    errors = True
    likelihood = False

    def minimise(self, data: LogisticRows, theta: Array, limits: LogisticLimits) -> Solution[Any]:
        """Score from θ, or from 0 where that is better, until the modified scores are `tol` standard errors."""
        if len(theta) > 1:
            raise DataError(
                got=f"{len(theta)} classes with penalty='firth'",
                wanted="two",
                fix="Only binary classification is supported. The type of the target is multiclass.",
            )
        problem = FirthProblem(data.rows, data.intercept, data.shift)
        start = DescentState(theta.ravel(), Newton(chord=False))
        if theta.any() and not problem.measure(start).value <= data.chance:
            start = start._replace(x=np.zeros(theta.size))
        return fixed_point(
            problem.measure,
            descend,
            start,
            tol=max(limits.tol, 1e-12),
            max_iter=limits.max_iter,
            max_time=limits.max_time,
            watcher=limits.watcher,
        )

    def certificate(self, data: LogisticRows, best: Solution[Any], tol: float) -> Certificate:
        """Of the coefficients that are kept: far from 0, rounding their intercept moves every score."""
        kept = data.attributes(self.symmetric, best.params.x)
        return checker.certify(kept["coef_"], kept["intercept_"], data.intercept, tol, data.rows)

    def penalty(self, rows: Rows, theta: Array, intercept: bool) -> float:
        return FirthProblem(rows, intercept, None).penalty(theta[0, : rows.n_features + intercept])


class InformationRoot(NamedTuple):
    """A root of the inverse information, I⁻¹ = inverse inverseᵀ, and log |I|."""

    inverse: Array  # (d1, d1)
    log_determinant: float
    rounding: float  # of the logarithm, where columns are nearly collinear under these weights


@dataclass
class FirthProblem:
    """The penalised loss on these rows, at θ (d1,) in coordinates shifted by `shift`."""

    rows: Rows
    intercept: bool
    shift: Array | None  # (d,)
    at_zero: float = field(init=False)  # log |I(0)|

    def __post_init__(self) -> None:
        root = _root(self._pass(np.zeros(self.rows.n_features + self.intercept)))
        if root is None:
            raise DataError(
                got="columns that are combinations of others (the intercept counts as one)",
                wanted="linearly independent columns: Firth's penalty is not defined otherwise",
                fix="Leave columns out, or use penalty='l2'.",
            )
        self.at_zero = root.log_determinant

    def measure(self, state: DescentState[Newton]) -> DescentPoint:
        """Two passes; the gap is the norm of the modified scores in I⁻¹."""
        s = self._pass(state.x)
        root = _root(s)
        if root is None:  # so far out that no information is left
            return DescentPoint(state.x, np.inf, s.g[0], np.inf, None)
        more = self.rows.sum(partial(_penalty_sums, state.x, self.shift, self.intercept, root.inverse))
        gradient = s.g[0] + more.g
        distance = float(np.linalg.norm(root.inverse.T @ gradient))
        value = s.loss + self._penalty(root)
        return DescentPoint(state.x, value, gradient, distance, s.H + more.H, rounding=0.5 * root.rounding)

    def penalty(self, theta: Array) -> float:
        """The penalty ½ log |I(0)| / |I(θ)|."""
        root = _root(self._pass(theta))
        return np.inf if root is None else self._penalty(root)

    def _penalty(self, root: InformationRoot) -> float:
        return 0.5 * (self.at_zero - root.log_determinant)

    def _pass(self, theta: Array) -> LogisticPass:
        request = LogisticRequest(hessian=True)
        return self.rows.sum(partial(measure, theta[None], self.shift, self.intercept, request))


def _root(s: LogisticPass) -> InformationRoot | None:
    """The root of the inverse information; None where the information is singular."""
    assert isinstance(s.H, np.ndarray)
    if not (np.diag(check_overflow(s.H)) > 0).all():
        return None
    found = factor(s.H)
    if found.cholesky is None:
        return None
    lower = found.cholesky[0]
    inverse = solve_triangular(lower, np.diag(found.scale), lower=True).T
    pivots = np.diag(lower)  # of a matrix with ones on its diagonal: the logarithm of each loses its digits
    rounding = min(4 * np.finfo(float).eps * float((1 / pivots**2).sum()), 1e-8)
    return InformationRoot(inverse, 2 * float((np.log(pivots) - np.log(found.scale)).sum()), rounding)


@dataclass(frozen=True)
class PenaltySums(Sums):
    """Sums over pseudo-rows: half a success and half a failure of weight h beside every row."""

    g: Array  # (d1,) Σ w h (p - ½) z: the gradient of the penalty
    H: Array  # (d1, d1) Σ w h p (1 - p) z zᵀ


def _penalty_sums(theta: Array, shift: Array | None, intercept: bool, root: Array, block: Block) -> PenaltySums:
    Z = shift_rows(block.X, shift)
    d = Z.shape[1]
    eta, whitened = Z @ theta[:d], Z @ root[:d]
    if intercept:
        eta, whitened = eta + theta[d], whitened + root[d]
    curvature = logistic_curvature(eta)
    wh = block.w * curvature * (whitened**2).sum(axis=1)
    pull = 0.5 * wh * np.tanh(0.5 * eta)
    return PenaltySums(moment(Z, pull[:, None], intercept)[0], sandwich(Z, wh * curvature, intercept))
