"""Schemes for several classes: which machines there are, where their coefficients are kept, which class they choose.

| `multi_class` | class | machines for k classes | the class chosen |
|---|---|---|---|
| 'ovo' | `OneVsOne` | one for each pair of classes | the one with most votes |
| 'ovr' | `OneVsRest` | one for each class against all others | the one with the largest value |
| 'weston-watkins', 'crammer-singer' | `svm.joint_kernel.JointScheme` | one for all | the one with the largest score |
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from functools import lru_cache
from itertools import combinations
from typing import ClassVar, NamedTuple

import numpy as np

from certifit.checkers.svm.kernel import KernelSvm
from certifit.rows import Array
from certifit.svm.kernel import calibration
from certifit.svm.kernel.recheck import AnyMachine
from certifit.svm.kernel.training import TrainedMachines, TrainingRows, TrainingTask, train_each

Side = tuple[int, int | None]  # the class with y = +1 and the one with -1; None: every other class


class SvmRows(NamedTuple):
    """Rows with their classes and the weights C of their losses."""

    data: TrainingRows
    code: Array  # (n,) class numbers 0 … k-1
    C: Array  # (n,) weight of a row's slack, which is the limit of its coefficient
    k: int

    def take(self, rows: Array) -> SvmRows:
        """Some of these rows."""
        return SvmRows(self.data.take(rows), self.code[rows], self.C[rows], self.k)


class MulticlassScheme(ABC):
    """For k classes, some machines; their values at a row (machines,) choose a class."""

    pairs: ClassVar[bool] = False  # whether machines are for pairs of classes

    @abstractmethod
    def train(self, task: TrainingTask, rows: SvmRows) -> TrainedMachines:
        """Train all machines on these rows."""

    @abstractmethod
    def machines(self, rows: SvmRows, found: TrainedMachines) -> list[AnyMachine]:
        """Machines that were trained on these rows, as the checker has them."""

    @abstractmethod
    def loss(self, values: Array, rows_code: Array, C: Array, k: int) -> float:
        """The sum of the rows' losses, each times its weight C, given the values (n, machines) of the machines."""

    @abstractmethod
    def pack(self, beta: Array, code: Array, k: int) -> Array:
        """`dual_coef_` of coefficients (s, machines) of support vectors of these classes (s,)."""

    @abstractmethod
    def unpack(self, dual_coef: Array, code: Array, k: int) -> Array:
        """The inverse of `pack`."""

    @abstractmethod
    def scores(self, values: Array, k: int) -> Array:
        """(n, k): the larger, the likelier."""

    def winners(self, values: Array, k: int, break_ties: bool) -> Array:
        """The number of the class that the values choose, for every row."""
        return self.scores(values, k).argmax(axis=1)

    @abstractmethod
    def slopes(self, values: Array, code: Array, weight: Array, k: int) -> Array:
        """Parameters of the probabilities, likeliest for values (n, machines) of rows that no machine has seen."""

    @abstractmethod
    def probabilities(self, values: Array, slopes: Array, k: int) -> Array:
        """(n, k), before the class that is predicted is made the likeliest."""


class TwoSidedScheme(MulticlassScheme):
    """Machines that each tell one class from others."""

    @abstractmethod
    def sides(self, k: int) -> list[Side]:
        """What each machine tells apart."""

    def train(self, task: TrainingTask, rows: SvmRows) -> TrainedMachines:
        return train_each(task, rows.data, [two_sided(rows.code, rows.C, side) for side in self.sides(rows.k)])

    def machines(self, rows: SvmRows, found: TrainedMachines) -> list[AnyMachine]:
        blank = [two_sided(rows.code, rows.C, side) for side in self.sides(rows.k)]
        return [
            replace(machine, beta=found.beta[machine.rows, i], intercept=float(found.intercept[i]))
            for i, machine in enumerate(blank)
        ]

    def loss(self, values: Array, rows_code: Array, C: Array, k: int) -> float:
        total = 0.0
        for column, side in enumerate(self.sides(k)):
            machine = two_sided(rows_code, C, side)
            total += machine.C @ np.maximum(0.0, 1.0 - machine.y * values[machine.rows, column])
        return float(total)


