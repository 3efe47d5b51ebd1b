"""Where a linear machine of many rows starts: at the answer of the linear solver.

A linear machine is a slope and an intercept. `svm.linear` finds these from sums over rows, without a kernel value.
The dual point that belongs to them follows: a row on the wrong side of its margin has a coefficient of C, one beyond
the margin has none, and the few next to it are what an exact solution for them alone says. The solver of kernel
machines measures its gap, and goes on from there where the gap is not small enough yet.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse

from certifit.checkers.svm.kernel import KernelSvm
from certifit.losses.hinges import HINGES
from certifit.rows import Array, ArrayRows
from certifit.rows.block import Matrix
from certifit.svm.kernel.kernels import CentredLinear, Linear
from certifit.svm.kernel.smo import SvmDual, SvmDualPoint, measure_gap
from certifit.svm.linear.interior_point import WorkingSetProblem, solve_working_set
from certifit.svm.linear.primal_state import PrimalSvmGoal
from certifit.svm.linear.primal_sums import SvmObjective, SvmWorkingSet
from certifit.svm.linear.slacks import EpsilonTube, OneAgainstRest, SlackRule
from certifit.svm.linear.solve import PrimalSvmProblem, minimise_svm
from certifit.svm.linear.tuning import LinearSvmTuning


@dataclass(frozen=True)
class LinearStartTuning:
    """Which linear machines start at the linear solver's answer, and how good that has to be."""

    rows: int = 2000  # more than these, and
    rows_per_column: int = 8  # so many for each column: with fewer, kernel values are the shorter way
    tol_share: float = 0.1  # of the tolerance is the linear solver's
    passes: int = 100  # over the rows at most
    near: int = 256  # slacks next to the bend that are solved for exactly,
    near_per_column: int = 4  # or so many for each column
    at_limit: float = 1e-9  # in units of C: coefficients so near to a limit are there
    linear: LinearSvmTuning = field(default_factory=LinearSvmTuning)


def linear_start(
    X: Matrix,
    kernel: Any,
    machine: KernelSvm,
    dual: SvmDual,
    tol: float,
    max_time: float | None,
    tuning: LinearStartTuning,
) -> SvmDualPoint | None:
    """A point of the machine's dual close to its best one; None where there is none better than 0 to be had.

    X (m, d) are the machine's rows.
    """
    n, d = X.shape
    if type(kernel) not in (Linear, CentredLinear) or n <= max(tuning.rows, tuning.rows_per_column * d):
        return None
    shift = kernel.origin if isinstance(kernel, CentredLinear) else None
    rule: SlackRule = OneAgainstRest(1) if machine.epsilon is None else EpsilonTube(machine.epsilon)
    svm = SvmObjective(HINGES["hinge"].shape, 1.0, 0.0, shift)
    problem = PrimalSvmProblem(
        ArrayRows(X, machine.y, machine.C), PrimalSvmGoal(svm, tuning.tol_share * tol, 0.0, tuning.linear)
    )
    middle = 0.0 if machine.epsilon is None else float(np.median(machine.y))
    unit = 1.0 if machine.epsilon is None else float(np.abs(machine.y - middle).mean()) or 1.0
    found = minimise_svm(problem, (rule,), unit, middle, max_iter=tuning.passes, max_time=max_time)
    theta = found.params[0].coefficients
    Z = X if shift is None else X - shift
    alpha = _multipliers(Z, theta, dual, svm, tuning)
    if alpha is None:
        return None
    start = SvmDualPoint(alpha, _values(Z, dual, alpha))
    return start if measure_gap(dual, start).dual > 0 else None  # no better than α = 0: time was up too soon


def _multipliers(
    Z: Matrix, theta: Array, dual: SvmDual, svm: SvmObjective, tuning: LinearStartTuning
) -> Array | None:
    """The dual variables (m,) that belong to a slope and an intercept; None if rounding leaves them out of balance.

    A variable's slack is -p - y (f + b), above 0 where its row misses the margin.
    """
    d = Z.shape[1]
    slack = -dual.p - dual.y * (np.asarray(Z @ theta[:d]) + theta[d])[dual.row]
    alpha = np.where(slack > 0, dual.C, 0.0)
    count = min(len(slack), max(tuning.near, tuning.near_per_column * (d + 1)))
    near = np.sort(np.argpartition(np.abs(slack), count - 1)[:count])
    rows = Z[dual.row[near]]
    A = np.column_stack([rows.toarray() if sparse.issparse(rows) else rows, np.ones(count)]) * dual.y[near][:, None]
    outside = np.where(np.isin(np.arange(len(alpha)), near, assume_unique=True), 0.0, dual.y * alpha)
    pull = np.append(_adjoint(Z, dual, outside), outside.sum())
    working = SvmWorkingSet(A, dual.y[near], -dual.p[near], dual.C[near])
    problem = WorkingSetProblem(working, svm.hinge, svm.penalty_weights(d + 1), pull)
    solved = solve_working_set(problem, theta, 0.0, tuning.linear.interior_point)
    if solved is None:
        return None
    share = solved[1] / dual.C[near]
    share = np.where(share < tuning.at_limit, 0.0, np.where(share > 1 - tuning.at_limit, 1.0, share))
    alpha[near] = share * dual.C[near]
    return _balanced(alpha, dual, near)


def _balanced(alpha: Array, dual: SvmDual, near: Array) -> Array | None:
    """The same with y·α = 0: the variable that has most room takes what is left over."""
    for _ in range(3):
        left = float(dual.y @ alpha)
        if left == 0.0:
            break
        falls = dual.y[near] * left > 0
        room = np.where(falls, alpha[near], dual.C[near] - alpha[near])
        chosen = near[int(room.argmax())]
        alpha[chosen] = np.clip(alpha[chosen] - dual.y[chosen] * left, 0.0, dual.C[chosen])
    balance = abs(float(dual.y @ alpha))
    return alpha if balance <= 1e-12 * float(np.abs(alpha).sum()) else None


def _adjoint(Z: Matrix, dual: SvmDual, signed: Array) -> Array:
    """Σ yα z (d,) of signed variables (m,)."""
    return np.asarray(np.bincount(dual.row, signed, Z.shape[0]) @ Z)


def _values(Z: Matrix, dual: SvmDual, alpha: Array) -> Array:
    """f (n,) at every row."""
    return np.asarray(Z @ _adjoint(Z, dual, dual.y * alpha))
