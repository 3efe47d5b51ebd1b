"""The nearest points of two convex hulls, by an active set that ends after finitely many steps.

    min over shares λ >= 0 of   |Σᵢ yᵢ λᵢ xᵢ|²,      Σ λ = 1 over the rows with y = +1, and over those with y = -1

The *working set* holds the rows with a positive share. With z the difference of the two points, a row is *behind*
where y x·z is smaller than for the rows of the working set in its class: bringing it in shortens z.

| step | when | what it does |
|---|---|---|
| exchange | first | brings in up to `batch` rows that are furthest behind |
| walk | exchanges fail | brings in two rows, one of each class |

An exchange swaps many rows at a time until the nearest points of the affine hulls of those kept have no share below
zero and no other row is behind. In a walk, rows whose share would fall below zero leave one by one: that always ends.
The hulls are at most |z| and at least (min of x·z over one class - max over the other) / |z| apart.
References: Wolfe, Finding the nearest point in a polytope (1976); Júdice & Pires, Block principal pivoting algorithms
for large-scale strictly monotone linear complementarity problems (1994); Keerthi et al., A fast iterative nearest
point algorithm for support vector machine classifier design (2000).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from certifit.core import ResumableUpdate, Solution, Step, fixed_point
from certifit.core.loop import Watcher
from certifit.rows import Array


@dataclass(frozen=True)
class NearestPointTuning:
    """How many rows a step brings in, and when the loop ends.

    Steps are exact, so that further digits cost little: the loop aims at `sharp_gap`, with which the answer is the
    same for rows in any order, but spends no more than `extra_steps` on it once the tolerance is reached.
    """

    sharp_gap: float = 1e-13  # relative
    extra_steps: int = 100
    idle_steps: int = 20  # steps that together gain no more than rounding, after which the loop ends
    first_batch: int = 2  # rows brought in by the first step; twice as many by each one after, up to
    most_batch: int = 512  # rows, or half of those with which an exchange failed
    chances: int = 3  # exchanges in a row that leave no fewer rows on the wrong side before they count as failed
    no_limit: int = 1_000_000_000  # steps, where max_iter sets no limit


class HullFace(Protocol):
    """Some rows (m,) of both classes, V = y x."""

    def values(self, share: Array) -> Array:
        """Inner products (m,) of V with z = Σ share V."""

    def steepest(self, ends: Array, others: Array, base: Array) -> Array:
        """The μ that make |Σ V[ends] + Σ μ (V[others] - V[base])|² least, 0 where V[others] adds nothing.

        `ends` are two rows, one of each class; `base` says which of the two is of an other row's class.
        """


class VectorSpace(Protocol):
    """Rows as vectors, known by themselves or by their inner products."""

    def values(self, rows: Array, coef: Array) -> tuple[Array, float]:
        """Inner products (n,) of every row with z = Σ coef x over these rows, and |z|²."""

    def face(self, rows: Array, sign: Array) -> HullFace:
        """Some rows and the y of each."""

    def rounding(self, square: float) -> float:
        """By how much |z|² may be wrong."""

    memory: Any  # what it has learnt of the rows so far


class HullPoints(NamedTuple):
    """One point of each hull, as a convex combination of rows: the working set and its shares."""

    rows: Array  # (s,) row numbers
    share: Array  # (s,) > 0, summing to one over each class


def find_nearest_points(
    y: Array,
    space: VectorSpace,
    watcher: Watcher,
    tuning: NearestPointTuning,
    *,
    tol: float,
    max_iter: int,
    max_time: float | None = None,
) -> Solution[HullPoints]:
    """Go from one row of each class to shares that prove 2 / distance² to a relative `tol`."""
    steps = HullSteps(y, space, tol, watcher, tuning)
    return fixed_point(
        steps.measure,
        ResumableUpdate(steps.update, steps),
        HullPoints(np.array([np.argmax(y > 0), np.argmax(y < 0)]), np.ones(2)),
        tol=min(tol, tuning.sharp_gap),
        max_iter=max_iter,
        max_time=max_time,
        watcher=steps,
    )


class HullSteps:
    """One step after another; as a watcher it ends the loop once no step gains more than rounding."""

    def __init__(
        self, y: Array, space: VectorSpace, tol: float, watcher: Watcher, tuning: NearestPointTuning
    ) -> None:
        self.y, self.space, self.tol, self.watcher, self.tuning = y, space, tol, watcher, tuning
        self.lowest = np.inf  # |z|² when it last fell by more than rounding
        self.idle = self.extra = 0  # steps since then, and steps since the tolerance was reached
        self.batch, self.most = tuning.first_batch, tuning.most_batch  # rows that may come in next, and ever
        self.finished = False

    @property
    def memory(self) -> tuple[Any, ...]:
        return self.lowest, self.idle, self.extra, self.batch, self.most, self.finished, self.space.memory

    @memory.setter
    def memory(self, found: tuple[Any, ...]) -> None:
        self.lowest, self.idle, self.extra, self.batch, self.most, self.finished, self.space.memory = found

    def measure(self, at: HullPoints) -> tuple[Array, float]:
        return self.space.values(at.rows, self.y[at.rows] * at.share)

    def update(self, at: HullPoints, measured: tuple[Array, float]) -> Step[HullPoints]:
        f, square = measured
        width, worst = separation(self.y, f)
        new = worst[~np.isin(worst, at.rows)]
        objective, gap = 2 * square / width / width if width > 0 else np.inf, relative_gap(width, square)
        self.extra += gap <= self.tol
        rounding = self.space.rounding(square)
        if square < self.lowest - rounding:
            self.lowest, self.idle = square, 0
        else:
            self.idle += 1
        behind = self._rows_behind(at, self.y * f, rounding)
        self.finished = (
            square <= rounding
            or self.idle >= self.tuning.idle_steps
            or self.extra > self.tuning.extra_steps
            or not len(new)
            or (gap <= self.tol and not len(behind))
        )
        if self.finished and gap <= self.tol:
            # A gain of 0 makes the loop return this point: an earlier one may seem better by its last digit.
            return Step(at, objective, 0.0)
        if self.finished or gap <= self.tuning.sharp_gap:
            return Step(at, objective, gap)
        return Step(self._next(at, square, new, behind), objective, gap)

    def _next(self, at: HullPoints, square: float, new: Array, behind: Array) -> HullPoints:
        """Bring in all rows that are behind, or else the two that are furthest behind."""
        if len(behind) > len(new):
            found = self._exchange(at, behind, square)
            if found is not None:
                self.batch = min(2 * self.batch, self.most)
                return found
            self.most = max(self.tuning.first_batch, len(behind) // 2)
        self.batch = min(2 * self.batch, self.most)
        return self._walk(at, new)

    def _rows_behind(self, at: HullPoints, f: Array, rounding: float) -> Array:
        """Up to `batch` rows that are furthest behind the working set, by more than rounding.

        f (n,) are the inner products of the rows with z, times y.
        """
        short = self._class_means(at.rows, f[at.rows])[self._class_of(slice(None))] - f
        short[at.rows] = -np.inf
        count = min(self.batch, len(short) - 1)
        found = np.argpartition(-short, count)[:count]
        return np.sort(found[short[found] > rounding])

    def _class_of(self, rows: Any) -> Array:
        """0 for rows with y = +1, 1 for those with y = -1."""
        return (self.y[rows] < 0).astype(np.int64)

    def _class_means(self, rows: Array, f: Array) -> Array:
        """Mean values (2,) of these rows, by class."""
        side = self._class_of(rows)
        return np.bincount(side, f, 2) / np.bincount(side, minlength=2)

    def _exchange(self, at: HullPoints, new: Array, square: float) -> HullPoints | None:
        """The nearest points of the hulls of all these rows, if exchanges of several of them at a time get there."""
        rows, share = np.append(at.rows, new), np.append(at.share, np.zeros(len(new)))
        face, side = self.space.face(rows, self.y[rows]), self._class_of(rows)
        rounding, chances = self.space.rounding(square), self.tuning.chances
        kept, fewest = np.ones(len(rows), bool), len(rows) + 1
        while chances and len(np.unique(side[kept])) == 2:
            best = self._affine_shares(face, rows, np.flatnonzero(kept), share)
            f = face.values(best)
            level = self._class_means(rows[kept], f[kept])[side]
            wrong = np.where(kept, best <= 0, f < level - rounding)
            count = int(np.count_nonzero(wrong))
            if not count:
                return HullPoints(rows[kept], best[kept]) if best @ f < square else None
            chances = self.tuning.chances if count < fewest else chances - 1
            fewest = min(count, fewest)
            kept ^= wrong
        return None

    def _walk(self, at: HullPoints, new: Array) -> HullPoints:
        """Step to the nearest points of the affine hulls; rows whose share falls to zero on the way leave."""
        rows, share = np.append(at.rows, new), np.append(at.share, np.zeros(len(new)))
        face, kept = self.space.face(rows, self.y[rows]), np.arange(len(rows))
        while True:
            best = self._affine_shares(face, rows, kept, share)
            if (best[kept] > 0).all():
                return HullPoints(rows[kept], best[kept])
            falls = kept[best[kept] <= 0]
            way = share[falls] / np.maximum(share[falls] - best[falls], np.finfo(float).tiny)
            share = np.maximum(share + way.min() * (best - share), 0.0)
            # One row only leaves: a row that has just come in has share 0, and must not leave with it.
            kept = kept[kept != falls[way.argmin()]]

    def _affine_shares(self, face: HullFace, rows: Array, kept: Array, share: Array) -> Array:
        """Shares (m,), of any sign, of the nearest points of the affine hulls of the rows kept; 0 for the others."""
        sign, best = self.y[rows], np.zeros(len(rows))
        # Rows are measured from the one with the largest share of each class, which keeps differences small.
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


def separation(y: Array, f: Array) -> tuple[float, Array]:
    """How far apart the values f (n,) of the two classes are, and the two rows where they are nearest.

    >>> separation(np.array([1.0, -1.0, 1.0]), np.array([3.0, 1.0, 2.0]))
    (1.0, array([2, 1]))
    """
    worst = np.array([np.where(y > 0, f, np.inf).argmin(), np.where(y < 0, f, -np.inf).argmax()])
    return float(f[worst[0]] - f[worst[1]]), worst


def relative_gap(width: float, square: float) -> float:
    """The relative gap of 2 / distance² between the distance proved, width / |z|, and |z|; infinite if width <= 0."""
    return max(0.0, 1.0 - (width / square) ** 2) if width > 0 and square > 0 else np.inf
