"""Kernel machines re-checked: a function, a dual point from its own coefficients, and the gap row by row.

A machine is f = Σ βᵢ k(·, xᵢ) and an intercept b. Its objective is ½ |f|² + Σ Cᵢ lossᵢ; max(0, 1 - y (f + b)) is the
loss of a class y = ±1, max(0, |y - f - b| - ε) that of a number y. If k is positive semidefinite, the minimum is at
least  y·β - ε |β|₁ - ½ |f|²  for every β with Σ β = 0 and 0 <= y β <= C (for numbers |β| <= C). Coefficients that
miss this set are first moved into it. The gap is a sum over rows of what complementary slackness says is zero.
Several machines (one for each pair of classes) are certified by their sums.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from certifit.checkers.plain.kernel_values import Values
from certifit.checkers.plain.kernels import Plain, plain
from certifit.core import Certificate, Check
from certifit.rows import Array

CLAIM = "half the squared norm plus C times the losses within gap of the smallest"
STATIONARY = "complementary slackness holds row by row; the kernel is not proved positive semidefinite"
EPS = float(np.finfo(float).eps)
TINY = float(np.finfo(float).tiny)
HIDDEN = 1e-2  # of the objective: a proof that rounding could undo is none
FEASIBLE = 1e-6  # of C: other libraries' coefficients may come in float32
SLIGHT = 1e-2  # of the tolerance: where rounding could be more, kernel values are computed in a longer type,
LONG = 400_000_000  # unless that takes more multiplications than this, counting a value as
VALUE = 20  # of them, besides those of its columns
NONE, MARGIN, BEYOND = 0, 1, 2  # kinds of rows: not a support vector, on the margin, beyond it


@dataclass(frozen=True)
class Machine:
    """One machine and the rows it was trained on."""

    rows: Array  # (m,) row numbers in the table
    y: Array  # (m,) ±1, or numbers
    C: Array  # (m,) largest size of each coefficient
    beta: Array  # (m,) coefficients, zero where a row is not a support vector
    intercept: float
    epsilon: float | None = None  # None: y are classes

    def feasible(self, dtype: Any = np.float64) -> Array:
        """The coefficients, cut back to the box and then to balance."""
        beta = self.beta.astype(dtype)
        if self.epsilon is None:
            beta = self.y * np.clip(self.y * beta, 0.0, self.C)
        else:
            beta = np.clip(beta, -self.C, self.C)
        up, down = beta[beta > 0].sum(), -beta[beta < 0].sum()
        if up > down:
            return np.where(beta > 0, beta * (down / up), beta)
        return np.where(beta < 0, beta * (up / down), beta) if down > 0 else beta

    def misses(self, values: Array, some: Any = slice(None)) -> Array:
        """By how much values (with the intercept) at some rows miss the margin, or the tube, where above 0."""
        y = self.y[some]
        return 1.0 - y * values if self.epsilon is None else np.abs(y - values) - self.epsilon

    def losses(self, kernel: Plain, X: Any, some: Array) -> Array:
        """Of some of its rows."""
        return np.maximum(self.misses(self.values(kernel, X, self.rows[some])[:, 0], some), 0.0)

    def values(self, kernel: Plain, X: Any, at: Array) -> Array:
        """(m, 1) at these rows of X."""
        seen = Values.of(kernel, X, at, self.rows, self.beta[:, None], np.float64)
        return seen.f + seen.intercept(kernel, self.intercept)[0]


class Judged(NamedTuple):
    """What a machine's values prove about it."""

    objective: float
    bound: float
    rounding: float
    outside: float  # the worst coefficient's distance to its box, as a share of the largest C
    unbalanced: float  # |Σ β| / Σ |β|
    astray: float  # Σ of the rows' slackness minus the gap, beyond rounding, relative
    slacks: Array  # (m,) losses
    residuals: Array  # (m,) by how much each row's optimality condition is missed, in units of f
    kinds: Array  # (m,) NONE, MARGIN or BEYOND


def judge(machine: Machine, f: Array, beta: Array, g: Array, lengths: Array) -> Judged:
    """As `weigh`, for values that are good to rounding; lengths (m,) are √k(x, x)."""
    return weigh(machine, f, beta, g, 8 * EPS * float(lengths @ np.abs(machine.beta)) * lengths)


