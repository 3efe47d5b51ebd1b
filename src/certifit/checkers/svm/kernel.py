"""Kernel machines re-checked: the objective of a function, a dual point that bounds the minimum, and the gap.

**Claim.** A machine is f = Σ βᵢ k(·, xᵢ) and an intercept b. Its objective

    P(f, b) = ½ |f|² + Σ Cᵢ lossᵢ,     |f|² = βᵀKβ,
    lossᵢ = max(0, 1 - yᵢ (f(xᵢ) + b)) for a class yᵢ = ±1,    max(0, |yᵢ - f(xᵢ) - b| - ε) for a number yᵢ

is within `gap` of the smallest possible.

**Bound.** If k is positive semidefinite, then for every function, every intercept, and every feasible dual point α,

    P >= D(α) = y·α - ε |α|₁ - ½ αᵀKα,      feasible: Σ α = 0 and 0 <= yᵢ αᵢ <= Cᵢ (for numbers |αᵢ| <= Cᵢ)

(weak duality; Schölkopf & Smola, Learning with Kernels, 2002, chapters 7 and 9). It does not matter where α comes
from: here it is the machine's own β, cut back into the feasible set by `KernelSvm.feasible`. `assess` verifies that
it is inside its box. What rounding leaves out of balance, scaling the heavier side down by a share δ puts right.

**Rounding budget.** f is off by at most `error` at each row (`checkers.plain.kernel_values`). That moves ½ βᵀKβ, D
and the losses by at most `hidden` in `assess`, to which `total_rounding` adds the rounding of the sums taken here.
All of it is subtracted from the bound, and it must stay a small share of the objective, else nothing is proved.

**Rows.** The gap is also a sum over rows of what complementary slackness says is zero, which is checked against
P - D, and each row is of one of three kinds: see `RowKind`. Several machines (one for each pair of classes) are
certified by the sums of their objectives and bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from certifit.checkers.plain.best_intercepts import middle_of_best
from certifit.checkers.plain.dual_points import is_feasible
from certifit.checkers.plain.kernel_values import MachineValues, PlainValueTuning
from certifit.checkers.plain.kernels import PlainKernel, as_plain_kernel
from certifit.core import Certificate, Check
from certifit.exceptions import DataError
from certifit.rows import Array

EPS = float(np.finfo(float).eps)
TINY = float(np.finfo(float).tiny)


@dataclass(frozen=True)
class SvmCheckTuning:
    """What the checker allows, and when it computes in a longer float type."""

    hidden: float = 1e-2  # share of the objective: a proof that rounding could undo is none
    feasible: float = 1e-6  # share of C: other libraries' coefficients may come in float32
    no_loss: float = 1e10  # the C that stands for C=inf, of which coefficients may be
    no_loss_share: float = 0.5  # this share at most
    slight: float = 1e-2  # share of the tolerance: where rounding could be more, a longer float type is used,
    longer_work: int = 400_000_000  # unless that takes more multiplications than this, counting a value as
    value_work: int = 20  # of them, besides those of its columns
    values: PlainValueTuning = field(default_factory=PlainValueTuning)


class RowKind(IntEnum):
    """What a row is to a machine, by its coefficient α."""

    NONE = 0  # α = 0: beyond the margin, or inside the tube; not a support vector
    MARGIN = 1  # strictly between 0 and C: on the margin
    BEYOND = 2  # at C: on the wrong side of the margin, or outside the tube


@dataclass(frozen=True)
class KernelSvm:
    """One machine and the rows it was trained on."""

    rows: Array  # (m,) row numbers in the table
    y: Array  # (m,) ±1, or numbers
    C: Array  # (m,) largest size of each coefficient
    beta: Array  # (m,) coefficients, zero where a row is not a support vector
    intercept: float
    epsilon: float | None = None  # None: y are classes

    def feasible(self, dtype: Any = np.float64) -> Array:
        """A feasible dual point (m,): the coefficients, cut back to their box, the heavier side then scaled down."""
        beta = self.beta.astype(dtype)
        if self.epsilon is None:
            beta = self.y * np.clip(self.y * beta, 0.0, self.C)
        else:
            beta = np.clip(beta, -self.C, self.C)
        up, down = beta[beta > 0].sum(), -beta[beta < 0].sum()
        if up > down:
            return np.where(beta > 0, beta * (down / up), beta)
        return np.where(beta < 0, beta * (up / down), beta) if down > 0 else beta

    def is_inside(self, alpha: Array) -> bool:
        """Whether α (m,) is inside its box, up to 4 eps of its limits."""
        size = self.y * alpha if self.epsilon is None else np.abs(alpha)
        return is_feasible(size.astype(np.float64), (1 + 4 * EPS) * self.C)

    def in_own_terms(self, found: SvmFindings) -> SvmFindings:
        """Findings of a machine of C and epsilon, as those of the problem that the machine solves: here the same."""
        return found

    def misses(self, values: Array, some: Any = slice(None)) -> Array:
        """By how much values (with the intercept) at some rows miss the margin, or the tube, where above 0."""
        y = self.y[some]
        return 1.0 - y * values if self.epsilon is None else np.abs(y - values) - self.epsilon

    def losses(self, kernel: PlainKernel, X: Any, some: Array) -> Array:
        """The losses of some of its rows."""
        return np.maximum(self.misses(self.values(kernel, X, self.rows[some])[:, 0], some), 0.0)

    def values(self, kernel: PlainKernel, X: Any, at: Array) -> Array:
        """f + b (m, 1) at these rows of X."""
        return self.values_and_errors(kernel, X, at)[0]

    def values_and_errors(self, kernel: PlainKernel, X: Any, at: Array) -> tuple[Array, Array]:
        """f + b (m, 1) at these rows of X, and how far each (m,) may be off, here and in the fit."""
        seen = MachineValues.of(kernel, X, at, self.rows, self.beta[:, None], np.float64)
        b, error = seen.intercept(kernel, self.intercept)
        return seen.f + b, error


class SvmValues(NamedTuple):
    """Values of a machine, and of its dual point, at the m rows it was trained on; (m, k) for one of k classes."""

    f: Array  # (m,) or (m, k) of the machine, without intercept
    alpha: Array  # (m,) or (m, k) the feasible dual point
    g: Array  # (m,) or (m, k) Σ α k(·, x)
    error: Array  # (m,) how far any of f and g may be off
    longest: float  # at least √k(x, x) of any row


class SvmFindings(NamedTuple):
    """What a machine's values prove about it."""

    objective: float  # P
    bound: float  # D
    rounding: float  # how far either may be off
    outside: float  # the worst coefficient's distance to its box, as a share of the largest C
    unbalanced: float  # |Σ β| / Σ |β|
    astray: float  # Σ of the rows' slackness minus the gap, beyond rounding, relative
    slacks: Array  # (m,) losses
    residuals: Array  # (m,) by how much each row's optimality condition is missed, in units of f
    kinds: Array  # (m,) `RowKind`
    aside: float = 0.0  # how far the intercept is from the middle of the best ones, beyond rounding, in units of f
    distance: bool = False  # whether the objective is half a squared distance, of a machine that 0 leaves no margin

    @property
    def margin_is_lost(self) -> bool:
        """Whether the margin of a machine of nu is 0, or nothing but rounding."""
        return self.distance and not self.objective > self.rounding


