"""Machines trained one after another on the same rows, watched and judged as one."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Generic, TypeVar

import numpy as np
from scipy import sparse

from certifit.checkers.svm import kernel as certificates
from certifit.core import Attributes, Certificate, Solution, Step
from certifit.core.loop import Watcher
from certifit.optimise.working_sets import FOREVER, Limits
from certifit.rows import Array
from certifit.rows.block import Matrix
from certifit.svm.kernel import smo
from certifit.svm.kernel.gram import GivenGram, Gram, expansion, gram_of, kernel_rows
from certifit.svm.kernel.kernels import LinearFrom, Projected

PRECISE = 2000  # rows up to which kernel values are float64: they cost nothing there
LOOSE = 1e-4  # relative gap from which float32 kernel values do
MODEST = 10.0  # largest C for which they do


@dataclass(frozen=True)
class Training:
    """Rows that have weight, and what is needed to make kernel values of them."""

    X: Matrix  # (n, d); for a precomputed kernel (n, n)
    y: Array  # (n,)
    w: Array  # (n,) > 0
    used: Array  # (n,) their numbers in the whole table
    known: Attributes  # what is fitted already
    kernel: Callable[[Any, Any], Any] | None  # None: precomputed
    proved: bool  # the kernel is positive semidefinite
    why: str
    projected: Projected | None = None

    def gram(self, rows: Array, single: bool) -> Gram:
        """The kernel matrix of some rows."""
        if self.kernel is None:
            return GivenGram(self.X[np.ix_(rows, rows)] if len(rows) < len(self.X) else self.X)
        return gram_of(self.X if len(rows) == self.X.shape[0] else self.X[rows], self.kernel, single)

    @property
    def rows(self) -> Matrix:
        """What the kernel, if there is one, is a function of."""
        return self.X if self.projected is None else self.projected.X

    def take(self, rows: Array) -> Training:
        """Some of these rows, to train machines on."""
        X = self.X[rows] if self.kernel is not None else self.X[np.ix_(rows, rows)]
        return replace(self, X=X, y=self.y[rows], w=self.w[rows], used=self.used[rows])

    def intercepts(self, beta: Array, intercept: Array) -> Array:
        """From a linear kernel's origin back to zero; beta (n, machines)."""
        if not isinstance(self.kernel, LinearFrom):
            return intercept
        support = beta.any(axis=1)
        return intercept - slopes(self.X[support], beta[support]) @ self.kernel.origin

    def seen(self, rows: Array, beta: Array, intercept: float, f: Array) -> Array:
        """f (m,) at these rows, as `predict` will compute it where a linear kernel's rows lie far from zero."""
        if not isinstance(self.kernel, LinearFrom):
            return f
        coef = slopes(self.X[rows], beta[:, None])[0]
        return np.asarray(self.X[rows] @ coef + (intercept - coef @ self.kernel.origin)) - intercept

    def values(self, rows: Array, centres: Array, beta: Array) -> Array:
        """Σ β k(·, centre) at some rows (m, machines); centres are rows too."""
        support = beta.any(axis=1)
        centres, beta = centres[support], beta[support]
        if isinstance(self.kernel, LinearFrom):
            return np.asarray(self.X[rows] @ slopes(self.X[centres], beta).T)
        if self.kernel is None:
            return np.asarray(self.X[np.ix_(rows, centres)], np.float64) @ beta
        return expansion(self.kernel, self.X[centres], beta)(self.X[rows])


def slopes(X: Matrix, beta: Array) -> Array:
    """Σ β x (machines, d) for coefficients (s, machines) of sum 0: rows may be measured from anywhere."""
    if sparse.issparse(X) or not len(beta):
        return np.asarray(beta.T @ X)
    return np.asarray(beta.T @ (X - X.mean(axis=0, dtype=np.float64)))


M = TypeVar("M")
J = TypeVar("J")


@dataclass(frozen=True)
class One(Generic[M, J]):
    """One machine on its rows, judged."""

    machine: M
    judged: J
    loop: Solution[Any] | None


Judged = One[certificates.Machine, certificates.Judged]


@dataclass(frozen=True)
class Trained:
    """All machines of a model, and what each row is to each of them."""

    beta: Array  # (n, machines)
    intercept: Array  # (machines,)
    slacks: Array  # (n, machines)
    residuals: Array  # (n, machines)
    kinds: Array  # (n, machines), as certificates number them
    loops: tuple[Solution[Any], ...]
    certificate: Certificate


ToAttributes = Callable[[Trained], Attributes]  # fitted attributes of what is trained so far