def weigh(machine: Machine, f: Array, beta: Array, g: Array, error: Array) -> Judged:
    """f (m,) are the values of the machine (without intercept), g those of the feasible coefficients `beta`.

    error (m,) is how far either of them may be off.
    """
    y, C, b, epsilon = machine.y, machine.C, machine.intercept, machine.epsilon or 0.0
    signed = machine.y * machine.beta if machine.epsilon is None else np.abs(machine.beta)
    miss = reach = machine.misses(f + b)
    if machine.epsilon is not None:
        error = error + 4 * np.finfo(f.dtype).eps * np.abs(y)  # of y - f - b
        reach = np.where(machine.beta != 0, np.sign(machine.beta) * (y - f - b) - epsilon, miss)
    slacks = np.maximum(miss, 0.0)
    square, least = machine.beta @ f, beta @ g
    objective = 0.5 * square + C @ slacks
    linear = y * beta - epsilon * np.abs(beta)
    sizes = np.abs(machine.beta) @ np.abs(f) + np.abs(beta) @ np.abs(g) + np.abs(linear).sum() + C @ slacks
    hidden = error @ (np.abs(machine.beta) + np.abs(beta)) / 2 + C @ (np.maximum(miss + error, 0.0) - slacks)
    hidden += abs(b) * abs(beta.sum())  # where Σ β = 0 to rounding, as the bound asks for
    at_bound = signed >= C * (1 - 1e-12)
    kinds = np.where(signed <= 0, NONE, np.where(at_bound, BEYOND, MARGIN)).astype(np.int8)
    own = y * machine.beta - epsilon * np.abs(machine.beta)
    slackness = C * slacks - own + machine.beta * (f + b)
    gap = objective - (own.sum() - 0.5 * square)
    total, astray = float(np.abs(machine.beta).sum()), slackness.sum() - gap - b * machine.beta.sum(dtype=f.dtype)
    rounding = float(64 * np.finfo(f.dtype).eps * sizes + hidden + EPS * abs(objective))
    return Judged(
        float(objective),
        float(linear.sum() - 0.5 * least),
        rounding,
        float(np.maximum(signed - C, -signed).max() / C.max()),
        abs(float(machine.beta.sum())) / total if total > 0 else 0.0,
        max(0.0, abs(float(astray)) - rounding) / max(float(objective), TINY),
        slacks.astype(np.float64),
        np.choose(kinds, [slacks, np.abs(reach), np.maximum(-reach, 0.0)]).astype(np.float64),
        kinds,
    )


def assemble(judged: Sequence[Judged], tol: float, proved: bool, why: str) -> Certificate:
    """One certificate for all machines; `proved` says whether the kernel is positive semidefinite, `why` how so."""
    objective, rounding = sum(j.objective for j in judged), sum(j.rounding for j in judged)
    bound = sum(j.bound for j in judged)
    checks = (
        Check("coefficients outside their box, as a share of C", max(0.0, *(j.outside for j in judged)), FEASIBLE),
        Check("coefficients out of balance, relative", max(j.unbalanced for j in judged), FEASIBLE),
        Check("rows' slackness minus the gap, relative", max(j.astray for j in judged), FEASIBLE),
        Check("rounding in the objective, relative", rounding / max(objective, TINY), HIDDEN),
    )
    facts: dict[str, float | str] = {
        "largest residual of a row": max(float(j.residuals.max()) for j in judged),
        "rows on the margin": float(sum(int((j.kinds == MARGIN).sum()) for j in judged)),
        "rows beyond it": float(sum(int((j.kinds == BEYOND).sum()) for j in judged)),
        "kernel": why,
    }
    limit = tol * abs(objective) + 2 * min(rounding, HIDDEN * abs(objective))
    if proved:
        return Certificate("optimal", CLAIM, objective, bound - rounding, tol, limit, checks, facts)
    slack = Check("complementary slackness", objective - bound, limit)
    return Certificate("stationary", STATIONARY, objective, np.nan, tol, limit, (*checks, slack), facts)


def certify(
    machines: Sequence[Machine],
    kernel: Callable[[Any, Any], Any],
    X: Any,
    tol: float,
    proved: bool,
    why: str,
) -> tuple[Certificate, list[Judged]]:
    """Recompute every machine's values on its rows of X (dense or CSR)."""
    judged = [closely(_judged, machine, plain(kernel), X, tol) for machine in machines]
    return assemble(judged, tol, proved, why), judged


def closely(judge: Callable[..., Any], machine: Any, kernel: Plain, X: Any, tol: float) -> Any:
    """What judge(machine, kernel, X, dtype) finds in float64, or in a longer type where rounding matters in that."""
    found = judge(machine, kernel, X, np.float64)
    support = machine.beta.any(axis=1).sum() if machine.beta.ndim > 1 else np.count_nonzero(machine.beta)
    work = len(machine.beta) * int(support) * (X.shape[1] + VALUE)
    if found.rounding <= SLIGHT * tol * abs(found.objective) or not kernel.longer or work > LONG:
        return found
    longer = judge(machine, kernel, X, np.longdouble)
    return longer if longer.rounding < found.rounding else found


def _judged(machine: Machine, kernel: Plain, X: Any, dtype: Any) -> Judged:
    beta = machine.feasible(dtype)
    seen = Values.of(kernel, X, machine.rows, machine.rows, np.column_stack([machine.beta, beta]), dtype)
    b, error = seen.intercept(kernel, machine.intercept)
    return weigh(replace(machine, intercept=b[0]), seen.f[:, 0], beta, seen.f[:, 1], error)
