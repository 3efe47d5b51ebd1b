"""Machines of nu trained one after another on the same rows, in the form of machines of C or epsilon."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from scipy.optimize import linprog

from certifit.checkers.plain.dual_points import EPS
from certifit.checkers.svm import kernel as checker
from certifit.core import Solution
from certifit.exceptions import warn_caller
from certifit.rows import Array
from certifit.rows.kept_passes import kept
from certifit.svm.kernel.gram import Gram, kernel_rows
from certifit.svm.kernel.training import Checked, CheckedMachine, TrainedMachines, TrainingRows, TrainingTask, gather
from certifit.svm.nu import nu_smo


class LargeNuWarning(UserWarning):
    """A machine of two classes has a smaller nu than was asked for: one class has too little weight for it."""


class SmallNuWarning(UserWarning):
    """A machine of two classes has no margin: its kernel does not part them so well that nu would do."""


def train_each_nu(
    task: TrainingTask, data: TrainingRows, machines: Sequence[checker.KernelSvm], nu: float
) -> TrainedMachines:
    """Solve for machines whose coefficients are still open; their C are the weights of their rows, times C."""
    duals = [_dual(machine, nu) for machine in machines]
    done: list[Checked] = []
    collect = partial(gather, data, len(machines), task.tol)
    with task.watch.loop(task.name, task.max_iter if task.max_iter >= 0 else 10**9, task.attributes) as watch:
        for machine, dual in zip(machines, duals, strict=True):
            gram: Gram = task.gram(data, machine.rows, machine.C)
            lengths = gram.lengths()
            dual = replace(dual, lost=EPS * (dual.total * float(lengths.max(initial=0.0))) ** 2)
            check = partial(_check, data, machine, dual, lengths)
            watch.attributes = lambda point, check=check: task.attributes(collect([*done, check(point)]))
            values = kernel_rows(gram, task.cache_size)
            solve = partial(nu_smo.solve, dual, values, task.limits(gram), watch, task.tuning.smo, task.tuning.rounds)
            found = kept(("machine", len(done)), solve)
            done.append(check(found.params, found))
            margin = nu_smo.measure_gap(dual, found.params).margin
            slight = dual.unit_margin and margin < 1e-6 * float(lengths.max(initial=0.0)) ** 2 * dual.total
            if slight and done[-1].findings.margin_is_lost:
                warn_caller(_small_nu_words(machine, nu, gram), SmallNuWarning)
    return collect(done, judged=task.tuning.judges_in_training(machines))


def _dual(machine: checker.KernelSvm, nu: float) -> nu_smo.NuDual:
    rows, C, total = np.arange(len(machine.y)), machine.C, 0.5 * nu * float(machine.C.sum())
    if machine.epsilon is not None:
        both = np.tile(rows, 2), np.repeat([1.0, -1.0], len(rows)), np.tile(machine.y, 2), np.tile(C, 2)
        return nu_smo.NuDual(*both, total, unit_margin=False)
    most = checker.largest_nu(machine.y, C)
    if nu > most * (1 + 1e-12):
        warn_caller(
            f"nu={nu:g} is infeasible for two classes of such weights: the largest there is, {most:.3g}, is taken. "
            "Take a smaller nu, or class_weight='balanced'.",
            LargeNuWarning,
        )
    return nu_smo.NuDual(
        rows, machine.y, np.zeros(len(rows)), C, min(nu, most) * 0.5 * float(C.sum()), unit_margin=True
    )


def _small_nu_words(machine: checker.KernelSvm, nu: float, gram: Gram, most_rows: int = 1000) -> str:
    """What is wrong with a nu that leaves no margin, and which would do; with many rows that takes too long."""
    words = f"nu={nu:g} is too small for two classes that this kernel does not part: all functions have a margin of 0"
    other = "a kernel that parts them better: a larger gamma or degree, say"
    if gram.n > most_rows:
        return f"{words}, and the answers are arbitrary. Take a larger nu, or {other}."
    least = smallest_nu(gram.square(np.arange(gram.n)), machine.y, machine.C)
    largest = checker.largest_nu(machine.y, machine.C)
    if least > (1 - 1e-9) * largest:
        return f"{words} whatever nu is, and the answers are arbitrary. Take {other}."
    return f"{words}, and the answers are arbitrary. Take a nu above {least:.3g} (up to {largest:.3g}), or {other}."


def smallest_nu(K: Array, y: Array, w: Array) -> float:
    """Up to this nu two classes y = ±1 have no margin: the least mean hinge loss of a function without a penalty.

    Its dual is a linear program: the largest Σ a / Σ w with 0 <= a <= w, Σ a y = 0 and Σ a y k(x, ·) = 0.
    """
    values, vectors = np.linalg.eigh(K)
    used = values > len(K) * np.finfo(float).eps * values[-1]
    rows = np.vstack([vectors[:, used].T * np.sqrt(values[used] / values[-1])[:, None], np.ones(len(y))]) * y
    found = linprog(-np.ones(len(w)), A_eq=rows, b_eq=np.zeros(len(rows)), bounds=np.column_stack([0 * w, w]))
    return -float(found.fun) / float(w.sum()) if found.success else 0.0


def fitted_machine(machine: checker.KernelSvm, dual: nu_smo.NuDual, point: nu_smo.SvmDualPoint) -> checker.KernelSvm:
    """The machine at a point: of two classes divided by its margin, of numbers with its tube."""
    found, beta = nu_smo.measure_gap(dual, point), _coefficients(dual, point, len(machine.rows))
    if not dual.unit_margin:
        m, epsilon, nu = machine, max(0.0, -found.margin), 2 * dual.total / float(machine.C.sum())
        tube = checker.NuTubeMachine(m.rows, m.y, m.C, beta, found.intercept, epsilon, nu)
        return replace(tube, intercept=checker.best_intercept(tube, point.f))
    # Where no function keeps the classes apart at this nu, the margin is 0: its certificate says so.
    margin = max(found.margin, 1e-8 * (float(np.abs(point.f).max(initial=0.0)) or 1.0))
    scale, weight = 1.0 / margin, float(machine.C.sum())
    m, nu, b = machine, 2 * dual.total / weight, scale * found.intercept
    pair = checker.NuClassMachine(m.rows, m.y, scale * m.C, scale * beta, b, None, nu, weight)
    # Before the minimum the middle of the thresholds is not yet that of the best intercepts.
    return replace(pair, intercept=checker.best_intercept(pair, scale * point.f))


def _coefficients(dual: nu_smo.NuDual, point: nu_smo.SvmDualPoint, n: int) -> Array:
    return np.bincount(dual.row, dual.s * point.alpha, n)


def _check(
    data: TrainingRows,
    machine: checker.KernelSvm,
    dual: nu_smo.NuDual,
    lengths: Array,
    point: nu_smo.SvmDualPoint,
    loop: Solution[Any] | None = None,
) -> Checked:
    """The machine at a point of its dual, and what the checker's formulas say of the values stored so far."""
    fitted = fitted_machine(machine, dual, point)
    size = float(np.abs(_coefficients(dual, point, len(machine.rows))).sum()) or 1.0
    g = point.f * (float(np.abs(fitted.beta).sum()) / size)
    f = data.predicted_values(machine.rows, fitted.beta, fitted.intercept, g)
    error = checker.rounding_error(fitted.beta, lengths)
    values = checker.SvmValues(f, fitted.beta, g, error, float(lengths.max(initial=0)))
    return CheckedMachine(fitted, partial(checker.assess, fitted, values), loop)
