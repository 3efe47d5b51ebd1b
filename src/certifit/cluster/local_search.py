"""Local optima of k-means, one after the other: Lloyd's algorithm from a start, then from swapped centres.

Lloyd's algorithm repeats two steps: rows go to their nearest centre (`Lloyd.measure`), centres to the mean of their
rows (`move_centres`). With labels fixed, the second lowers the objective by exactly Σ_j n_j |mean_j - c_j|². That is
the gain which `move_centres` promises, relative to the objective, and on which `core.loop.fixed_point` stops: it is
the stopping rule, gain <= tol.

Where it stops is a local optimum. To leave it, one centre moves to where rows are far from theirs (`swap_centre`).
Rows drawn like k-means++ seeds are the candidates; for each, every centre is tried as the one to go, by what
rows then pay at their nearest or second nearest of the others. Lloyd's algorithm starts again from the best pair.
References: Kanungo et al., A local search approximation algorithm for k-means clustering (2004); Lattanzi & Sohler, A
better k-means++ algorithm via local search (2019), whose number of such moves keeps within a constant of the optimum.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial

import numpy as np

from certifit.cluster.exact_sums import ClusterSums, LloydState
from certifit.cluster.lloyd import Lloyd, check_range, farthest_rows
from certifit.cluster.lloyd_loops import EPS
from certifit.cluster.seeding import Starts
from certifit.core import Attributes, Solution, Step, Watch, fixed_point
from certifit.core.loop import Watcher
from certifit.rows import Array


def descend(
    lloyd: Lloyd,
    centres: Array,
    tol: float,
    max_iter: int,
    max_time: float | None = None,
    watcher: Watcher | None = None,
) -> Solution[LloydState]:
    """Run Lloyd's algorithm from these centres (k, d)."""
    return fixed_point(
        lloyd.measure,
        partial(move_centres, lloyd),
        LloydState(centres, centres),
        tol=tol,
        max_iter=max_iter,
        max_time=max_time,
        watcher=watcher,
    )


def move_centres(lloyd: Lloyd, state: LloydState, clusters: ClusterSums) -> Step[LloydState]:
    """Move every centre to the mean of its rows; one without rows takes the farthest row from another."""
    C, A = state
    weight = clusters.weight
    some = weight > 0
    if C is A and some.all():
        return _move_to_means(C, clusters)
    offset = C - A
    mean = np.where(some[:, None], clusters.sums / np.where(some, weight, 1.0)[:, None], offset)  # from the anchors
    scatter = clusters.squares - 2 * (offset * clusters.sums).sum(axis=1) + weight * (offset**2).sum(axis=1)
    objective = float(np.maximum(scatter, 0.0).sum())
    check_range(objective)
    gain = float(weight @ ((mean - offset) ** 2).sum(axis=1))
    relative = gain / objective if gain > rounding_gain(C, weight) + 1e-24 * objective else 0.0
    centres = A + mean
    empty = np.flatnonzero(~some)
    if len(empty) and objective > 0:
        found = farthest_rows(lloyd.rows, C, len(empty), lloyd.tuning)
        left = weight - np.bincount(found.labels, found.w, len(C))
        lost = np.zeros_like(C)
        np.add.at(lost, found.labels, found.w[:, None] * (found.X - A[found.labels]))
        fewer = np.isin(np.arange(len(C)), found.labels) & (left > 1e-9 * weight)
        centres[fewer] = A[fewer] + (clusters.sums - lost)[fewer] / left[fewer, None]
        centres[empty[: len(found.X)]] = found.X
        relative = np.inf if len(found.X) else relative
    # An anchor stays until the mean is so far from it that sums about it would lose digits.
    away = weight * (mean**2).sum(axis=1)
    far = ~some | (away > 64 * (clusters.squares - away)) | (not lloyd.compiled)
    anchors = centres if far.all() else np.where(far[:, None], centres, A)
    return Step(LloydState(centres, anchors), objective, relative)


def _move_to_means(C: Array, clusters: ClusterSums) -> Step[LloydState]:
    """Move every centre to the mean of its rows, where all have some and sums are about the centres themselves."""
    step = clusters.sums / clusters.weight[:, None]
    objective = float(clusters.squares.sum())
    check_range(objective)
    gain = float(clusters.weight @ np.einsum("ij,ij->i", step, step))
    relative = gain / objective if gain > rounding_gain(C, clusters.weight) + 1e-24 * objective else 0.0
    centres = C + step
    return Step(LloydState(centres, centres), objective, relative)


