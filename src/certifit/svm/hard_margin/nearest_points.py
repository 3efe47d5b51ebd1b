"""The nearest points of two convex hulls, by an active set that ends after finitely many steps.

    min over shares λ >= 0 of   |Σᵢ yᵢ λᵢ xᵢ|²,      Σ λ = 1 over the rows with y = +1, and over those with y = -1

Each step brings in rows that lie furthest on the wrong side, and exchanges many rows at a time until the nearest
points of the affine hulls of those at hand have no share below zero and no other row is on the wrong side. Where
exchanges go astray, two rows come in, and rows whose share would fall below zero leave one by one: that always ends.
With z the difference of the two points, the hulls are at most |z| and at least (min of x·z over one class - max over
the other) / |z| apart.
References: Wolfe, Finding the nearest point in a polytope (1976); Júdice & Pires, Block principal pivoting algorithms
for large-scale strictly monotone linear complementarity problems (1994); Keerthi et al., A fast iterative nearest
point algorithm for support vector machine classifier design (2000).
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np

from certifit.core import Solution, Step, fixed_point
from certifit.core.loop import Watcher
from certifit.rows import Array

FOREVER = 1_000_000_000
# Steps are exact, so digits are cheap: aim at a gap that makes the answer the same for rows in any order, but spend
# no more steps than this on it once the tolerance is reached.
SHARP, EXTRA = 1e-13, 100
PATIENCE = 20  # steps that together gain no more than rounding, before the loop ends
FEWEST, MOST = 2, 512  # rows that come in at a time: twice as many each time, until that fails
CHANCES = 3  # exchanges in a row that leave no fewer rows on the wrong side


class Face(Protocol):
    """Some rows (m,) of both classes, V = y x."""

    def values(self, share: Array) -> Array:
        """Inner products (m,) of V with z = Σ share V."""

    def steepest(self, ends: Array, others: Array, base: Array) -> Array:
        """The μ that make |Σ V[ends] + Σ μ (V[others] - V[base])|² least, 0 where V[others] adds nothing.

        `ends` are two rows, one of each class; `base` says which of the two is of an other row's class.
        """


class Space(Protocol):
    """Rows as vectors, known by themselves or by their inner products."""

    def values(self, rows: Array, coef: Array) -> tuple[Array, float]:
        """Inner products (n,) of every row with z = Σ coef x over these rows, and |z|²."""

    def face(self, rows: Array, sign: Array) -> Face:
        """Some rows and the y of each."""

    def rounding(self, square: float) -> float:
        """By how much |z|² may be wrong."""


class Point(NamedTuple):
    rows: Array  # (s,) row numbers
    share: Array  # (s,) > 0, summing to one over each class


def solve(
    y: Array, space: Space, *, tol: float, max_iter: int, max_time: float | None = None, watcher: Watcher
) -> Solution[Point]:
    """From one row of each class to shares that prove 2 / distance² to a relative `tol`."""
    steps = Steps(y, space, tol, watcher)
    return fixed_point(
        steps.measure,
        steps.update,
        Point(np.array([np.argmax(y > 0), np.argmax(y < 0)]), np.ones(2)),
        tol=min(tol, SHARP),
        max_iter=max_iter,
        max_time=max_time,
        watcher=steps,
    )


class Steps:
    """One step after another; as a watcher it ends the loop once only rounding is left."""

    def __init__(self, y: Array, space: Space, tol: float, watcher: Watcher) -> None:
        self.y, self.space, self.tol, self.watcher = y, space, tol, watcher
        self.mark = np.inf  # |z|² when it last fell by more than rounding
        self.idle = self.extra = 0
        self.batch, self.most = FEWEST, MOST  # rows that may come in next, and ever
        self.finished = False

    def measure(self, at: Point) -> tuple[Array, float]:
        return self.space.values(at.rows, self.y[at.rows] * at.share)

    def update(self, at: Point, measured: tuple[Array, float]) -> Step[Point]:
        f, square = measured
        width, worst = between(self.y, f)
        new = worst[~np.isin(worst, at.rows)]
        objective, gap = 2 * square / width / width if width > 0 else np.inf, relative_gap(width, square)
        self.extra += gap <= self.tol
        rounding = self.space.rounding(square)
        if square < self.mark - rounding:
            self.mark, self.idle = square, 0
        else:
            self.idle += 1
        behind = self._behind(at, self.y * f, rounding)
        self.finished = (
            square <= rounding
            or self.idle >= PATIENCE
            or self.extra > EXTRA
            or not len(new)
            or (gap <= self.tol and not len(behind))
        )
        if self.finished and gap <= self.tol:
            return Step(at, objective, 0.0)  # but for rounding; an earlier point may seem better by its last digit
        if self.finished or gap <= SHARP:
            return Step(at, objective, gap)
        return Step(self._next(at, square, new, behind), objective, gap)

    def _next(self, at: Point, square: float, new: Array, behind: Array) -> Point:
        """With all rows that are behind, or else with the two that are furthest."""
        if len(behind) > len(new):
            found = self._exchange(at, behind, square)
            if found is not None:
                self.batch = min(2 * self.batch, self.most)
                return found
            self.most = max(FEWEST, len(behind) // 2)
        self.batch = min(2 * self.batch, self.most)
        return self._walk(at, new)

    def _behind(self, at: Point, f: Array, rounding: float) -> Array:
        """The rows that are furthest behind those with a share, by more than rounding: up to `batch`.

        f (n,) with the sign of each row.
        """
        short = self._levels(at.rows, f[at.rows])[self._side(slice(None))] - f
        short[at.rows] = -np.inf
        count = min(self.batch, len(short) - 1)
        found = np.argpartition(-short, count)[:count]
        return np.sort(found[short[found] > rounding])

    def _side(self, rows: Any) -> Array:
        return (self.y[rows] < 0).astype(np.int64)

    def _levels(self, rows: Array, f: Array) -> Array:
        """Mean values (2,) of these rows, by class."""
        side = self._side(rows)
        return np.bincount(side, f, 2) / np.bincount(side, minlength=2)

    def _exchange(self, at: Point, new: Array, square: float) -> Point | None:
        """The nearest points of the hulls of all these rows, if exchanges of several of them at a time get there."""
        rows, share = np.append(at.rows, new), np.append(at.share, np.zeros(len(new)))
        face, side, rounding = self.space.face(rows, self.y[rows]), self._side(rows), self.space.rounding(square)
        kept, fewest, chances = np.ones(len(rows), bool), len(rows) + 1, CHANCES
        while chances and len(np.unique(side[kept])) == 2:
            best = self._affine(face, rows, np.flatnonzero(kept), share)
            f = face.values(best)
            level = self._levels(rows[kept], f[kept])[side]
            wrong = np.where(kept, best <= 0, f < level - rounding)
            count = int(np.count_nonzero(wrong))
            if not count:
                return Point(rows[kept], best[kept]) if best @ f < square else None
            chances = CHANCES if count < fewest else chances - 1
            fewest = min(count, fewest)
            kept ^= wrong
        return None

    def _walk(self, at: Point, new: Array) -> Point:
        """A step to the nearest points of the affine hulls; rows whose share falls to zero on the way leave."""
        rows, share = np.append(at.rows, new), np.append(at.share, np.zeros(len(new)))
        face, kept = self.space.face(rows, self.y[rows]), np.arange(len(rows))
        while True:
            best = self._affine(face, rows, kept, share)
            if (best[kept] > 0).all():
                return Point(rows[kept], best[kept])
            falls = kept[best[kept] <= 0]
            way = share[falls] / np.maximum(share[falls] - best[falls], np.finfo(float).tiny)
            share = np.maximum(share + way.min() * (best - share), 0.0)
            kept = kept[kept != falls[way.argmin()]]  # one only: a row that has just come in has no share yet

    def _affine(self, face: Face, rows: Array, kept: Array, share: Array) -> Array:
        """Shares (m,), of any sign, of the nearest points of the affine hulls of the rows kept; 0 for the others."""
        sign, best = self.y[rows], np.zeros(len(rows))
        # measured from the largest share: differences are then no larger than need be
        ends = np.array([kept[np.where(sign[kept] == side, share[kept], -1.0).argmax()] for side in (1.0, -1.0)])
        others = kept[~np.isin(kept, ends)]
        best[ends] = 1.0
        if len(others):
            base = np.where(sign[others] > 0, *ends)
            best[others] = face.steepest(ends, others, base)
            best[ends] -= [best[others][base == end].sum() for end in ends]
        return best

    def begin(self) -> None:
        self.watcher.begin()

    def end(self, params: Any, step: Step[Any], tol: float) -> bool:
        return self.watcher.end(params, step, tol) or self.finished


def between(y: Array, f: Array) -> tuple[float, Array]:
    """How far apart the values of the two classes are, and the two rows where they are nearest.

    >>> between(np.array([1.0, -1.0, 1.0]), np.array([3.0, 1.0, 2.0]))
    (1.0, array([2, 1]))
    """
    worst = np.array([np.where(y > 0, f, np.inf).argmin(), np.where(y < 0, f, -np.inf).argmax()])
    return float(f[worst[0]] - f[worst[1]]), worst


def relative_gap(width: float, square: float) -> float:
    """Of 2 / distance²: between its values for the distance proved and for |z|; infinite where none is proved."""
    return max(0.0, 1.0 - (width / square) ** 2) if width > 0 and square > 0 else np.inf
