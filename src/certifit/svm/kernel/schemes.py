"""How classes are told apart: which machines there are, where their coefficients are kept, whom their values choose.

A scheme is chosen by `multi_class`. Those here train machines of two sides; a scheme that trains one machine for all
classes at once derives from `PerClass` and writes its own `train` and `loss`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from itertools import combinations
from typing import ClassVar, NamedTuple

import numpy as np

from certifit.checkers.svm.kernel import Machine
from certifit.rows import Array
from certifit.svm.kernel import calibration
from certifit.svm.kernel.kernel_machine import KernelMachine
from certifit.svm.kernel.training import ToAttributes, Trained, Training, train_each

Side = tuple[int, int | None]  # the class with y = +1 and the one with -1; None: every other class


class Labelled(NamedTuple):
    """Rows with their classes and prices."""

    data: Training
    code: Array  # (n,) class numbers 0 … k-1
    C: Array  # (n,) price of a row's slack: the box of its coefficients
    k: int

    def take(self, rows: Array) -> Labelled:
        return Labelled(self.data.take(rows), self.code[rows], self.C[rows], self.k)


class Scheme(ABC):
    """For k classes, some machines; their values at a row (machines,) choose a class."""

    pairs: ClassVar[bool] = False  # whether machines are for pairs of classes

    @abstractmethod
    def train(
        self, model: KernelMachine, rows: Labelled, name: str, began: float, attributes: ToAttributes
    ) -> Trained:
        """All machines, on these rows. `attributes` makes fitted attributes of what there is so far."""

    @abstractmethod
    def loss(self, values: Array, rows_code: Array, C: Array, k: int) -> float:
        """The sum of the rows' losses, each times its price, given the values (n, machines) of the machines."""

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


class TwoSided(Scheme):
    """Machines that each tell one class from others."""

    @abstractmethod
    def sides(self, k: int) -> list[Side]:
        """What each machine tells apart."""

    def train(
        self, model: KernelMachine, rows: Labelled, name: str, began: float, attributes: ToAttributes
    ) -> Trained:
        machines = [two_sided(rows.code, rows.C, side) for side in self.sides(rows.k)]
        return train_each(model, rows.data, machines, name, began, attributes)

    def loss(self, values: Array, rows_code: Array, C: Array, k: int) -> float:
        total = 0.0
        for column, side in enumerate(self.sides(k)):
            machine = two_sided(rows_code, C, side)
            total += machine.C @ np.maximum(0.0, 1.0 - machine.y * values[machine.rows, column])
        return float(total)


def two_sided(code: Array, C: Array, side: Side) -> Machine:
    """The machine that tells one class from another or from the rest, not trained yet."""
    first, second = side
    rows = np.arange(len(code)) if second is None else np.flatnonzero((code == first) | (code == second))
    y = np.where(code[rows] == first, 1.0, -1.0)
    return Machine(rows, y, C[rows], np.zeros(len(rows)), 0.0)


class OneVsOne(TwoSided):
    """A machine for each pair of classes, and a vote of all; the layout is LIBSVM's."""

    pairs = True

    def sides(self, k: int) -> list[Side]:
        return [(1, 0)] if k == 2 else list(combinations(range(k), 2))

    def pack(self, beta: Array, code: Array, k: int) -> Array:
        out = np.zeros((k - 1, len(beta)))
        for column, own, other in self._halves(k):
            here = code == own
            out[_line(k, own, other), here] = beta[here, column]
        return out

    def unpack(self, dual_coef: Array, code: Array, k: int) -> Array:
        out = np.zeros((len(code), len(self.sides(k))))
        for column, own, other in self._halves(k):
            here = code == own
            out[here, column] = dual_coef[_line(k, own, other), here]
        return out

    def _halves(self, k: int) -> list[tuple[int, int, int]]:
        """(machine, own class, other class)"""
        pairs = list(enumerate(self.sides(k)))
        return [(c, own, other) for c, (i, j) in pairs for own, other in ((i, j), (j, i))]  # type: ignore[misc]

    def scores(self, values: Array, k: int) -> Array:
        """Votes of the pairs, and less than half a vote for the sum of its values."""
        votes, sums = np.zeros((len(values), k)), np.zeros((len(values), k))
        for column, (i, j) in enumerate(self.sides(k)):
            wins = values[:, column] > 0
            votes[:, i] += wins
            votes[:, j] += ~wins
            sums[:, i] += values[:, column]
            sums[:, j] -= values[:, column]
        return votes + sums / (3 * (np.abs(sums) + 1))

    def winners(self, values: Array, k: int, break_ties: bool) -> Array:
        scores = self.scores(values, k)
        return (scores if break_ties else np.rint(scores)).argmax(axis=1)

    def slopes(self, values: Array, code: Array, weight: Array, k: int) -> Array:
        """One for each pair, from the rows of its classes."""
        targets, found = calibration.smoothed_targets(code, weight, k), []
        for column, (i, j) in enumerate(self.sides(k)):
            here = (code == i) | (code == j)
            pair = targets[here][:, [i, j]]
            margins = np.column_stack([values[here, column], np.zeros(here.sum())])
            found.append(calibration.fit_slope(margins, pair / pair.sum(axis=1, keepdims=True), weight[here]))
        return np.array(found)

    def probabilities(self, values: Array, slopes: Array, k: int) -> Array:
        return calibration.coupled(values * slopes, self.sides(k), k)


def _line(k: int, own: int, other: int) -> int:
    """The row of `dual_coef_` that has the coefficients of class `own` in its machine with class `other`."""
    return 0 if k == 2 else other - (other > own)


class PerClass(Scheme):
    """One column of values for each class; the largest wins."""

    def pack(self, beta: Array, code: Array, k: int) -> Array:
        return np.ascontiguousarray(beta.T)

    def unpack(self, dual_coef: Array, code: Array, k: int) -> Array:
        return dual_coef.T

    def scores(self, values: Array, k: int) -> Array:
        return values

    def slopes(self, values: Array, code: Array, weight: Array, k: int) -> Array:
        """One for all."""
        return np.array([calibration.fit_slope(values, calibration.smoothed_targets(code, weight, k), weight)])

    def probabilities(self, values: Array, slopes: Array, k: int) -> Array:
        return calibration.softmax(slopes * values)


class OneVsRest(PerClass, TwoSided):
    """A machine for each class, against all others together."""

    def sides(self, k: int) -> list[Side]:
        return [(i, None) for i in range(k)]
