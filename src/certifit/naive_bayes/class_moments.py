"""Mean and spread of every column within every class, right at any offset.

Sums are taken about a centre of each class's own, chosen from the first rows: squares of x - c keep their digits
where squares of x would not. If the rows turn out to lie far from that centre, a second pass is made about their
mean. The result can be merged with that of other rows exactly, which is what `partial_fit` does.
Reference: Chan, Golub & LeVeque, Algorithms for computing the sample variance (1983).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from certifit.naive_bayes.class_sums_loops import add_moments, add_moments_of_entries, group_rows_by_class
from certifit.naive_bayes.column_model import ClassStatistics, NaiveBayesTuning, measure, refuse_infinities
from certifit.numerics.moments import check_overflow
from certifit.numerics.products import far
from certifit.rows import Array, Block, Rows, Sums


@dataclass(frozen=True)
class ShiftedSums(Sums):
    """Sums about the centres c of a pass, each over the rows in which the column is not missing."""

    weight: Array  # Σ w  (k, d)
    z: Array  # Σ w (x - c)  (k, d)
    zz: Array  # Σ w (x - c)²  (k, d)


@dataclass(frozen=True)
class ClassMoments:
    """Mean, as centre + delta to keep the digits of both, and scatter; `+` is exact for any two centres."""

    weight: Array  # Σ w of the rows in which the column is not missing  (k, d)
    centre: Array  # (k, d)
    delta: Array  # mean - centre  (k, d)
    ssd: Array  # Σ w (x - mean)²  (k, d)

    def __add__(self, other: ClassMoments) -> ClassMoments:
        weight = self.weight + other.weight
        share = ratio(other.weight, weight)
        gap = (other.centre - self.centre) + (other.delta - self.delta)
        seen = self.weight > 0
        centre = np.where(seen, self.centre, other.centre)
        ssd = self.ssd + other.ssd + np.where(seen, self.weight * share * gap**2, 0.0)
        delta = np.where(seen, self.delta + share * gap, other.delta)
        return ClassMoments(weight, centre, delta, without_rounding(ssd, weight, centre + delta))

    @property
    def mean(self) -> Array:
        """Mean of each class and column (k, d)."""
        return self.centre + self.delta

    def pooled(self) -> ClassMoments:
        """The moments of all classes together, (1, d)."""
        total = ClassMoments(*(a[:1] for a in (self.weight, self.centre, self.delta, self.ssd)))
        for c in range(1, len(self.weight)):
            here = slice(c, c + 1)
            total = total + ClassMoments(self.weight[here], self.centre[here], self.delta[here], self.ssd[here])
        check_overflow(total.ssd)  # which may be infinite where no class's own is
        return total


@dataclass(frozen=True)
class MomentStatistics(ClassStatistics):
    """Measures `ClassMoments`."""

    State = ClassMoments

    centre: Array | None = None  # (k, d), once chosen
    columns: tuple[int, ...] = ()

    def prepare(self, first: Block, k: int, tuning: NaiveBayesTuning) -> Self:
        """With each class's mean over the first rows as its centre, or that of all classes if it has none there."""
        X, y, w = first_rows(first, tuning.first_rows)
        there = (w > 0)[:, None] & np.isfinite(X)  # infinities are refused by the pass
        X = np.where(there, X, 0.0)
        one_of = (y == np.arange(k)[:, None]).astype(np.float64)  # (k, rows)
        every = ratio(X.sum(axis=0), there.sum(axis=0))
        n = one_of @ there
        return replace(self, centre=np.where(n > 0, ratio(one_of @ X, n), every))

    def sums(self, block: Block, k: int) -> ShiftedSums:
        """Sums about the centres; a pass that can take missing entries is made only where the fast one meets one."""
        X, w, c = block.X, block.w, self.centre
        assert c is not None
        assert block.y is not None
        groups = group_rows_by_class(block.y, w, k)
        z, zz = np.zeros(c.shape), np.zeros(c.shape)
        add_moments(X, w, groups, c, z, zz)
        refuse_infinities(X[w == 0])  # the loops pass over rows without weight
        if np.isfinite(z).all():
            count = np.bincount(block.y, w, k)
            return ShiftedSums(np.repeat(count[:, None], c.shape[1], axis=1), z, zz)
        refuse_infinities(X)
        weight, z, zz = np.zeros((3, *c.shape))
        add_moments_of_entries(X, w, groups, c, weight, z, zz)
        return ShiftedSums(weight, z, zz)

    def remeasure(self, total: ShiftedSums) -> Self | None:
        """About the means, if some mean is so many standard deviations from its centre that squares lost digits."""
        check_overflow(total.zz)
        delta = ratio(total.z, total.weight)
        variance = np.maximum(ratio(total.zz, total.weight) - delta**2, 0.0)
        assert self.centre is not None
        rounding = (8 * np.finfo(np.float64).eps * self.centre) ** 2
        lost = delta**2 > far(np.float64) ** 2 * variance + rounding
        return replace(self, centre=self.centre + delta) if lost.any() else None

    def state(self, total: ShiftedSums) -> ClassMoments:
        """The moments about the means, from the sums about the centres."""
        delta = ratio(total.z, total.weight)
        ssd = np.maximum(total.zz - total.weight * delta**2, 0.0)
        assert self.centre is not None
        ssd = without_rounding(ssd, total.weight, self.centre + delta)
        return ClassMoments(total.weight, self.centre, delta, ssd)


def without_rounding(ssd: Array, weight: Array, mean: Array) -> Array:
    """Sums of squared deviations (k, d), 0 where they are what rounding leaves of rows that are all the same.

    Unequal numbers differ by half of eps times their size or more. What sums of equal ones leave is smaller by the
    root of eps, unless all rows but a share of 1e-12 are equal.
    """
    # By roots: squares of large values overflow.
    return np.where(np.sqrt(ratio(ssd, weight)) > 32 * np.finfo(np.float64).eps ** 1.5 * np.abs(mean), ssd, 0.0)


def measure_class_moments(rows: Rows, k: int) -> ClassMoments:
    """Moments of every column within each of k classes; y are class numbers. One pass over the rows, or two."""
    return measure(MomentStatistics(), rows, k, NaiveBayesTuning())


def first_rows(block: Block, n: int) -> tuple[Array, Array, Array]:
    """The first n rows of a block as a dense float64 array, with their targets and weights."""
    X = block.X[:n]
    assert block.y is not None
    return np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64), block.y[:n], block.w[:n]


def ratio(a: Array, b: Array) -> Array:
    """a / b, and 0 where b is 0."""
    return np.divide(a, b, out=np.zeros(np.broadcast_shapes(a.shape, b.shape)), where=b > 0)
