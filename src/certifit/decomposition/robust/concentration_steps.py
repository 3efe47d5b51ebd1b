"""Concentration steps of trimmed PCA: keep the rows nearest to a plane, move the plane to their PCA, repeat.

Neither half of a step can raise the objective. Several starts are compared after a few steps on a sample of the rows,
and the best is continued on all rows. One start takes the principal axes of the directions of rows about their
median, the others are planes through random rows. A step takes two passes and holds one number per row.
References: Rousseeuw & Van Driessen, A fast algorithm for the minimum covariance determinant estimator (1999), and
Computing LTS regression for large data sets (2006); for the first start, Locantore et al., Robust principal component
analysis for functional data (1999).
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from certifit.core import Attributes, Step
from certifit.decomposition.pca.principal_axes import AxesWanted, complete, decompose, most_components
from certifit.decomposition.robust.weighted_median import weighted_medians
from certifit.exceptions import DataError
from certifit.rows import Array, ArrayRows, Block, Rows
from certifit.rows.reweighted import ReweightedRows


@dataclass(frozen=True)
class TrimmedTuning:
    """Numbers that steer the search for a start."""

    sample_rows: int = 4096  # rows of the sample on which starts are compared
    sample_entries: int = 2**24  # most entries of the sample, which has fewer rows where they are very wide
    start_steps: int = 2  # concentration steps of each start on the sample


class Plane(NamedTuple):
    """A plane through the mean of some rows along their principal axes."""

    mean: Array  # (d,)
    B: Array  # (k, d)
    values: Array  # (k,) variances along B (divided by Σ v)
    total: float  # sum of all variances


class KeptRows(NamedTuple):
    """The rows kept, and their plane."""

    v: Array  # (n,) row weights: sample weight if kept, 0 if not, between at the border
    plane: Plane


class ConcentrationSteps:
    """The two halves of a concentration step, on rows from any source."""

    def __init__(self, rows: Rows, w: Array, keep: float, k: int) -> None:
        self.rows, self.w, self.keep, self.k = rows, w, keep, k

    def errors(self, plane: Plane) -> Array:
        """Return squared distances to a plane, raised to `rounding` so that all rows in the plane have the same."""
        return np.maximum(self.rows.map(partial(squared_distances, plane.mean, plane.B)), self.rounding(plane))

    def rounding(self, plane: Plane) -> float:
        """Return how large the computed squared distance of a row in the plane can be."""
        digits, last = 64 * np.finfo(self.rows.dtype).eps, 64 * np.finfo(float).eps
        return min(float(digits**2 * plane.total + (last * np.linalg.norm(plane.mean)) ** 2), 1e300)

    def refit(self, plane: Plane) -> KeptRows:
        """Keep the rows nearest to a plane, and return them with the plane of their principal axes."""
        return self._keep(nearest_weights(self.errors(plane), self.w, self.keep), plane)

    def _keep(self, v: Array, plane: Plane) -> KeptRows:
        return KeptRows(v, principal_plane(ReweightedRows(self.rows, v, plane.mean), self.k))

    def measure(self, at: KeptRows) -> Array:
        return self.errors(at.plane)

    def update(self, tol: float, at: KeptRows, e: Array) -> Step[KeptRows]:
        v = nearest_weights(e, self.w, self.keep)
        here, best = float(at.v @ e), float(v @ e)
        gain = max(0.0, here - best) / here if here > 0 else 0.0
        following = at if gain <= tol else self._keep(v, at.plane)
        return Step(following, best / float(v.sum()), gain)

    def attributes(self, at: KeptRows) -> Attributes:
        """Return the fitted attributes that need no pass over the rows."""
        mean, B, values, total = at.plane
        n = float(at.v.sum())
        unbiased = n / (n - 1)
        left = max(0.0, total - float(values.sum())) * unbiased
        others = most_components(int((at.v > 0).sum()), n, self.rows.n_features) - self.k
        return {
            "components_": B,
            "explained_variance_": values * unbiased,
            "explained_variance_ratio_": values / (total or 1.0),
            "singular_values_": np.sqrt(values * n),
            "mean_": mean,
            "noise_variance_": left / others if others > 0 else 0.0,
            "weights_": at.v,
        }


def nearest_weights(e: Array, w: Array, keep: float) -> Array:
    """Return weights (n,) that keep the share `keep` with the smallest errors; equal errors at the border share.

    >>> nearest_weights(np.array([3.0, 1.0, 2.0, 2.0]), np.ones(4), 0.5)
    array([0. , 1. , 0.5, 0.5])
    """
    order = np.argsort(e, kind="stable")
    weight = np.cumsum(w[order])
    h = keep * weight[-1]
    border = e[order[np.searchsorted(weight, h * (1 - 1e-12))]]
    # Errors whose relative difference is below this count as equal.
    same = 1e-10
    inside, tied = e < (1 - same) * border, np.abs(e - border) <= same * border
    share = np.clip((h - w[inside].sum()) / w[tied].sum(), 0.0, 1.0)
    return np.where(inside, w, np.where(tied, share * w, 0.0))


def principal_plane(rows: Rows, k: int, centred: bool = True) -> Plane:
    """Return the plane of the k principal axes of weighted rows."""
    axes = decompose(rows, "auto", AxesWanted(k, 1e-12, 0, centred))
    values, B = complete(axes.values, axes.vectors, k)
    return Plane(axes.mean, B, values, axes.total)


# ------------------------------------------------------------------------------------------------- starts
def best_start(steps: ConcentrationSteps, n_init: int, random: np.random.RandomState, tuning: TrimmedTuning) -> Plane:
    """Return the best of 1 + n_init planes after a few steps on a sample of the rows."""
    rows, used = steps.rows, np.flatnonzero(steps.w > 0)
    most = max(8 * (steps.k + 1), min(tuning.sample_rows, tuning.sample_entries // rows.n_features))
    sample = rows.take(used[:: -(-len(used) // most)])
    trial = ConcentrationSteps(sample, sample.w, steps.keep, steps.k)
    best = _take_steps(trial, _plane_of_directions(sample, steps.k), tuning.start_steps)
    weight = np.cumsum(sample.w)
    for _ in range(n_init):
        drawn = np.searchsorted(weight, random.random_sample(steps.k + 1) * weight[-1], side="right")
        # Rows whose squares overflow give no plane.
        with suppress(DataError):
            found = _take_steps(trial, principal_plane(sample.take(drawn), steps.k), tuning.start_steps)
            best = min(best, found, key=lambda pair: pair[0])
    return best[1]


def _take_steps(trial: ConcentrationSteps, plane: Plane, steps: int) -> tuple[float, Plane]:
    """Take some steps from a plane, and return the objective and the plane reached."""
    for _ in range(steps):
        plane = trial.refit(plane).plane
    e = trial.errors(plane)
    return float(nearest_weights(e, trial.w, trial.keep) @ e), plane


def _plane_of_directions(sample: ArrayRows, k: int) -> Plane:
    """Return the plane of the directions of rows about their medians, in which distant rows count like others."""
    X = _dense(sample.X).astype(np.float64)
    m = weighted_medians(X, sample.w)
    Z = X - m
    Z /= np.maximum(np.abs(Z).max(axis=1, keepdims=True), np.finfo(float).tiny)
    Z /= np.maximum(np.linalg.norm(Z, axis=1, keepdims=True), np.finfo(float).tiny)
    return principal_plane(ArrayRows(Z, None, sample.w), k, centred=False)._replace(mean=m, total=0.0)


# --------------------------------------------------------------------------------------------- distances
def squared_distances(mean: Array, B: Array, block: Block) -> Array:
    """Return the squared distance of each row to the plane; sparse rows are made dense a few at a time."""
    step = max(1, 2**21 // len(mean))
    parts = (block.X[i : i + step] for i in range(0, len(block.w), step))
    return np.concatenate([_dense_distances(mean, B, _dense(X)) for X in parts])


def _dense_distances(mean: Array, B: Array, X: Array) -> Array:
    with np.errstate(over="ignore", invalid="ignore"):
        Z = X - mean
        e = ((Z - Z @ B.T @ B) ** 2).sum(axis=1)
    # A distance whose square overflows becomes a very large one.
    return np.nan_to_num(e, nan=1e300, posinf=1e300)


def row_weights(block: Block) -> Array:
    """Return the row weights of a block."""
    return block.w


def _dense(X: Any) -> Array:
    return X if isinstance(X, np.ndarray) else X.toarray()