@dataclass(frozen=True)
class NuClassMachine(KernelSvm):
    """A machine of nu for two classes, divided by its margin ρ: one of C = weight / ρ with Σ |β| = nu Σ C.

    Undivided, its coefficients ρ β are shares of the two classes, and ½ ρ² |f|² is half the squared distance of the
    two points they make; no shares up to the rows' weights make a smaller one than minus the primal objective,

        -P = nu W ρ - ½ ρ² |f|² - Σ w max(0, ρ - ρ y (f + b)) = nu W ρ - ρ² (objective at this C).
    """

    nu: float = 0.5
    weight: float = 1.0  # W, of the rows of both classes

    def in_own_terms(self, found: SvmFindings) -> SvmFindings:
        rho = self.weight / max(float(self.C.sum()), TINY)
        square = rho * rho
        if not np.isfinite(square):
            raise DataError(
                got=f"a margin of {rho:.0e}, whose square overflows",
                wanted="values whose squares are numbers",
                fix="Rescale the columns, for instance to unit variance.",
            )
        objective = square * (float(np.abs(self.feasible()).sum()) - found.bound)
        bound = self.nu * self.weight * rho - square * found.objective
        rounding = square * found.rounding + 8 * EPS * self.nu * self.weight * rho
        return found._replace(objective=objective, bound=bound, rounding=rounding, distance=True)


