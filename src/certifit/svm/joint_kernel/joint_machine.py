"""One kernel machine for all classes at once: a score for each, one loss for a row, one duality gap.

    min over f, b of   ½ Σ_c |f_c|² + C Σᵢ wᵢ L(zᵢ),     z_c = margin [c ≠ y] + (f_c(x) + b_c) - (f_y(x) + b_y)
    Weston-Watkins: L = Σ_c max(0, z_c), margin 2;     Crammer-Singer: L = max_c z_c, margin 1

Scores and biases of a row sum to 0 over classes. With two classes, Weston-Watkins is the machine of two sides with
the same C (f₁ is its f, the objective twice its own), and Crammer-Singer that with 2 C (f₁ - f₀ is its f, the
objective half its own).
Solved in the dual by batches of rows (`svm.joint_kernel.joint_smo`).
References: Weston & Watkins, Support vector machines for multi-class pattern recognition (1999); Crammer & Singer, On
the algorithmic implementation of multiclass kernel-based vector machines (2001).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from certifit.checkers.svm import joint_kernel as certificates
from certifit.core import Solution
from certifit.optimise.working_sets import FOREVER
from certifit.rows import Array
from certifit.svm.joint_kernel import joint_smo
from certifit.svm.kernel.gram import kernel_rows
from certifit.svm.kernel.kernel_machine import KernelMachine
from certifit.svm.kernel.schemes import Labelled, PerClass
from certifit.svm.kernel.training import ToAttributes, Trained, Training, gram_for, limits


@dataclass(frozen=True)
class Joint(PerClass):
    """A machine for all classes; the largest score wins."""

    name: str
    margin: float
    total: Callable[[Array], Array]  # loss (n,) of z (n, k), whose own class has 0
    limits: Callable[[Array, Array], tuple[Array, Array]]  # of coefficients (n, k): own class or not (n, k), C (n, 1)

    def train(
        self, model: KernelMachine, rows: Labelled, name: str, began: float, attributes: ToAttributes
    ) -> Trained:
        data, code, C = rows.data, rows.code, rows.C
        low, high = self.limits(code[:, None] == np.arange(rows.k), C[:, None])
        dual = joint_smo.Dual(code, C, low, high, self.margin, partial(self.losses, code=code))
        gram = gram_for(model, data, np.arange(len(code)), C)
        kept = kernel_rows(gram, float(model.cache_size))
        gathered = partial(self._gathered, model, data, dual, gram.lengths())
        limit = model.max_iter if model.max_iter >= 0 else FOREVER
        with model._watch.loop(name, limit, lambda point: attributes(gathered(point, ()))) as watch:
            found = joint_smo.solve(dual, kept, limits(model, gram, began), watch)
        return gathered(found.params, (found,))

    def losses(self, values: Array, code: Array) -> Array:
        """(n,) losses of rows of these classes, given their scores (n, k)."""
        own = np.arange(len(code)), code
        z = self.margin + values - values[own][:, None]
        z[own] = 0.0
        return self.total(z)

    def loss(self, values: Array, rows_code: Array, C: Array, k: int) -> float:
        return float(C @ self.losses(values, rows_code))

    def _gathered(
        self,
        model: KernelMachine,
        data: Training,
        dual: joint_smo.Dual,
        lengths: Array,
        point: joint_smo.Point,
        loops: tuple[Solution[Any], ...],
    ) -> Trained:
        b = joint_smo.measure(dual, point).b
        machine = certificates.Machine(np.arange(len(dual.y)), dual.y, dual.u, point.beta, b, self.name)
        judged = certificates.judge(machine, point.f, point.beta, point.f, lengths)
        certificate = certificates.assemble([machine], [judged], float(model.tol), data.proved, data.why)
        slacks, residuals, kinds = (found[:, None] for found in (judged.slacks, judged.residuals, judged.kinds))
        b = data.intercepts(point.beta, b)
        return Trained(point.beta, b, slacks, residuals, kinds, loops, certificate)


def _each_rival(own: Array, C: Array) -> tuple[Array, Array]:
    return np.where(own, -np.inf, -C), np.where(own, np.inf, 0.0)


def _all_rivals(own: Array, C: Array) -> tuple[Array, Array]:
    return np.full(own.shape, -np.inf), np.where(own, C, 0.0)


def _sum(z: Array) -> Array:
    return np.maximum(z, 0.0).sum(axis=1)


def _largest(z: Array) -> Array:
    return z.max(axis=1)


JOINT = {
    scheme.name: scheme
    for scheme in (
        Joint("weston-watkins", 2.0, _sum, _each_rival),
        Joint("crammer-singer", 1.0, _largest, _all_rivals),
    )
}
