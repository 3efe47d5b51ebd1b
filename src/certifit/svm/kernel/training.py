"""Machines trained one after another on the same rows, watched and certified as one model.

| record | what it holds |
|---|---|
| `TrainingRows` | the rows that count, their weights and their kernel |
| `TrainingTask` | the settings of an estimator that steer training, and the watcher of its progress |
| `CheckedMachine` | one trained machine and what the checker's formulas say of it |
| `TrainedMachines` | all machines of a model, with one certificate |

`train_each` solves the machines of a model in turn (`smo`); `svm.joint_kernel` trains one machine for all classes
with the same records. What is claimed in the end is recomputed by `recheck`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, Generic, TypeVar

import numpy as np
from scipy import sparse

from certifit.checkers.svm import kernel as checker
from certifit.core import Attributes, Certificate, Solution, Step
from certifit.core.config import unproved
from certifit.core.loop import Watcher
from certifit.core.watch import Watch
from certifit.optimise.working_sets import KernelRows, RoundLimits, RoundTuning
from certifit.rows import Array
from certifit.rows.block import Matrix
from certifit.rows.kept_passes import kept
from certifit.svm.joint_kernel.joint_smo import JointSmoTuning
from certifit.svm.kernel import smo
from certifit.svm.kernel.expansion import KernelValueTuning, expansion
from certifit.svm.kernel.gram import GivenGram, Gram, WholeMatrix, gram_of, kernel_rows
from certifit.svm.kernel.kernels import CentredLinear, ProjectedGram
from certifit.svm.kernel.linear_start import LinearStartTuning, linear_start
from certifit.svm.kernel.smo import SmoTuning
from certifit.svm.kernel.smo_loops import working_square


@dataclass(frozen=True)
class RecheckTuning:
    """When the values of trained machines are recomputed at a sample of the rows only: see `recheck`."""

    sampled_rows: int = 512  # rows with losses that are looked at
    standard_errors: float = 4.0  # by how many the mean error of a sample is taken to be off
    most_values: int = 50_000_000  # kernel values that are computed again, however large the coefficients
    rounding_share: float = 1e-2  # share of the tolerance that rounding may take
    rounding_slack: float = 1e-9  # largest slack that may be rounding alone


@dataclass(frozen=True)
class KernelMachineTuning:
    """Numbers that steer how kernel machines are trained."""

    witness_rows: int = 1500  # rows of a Gram matrix that are searched for a proof that it is no kernel's
    projected_rows: int = 3000  # most rows of a Gram matrix that is decomposed whole
    shared_rows: int = 2000  # most rows whose kernel matrix is computed whole for machines of some of them
    single_from: int = 2000  # rows beyond which kernel values may be float32: below, float64 costs nothing,
    single_tol: float = 1e-4  # from this relative gap on,
    single_C: float = 10.0  # if no C is larger
    values: KernelValueTuning = field(default_factory=KernelValueTuning)
    rounds: RoundTuning = field(default_factory=RoundTuning)
    linear_start: LinearStartTuning = field(default_factory=LinearStartTuning)
    smo: SmoTuning = field(default_factory=SmoTuning)
    joint: JointSmoTuning = field(default_factory=JointSmoTuning)
    recheck: RecheckTuning = field(default_factory=RecheckTuning)

    def tolerates_single(self, C: Array, tol: float) -> bool:
        """Whether float32 changes the objective of so many rows with weights C (n,) by less than the tolerance."""
        return len(C) > self.single_from and tol >= self.single_tol and bool(C.max() <= self.single_C)

    def judges_in_training(self, machines: Sequence[checker.KernelSvm]) -> bool:
        """Whether training says what is claimed; machines of few rows are computed anew by `recheck` in any case."""
        return all(len(machine.rows) > self.single_from for machine in machines)


@dataclass(frozen=True)
class TrainingRows:
    """The rows with a positive weight, and what is needed to compute kernel values of them."""

    X: Matrix  # (n, d); for a precomputed kernel (n, n)
    y: Array  # (n,)
    w: Array  # (n,) > 0
    used: Array  # (n,) their numbers in the whole table
    known: Attributes  # fitted attributes that do not depend on training
    kernel: Callable[[Any, Any], Any] | None  # None: precomputed
    proved: bool  # whether the kernel is proved positive semidefinite
    why: str  # how so, in words
    projected: ProjectedGram | None = None  # where an indefinite kernel matrix was projected
    tuning: KernelValueTuning = field(default_factory=KernelValueTuning)

    def gram(self, rows: Array, single: bool) -> Gram:
        """The kernel matrix of some rows; `single` allows float32."""
        if self.kernel is None:
            return GivenGram(self.X[np.ix_(rows, rows)] if len(rows) < len(self.X) else self.X, self.tuning)
        return gram_of(self.X if len(rows) == self.X.shape[0] else self.X[rows], self.kernel, single, self.tuning)

    def part_of_gram(self, rows: Array) -> Gram:
        """The same of some rows, out of the matrix of all, which is kept: machines of pairs of classes share it."""
        return GivenGram(working_square(self._whole_matrix.values, rows, rows), self.tuning)

    @cached_property
    def _whole_matrix(self) -> WholeMatrix:
        return WholeMatrix(self.gram(np.arange(len(self.y)), False))

    @property
    def rows(self) -> Matrix:
        """The rows as the user gave them, also where a projected kernel matrix has taken their place."""
        return self.X if self.projected is None else self.projected.X

    def take(self, rows: Array) -> TrainingRows:
        """Some of these rows, to train machines on."""
        X = self.X[rows] if self.kernel is not None else self.X[np.ix_(rows, rows)]
        return replace(self, X=X, y=self.y[rows], w=self.w[rows], used=self.used[rows])

    def intercepts(self, beta: Array, intercept: Array) -> Array:
        """Intercepts (machines,) for x·z instead of a linear kernel with another origin; beta (n, machines)."""
        if not isinstance(self.kernel, CentredLinear):
            return intercept
        support = beta.any(axis=1)
        X, beta, origin = self.X[support], beta[support], self.kernel.origin
        if X.size * beta.shape[1] <= self.tuning.longer_work:  # an origin far from 0 magnifies what slopes have lost
            long = np.longdouble
            return (intercept - (beta.T.astype(long) @ (X - origin.astype(long))) @ origin).astype(np.float64)
        return intercept - slopes(X, beta) @ origin

    def predicted_values(self, rows: Array, beta: Array, intercept: float, f: Array) -> Array:
        """f (m,) at these rows as `predict` will compute it: linear machines predict by x·z, not about an origin."""
        if not isinstance(self.kernel, CentredLinear):
            return f
        coef = slopes(self.X[rows], beta[:, None])[0]
        return np.asarray(self.X[rows] @ coef + (intercept - coef @ self.kernel.origin)) - intercept

    def values(self, rows: Array, centres: Array, beta: Array) -> Array:
        """Σ β k(·, centre) at some rows (m, machines); centres are numbers of rows too, beta (centres, machines)."""
        support = beta.any(axis=1)
        centres, beta = centres[support], beta[support]
        if isinstance(self.kernel, CentredLinear):
            return np.asarray(self.X[rows] @ slopes(self.X[centres], beta).T)
        if self.kernel is None:
            return np.asarray(self.X[np.ix_(rows, centres)], np.float64) @ beta
        return expansion(self.kernel, self.X[centres], beta, tuning=self.tuning)(self.X[rows])


def slopes(X: Matrix, beta: Array) -> Array:
    """Σ β x (machines, d) for coefficients (s, machines) of sum 0: rows may be measured from anywhere."""
    if sparse.issparse(X) or not len(beta):
        return np.asarray(beta.T @ X)
    return np.asarray(beta.T @ (X - X.mean(axis=0, dtype=np.float64)))


M = TypeVar("M")
F = TypeVar("F")


@dataclass(frozen=True)
class CheckedMachine(Generic[M, F]):
    """One machine on its rows, what the checker finds in it once it is asked, and the loop that trained it."""

    machine: M
    judge: Callable[[], F]
    loop: Solution[Any] | None  # None while it is being trained

    @cached_property
    def findings(self) -> F:
        return self.judge()


@dataclass(frozen=True)
class TrainedMachines:
    """All machines of a model, and what each row is to each of them."""

    beta: Array  # (n, machines)
    intercept: Array  # (machines,)
    slacks: Array  # (n, machines)
    residuals: Array  # (n, machines)
    kinds: Array  # (n, machines) `checkers.svm.kernel.RowKind`
    loops: tuple[Solution[Any], ...]
    certificate: Certificate


ToAttributes = Callable[[TrainedMachines], Attributes]  # fitted attributes of what is trained so far


@dataclass(frozen=True)
class TrainingTask:
    """The settings of an estimator that steer training, and the watcher of its progress."""

    tol: float
    max_iter: int  # rounds of each machine; -1 for no limit
    max_time: float | None  # seconds since `began`
    cache_size: float  # megabytes
    began: float  # by time.perf_counter()
    watch: Watch
    name: str  # of the loop, for progress bars
    attributes: ToAttributes
    tuning: KernelMachineTuning

    def gram(self, data: TrainingRows, rows: Array, C: Array) -> Gram:
        """The kernel matrix of some rows with weights C (m,), in float32 where the tolerance allows that."""
        n = len(data.y)
        if len(rows) < n <= self.tuning.shared_rows and 8e-6 * n * n <= self.cache_size:
            return data.part_of_gram(rows)
        return data.gram(rows, self.tuning.tolerates_single(C, self.tol))

    def limits(self, gram: Gram) -> RoundLimits:
        """When a solver that begins now has to end."""
        left = None if self.max_time is None else max(0.0, self.max_time - (time.perf_counter() - self.began))
        # float32 values leave the last per cent of the tolerance to rounding
        return RoundLimits(self.tol * (0.99 if gram.dtype == np.float32 else 1.0), self.max_iter, left)


Checked = CheckedMachine[checker.KernelSvm, checker.SvmFindings]


def train_each(task: TrainingTask, data: TrainingRows, machines: Sequence[checker.KernelSvm]) -> TrainedMachines:
    """Solve for machines whose coefficients and intercepts are still open, one after another."""
    done: list[Checked] = []
    gram: Gram | None = None
    rounds = RoundLimits(task.tol, task.max_iter, None).most_rounds
    limit = (rounds + 1) * len(machines) - 1 if task.max_iter >= 0 else rounds
    collect = partial(gather, data, len(machines), task.tol)
    duals = [_dual(machine) for machine in machines]
    with task.watch.loop(task.name, limit, task.attributes) as watch:
        total = AllMachinesWatcher(watch, duals)
        for machine, dual in zip(machines, duals, strict=True):
            if gram is None or len(machine.rows) < len(data.y):  # else all rows again, and their kernel values
                gram = task.gram(data, machine.rows, machine.C)
                values = kernel_rows(gram, task.cache_size)
            check = partial(_check, data, machine, dual, gram.lengths())
            watch.attributes = lambda point, check=check: task.attributes(collect([*done, check(point)]))
            found = kept(("machine", len(done)), partial(_solve, task, data, machine, dual, (gram, values), total))
            total.end_machine(found)
            done.append(check(found.params, found))
    return collect(done, judged=task.tuning.judges_in_training(machines))


def _solve(
    task: TrainingTask,
    data: TrainingRows,
    machine: checker.KernelSvm,
    dual: smo.SvmDual,
    kernel: tuple[Gram, KernelRows],
    watcher: Watcher,
) -> Solution[smo.SvmDualPoint]:
    """One machine, from the linear solver's answer where there is one; kernel values are only asked for if needed."""
    gram, values = kernel
    start, rows = None, machine.rows
    if task.max_iter != 0:
        X = data.X if len(rows) == len(data.y) else data.X[rows]
        left = task.limits(gram).max_time
        start = linear_start(X, data.kernel, machine, dual, task.tol, left, task.tuning.linear_start)
    return smo.solve(dual, start, values, task.limits(gram), watcher, (task.tuning.smo, task.tuning.rounds))