@dataclass(frozen=True)
class NuTubeMachine(KernelSvm):
    """A machine of nu for numbers, with its tube ε: its objective contains ν ε Σ C too.

    A dual point has Σ |α| <= nu Σ C; where it has more, it is scaled down, which costs no more than its share.
    """

    nu: float = 0.5
    moved: float = 0.0  # by how much its tube differs from the best one

    def in_own_terms(self, found: SvmFindings) -> SvmFindings:
        epsilon, most = float(self.epsilon or 0.0), self.nu * float(self.C.sum())
        total = float(np.abs(self.feasible()).sum())
        bound = (found.bound + epsilon * total) * min(1.0, most / max(total, TINY))
        rounding = found.rounding + 8 * EPS * epsilon * most
        return found._replace(objective=found.objective + epsilon * most, bound=bound, rounding=rounding)


def price(C: float, tuning: SvmCheckTuning = SvmCheckTuning()) -> float:
    """C as a number: C=inf, at which no row may miss its margin, is so large that no coefficient comes near it."""
    return tuning.no_loss if np.isinf(C) else C


def no_loss_checks(C: float, beta: Array, box: Array, tuning: SvmCheckTuning = SvmCheckTuning()) -> list[Check]:
    """Whether coefficients (n, machines) of C=inf are well inside their box (n,): any larger C has the same.

    At the limit a row pays for missing its margin, however large the price: there is no machine without a loss.
    """
    if not np.isinf(C):
        return []
    size = np.abs(beta).reshape(len(box), -1).max(axis=1, initial=0.0)
    share = float((size[box > 0] / box[box > 0]).max(initial=0.0))
    return [Check("largest coefficient, as a share of the C that stands for inf", share, tuning.no_loss_share)]


def largest_nu(y: Array, C: Array) -> float:
    """The largest nu of two classes y = ±1 of these weights: every row of the lighter one then misses its margin."""
    return 2 * min(float(C[y > 0].sum()), float(C[y < 0].sum())) / float(C.sum())


def rounding_error(beta: Array, lengths: Array) -> Array:
    """(m,) how far values Σ β k(·, x) are off that are good to rounding; lengths (m,) are √k(x, x).

    beta is (m,), or (m, k) for a machine of k classes.
    """
    weight = np.abs(beta).reshape(len(beta), -1).sum(axis=1)
    return 8 * EPS * float(lengths @ weight) * lengths