def rounding_gain(C: Array, weight: Array) -> float:
    """Return the gain that moving centres by their last digit can make: a smaller one is rounding."""
    with np.errstate(over="ignore", invalid="ignore"):  # huge rows may have no cost at all
        return float(4 * EPS**2 * (weight @ np.einsum("ij,ij->i", C, C)))


def is_better(found: Solution[LloydState], best: Solution[LloydState]) -> bool:
    """Whether to prefer it to the best so far: by more than rounding, and no unfinished loop to a finished one."""
    finished = found.status == "converged" or best.status != "converged"
    return finished and found.objective < (1 - 1e-9) * best.objective


def swap_centre(starts: Starts, C: Array) -> Array | None:
    """Return the centres (k, d) after the best of the sampled swaps, or None where every row is at a centre.

    That swap may raise the objective.
    """
    k, w = len(C), starts.sample.w
    D = starts.distances(C)
    labels = D.argmin(axis=1)
    near = D[np.arange(len(w)), labels]
    D[np.arange(len(w)), labels] = np.inf
    second = D.min(axis=1)
    if k == 1 or not (w * near).any():
        return None
    places = starts.pick(w * near, starts.tuning.places)
    E = starts.distances(places)
    kept = np.minimum(E, near[:, None])
    # by how much each centre's going raises the objective: its rows fall back on their second nearest
    members = np.zeros((len(w), k))
    members[np.arange(len(w)), labels] = w
    lost = members.T @ (np.minimum(E, second[:, None]) - kept)
    total = w @ kept + lost.min(axis=0)
    place = int(total.argmin())
    C = C.copy()
    C[int(lost[:, place].argmin())] = places[place]
    return C


class PrintedPasses:
    """Prints one line for every pass, in the words of scikit-learn's `verbose`, and passes it on."""

    def __init__(self, watch: Watch, name: str) -> None:
        self.watch, self.passes = watch, 0
        print(f"Initialization complete ({name})")

    def begin(self) -> None:
        self.watch.begin()

    def end(self, params: LloydState, step: Step[LloydState], tol: float) -> bool:
        print(f"Iteration {self.passes}, inertia {step.objective}.")
        if step.gain <= tol:
            print(self.ended(step.gain, tol))
        self.passes += 1
        return self.watch.end(params, step, tol)

    def ended(self, gain: float, tol: float) -> str:
        """Why no more passes are made."""
        why = "strict convergence"
        if gain > 0:
            why = f"the center shift would lower the inertia by {gain:.3g} of it, within tolerance {tol:g}"
        return f"Converged at iteration {self.passes}: {why}."


@dataclass
class LocalSearch:
    """Searches for local optima within one budget of time."""

    lloyd: Lloyd
    starts: Starts
    swaps: int  # tried from the local optimum of each start
    tol: float
    max_iter: int
    max_time: float | None  # seconds
    watch: Watch
    printed: type[PrintedPasses] | None = None  # prints every pass

    def __post_init__(self) -> None:
        self.until = np.inf if self.max_time is None else time.perf_counter() + self.max_time
        self.over = False  # out of time, or told to stop

    def local_optimum(self, name: str) -> Solution[LloydState]:
        """Return the best of the next start's own local optimum and those reached from it by swaps."""
        best = self._descend(name, self.starts.draw(self.until))
        for i in range(self.swaps):
            centres = swap_centre(self.starts, best.params.centres) if best.status == "converged" else None
            if centres is None or self.over:
                break
            found = self._descend(f"{name}, swap {i + 1} of {self.swaps}", centres)
            if is_better(found, best):
                best = found
        return best

    def _descend(self, name: str, centres: Array) -> Solution[LloydState]:
        left = self.until - time.perf_counter()
        with self.watch.loop(name, self.max_iter, _attributes) as watch:
            watcher = watch if self.printed is None else self.printed(watch, name)
            found = descend(self.lloyd, centres, self.tol, self.max_iter, left, watcher)
        self.over = found.status in ("stopped", "max_time")
        return found


def _attributes(state: LloydState) -> Attributes:
    return {"cluster_centers_": state.centres}
