"""One kernel machine for all classes at once: a score for each, one loss for a row, one duality gap.

    min over f, b of   ½ Σ_c |f_c|² + C Σᵢ wᵢ L(zᵢ),     z_c = margin [c ≠ y] + (f_c(x) + b_c) - (f_y(x) + b_y)
    Weston-Watkins: L = Σ_c max(0, z_c), margin 2;     Crammer-Singer: L = max_c z_c, margin 1

Scores and biases of a row sum to 0 over classes. With two classes, Weston-Watkins is the machine of two sides with
the same C (f₁ is its f, the objective twice its own), and Crammer-Singer that with 2 C (f₁ - f₀ is its f, the
objective half its own).
Solved in the dual, a working set of rows at a time, by `svm.joint_kernel.joint_smo`.
References: Weston & Watkins, Support vector machines for multi-class pattern recognition (1999); Crammer & Singer, On
the algorithmic implementation of multiclass kernel-based vector machines (2001).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from certifit.checkers.plain.best_intercepts import middle_of_best
from certifit.checkers.svm import joint_kernel as checker
from certifit.checkers.svm.kernel import SvmValues, rounding_error
from certifit.core import Solution
from certifit.rows import Array
from certifit.rows.kept_passes import kept
from certifit.svm.joint_kernel import joint_smo
from certifit.svm.joint_kernel.joint_smo_loops import CoefficientLimits
from certifit.svm.kernel.gram import kernel_rows
from certifit.svm.kernel.recheck import AnyMachine
from certifit.svm.kernel.schemes import PerClassScheme, SvmRows
from certifit.svm.kernel.training import TrainedMachines, TrainingRows, TrainingTask


@dataclass(frozen=True)
class JointScheme(PerClassScheme):
    """A machine for all classes; the largest score wins."""

    name: str
    margin: float
    total: Callable[[Array], Array]  # losses (n,) of z (n, k), whose own class has 0
    limits: Callable[[Array, Array], CoefficientLimits]  # given whether a class is the row's own (n, k), and C (n, 1)

    def train(self, task: TrainingTask, rows: SvmRows) -> TrainedMachines:
        data, code, C = rows.data, rows.code, rows.C
        limits = self.limits(code[:, None] == np.arange(rows.k), C[:, None])
        dual = joint_smo.JointDual(code, C, limits, self.margin, partial(self.losses, code=code))
        gram = task.gram(data, np.arange(len(code)), C)
        values = kernel_rows(gram, task.cache_size)
        gather = partial(self._gather, task.tol, data, dual, gram.lengths())
        ends = task.limits(gram)
        with task.watch.loop(task.name, ends.most_rounds, lambda at: task.attributes(gather(at, ()))) as watch:
            solve = partial(joint_smo.solve, dual, values, ends, watch, task.tuning.joint, task.tuning.rounds)
            found = kept(("machine", 0), solve)
        return gather(found.params, (found,))

    def machines(self, rows: SvmRows, found: TrainedMachines) -> list[AnyMachine]:
        whole = np.arange(len(rows.code))
        return [checker.JointKernelSvm(whole, rows.code, rows.C, found.beta, found.intercept, self.name)]

    def losses(self, values: Array, code: Array) -> Array:
        """Losses (n,) of rows of these classes, given their scores (n, k)."""
        own = np.arange(len(code)), code
        z = self.margin + values - values[own][:, None]
        z[own] = 0.0
        return self.total(z)

    def loss(self, values: Array, rows_code: Array, C: Array, k: int) -> float:
        return float(C @ self.losses(values, rows_code))

    def _biases(self, dual: joint_smo.JointDual, point: joint_smo.JointDualPoint) -> Array:
        """The biases (k,) of a point; of those that are equally good for two classes, the middle ones."""
        if point.f.shape[1] != 2:
            return joint_smo.measure_gap(dual, point).b
        sign = np.where(dual.y == 1, 1.0, -1.0)
        between = middle_of_best(self.margin * sign - (point.f[:, 1] - point.f[:, 0]), sign, dual.C)
        return np.array([-between / 2, between / 2])

    def _gather(
        self,
        tol: float,
        data: TrainingRows,
        dual: joint_smo.JointDual,
        lengths: Array,
        point: joint_smo.JointDualPoint,
        loops: tuple[Solution[Any], ...],
    ) -> TrainedMachines:
        """The machine at a point of its dual, with what the checker's formulas say of the values at hand."""
        beta, f, b = point.beta, point.f, self._biases(dual, point)
        machine = checker.JointKernelSvm(np.arange(len(dual.y)), dual.y, dual.C, beta, b, self.name)
        values = SvmValues(f, beta, f, rounding_error(beta, lengths), float(lengths.max(initial=0)))
        found = checker.assess(machine, values)
        certificate = checker.combined_certificate([machine], [found], tol, data.proved, data.why)
        slacks, residuals, kinds = (column[:, None] for column in (found.slacks, found.residuals, found.kinds))
        return TrainedMachines(beta, data.intercepts(beta, b), slacks, residuals, kinds, loops, certificate)


def _limits_of_each_rival(own: Array, C: Array) -> CoefficientLimits:
    return CoefficientLimits(np.where(own, -np.inf, -C), np.where(own, np.inf, 0.0))


def _limits_of_all_rivals(own: Array, C: Array) -> CoefficientLimits:
    return CoefficientLimits(np.full(own.shape, -np.inf), np.where(own, C, 0.0))


def _sum_of_slacks(z: Array) -> Array:
    return np.maximum(z, 0.0).sum(axis=1)


def _largest_slack(z: Array) -> Array:
    return z.max(axis=1)


JOINT_SCHEMES = {
    scheme.name: scheme
    for scheme in (
        JointScheme("weston-watkins", 2.0, _sum_of_slacks, _limits_of_each_rival),
        JointScheme("crammer-singer", 1.0, _largest_slack, _limits_of_all_rivals),
    )
}