def assess(machine: KernelSvm, at: SvmValues) -> SvmFindings:
    """Objective, bound and row conditions of a machine, given its values at its rows."""
    y, C, b, beta, epsilon = machine.y, machine.C, machine.intercept, machine.beta, machine.epsilon or 0.0
    f, alpha, g, error, longest = at
    signed = y * beta if machine.epsilon is None else np.abs(beta)
    miss = reach = machine.misses(f + b)
    if machine.epsilon is not None:
        error = error + 4 * np.finfo(f.dtype).eps * np.abs(y)  # of y - f - b
        reach = np.where(beta != 0, np.sign(beta) * (y - f - b) - epsilon, miss)
    slacks = np.maximum(miss, 0.0)
    # Products are added up in pairs (`sum`, not `@`), so that 64 eps of their sizes are more than they lose.
    square, least, losses = (beta * f).sum(), (alpha * g).sum(), (C * slacks).sum()
    objective = 0.5 * square + losses
    linear = y * alpha - epsilon * np.abs(alpha)
    dual_sizes = np.abs(alpha * g).sum() + np.abs(linear).sum()
    sizes = np.abs(beta * f).sum() + dual_sizes + losses
    hidden = error @ (np.abs(beta) + np.abs(alpha)) / 2 + C @ (np.maximum(miss + error, 0.0) - slacks)
    # The heavier side has half of the mass at least; limits hold to 4 eps, which is one more such share.
    mass = np.abs(alpha).sum()
    delta = 8 * EPS + 2 * abs(alpha.sum()) / mass if mass > 0 else 0.0
    hidden += delta * dual_sizes + 0.5 * (delta * mass * longest) ** 2
    rounding = total_rounding(f.dtype, sizes, hidden, objective)
    at_bound = signed >= C * (1 - 1e-12)
    kinds = np.where(signed <= 0, RowKind.NONE, np.where(at_bound, RowKind.BEYOND, RowKind.MARGIN)).astype(np.int8)
    own = y * beta - epsilon * np.abs(beta)
    slackness = C * slacks - own + beta * (f + b)
    gap = objective - (own.sum() - 0.5 * square)
    # The fit took the middle of values in float64, whatever type is used here.
    blur = max(float(error.max()), 8 * EPS * float(np.abs(beta).sum()) * float(longest) ** 2)
    total, astray = float(np.abs(beta).sum()), slackness.sum() - gap - b * beta.sum(dtype=f.dtype)
    found = SvmFindings(
        float(objective),
        float(linear.sum() - 0.5 * least) if machine.is_inside(alpha) else 0.0,
        rounding,
        float(np.maximum(signed - C, -signed).max() / C.max()),
        abs(float(beta.sum())) / total if total > 0 else 0.0,
        max(0.0, abs(float(astray)) - rounding) / max(abs(float(objective)), TINY),
        slacks.astype(np.float64),
        np.choose(kinds, [slacks, np.abs(reach), np.maximum(-reach, 0.0)]).astype(np.float64),
        kinds,
        max(0.0, abs(float(b - best_intercept(machine, f))) - blur),
    )
    return machine.in_own_terms(found)


def best_intercept(machine: KernelSvm, f: Array) -> float:
    """The middle of the intercepts that are best for these values (m,), without intercept."""
    y, C = machine.y, machine.C
    if machine.epsilon is None:
        return middle_of_best(y - f, y, C)
    sides = np.repeat([1.0, -1.0], len(y))
    return middle_of_best(np.tile(y - f, 2) - sides * machine.epsilon, sides, np.tile(C, 2))


def total_rounding(dtype: Any, sizes: Any, hidden: Any, objective: Any) -> float:
    """The rounding budget: of the sums taken here (64 eps of their terms' sizes), and hidden in their terms."""
    return float(64 * np.finfo(dtype).eps * sizes + hidden + EPS * abs(objective))


