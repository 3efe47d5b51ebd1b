"""One kernel machine for all classes, re-checked: its scores, a feasible dual point, and the gap row by row.

**Claim.** The machine is f_c = Σᵢ β_ic k(·, xᵢ) and a bias b_c for every class c. Its objective, that of
`checkers.svm.joint` with |f_c|² = β_cᵀ K β_c, is within `gap` of the smallest possible.

**Bound.** If k is positive semidefinite, every feasible dual point proves a lower bound (`checkers.svm.joint`). Here
it is the machine's own coefficients, moved into the feasible set: rivals' within their limits, and as much taken from
each class as given to it.

**Rounding budget.** As in `checkers.svm.kernel`: scores are off by at most `error` at each row.

**Rows.** A row is optimal if no class that may get more of its coefficients misses more of its score than one that
may give some.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from certifit.checkers.plain.best_intercepts import middle_of_best
from certifit.checkers.plain.hinges import PLAIN_MULTICLASS_HINGES
from certifit.checkers.plain.kernel_values import MachineValues, PlainValueTuning
from certifit.checkers.plain.kernels import PlainKernel, as_plain_kernel
from certifit.checkers.svm import kernel as svm
from certifit.checkers.svm.joint import ClaimedJointSvm, RowLengths, feasible, lower_bound, slacks
from certifit.checkers.svm.kernel import KernelProblem, RowKind, SvmCheckTuning, SvmFindings, SvmValues
from certifit.core import Certificate, Check
from certifit.rows import Array


@dataclass(frozen=True)
class JointKernelSvm:
    """A machine for all k classes and the rows it was trained on."""

    rows: Array  # (m,) row numbers in the table
    y: Array  # (m,) class numbers
    C: Array  # (m,) > 0, price of each row's loss
    beta: Array  # (m, k) coefficients; those of a row sum to 0
    intercept: Array  # (k,)
    loss: str  # one of PLAIN_MULTICLASS_HINGES

    @property
    def spec(self) -> ClaimedJointSvm:
        return ClaimedJointSvm(PLAIN_MULTICLASS_HINGES[self.loss], 1.0, 0.0)

    def losses(self, kernel: PlainKernel, X: Any, some: Array) -> Array:
        """The losses of some of its rows."""
        F = self.values(kernel, X, self.rows[some])
        return self.spec.loss.value(slacks(self.spec.loss, F, self.y[some]))

    def values(self, kernel: PlainKernel, X: Any, at: Array) -> Array:
        """Scores (m, k) at these rows of X."""
        seen = MachineValues.of(kernel, X, at, self.rows, self.beta, np.float64)
        return seen.f + seen.intercept(kernel, self.intercept)[0]

    def limits(self) -> tuple[Array, Array]:
        """The smallest and the largest coefficients (m, k) that are feasible."""
        return LIMITS[self.loss](self.y[:, None] == np.arange(self.beta.shape[1]), self.C[:, None])


# The limits (m, k) of coefficients, by which are of a row's own class (m, k), and C (m, 1): those of rivals are minus
# an a >= 0, and that of the own class is Σ a. Weston-Watkins: every a <= C. Crammer-Singer: Σ a <= C.
LIMITS: dict[str, Callable[[Array, Array], tuple[Array, Array]]] = {
    "weston-watkins": lambda own, C: (np.where(own, -np.inf, -C), np.where(own, np.inf, 0.0)),
    "crammer-singer": lambda own, C: (np.full(own.shape, -np.inf), np.where(own, C, 0.0)),
}


def assess(machine: JointKernelSvm, at: SvmValues) -> SvmFindings:
    """Objective, bound and row conditions of a machine, given its scores without biases at its rows."""
    y, C, beta, b, spec = machine.y, machine.C, machine.beta, machine.intercept, machine.spec
    f, alpha, g, error, _ = at
    own = np.arange(len(y)), y
    low, high = machine.limits()
    F = f + b
    z = slacks(spec.loss, F, y)
    losses = spec.loss.value(z)
    square, linear = (beta * f).sum(), spec.loss.margin * beta[own]
    objective = 0.5 * square + C @ losses
    slackness = C * losses - linear + (beta * F).sum(axis=1)
    gap = objective - linear.sum() + 0.5 * square
    astray = slackness.sum() - gap - b @ beta.sum(axis=0, dtype=f.dtype)
    sizes = np.abs(beta * F).sum() + np.abs(alpha * g).sum() + np.abs(linear).sum() + C @ losses
    weight = np.abs(beta).sum(axis=1)
    most = z + 2 * error[:, None]  # a rival's score may rise by as much as the own one falls
    most[own] = 0.0
    hidden = error @ (weight + np.abs(alpha).sum(axis=1)) / 2 + C @ (spec.loss.value(most) - losses)
    # |Σ α x| is known from g; what its rounding costs is in `hidden`
    norm, lengths = float(np.sqrt(max((alpha * g).sum(), 0.0))), RowLengths(0.0, at.longest)
    bound, given = lower_bound(spec, alpha, y, C, norm, lengths)
    rounding = svm.total_rounding(f.dtype, sizes, hidden, objective) + given
    total = float(weight.sum())
    # The fit took the middle of values in float64, whatever type is used here.
    blur = 2 * max(float(error.max()), 8 * svm.EPS * total * float(at.longest) ** 2)
    outside = max(np.maximum(low - beta, beta - high).max(), np.abs(beta.sum(axis=1)).max())
    residuals, full = _row_conditions(machine, F, low, high)
    kinds = np.where((beta == 0).all(axis=1), RowKind.NONE, np.where(full, RowKind.BEYOND, RowKind.MARGIN))
    return SvmFindings(
        float(objective),
        bound,
        rounding,
        float(outside / C.max()),
        float(np.abs(beta.sum(axis=0)).max()) / total if total > 0 else 0.0,
        max(0.0, abs(float(astray)) - rounding) / max(float(objective), svm.TINY),
        losses.astype(np.float64),
        residuals.astype(np.float64),
        kinds.astype(np.int8),
        max(0.0, _aside(machine, f) - blur),
    )


def _aside(machine: JointKernelSvm, f: Array) -> float:
    """How far the biases of two classes are from the middle of the best ones, given scores (m, 2) without them.

    More than two are left as they are: what is best for one depends on all others.
    """
    if f.shape[1] != 2:
        return 0.0
    sign, b = np.where(machine.y == 1, 1.0, -1.0), machine.intercept
    best = middle_of_best(machine.spec.loss.margin * sign - (f[:, 1] - f[:, 0]), sign, machine.C)
    return abs(float(b[1] - b[0]) - best)


def _row_conditions(machine: JointKernelSvm, F: Array, low: Array, high: Array) -> tuple[Array, Array]:
    """By how much each row misses its optimality condition (m,), and whether it may have a loss above 0 (m,)."""
    beta, near = machine.beta, 1e-12 * machine.C[:, None]  # coefficients this close to a limit are at it
    at_low, at_high = beta <= low + near, beta >= high - near
    full = np.asarray((at_low | (at_high & (high > 0))).any(axis=1))
    missing = -F
    missing[np.arange(len(F)), machine.y] += machine.spec.loss.margin
    above = np.where(at_high, -np.inf, missing).max(axis=1)
    below = np.where(at_low, np.inf, missing).min(axis=1)
    return np.maximum(above - below, 0.0), full


def combined_certificate(
    machines: Sequence[JointKernelSvm],
    findings: Sequence[SvmFindings],
    tol: float,
    proved: bool,
    why: str,
    tuning: SvmCheckTuning = SvmCheckTuning(),
) -> Certificate:
    """As for machines of two sides; and biases sum to 0, since a constant added to all scores changes no loss."""
    found = svm.combined_certificate(findings, tol, proved, why, tuning)
    off = max(abs(float(m.intercept.sum())) / (1.0 + float(np.abs(m.intercept).max())) for m in machines)
    return replace(found, checks=(*found.checks, Check("biases sum to, relative", off, tuning.feasible)))


def certify(
    machines: Sequence[JointKernelSvm], problem: KernelProblem, tol: float, tuning: SvmCheckTuning = SvmCheckTuning()
) -> tuple[Certificate, list[SvmFindings]]:
    """Recompute every machine's scores on its rows, and certify them."""
    kernel, X = as_plain_kernel(problem.kernel), problem.table
    judge = partial(_assess_anew, tuning.values)
    findings = [svm.assess_in_enough_digits(judge, machine, kernel, X, tol, tuning) for machine in machines]
    return combined_certificate(machines, findings, tol, problem.proved, problem.why, tuning), findings


def _assess_anew(
    values: PlainValueTuning, machine: JointKernelSvm, kernel: PlainKernel, X: Any, dtype: Any
) -> SvmFindings:
    alpha, k = feasible(machine.spec, machine.beta, machine.y, machine.C), machine.beta.shape[1]
    both = np.hstack([machine.beta, alpha])
    seen = MachineValues.of(kernel, X, machine.rows, machine.rows, both, dtype, values)
    b, error = seen.intercept(kernel, machine.intercept)
    at = SvmValues(seen.f[:, :k], alpha, seen.f[:, k:], error, seen.longest)
    return assess(replace(machine, intercept=b), at)