def two_sided(code: Array, C: Array, side: Side) -> KernelSvm:
    """The machine that tells one class from another or from the rest, not trained yet."""
    first, second = side
    rows = np.arange(len(code)) if second is None else np.flatnonzero((code == first) | (code == second))
    y = np.where(code[rows] == first, 1.0, -1.0)
    return KernelSvm(rows, y, C[rows], np.zeros(len(rows)), 0.0)


class OneVsOne(TwoSidedScheme):
    """A machine for each pair of classes, and a vote of all; the layout is LIBSVM's."""

    pairs = True

    def sides(self, k: int) -> list[Side]:
        return [(1, 0)] if k == 2 else list(combinations(range(k), 2))

    def pack(self, beta: Array, code: Array, k: int) -> Array:
        return np.ascontiguousarray(np.take_along_axis(beta, _pairs_of_each(k)[code], axis=1).T)

    def unpack(self, dual_coef: Array, code: Array, k: int) -> Array:
        out = np.zeros((len(code), len(self.sides(k))))
        np.put_along_axis(out, _pairs_of_each(k)[code], dual_coef.T, axis=1)
        return out

    def scores(self, values: Array, k: int) -> Array:
        """Votes of the pairs for each class, and less than half a vote for the sum of its values."""
        votes, sums = np.empty((len(values), k)), np.empty((len(values), k))
        firsts = np.array([first for first, _ in self.sides(k)])
        for one, machines in enumerate(_pairs_of_each(k)):
            first = firsts[machines] == one
            own = np.where(first, values[:, machines], -values[:, machines])
            votes[:, one] = np.where(first, own > 0, own >= 0).sum(axis=1)
            sums[:, one] = own.sum(axis=1)
        return votes + sums / (3 * (np.abs(sums) + 1))

    def winners(self, values: Array, k: int, break_ties: bool) -> Array:
        scores = self.scores(values, k)
        return (scores if break_ties else np.rint(scores)).argmax(axis=1)

    def slopes(self, values: Array, code: Array, weight: Array, k: int) -> Array:
        """One slope for each pair, from the rows of its classes."""
        targets, found = calibration.smoothed_targets(code, weight, k), []
        for column, (i, j) in enumerate(self.sides(k)):
            here = (code == i) | (code == j)
            pair = targets[here][:, [i, j]]
            margins = np.column_stack([values[here, column], np.zeros(here.sum())])
            found.append(calibration.fit_slope(margins, pair / pair.sum(axis=1, keepdims=True), weight[here]))
        return np.array(found)

    def probabilities(self, values: Array, slopes: Array, k: int) -> Array:
        return calibration.couple_pairs(values * slopes, self.sides(k), k)


@lru_cache(maxsize=16)
def _pairs_of_each(k: int) -> Array:
    """The numbers of the pairs of each class (k, k - 1), in the order of the other class."""
    pairs = np.array(OneVsOne().sides(k))
    found = np.array([np.flatnonzero((pairs == one).any(axis=1)) for one in range(k)])
    found.flags.writeable = False
    return found


class PerClassScheme(MulticlassScheme):
    """One column of values for each class; the largest wins."""

    def pack(self, beta: Array, code: Array, k: int) -> Array:
        return np.ascontiguousarray(beta.T)

    def unpack(self, dual_coef: Array, code: Array, k: int) -> Array:
        return dual_coef.T

    def scores(self, values: Array, k: int) -> Array:
        return values

    def slopes(self, values: Array, code: Array, weight: Array, k: int) -> Array:
        """One slope for all classes."""
        return np.array([calibration.fit_slope(values, calibration.smoothed_targets(code, weight, k), weight)])

    def probabilities(self, values: Array, slopes: Array, k: int) -> Array:
        return calibration.softmax(slopes * values)


class OneVsRest(PerClassScheme, TwoSidedScheme):
    """A machine for each class, against all others together."""

    def sides(self, k: int) -> list[Side]:
        return [(i, None) for i in range(k)]
