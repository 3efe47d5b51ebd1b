"""Kernel machines re-checked: a function, a dual point from its own coefficients, and the gap row by row.

A machine is f = Σ βᵢ k(·, xᵢ) and an intercept b. Its objective is ½ |f|² + Σ Cᵢ lossᵢ; max(0, 1 - y (f + b)) is the
loss of a class y = ±1, max(0, |y - f - b| - ε) that of a number y. If k is positive semidefinite, the minimum is at
least  y·β - ε |β|₁ - ½ |f|²  for every β with Σ β = 0 and 0 <= y β <= C (for numbers |β| <= C). Coefficients that
miss this set are first moved into it. The gap is a sum over rows of what complementary slackness says is zero.
Several machines (one for each pair of classes) are certified by their sums.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from certifit.certificates.plain import dense
from certifit.core import Array, Certificate, Check

CLAIM = "half the squared norm plus C times the losses within gap of the smallest"
STATIONARY = "complementary slackness holds row by row; the kernel is not proved positive semidefinite"
EPS = float(np.finfo(float).eps)
TINY = float(np.finfo(float).tiny)
HIDDEN = 1e-2  # of the objective: a proof that rounding could undo is none
FEASIBLE = 1e-6  # of C: other libraries' coefficients may come in float32
SEVERAL = 64  # rows whose own kernel values are computed at a time
BLOCK = 4_000_000  # kernel values, or entries of rows, held at a time
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

    def feasible(self) -> Array:
        """The coefficients, cut back to the box and then to balance."""
        if self.epsilon is None:
            beta = self.y * np.clip(self.y * self.beta, 0.0, self.C)
        else:
            beta = np.clip(self.beta, -self.C, self.C)
        up, down = beta[beta > 0].sum(), -beta[beta < 0].sum()
        if up > down:
            return np.where(beta > 0, beta * (down / up), beta)
        return np.where(beta < 0, beta * (up / down), beta) if down > 0 else beta


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
    """f (m,) are the values of the machine (without intercept), g those of the feasible coefficients `beta`.

    lengths (m,) are √k(x, x), from which follows how large the terms are that f is made of.
    """
    y, C, b, epsilon = machine.y, machine.C, machine.intercept, machine.epsilon or 0.0
    signed = machine.y * machine.beta if machine.epsilon is None else np.abs(machine.beta)
    if machine.epsilon is None:
        miss = 1.0 - y * (f + b)  # > 0: within the margin
        reach = miss
    else:
        error = y - f - b
        miss = np.abs(error) - epsilon
        reach = np.where(machine.beta != 0, np.sign(machine.beta) * error - epsilon, miss)
    slacks = np.maximum(miss, 0.0)
    square, least = float(machine.beta @ f), float(beta @ g)
    objective = 0.5 * square + float(C @ slacks)
    linear = y * beta - epsilon * np.abs(beta)
    bound = float(linear.sum()) - 0.5 * least
    sizes = np.abs(machine.beta) @ np.abs(f) + np.abs(beta) @ np.abs(g) + np.abs(linear).sum() + C @ slacks
    # what Σ β is besides 0: a linear machine's values then depend on where rows are measured from
    error = blur(lengths, machine.beta) + abs(float(machine.beta.sum())) * lengths.max() * lengths
    hidden = error @ (np.abs(machine.beta) + C * (slacks > error))  # smaller slacks go away if f grows by as much
    at_bound = signed >= C * (1 - 1e-12)
    kinds = np.where(signed <= 0, NONE, np.where(at_bound, BEYOND, MARGIN)).astype(np.int8)
    own = y * machine.beta - epsilon * np.abs(machine.beta)
    slackness = C * slacks - own + machine.beta * (f + b)
    gap = objective - (float(own.sum()) - 0.5 * square)
    total, rounding = float(np.abs(machine.beta).sum()), float(64 * EPS * sizes + hidden)
    return Judged(
        objective,
        bound,
        rounding,
        float(np.maximum(signed - C, -signed).max() / C.max()),
        abs(float(machine.beta.sum())) / total if total > 0 else 0.0,
        max(0.0, abs(float(slackness.sum()) - gap) - rounding) / max(objective, TINY),
        slacks,
        np.choose(kinds, [slacks, np.abs(reach), np.maximum(-reach, 0.0)]),
        kinds,
    )


def blur(lengths: Array, beta: Array) -> Array:
    """Rounding in Σ βⱼ k(x, xⱼ) (m,): no kernel value is larger than the product of its two rows' lengths."""
    return 8 * EPS * float(lengths @ np.abs(beta)) * lengths


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
    limit = tol * abs(objective) + rounding
    if proved:
        return Certificate("optimal", CLAIM, objective, bound - rounding / 2, tol, limit, checks, facts)
    slack = Check("complementary slackness", objective - bound, limit)
    return Certificate("stationary", STATIONARY, objective, np.nan, tol, limit, (*checks, slack), facts)


