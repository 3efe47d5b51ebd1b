"""k-means clustering, certified.

    min over centres c₁ … c_k of  Σ wᵢ min_j |xᵢ - c_j|²

Lloyd's algorithm: rows go to their nearest centre, centres to the mean of their rows. With rows fixed to centres, the
second step lowers the objective by exactly Σ_j n_j |mean_j - c_j|²: the gain that the loop promises and stops on.
Bounds on distances skip work without changing a bit of the result (see `kernels.kmeans`).
References: Lloyd, Least squares quantization in PCM (1982); for the start, see `kmeans_init`.
"""

from __future__ import annotations

import time
import warnings
from functools import partial
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from certifit.certificates import kmeans as certificates
from certifit.core import (
    Array,
    Block,
    Certificate,
    Check,
    DataError,
    Estimator,
    Objective,
    Rows,
    Solution,
    Step,
    check_settings,
    fixed_point,
)
from certifit.core.estimator import Attributes
from certifit.models.kmeans_frame import EPS, Clusters, Point
from certifit.models.kmeans_init import Starts
from certifit.models.kmeans_pass import Lloyd, check_range, farthest, is_small, nearest, square_distances, tally


class KMeans(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, Estimator):
    """k-means clustering by Lloyd's algorithm.

    Parameters
    ----------
    n_clusters : int, default=8
    init : 'k-means++', 'random', array (n_clusters, d) or callable(X, n_clusters, random_state), default='k-means++'
        Where to start. From a large table (above 65536 rows or 16 million values), rows are drawn from a random part.
    n_init : 'auto' or int, default='auto'
        Number of starts, of which the best result is kept; 'auto' is 1 for 'k-means++' and arrays, 10 otherwise.
    max_iter : int, default=300
        Most updates of the centres from each start.
    tol : float, default=1e-6
        Stop when moving the centres to the means of their rows lowers the objective by at most this share.
    max_time : float or None, default=None
        Seconds after which the best clustering so far is returned.
    random_state : int, RandomState or None

    Attributes
    ----------
    cluster_centers_ : (n_clusters, d) float64
    labels_ : (n,) the nearest centre of each row, the lowest number among equals
    inertia_ : float, Σ w |x - c|²
    n_iter_ : int
    history_ : tuple of Mark, the objective and the (relative) gain still promised at each pass
    certificate_ : Certificate

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from certifit import KMeans
    >>> X, _ = load_iris(return_X_y=True)
    >>> model = KMeans(n_clusters=3, n_init=10, random_state=0).fit(X)
    >>> round(model.inertia_, 4)
    78.8514
    >>> model.certificate_.kind, model.certificate_.holds
    ('bounded', True)
    """

    sparse = True

    def __init__(
        self,
        n_clusters=8,
        *,
        init="k-means++",
        n_init="auto",
        max_iter=300,
        tol=1e-6,
        max_time=None,
        random_state=None,
    ):
        self.n_clusters = n_clusters
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.max_time = max_time
        self.random_state = random_state

    def _fit(self, rows: Rows, previous: Attributes) -> Attributes:  # noqa: ARG002
        began = time.perf_counter()
        k, n_init = self._check(rows)
        starts = Starts(self.init, k, rows, check_random_state(self.random_state))
        lloyd = Lloyd(rows, k)
        best: Solution[Point] | None = None
        for i in range(n_init):
            centres = starts.draw()
            left = None if self.max_time is None else self.max_time - (time.perf_counter() - began)
            with self._watch.loop(f"start {i + 1} of {n_init}", self.max_iter, _attributes) as watch:
                found = fixed_point(
                    lloyd.measure,
                    partial(_update, lloyd),
                    Point(centres, centres),
                    tol=self.tol,
                    max_iter=self.max_iter,
                    max_time=left,
                    watcher=watch,
                )
            if best is None or found.objective < best.objective:
                best = found
            if found.status in ("stopped", "max_time"):
                break
        assert best is not None
        clusters = lloyd.last if lloyd.at is best.params else lloyd.measure(best.params)
        if best.objective == 0 and (clusters.weight == 0).any():
            empty = int((clusters.weight == 0).sum())
            warnings.warn(
                f"Got {k - empty} distinct rows for n_clusters={k}: {empty} centres repeat others and have no rows.",
                ConvergenceWarning,
                stacklevel=2,
            )
        return {
            "cluster_centers_": best.params.centres,
            "labels_": lloyd.labels(),
            "inertia_": best.objective,
            "n_iter_": best.n_iter,
            "history_": best.history,
            "certificate_": self._certificate(lloyd, best, clusters),
        }

    def _check(self, rows: Rows) -> tuple[int, int]:
        k, n_init = self.n_clusters, self.n_init
        if n_init == "auto":
            n_init = 10 if callable(self.init) or (isinstance(self.init, str) and self.init == "random") else 1
        check_settings(self, n_clusters=1, max_iter=0)
        if not isinstance(n_init, Integral) or n_init < 1:
            raise DataError(got=f"n_init={n_init!r}", wanted="a whole number of at least 1")
        if rows.n_rows < k:
            raise DataError(
                got=f"fewer rows than clusters (n_samples={rows.n_rows} should be >= n_clusters={k})",
                wanted="at least one row for each cluster",
                fix="Ask for fewer clusters.",
            )
        return int(k), int(n_init)

    def _certificate(self, lloyd: Lloyd, best: Solution[Point], clusters: Clusters) -> Certificate:
        C, A = best.params
        weight = clusters.weight
        sums = clusters.sums - weight[:, None] * (C - A)
        found = certificates.Measured(best.objective, weight, sums, 0.0)
        mean = certificates.centre_of_mass(C, weight, sums)
        bound = lloyd.bound(mean, float(weight.sum()))
        trace = np.array([mark.objective for mark in best.history])
        rise = float((np.diff(trace) / np.maximum(trace[:-1], np.finfo(float).tiny)).max(initial=0.0))
        limit = 1e-10 + _rounding(C, weight) / max(best.objective, np.finfo(float).tiny)
        never_rose = Check("largest rise of the objective, relative", rise, limit)
        return certificates.assemble(found, C, bound, self.tol, C.dtype, (never_rose,))

    def predict(self, X: Any) -> Array:
        """The number of each row's nearest centre (n,)."""
        return nearest(self._rows(X), self.cluster_centers_)

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> Array:
        """Fit, and the label of each row."""
        return self.fit(X, y, sample_weight).labels_

    def transform(self, X: Any) -> Array:
        """Distances to the centres (n, n_clusters)."""
        rows = self._rows(X)
        return rows.map(partial(_lengths, self.cluster_centers_, is_small(rows, len(self.cluster_centers_))))

    def objective(self, X: Any, y: Any = None, sample_weight: Any = None) -> Objective:  # noqa: ARG002
        """Σ w |x - c|² to the nearest centres."""
        total = tally(self._rows(X, sample_weight=sample_weight), self.cluster_centers_).squares.sum()
        return Objective(float(total), float(total), 0.0)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Minus the objective on these rows."""
        return -self.objective(X, y, sample_weight).total

    @property
    def _n_features_out(self) -> int:
        return len(self.cluster_centers_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _attributes(at: Point) -> Attributes:
    return {"cluster_centers_": at.centres}


def _rounding(C: Array, weight: Array) -> float:
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
    relative = gain / objective if gain > _rounding(C, weight) + 1e-24 * objective else 0.0
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


def _lengths(C: Array, small: bool, block: Block) -> Array:
    return np.sqrt(square_distances(C, small, block.X)).astype(block.X.dtype)
