"""How many clusters? Fits with several numbers of centres side by side, and three criteria to choose by.

- Proved fall: the lower bound for K-1 centres over the objective reached with K. The K-th centre lowers the optimum
  by at least that factor, whatever clusterings were not found.
- Silhouette (Rousseeuw 1987): how much nearer rows are to their own cluster than to the next, from -1 to 1.
- Gap statistic (Tibshirani, Walther & Hastie, Estimating the number of clusters in a data set via the gap statistic,
  2001): how far log objective is below what uniform rows in a box along the principal axes give; the smallest K whose
  gap is within one standard error of that of K+1. It alone can say that there is one cluster.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.utils import check_random_state

from certifit.checkers.plain.blocks import dense
from certifit.cluster.kmeans import KMeans
from certifit.cluster.lloyd import Lloyd
from certifit.cluster.local_search import descend
from certifit.cluster.seeding import Starts
from certifit.core.text_table import html_table, text_table
from certifit.exceptions import DataError
from certifit.rows import Array, ArrayRows, Rows, as_rows


@dataclass(frozen=True, repr=False)
class ClusterChoice:
    """A table with one line for each number of clusters; `choices` says which each criterion prefers."""

    n_clusters: Array  # (m,) ascending
    objective: Array  # (m,) Σ w |x - c|²
    bound: Array  # (m,) lower bound on the objective of that many centres
    fall: Array  # (m,) factor by which the last centre lowers the optimum, proved; NaN where K-1 > 1 was not fitted
    silhouette: Array  # (m,) NaN for one cluster
    gap: Array  # (m,)
    gap_error: Array  # (m,) standard error of the gap
    models: tuple[KMeans, ...]  # fitted, in the same order

    @property
    def choices(self) -> dict[str, int]:
        """Return the number of clusters that each criterion prefers, where it prefers one."""
        found = {name: _largest(self.n_clusters, getattr(self, name)) for name in ("fall", "silhouette")}
        known = np.isfinite(self.gap)
        k, gap, error = self.n_clusters[known], self.gap[known], self.gap_error[known]
        enough = np.flatnonzero(gap[:-1] >= gap[1:] - error[1:])
        found["gap"] = int(k[enough[0] if len(enough) else -1]) if len(k) else None
        return {name: number for name, number in found.items() if number is not None}

    def table(self) -> list[tuple[str, ...]]:
        """Return the headings, then one line for each number of clusters."""
        columns = {
            "objective": "objective",
            "bound": "lower bound",
            "fall": "proved fall",
            "silhouette": "silhouette",
        }
        lines: list[tuple[str, ...]] = [("clusters", *columns.values(), "gap", "error of gap", "chosen by")]
        for i, k in enumerate(self.n_clusters):
            numbers = [getattr(self, name)[i] for name in (*columns, "gap", "gap_error")]
            by = ", ".join(name for name, choice in self.choices.items() if choice == k)
            lines.append((str(k), *("" if np.isnan(x) else f"{x:.5g}" for x in numbers), by))
        return lines

    def __str__(self) -> str:
        return text_table(self.table(), "rrrrrrrl")

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return html_table(self.table(), "rrrrrrrl")


def choose_clusters(
    X: Any,
    n_clusters: Iterable[int] = range(1, 11),
    *,
    sample_weight: Any = None,
    references: int = 10,
    sample: int = 1000,
    random_state: Any = None,
    **params: Any,
) -> ClusterChoice:
    """Fit `KMeans` with each of these numbers of clusters and compare them.

    Parameters
    ----------
    X, sample_weight : as for `KMeans.fit`
    n_clusters : whole numbers
    references : uniform tables with which the gap statistic compares; 0 leaves it out
    sample : rows on which silhouettes and gaps are computed, drawn at random from larger tables
    random_state : int, RandomState or None
    **params : other parameters of `KMeans`; n_init is 3 unless given, since a poor local optimum tells little

    >>> from sklearn.datasets import make_blobs
    >>> X, _ = make_blobs(90, centers=[[0, 0], [5, 0], [0, 5]], cluster_std=0.5, random_state=0)
    >>> choose_clusters(X, range(1, 6), random_state=0).choices
    {'fall': 3, 'silhouette': 3, 'gap': 3}
    """
    numbers = sorted({*n_clusters}) if isinstance(n_clusters, Iterable) and not isinstance(n_clusters, str) else []
    if not numbers or references < 0 or sample < 2:
        raise DataError(
            got=f"n_clusters={n_clusters!r}, references={references}, sample={sample}",
            wanted="at least one number of clusters, references of at least 0 and a sample of at least 2 rows",
            fix="Give the numbers as a list or a range.",
        )
    rng = check_random_state(random_state)
    rows = as_rows(X, sample_weight=sample_weight, sparse=True)
    seed = int(rng.randint(2**31))
    params = {"n_init": 3, **params}
    models = tuple(KMeans(k, random_state=seed, **params).fit(rows) for k in numbers)
    part = _sample(rows, min(sample, max(2, 2**24 // rows.n_features)), rng)  # wide rows: fewer, as memory allows
    objective = np.array([model.inertia_ for model in models])
    bound = np.array([np.fmax(model.certificate_.bound, 0.0) for model in models])
    bound = np.maximum.accumulate(bound[::-1])[::-1]  # a bound for more centres holds for fewer
    fall = _proved_falls(rows, numbers, objective, bound)
    silhouettes = np.array([_silhouette(part, model.cluster_centers_) for model in models])
    gap, error = _gaps(part, numbers, references, rng)
    return ClusterChoice(np.array(numbers), objective, bound, fall, silhouettes, gap, error, models)


def _proved_falls(rows: Rows, numbers: list[int], objective: Array, bound: Array) -> Array:
    """Return the bound for K-1 centres over the objective of K (m,); fits one centre where two come first."""
    known = dict(zip(numbers, bound.tolist(), strict=True))
    if 1 not in known and 2 in known:
        known[1] = float(np.fmax(KMeans(1).fit(rows).certificate_.bound, 0.0))
    fall = np.full(len(numbers), np.nan)
    for i, k in enumerate(numbers):
        if k - 1 in known and objective[i] > 0:
            fall[i] = known[k - 1] / objective[i]
    return fall


def _largest(k: Array, values: Array) -> int | None:
    return int(k[np.nanargmax(values)]) if np.isfinite(values).any() else None


def _sample(rows: Rows, most: int, rng: np.random.RandomState) -> ArrayRows:
    """Draw at most `most` rows and load those with a positive weight, dense."""
    at = np.arange(rows.n_rows)
    if rows.n_rows > most:
        at = np.sort(rng.choice(rows.n_rows, most, replace=False))
    part = rows.take(at)
    some = part.w > 0
    return ArrayRows(dense(part.X[some]), w=part.w[some])


def _silhouette(rows: ArrayRows, C: Array) -> float:
    """Return the mean silhouette of the rows, each in the cluster of its nearest centre."""
    values = silhouettes(rows.X, cdist(rows.X, C).argmin(axis=1), rows.w)
    return float(rows.w @ values / rows.w.sum())


def silhouettes(X: Array, labels: Array, w: Array) -> Array:
    """Return (b - a) / max(a, b) of each row (n,); NaN with one cluster, or as many clusters as rows.

    For each row, a is the mean distance to its own cluster's other rows, b that to the next cluster's rows.
    Reference: Rousseeuw, Silhouettes (Journal of Computational and Applied Mathematics, 1987).
    """
    labels = np.unique(labels, return_inverse=True)[1]
    member = (labels[:, None] == np.arange(labels.max() + 1)) * w[:, None]
    if not 1 < member.shape[1] < len(w):
        return np.full(len(w), np.nan)
    every = np.arange(len(w))
    total = cdist(X, X) @ member
    others = member.sum(axis=0)[labels] - w
    a = total[every, labels] / np.where(others > 0, others, 1.0)
    mean = total / member.sum(axis=0)
    mean[every, labels] = np.inf
    b = mean.min(axis=1)
    largest = np.maximum(a, b)
    return np.where((others > 0) & (largest > 0), (b - a) / np.where(largest > 0, largest, 1.0), 0.0)


def _gaps(rows: ArrayRows, numbers: list[int], references: int, rng: np.random.RandomState) -> tuple[Array, Array]:
    """Return the gap statistic and its standard error (m,); NaN where there are as many clusters as distinct rows."""
    gap, error = np.full(len(numbers), np.nan), np.full(len(numbers), np.nan)
    Z = rows.X - rows.w @ rows.X / rows.w.sum()
    axes = np.linalg.svd(Z, full_matrices=False)[2]  # (min(n, d), d)
    along = Z @ axes.T
    boxes = [rng.uniform(along.min(axis=0), along.max(axis=0), along.shape) for _ in range(references)]
    for i, k in enumerate(numbers):
        here = _best_of_two(rows, k, rng) if references and k < len(rows.w) else 0.0
        if here > 0:
            logs = np.log([_best_of_two(ArrayRows(box, w=rows.w), k, rng) for box in boxes])
            gap[i] = logs.mean() - np.log(here)
            error[i] = logs.std() * np.sqrt(1 + 1 / references)
    return gap, error


def _best_of_two(rows: ArrayRows, k: int, rng: np.random.RandomState) -> float:
    """Return the smaller objective of two starts: the gap statistic needs many quick clusterings."""
    lloyd, starts = Lloyd(rows, k), Starts("k-means++", k, rows, rng)
    return min(descend(lloyd, starts.draw(), 1e-4, 100).objective for _ in range(2))