class AllMachinesWatcher:
    """Tells a watcher the objective and the gap of all machines together; those to come count with f = 0."""

    def __init__(self, watcher: Watcher, duals: Sequence[smo.SvmDual]) -> None:
        self.watcher = watcher
        self.objectives = [_objective_at_zero(dual) for dual in duals] if len(duals) > 1 else [0.0]
        self.gaps = self.objectives.copy()
        self.current = 0

    def begin(self) -> None:
        self.watcher.begin()

    def end(self, params: Any, step: Step[Any], tol: float) -> bool:
        self._note(step.objective, step.gain)
        objective = sum(self.objectives)
        gain = sum(self.gaps) / abs(objective) if objective != 0 else 0.0
        return self.watcher.end(params, Step(step.params, objective, gain), tol)

    def end_machine(self, found: Solution[Any]) -> None:
        """Note the result of the present machine and go on to the next."""
        self._note(found.objective, found.gain)
        self.current += 1

    def _note(self, objective: float, relative: float) -> None:
        self.objectives[self.current], self.gaps[self.current] = objective, relative * abs(objective)


def _objective_at_zero(dual: smo.SvmDual) -> float:
    """The objective of a machine without support vectors."""
    zero = smo.SvmDualPoint(np.zeros(len(dual.y)), np.zeros(int(dual.row.max()) + 1))
    return smo.measure_gap(dual, zero).primal


