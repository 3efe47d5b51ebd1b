"""The machine of one class re-checked: a function that is above its level at most rows, and a dual point.

**Claim.** f = Σ βᵢ k(·, xᵢ) and a level ρ minimise, up to the gap,

    P(f, ρ) = ½ |f|² - ν W ρ + Σ wᵢ max(0, ρ - f(xᵢ)),     W = Σ w,

so that Σ β x is the point nearest to the origin among all those of shares 0 <= β <= w with Σ β = ν W.

**Bound.** If k is positive semidefinite, ½ αᵀKα >= -P for all such shares α (Schölkopf, Platt, Shawe-Taylor, Smola &
Williamson, Estimating the support of a high-dimensional distribution, 2001). The objective is ½ αᵀKα of the machine's
own β, cut back into the feasible set; what rounding leaves of its sum costs that times the largest level.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from certifit.checkers.plain.best_intercepts import middle_of_quantile
from certifit.checkers.plain.kernel_values import MachineValues, PlainValueTuning
from certifit.checkers.plain.kernels import PlainKernel, as_plain_kernel
from certifit.checkers.svm.kernel import (
    EPS,
    TINY,
    KernelProblem,
    RowKind,
    SvmCheckTuning,
    SvmFindings,
    SvmValues,
    assess_in_enough_digits,
    combined_certificate,
    total_rounding,
)
from certifit.core import Certificate
from certifit.rows import Array

CLAIM = "half the squared distance of the shares' mean from the origin within gap of the smallest"


@dataclass(frozen=True)
class OneClassMachine:
    """A machine of one class and the rows it was trained on."""

    rows: Array  # (m,) row numbers in the table
    C: Array  # (m,) > 0, row weights
    beta: Array  # (m,)
    intercept: float  # -ρ
    nu: float

    @property
    def total(self) -> float:
        """ν W, the sum of feasible coefficients."""
        return self.nu * float(self.C.sum())

    def feasible(self, dtype: Any = np.float64) -> Array:
        """The coefficients (m,), cut back to their box and then moved towards 0 or their limits to get their sum."""
        alpha, C = np.clip(self.beta.astype(dtype), 0.0, self.C), self.C.astype(dtype)
        found = alpha.sum()
        if found >= self.total:
            return np.asarray(alpha * (self.total / max(found, TINY)))
        return np.asarray(alpha + (C - alpha) * ((self.total - found) / max((C - alpha).sum(), TINY)))

    def losses(self, kernel: PlainKernel, X: Any, some: Array) -> Array:
        """The losses of some of its rows."""
        return np.maximum(-self.values(kernel, X, self.rows[some])[:, 0], 0.0)

    def values(self, kernel: PlainKernel, X: Any, at: Array) -> Array:
        """f - ρ (m, 1) at these rows of X."""
        return MachineValues.of(kernel, X, at, self.rows, self.beta[:, None], np.float64).f + self.intercept


def assess(machine: OneClassMachine, at: SvmValues) -> SvmFindings:
    """Objective, bound and row conditions of a machine, given its values at its rows."""
    C, beta, rho, total = machine.C, machine.beta, -machine.intercept, machine.total
    f, alpha, g, error, longest = at
    slacks = np.maximum(rho - f, 0.0)
    objective = 0.5 * (beta * f).sum() - total * rho + (C * slacks).sum()
    least = 0.5 * (alpha * g).sum()
    sizes = np.abs(beta * f).sum() + np.abs(alpha * g).sum() + abs(total * rho) + (C * slacks).sum()
    error = error + 4 * np.finfo(f.dtype).eps * abs(rho)
    hidden = error @ (np.abs(beta) + alpha) / 2 + C @ (np.maximum(rho - f + error, 0.0) - slacks)
    hidden += (abs(float(alpha.sum()) - total) + 8 * EPS * total) * 2 * float(np.abs(f).max(initial=0.0))
    kinds = np.where(beta <= 0, RowKind.NONE, np.where(beta >= C * (1 - 1e-12), RowKind.BEYOND, RowKind.MARGIN))
    # The fit took the middle of values in float64, whatever type is used here.
    blur = max(float(error.max()), 8 * EPS * float(np.abs(beta).sum()) * float(longest) ** 2)
    aside = abs(float(rho) - middle_of_quantile(f, C, total)) - blur
    return SvmFindings(
        float(least),
        -float(objective),
        total_rounding(f.dtype, sizes, hidden, objective),
        float(np.maximum(beta - C, -beta).max() / C.max()),
        abs(float(beta.sum()) - total) / max(total, TINY),
        0.0,
        slacks.astype(np.float64),
        np.choose(kinds, [slacks, np.abs(rho - f), np.maximum(f - rho, 0.0)]).astype(np.float64),
        kinds.astype(np.int8),
        max(0.0, aside),
    )


def one_class_certificate(
    found: SvmFindings, tol: float, proved: bool, why: str, tuning: SvmCheckTuning = SvmCheckTuning()
) -> Certificate:
    """The certificate of these findings."""
    certificate = combined_certificate([found], tol, proved, why, tuning)
    return replace(certificate, claim=CLAIM) if proved else certificate


def certify(
    machine: OneClassMachine, problem: KernelProblem, tol: float, tuning: SvmCheckTuning = SvmCheckTuning()
) -> tuple[Certificate, SvmFindings]:
    """Recompute the machine's values on its rows, and certify it."""
    judge = partial(_assess_anew, tuning.values)
    kernel = as_plain_kernel(problem.kernel)
    found = assess_in_enough_digits(judge, machine, kernel, problem.table, tol, tuning)
    return one_class_certificate(found, tol, problem.proved, problem.why, tuning), found


def _assess_anew(
    values: PlainValueTuning, machine: OneClassMachine, kernel: PlainKernel, X: Any, dtype: Any
) -> SvmFindings:
    alpha = machine.feasible(dtype)
    both = np.column_stack([machine.beta, alpha])
    seen = MachineValues.of(kernel, X, machine.rows, machine.rows, both, dtype, values)
    return assess(machine, SvmValues(seen.f[:, 0], alpha, seen.f[:, 1], seen.error, seen.longest))