def train_each(
    model: Any,
    data: Training,
    machines: Sequence[certificates.Machine],
    name: str,
    began: float,
    attributes: ToAttributes,
) -> Trained:
    """Solve for machines whose coefficients and intercepts are still open, with the settings of a KernelMachine."""
    done: list[Judged] = []
    gram: Gram | None = None
    limit = (model.max_iter + 1) * len(machines) - 1 if model.max_iter >= 0 else FOREVER
    gathered = partial(_gathered, data, len(machines), float(model.tol))
    duals = [_dual(machine) for machine in machines]
    with model._watch.loop(name, limit, attributes) as watch:
        total = Total(watch, duals)
        for machine, dual in zip(machines, duals, strict=True):
            if gram is None or len(machine.rows) < len(data.y):  # else all rows again, and their kernel values
                gram = gram_for(model, data, machine.rows, machine.C)
                kept = kernel_rows(gram, float(model.cache_size))
            judge = partial(_judged, data, machine, dual, gram.lengths())
            watch.attributes = lambda point, judge=judge: attributes(gathered([*done, judge(point)]))
            found = smo.solve(dual, kept, limits(model, gram, began), total)
            total.next(found)
            done.append(judge(found.params, found))
    return gathered(done)


def gram_for(model: Any, data: Training, rows: Array, C: Array) -> Gram:
    """The kernel matrix of some rows, in float32 where a model's tolerance does not notice."""
    return data.gram(rows, len(rows) > PRECISE and model.tol >= LOOSE and C.max() <= MODEST)


def limits(model: Any, gram: Gram, began: float) -> Limits:
    """When a solver has to end, by a model's settings."""
    left = None if model.max_time is None else max(0.0, model.max_time - (time.perf_counter() - began))
    # float32 values leave the last per cent of the tolerance to rounding
    return Limits(model.tol * (0.99 if gram.dtype == np.float32 else 1.0), model.max_iter, left)


class Total:
    """Tells a watcher the objective and the gap of all machines together; those to come stand at zero."""

    def __init__(self, watcher: Watcher, duals: Sequence[smo.Dual]) -> None:
        self.watcher = watcher
        self.objectives = [_at_zero(dual) for dual in duals] if len(duals) > 1 else [0.0]
        self.gaps = self.objectives.copy()
        self.current = 0

    def begin(self) -> None:
        self.watcher.begin()

    def end(self, params: Any, step: Step[Any], tol: float) -> bool:
        self._note(step.objective, step.gain)
        objective = sum(self.objectives)
        gain = sum(self.gaps) / objective if objective > 0 else 0.0
        return self.watcher.end(params, Step(step.params, objective, gain), tol)

    def next(self, found: Solution[Any]) -> None:
        self._note(found.objective, found.gain)
        self.current += 1

    def _note(self, objective: float, relative: float) -> None:
        self.objectives[self.current], self.gaps[self.current] = objective, relative * objective


def _at_zero(dual: smo.Dual) -> float:
    """The objective of a machine without support vectors."""
    return smo.measure(dual, smo.Point(np.zeros(len(dual.y)), np.zeros(int(dual.row.max()) + 1))).primal


def _gathered(data: Training, machines: int, tol: float, done: list[Judged]) -> Trained:
    """As one; machines that are missing of so many have no support vectors yet."""
    shape = (len(data.y), machines)
    beta, slacks, residuals, intercept = np.zeros(shape), np.zeros(shape), np.zeros(shape), np.zeros(machines)
    kinds = np.zeros(shape, np.int8)
    for i, (machine, judged) in enumerate((one.machine, one.judged) for one in done):
        rows = machine.rows
        beta[rows, i], intercept[i] = machine.beta, machine.intercept
        slacks[rows, i], residuals[rows, i], kinds[rows, i] = judged.slacks, judged.residuals, judged.kinds
    found = certificates.assemble([one.judged for one in done], tol, data.proved, data.why)
    loops = tuple(one.loop for one in done if one.loop is not None)
    intercept = data.intercepts(beta, intercept)
    return Trained(beta, intercept, slacks, residuals, kinds, loops, found)


def _judged(
    data: Training,
    machine: certificates.Machine,
    dual: smo.Dual,
    lengths: Array,
    point: smo.Point,
    loop: Solution[Any] | None = None,
) -> Judged:
    beta = np.bincount(dual.row, dual.y * point.alpha, len(machine.rows))
    fitted = replace(machine, beta=beta, intercept=smo.measure(dual, point).intercept)
    f = data.seen(machine.rows, beta, fitted.intercept, point.f)
    return One(fitted, certificates.judge(fitted, f, beta, point.f, lengths), loop)


def _dual(machine: certificates.Machine) -> smo.Dual:
    """The machine's dual in the solver's form. Numbers have two variables a row: too low and too high."""
    rows = np.arange(len(machine.y))
    if machine.epsilon is None:
        return smo.Dual(rows, machine.y, -np.ones(len(rows)), machine.C)
    sign = np.repeat([1.0, -1.0], len(rows))
    y, C = np.tile(machine.y, 2), np.tile(machine.C, 2)
    return smo.Dual(np.tile(rows, 2), sign, machine.epsilon - sign * y, C)
