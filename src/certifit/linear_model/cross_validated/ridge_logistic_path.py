"""Two classes beside a ridge penalty, for many strengths on one small table: Newton steps along the path.

    P(θ) = L(θ) + λ/2 |β|²,    θ = (β, b) in coordinates z = (x - shift, 1)

What a pass measured of L at the last point of one λ, its gradient and Hessian, is that of the first point of the
next, so that every λ begins with a Newton step that costs no pass. The gap is proved by self-concordance with the
Hessian of the point itself or of the one before (`optimise.self_concordance`), rounding included: where the last step
is short, the point that it leads to needs no Hessian of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from certifit.checkers.linear_model.logistic.dual_point import allowed_gap
from certifit.checkers.plain.dual_points import bound_below
from certifit.linear_model.coefficient_error import PassRounding, gap_to_reach, proved_distance
from certifit.linear_model.logistic.problem import LogisticRows
from certifit.losses.softmax_loops import binary_rows
from certifit.numerics.products import shifted
from certifit.optimise.self_concordance import ConcordanceProof, HessianPoint
from certifit.rows import Array, ArrayRows


@dataclass(frozen=True)
class PathTuning:
    """When the path is taken, and how far its steps may go."""

    entries: int = 2**20  # rows times columns up to which a table is small
    parameters: int = 200  # up to which a Hessian is formed at every point
    halvings: int = 30  # of a step that does not lower the objective
    decrease: float = 1e-4  # share of what the slope promises that a step must gain
    short_step: float = 1e-4  # that promises so little of the objective: the Hessian before it will do


class PathPoint(NamedTuple):
    """What a pass measured of the data term."""

    x: Array  # (d1,) θ
    loss: float
    gradient: Array  # (d1,)
    hessian: Array  # (d1, d1)
    origin: Array  # (d1,) θ at which the Hessian was measured: this point, or the one before


class PathFits(NamedTuple):
    """The fits along a path."""

    coef: Array  # (m, 1, d)
    intercept: Array  # (m, 1)
    n_iter: Array  # (m,) steps


class RidgePath:
    """A table of two classes with what its passes need."""

    def __init__(self, data: LogisticRows, table: ArrayRows) -> None:
        assert table.y is not None
        Z = shifted(table.X, data.shift)
        self.data, self.y, self.w = data, table.y, table.w
        n, d1 = len(Z), Z.shape[1] + data.intercept
        # A column after the other: a pass weighs them along the rows.
        self.columns = np.ones((d1, n))
        self.columns[: Z.shape[1]] = Z.T
        counted = self.columns if self.w.all() else self.columns[:, self.w > 0]
        self.extent = np.maximum(counted.max(axis=1), -counted.min(axis=1))
        self.penalised = np.ones(d1)
        self.penalised[d1 - data.intercept :] = 0.0
        self.residual, self.curvature, self.roots = np.empty(n), np.empty(n), np.empty((d1, n))

    def measure(self, x: Array, near: PathPoint | None = None) -> PathPoint:
        """Measure the data term at θ (d1,), and its Hessian, or take that of a point near by."""
        loss, _ = binary_rows(x @ self.columns, self.y, self.w, self.residual, self.curvature)
        gradient = self.columns @ self.residual
        if near is not None:
            return PathPoint(x, loss, gradient, near.hessian, near.origin)
        roots = np.multiply(self.columns, np.sqrt(self.curvature, out=self.curvature), out=self.roots)
        return PathPoint(x, loss, gradient, roots @ roots.T, x)

    def objective(self, point: PathPoint, lam: float) -> float:
        return point.loss + 0.5 * lam * float(self.penalised @ point.x**2)

    def solve(
        self, start: PathPoint, lam: float, limits: tuple[float, int], tuning: PathTuning = PathTuning()
    ) -> tuple[PathPoint, int] | None:
        """Return the point where a relative gap of `tol` is proved, and the steps to it; None where none is."""
        (tol, max_iter), point, value = limits, start, self.objective(start, lam)
        for steps in range(max_iter + 1):
            gradient = point.gradient + lam * self.penalised * point.x
            if steps == 0 or point.origin is point.x:
                anchor = HessianPoint.at(point.origin, point.hessian + np.diag(lam * self.penalised))
            step = anchor.factor.solve(-gradient)
            promise = -0.5 * float(gradient @ step)
            # No gap is proved that is smaller than what the step promises.
            if promise <= tol * value:
                if anchor.inverse is None:
                    return None
                proof = ConcordanceProof(1.0, anchor)
                proof.extent, proof.reach = self.extent, anchor.box(self.extent)
                if proof.gap(point.x, gradient) <= tol * value:
                    return (point, steps) if self._is_proved(proof, point.x, value, (lam, tol)) else None
            near = point if steps and point.origin is point.x and promise <= tuning.short_step * value else None
            moved = self._step((point, near), (lam, value), gradient, step)
            if moved is None:
                return None
            point, value = moved
        return None

    def _step(
        self,
        points: tuple[PathPoint, PathPoint | None],
        at: tuple[float, float],
        gradient: Array,
        step: Array,
        tuning: PathTuning = PathTuning(),
    ) -> tuple[PathPoint, float] | None:
        """Go along a step, by halves where the objective does not fall as its slope promises."""
        (lam, value), slope, (point, near) = at, float(gradient @ step), points
        for _ in range(tuning.halvings):
            found = self.measure(point.x + step, near)
            below = self.objective(found, lam)
            if below <= value + tuning.decrease * slope:
                return found, below
            step, slope = step / 2, slope / 2
        return None

    def _is_proved(self, proof: ConcordanceProof, x: Array, value: float, terms: tuple[float, float]) -> bool:
        """Say whether the gap of the last point is proved, with all that rounding may hide."""
        (lam, tol), n = terms, len(self.w)
        weight = self.data.weight
        rounding = PassRounding(n, float(np.sqrt(value * weight)), weight / 4, 0.0, lam * self.penalised * np.abs(x))
        found = proved_distance(proof, x, rounding)
        if found is None or not self.data.faithful(x, value, tol):
            return False
        off = rounding.of_loss(x, self.extent)
        bound = bound_below(value, found.gap + off, value, n)
        return value - bound <= allowed_gap(value, tol, n, off)


def ridge_path(
    table: ArrayRows, Cs: Array, intercept: bool, limits: tuple[float, int], tuning: PathTuning = PathTuning()
) -> PathFits | None:
    """Return proved fits for all inverse strengths (m,); None where the table is not small, or one is not proved.

    Rows have class numbers 0 and 1; `limits` are the relative gap to prove and the most steps of a fit.
    """
    X = table.X
    d1 = X.shape[1] + intercept
    if not isinstance(X, np.ndarray) or X.dtype != np.float64 or not np.isfinite(Cs).all():
        return None
    if X.shape[0] * d1 > tuning.entries or d1 > tuning.parameters:
        return None
    data = LogisticRows.numbered(table, 2, intercept)
    tol, most = gap_to_reach(limits[0]), limits[1]
    with np.errstate(over="ignore", invalid="ignore"):
        path = RidgePath(data, table)
        point, coef, b, steps = path.measure(np.zeros(d1)), [], [], []
        for C in Cs.tolist():
            found = path.solve(point, 1 / C, (tol, most), tuning)
            if found is None:
                return None
            point = found[0]
            fitted = data.attributes(True, point.x)
            coef.append(fitted["coef_"])
            b.append(fitted["intercept_"])
            steps.append(found[1])
    return PathFits(np.array(coef), np.array(b), np.array(steps))
