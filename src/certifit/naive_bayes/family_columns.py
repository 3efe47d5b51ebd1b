"""Columns of one exponential family: a member in every class and column, from the class's mean of the statistic T.

    p(x | θ) = h(x) exp(η·T(x) - A(η)),    the likeliest member has  E T = mean of T over the rows of the class

One pass sums T by class. See `certifit.families` for the families themselves.
Reference: Bishop, Pattern Recognition and Machine Learning (2006), section 4.2.4.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from certifit.checkers.naive_bayes import moment_equations as checker
from certifit.exceptions import DataError
from certifit.families import Family
from certifit.families.support import COUNTS
from certifit.naive_bayes.class_moments import ratio
from certifit.naive_bayes.column_model import ColumnModel
from certifit.naive_bayes.discrete import add_by_class
from certifit.rows import Array, Block, Matrix, Sums


@dataclass(frozen=True)
class FamilySums(Sums):
    """Sums of the statistic T, of m numbers, by class and column."""

    weight: Array  # Σ w of the rows in which the column is not missing  (k, d)
    total: Array  # Σ w T(x)  (k, d, m)
    squares: Array  # Σ w T(x)²  (k, d, m)
    log_h: Array  # Σ w log h(x)  (k, d)


class FamilyParams(NamedTuple):
    """Ordinary parameters of the member of each class and column, in the order of the family's fields."""

    members: tuple[tuple[Any, ...], ...]  # k times d tuples


@dataclass(frozen=True)
class FamilyColumns(ColumnModel):
    """Columns with a member of one exponential family in each class."""

    State = FamilySums
    Params = FamilyParams

    like: Family  # any member: it stands for the family and its known parameters
    columns: tuple[int, ...] = ()

    def sums(self, block: Block, k: int) -> FamilySums:
        some = block.w > 0
        assert block.y is not None
        rows = Block(np.asarray(block.X, dtype=np.float64)[some], block.y[some], block.w[some], block.start)
        columns = [self._column_sums(rows, j, k) for j in range(rows.X.shape[1])]
        return FamilySums(*(np.stack(parts, axis=1) for parts in zip(*columns, strict=True)))

    def _column_sums(self, block: Block, j: int, k: int) -> tuple[Array, ...]:
        """The fields of `FamilySums` for the j-th column."""
        assert block.y is not None
        there = ~np.isnan(block.X[:, j])
        x, y, w = block.X[there, j], block.y[there], block.w[there]
        inside = self.like.support.contains(x)
        if not inside.all():
            raise DataError(
                got=f"{x[~inside][0]:g} in column {self.column_number(j)}, among the rows from {block.start}",
                wanted=f"{self.like.support.words}, as {type(self.like).__name__} takes them",
                fix="Choose another family for this column.",
            )
        T = self.like.T(x)
        with np.errstate(over="ignore"):
            large = ~np.isfinite(T**2).all(axis=1)
        if large.any():
            raise DataError(
                got=f"{x[large][0]:g} in column {self.column_number(j)}, among the rows from {block.start}",
                wanted="numbers whose squares do not overflow",
                fix="Divide the column by its size.",
            )
        columns = np.column_stack([np.ones(len(x)), self.like.log_h(x), T, T**2])
        total = add_by_class(columns, y, w, k)
        m = T.shape[1]
        return total[:, 0], total[:, 2 : 2 + m], total[:, 2 + m :], total[:, 1]

    def params(self, state: FamilySums) -> FamilyParams:
        """The members; a class that has no value in some column gets the mean of T over all rows there."""
        every = ratio(state.total.sum(axis=0), state.weight.sum(axis=0)[:, None])
        tau = np.where(state.weight[..., None] > 0, ratio(state.total, state.weight[..., None]), every)
        return FamilyParams(tuple(tuple(self._member(t) for t in row) for row in tau))

    def _member(self, tau: Array) -> tuple[Any, ...]:
        """Parameters of the member whose E T is tau (m,).

        Where rounding of a mean count exceeds the standard deviation, no digit tells this member from others.
        """
        member: Any = type(self.like).from_mean(tau, **self.like.known_values)
        lost = 16 * float(np.finfo(float).eps) * abs(float(tau[0]))
        if self.like.support is COUNTS and lost > member.variance**0.5 > 0:
            raise DataError(
                got=f"counts of mean {tau[0]:g} for a {type(self.like).__name__}",
                wanted="counts whose standard deviation is above the rounding of float64",
                fix="Choose another family for this column, such as 'gaussian'.",
            )
        return tuple(member.parameters.values())

    def _members(self, params: FamilyParams) -> list[list[Family]]:
        return [[type(self.like)(*values) for values in row] for row in params.members]

    def scores(self, params: FamilyParams, X: Matrix) -> Array:
        out = np.zeros((len(X), len(params.members)))
        for c, row in enumerate(self._members(params)):
            for j, member in enumerate(row):
                there = ~np.isnan(X[:, j])
                out[there, c] += member.log_density(X[there, j])
        return out

    def penalty(self, params: FamilyParams, state: FamilySums) -> float:
        """None: members of a family are not smoothed."""
        return 0.0

    def evidence(self, params: FamilyParams, state: FamilySums, tol: float) -> list[checker.MomentEvidence]:
        out = []
        for c, row in enumerate(self._members(params)):
            for j, member in enumerate(row):
                n, total = state.weight[c, j], state.total[c, j]
                with np.errstate(invalid="ignore"):
                    value = float(
                        np.where(total == 0, 0.0, member.natural * total).sum() - n * member.log_normaliser()
                    )
                # NaN comes of members that give one value for certain: all rows have it, and cost nothing.
                loss = -(0.0 if np.isnan(value) else value) - float(state.log_h[c, j])
                means = checker.StatisticMeans(total, state.squares[c, j], n)
                out.append(checker.statistic_evidence(member.mean_parameters, means, loss, tol))
        return [checker.worst_of_columns(out)]