def gather(
    data: TrainingRows, machines: int, tol: float, done: list[Checked], judged: bool = True
) -> TrainedMachines:
    """All machines as one; those still to be trained, of `machines` in all, have no support vectors yet.

    Where they are not `judged` here, slacks are 0 and nothing is proved.
    """
    shape = (len(data.y), machines)
    beta, slacks, residuals, intercept = np.zeros(shape), np.zeros(shape), np.zeros(shape), np.zeros(machines)
    kinds = np.zeros(shape, np.int8)
    certificate = unproved()
    for i, one in enumerate(done):
        rows = one.machine.rows
        beta[rows, i], intercept[i] = one.machine.beta, one.machine.intercept
    if judged:
        for i, one in enumerate(done):
            rows, found = one.machine.rows, one.findings
            slacks[rows, i], residuals[rows, i], kinds[rows, i] = found.slacks, found.residuals, found.kinds
        certificate = checker.combined_certificate([one.findings for one in done], tol, data.proved, data.why)
    loops = tuple(one.loop for one in done if one.loop is not None)
    intercept = data.intercepts(beta, intercept)
    return TrainedMachines(beta, intercept, slacks, residuals, kinds, loops, certificate)


def _check(
    data: TrainingRows,
    machine: checker.KernelSvm,
    dual: smo.SvmDual,
    lengths: Array,
    point: smo.SvmDualPoint,
    loop: Solution[Any] | None = None,
) -> Checked:
    """The machine at a point of its dual, and what the checker's formulas say of the values stored so far."""
    beta = np.bincount(dual.row, dual.y * point.alpha, len(machine.rows))
    fitted = replace(machine, beta=beta, intercept=smo.measure_gap(dual, point).intercept)
    f = data.predicted_values(machine.rows, beta, fitted.intercept, point.f)
    values = checker.SvmValues(f, beta, point.f, checker.rounding_error(beta, lengths), float(lengths.max(initial=0)))
    return CheckedMachine(fitted, partial(checker.assess, fitted, values), loop)


def _dual(machine: checker.KernelSvm) -> smo.SvmDual:
    """The machine's dual in the solver's form; for numbers a row has two variables, for too low and for too high."""
    rows = np.arange(len(machine.y))
    if machine.epsilon is None:
        return smo.SvmDual(rows, machine.y, -np.ones(len(rows)), machine.C)
    sign = np.repeat([1.0, -1.0], len(rows))
    y, C = np.tile(machine.y, 2), np.tile(machine.C, 2)
    return smo.SvmDual(np.tile(rows, 2), sign, machine.epsilon - sign * y, C)