def certify(
    machines: Sequence[Machine],
    kernel: Callable[[Array, Array], Array],
    X: Any,
    tol: float,
    proved: bool,
    why: str,
) -> tuple[Certificate, list[Judged]]:
    """Recompute every machine's values on its rows of X (dense or CSR) with a kernel of float64 tables."""
    judged = []
    for machine in machines:
        beta = machine.feasible()
        support = np.flatnonzero((machine.beta != 0) | (beta != 0))
        values = kernel_values(
            kernel, X, machine.rows, machine.rows[support], np.column_stack([machine.beta, beta])[support]
        )
        judged.append(judge(machine, values[:, 0], beta, values[:, 1], lengths(kernel, X, machine.rows)))
    return assemble(judged, tol, proved, why), judged


def kernel_values(kernel: Callable[[Array, Array], Array], X: Any, rows: Array, support: Array, beta: Array) -> Array:
    """K[rows, support] β, some rows and some support vectors at a time."""
    out = np.zeros((len(rows), beta.shape[1]))
    wide = max(1, BLOCK // X.shape[1])  # rows that are made dense
    for j in range(0, len(support), wide):
        centres = dense(X[support[j : j + wide]])
        step = min(wide, max(1, BLOCK // len(centres)))
        for i in range(0, len(rows), step):
            out[i : i + step] += kernel(dense(X[rows[i : i + step]]), centres) @ beta[j : j + wide]
    return out


def lengths(kernel: Callable[[Array, Array], Array], X: Any, rows: Array) -> Array:
    """√k(x, x) of these rows."""
    out = []
    for i in range(0, len(rows), SEVERAL):
        part = dense(X[rows[i : i + SEVERAL]])
        out.append(np.diag(kernel(part, part)))
    return np.sqrt(np.maximum(np.concatenate(out), 0.0))


def radial(gamma: float, A: Array, B: Array) -> Array:
    """exp(-γ |x - z|²), about the mean of B so that nothing cancels."""
    A, B = A - B.mean(axis=0), B - B.mean(axis=0)
    squares = np.square(A).sum(axis=1)[:, None] + np.square(B).sum(axis=1) - 2.0 * (A @ B.T)
    return np.exp(-gamma * np.maximum(squares, 0.0))


def polynomial(degree: float, gamma: float, coef0: float, A: Array, B: Array) -> Array:
    return np.power(gamma * (A @ B.T) + coef0, degree)


def sigmoid(gamma: float, coef0: float, A: Array, B: Array) -> Array:
    return np.tanh(gamma * (A @ B.T) + coef0)


def linear(A: Array, B: Array) -> Array:
    return A @ B.T


def linear_from(origin: Array, A: Array, B: Array) -> Array:
    """As good as `linear` for coefficients of sum 0, and nothing cancels far from zero."""
    return (A - origin) @ (B - origin).T