def combined_certificate(
    findings: Sequence[SvmFindings], tol: float, proved: bool, why: str, tuning: SvmCheckTuning = SvmCheckTuning()
) -> Certificate:
    """One certificate for all machines; `proved` says whether the kernel is positive semidefinite, `why` how so."""
    apart = [j for j in findings if not j.margin_is_lost]
    objective, rounding = sum(j.objective for j in apart), sum(j.rounding for j in apart)
    bound, limit, lost = sum(j.bound for j in apart), tuning.feasible, len(findings) - len(apart)
    checks = (
        Check("coefficients outside their box, as a share of C", max(0.0, *(j.outside for j in findings)), limit),
        Check("coefficients out of balance, relative", max(j.unbalanced for j in findings), limit),
        Check("rows' slackness minus the gap, relative", max(j.astray for j in findings), limit),
        Check("rounding in the objective, relative", rounding / max(abs(objective), TINY), tuning.hidden),
        *([Check("machines whose margin is 0, because nu is too small", lost, 0.0)] if lost else []),
    )
    facts: dict[str, float | str] = {
        "largest residual of a row": max(float(j.residuals.max()) for j in findings),
        "rows on the margin": float(sum(int((j.kinds == RowKind.MARGIN).sum()) for j in findings)),
        "rows beyond it": float(sum(int((j.kinds == RowKind.BEYOND).sum()) for j in findings)),
        "kernel": why,
    }
    limit = tol * abs(objective) + 2 * min(rounding, tuning.hidden * abs(objective))
    if proved:
        claim = "half the squared norm plus C times the losses within gap of the smallest"
        return Certificate("optimal", claim, objective, bound - rounding, tol, limit, checks, facts)
    claim = "complementary slackness holds row by row; the kernel is not proved positive semidefinite"
    slack = Check("complementary slackness", objective - bound, limit)
    return Certificate("stationary", claim, objective, np.nan, tol, limit, (*checks, slack), facts)


class KernelProblem(NamedTuple):
    """The rows that machines are functions of, and their kernel."""

    table: Any  # (n, d) rows, dense or CSR; row numbers (n, 1) where the kernel matrix is given
    kernel: Callable[[Any, Any], Any]  # best a plain one, whose rounding is known
    proved: bool  # whether the kernel is positive semidefinite
    why: str  # how so, in words


def certify(
    machines: Sequence[KernelSvm], problem: KernelProblem, tol: float, tuning: SvmCheckTuning = SvmCheckTuning()
) -> tuple[Certificate, list[SvmFindings]]:
    """Recompute every machine's values on its rows, and certify them all as one model."""
    kernel, X = as_plain_kernel(problem.kernel), problem.table
    judge = partial(_assess_anew, tuning.values)
    findings = [assess_in_enough_digits(judge, machine, kernel, X, tol, tuning) for machine in machines]
    return combined_certificate(findings, tol, problem.proved, problem.why, tuning), findings


def assess_in_enough_digits(
    judge: Callable[..., Any],
    machine: Any,
    kernel: PlainKernel,
    X: Any,
    tol: float,
    tuning: SvmCheckTuning = SvmCheckTuning(),
) -> Any:
    """What judge(machine, kernel, X, dtype) finds in float64, or in a longer type where rounding matters in that."""
    found = judge(machine, kernel, X, np.float64)
    support = machine.beta.any(axis=1).sum() if machine.beta.ndim > 1 else np.count_nonzero(machine.beta)
    work = len(machine.beta) * int(support) * (X.shape[1] + tuning.value_work)
    enough = found.rounding <= tuning.slight * tol * abs(found.objective)
    if enough or not kernel.gains_by_longer or work > tuning.longer_work:
        return found
    longer = judge(machine, kernel, X, np.longdouble)
    return longer if longer.rounding < found.rounding else found


def _assess_anew(
    values: PlainValueTuning, machine: KernelSvm, kernel: PlainKernel, X: Any, dtype: Any
) -> SvmFindings:
    alpha = machine.feasible(dtype)
    both = np.column_stack([machine.beta, alpha])
    seen = MachineValues.of(kernel, X, machine.rows, machine.rows, both, dtype, values)
    b, error = seen.intercept(kernel, machine.intercept)
    at = SvmValues(seen.f[:, 0], alpha, seen.f[:, 1], error, seen.longest)
    return assess(replace(machine, intercept=b[0]), at)
