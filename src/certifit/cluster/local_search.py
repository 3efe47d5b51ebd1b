"""Local optima of k-means, one after the other: Lloyd's algorithm from a start, then from swapped centres."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial

import numpy as np

from certifit.cluster.distance_bounds import EPS, Clusters, Point
from certifit.cluster.lloyd import Lloyd, check_range, farthest
from certifit.cluster.seeding import Starts
from certifit.cluster.swaps import swapped
from certifit.core import Attributes, Solution, Step, Watch, fixed_point
from certifit.core.loop import Watcher
from certifit.rows import Array

BETTER = 1e-9  # relative fall of the objective that is more than rounding


def descend(
    lloyd: Lloyd,
    centres: Array,
    tol: float,
    max_iter: int,
    max_time: float | None = None,
    watcher: Watcher | None = None,
) -> Solution[Point]:
    """Lloyd's algorithm from these centres (k, d)."""
    return fixed_point(
        lloyd.measure,
        partial(_update, lloyd),
        Point(centres, centres),
        tol=tol,
        max_iter=max_iter,
        max_time=max_time,
        watcher=watcher,
    )


def is_better(found: Solution[Point], best: Solution[Point]) -> bool:
    """Whether to prefer it to the best so far; what was cut off is no local optimum."""
    whole = found.status == "converged" or best.status != "converged"
    return whole and found.objective < (1 - BETTER) * best.objective


def rounding(C: Array, weight: Array) -> float:
    """Gain that moving centres by their last digit makes or breaks."""
    return float(4 * EPS**2 * (weight @ (C**2).sum(axis=1)))


def _update(lloyd: Lloyd, at: Point, clusters: Clusters) -> Step[Point]:
    """Centres to the means of their rows; a centre without rows to the farthest row."""
    C, A = at
    weight = clusters.weight
    some = weight > 0
    offset = C - A
    mean = np.where(some[:, None], clusters.sums / np.where(some, weight, 1.0)[:, None], offset)  # from the anchors
    scatter = clusters.squares - 2 * (offset * clusters.sums).sum(axis=1) + weight * (offset**2).sum(axis=1)
    objective = float(np.maximum(scatter, 0.0).sum())
    check_range(objective)
    gain = float(weight @ ((mean - offset) ** 2).sum(axis=1))
    relative = gain / objective if gain > rounding(C, weight) + 1e-24 * objective else 0.0
    centres = A + mean
    empty = np.flatnonzero(~some)
    if len(empty) and objective > 0:
        rows = farthest(lloyd.rows, C, len(empty))
        centres[empty[: len(rows)]] = rows
        relative = np.inf if len(rows) else relative
    # sums stay about an anchor until the mean is so far from it that digits would be lost
    away = weight * (mean**2).sum(axis=1)
    far = ~some | (away > 64 * (clusters.squares - away)) | lloyd.plain
    return Step(Point(centres, np.where(far[:, None], centres, A)), objective, relative)


@dataclass
class Search:
    """Searches for local optima within one budget of time."""

    lloyd: Lloyd
    starts: Starts
    swaps: int  # tried from the local optimum of each start
    tol: float
    max_iter: int
    max_time: float | None
    watch: Watch

    def __post_init__(self) -> None:
        self.until = np.inf if self.max_time is None else time.perf_counter() + self.max_time
        self.over = False  # out of time, or told to stop

    def local_optimum(self, name: str) -> Solution[Point]:
        """From the next start: the best of its own local optimum and those reached by swaps."""
        best = self._descend(name, self.starts.draw(self.until))
        for i in range(self.swaps):
            centres = swapped(self.starts, best.params.centres) if best.status == "converged" else None
            if centres is None or self.over:
                break
            found = self._descend(f"{name}, swap {i + 1} of {self.swaps}", centres)
            if is_better(found, best):
                best = found
        return best

    def _descend(self, name: str, centres: Array) -> Solution[Point]:
        left = self.until - time.perf_counter()
        with self.watch.loop(name, self.max_iter, _attributes) as watch:
            found = descend(self.lloyd, centres, self.tol, self.max_iter, left, watch)
        self.over = found.status in ("stopped", "max_time")
        return found


def _attributes(at: Point) -> Attributes:
    return {"cluster_centers_": at.centres}
