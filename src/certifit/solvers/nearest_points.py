"""The nearest points of two convex hulls, by an active set that ends after finitely many steps.

    min over shares λ >= 0 of   |Σᵢ yᵢ λᵢ xᵢ|²,      Σ λ = 1 over the rows with y = +1, and over those with y = -1

Each step brings in the rows that lie furthest on the wrong side, and finds the nearest points of the two affine hulls
of the rows at hand; rows whose share would fall below zero leave on the way there. With z the difference of the two
points, the hulls are at most |z| and at least (min of x·z over one class - max over the other) / |z| apart.
References: Wolfe, Finding the nearest point in a polytope (1976); Keerthi et al., A fast iterative nearest point
algorithm for support vector machine classifier design (2000).
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np

from certifit.core import Array, Solution, Step, fixed_point
from certifit.core.loop import Watcher

FOREVER = 1_000_000_000
# Steps are exact, so digits are cheap: aim at a gap that makes the answer the same for rows in any order, but spend
# no more steps than this on it once the tolerance is reached.
SHARP, EXTRA = 1e-13, 100
PATIENCE = 20  # steps that together gain no more than rounding, before the loop ends


class Space(Protocol):
    """Rows as vectors, known by themselves or by their inner products."""

    def values(self, rows: Array, coef: Array) -> tuple[Array, float]:
        """Inner products (n,) of every row with z = Σ coef x over these rows, and |z|²."""

    def steepest(self, rows: Array, sign: Array, ends: Array, others: Array, base: Array) -> Array:
        """The μ (s - 2,) that make |Σ V[ends] + Σ μ (V[others] - V[base])|² least, V = sign x for these rows (s,).

        `ends` are two of them, one of each class; `base` says which of the two is of an other row's class.
        """

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
        self.finished = square <= rounding or self.idle >= PATIENCE or self.extra > EXTRA or not len(new)
        return Step(at if self.finished or gap <= SHARP else self._next(at, new), objective, gap)

    def _next(self, at: Point, new: Array) -> Point:
        rows, share = np.append(at.rows, new), np.append(at.share, np.zeros(len(new)))
        while True:
            best = self._affine(rows, share)
            if (best > 0).all():
                return Point(rows, best)
            falls = np.flatnonzero(best <= 0)
            way = share[falls] / np.maximum(share[falls] - best[falls], np.finfo(float).tiny)
            share = np.maximum(share + way.min() * (best - share), 0.0)
            gone = falls[way.argmin()]  # one only: a row that has just come in has no share yet
            rows, share = np.delete(rows, gone), np.delete(share, gone)

    def _affine(self, rows: Array, share: Array) -> Array:
        """Shares, of any sign, of the nearest points of the two affine hulls."""
        sign, best = self.y[rows], np.ones(len(rows))
        # measured from the largest share: differences are then no larger than need be
        ends = np.array([np.where(sign == side, share, -1.0).argmax() for side in (1.0, -1.0)])
        others = np.delete(np.arange(len(rows)), ends)
        if len(others):
            base = np.where(sign[others] > 0, *ends)
            best[others] = self.space.steepest(rows, sign, ends, others, base)
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
