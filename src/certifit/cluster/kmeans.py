"""k-means clustering, certified.

    min over centres c₁ … c_k of  Σ wᵢ min_j |xᵢ - c_j|²

Lloyd's algorithm: rows go to their nearest centre, centres to the mean of their rows. With rows fixed to centres, the
second step lowers the objective by exactly Σ_j n_j |mean_j - c_j|²: the gain that the loop promises and stops on.
Bounds on distances skip work without changing a bit of the result (see `cluster.lloyd_loops`). From the local optimum
where that ends, centres are swapped (see `kmeans_swap`). A single column is solved exactly (see `kmeans_line`).
References: Lloyd, Least squares quantization in PCM (1982); for the start, see `kmeans_init`.
"""

from __future__ import annotations

from functools import partial
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from certifit.checkers.cluster import kmeans as certificates
from certifit.cluster.distance_bounds import Clusters, Point
from certifit.cluster.lloyd import Lloyd, is_small, nearest, square_distances, tally
from certifit.cluster.local_search import Search, is_better, rounding
from certifit.cluster.one_column import best_intervals
from certifit.cluster.seeding import Starts, is_drawn
from certifit.core import Attributes, Certificate, Check, Estimator, Objective, Solution
from certifit.core.settings import check_settings
from certifit.exceptions import DataError, warn_caller
from certifit.rows import Array, Block, Rows

MOST_SWAPS = 32  # that are tried where nothing is said,
SWAPPED = 2**16  # up to so many rows x columns x clusters


class KMeans(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, Estimator):
    """k-means clustering by Lloyd's algorithm.

    Parameters
    ----------
    n_clusters : int, default=8
    init : 'k-means++', 'random', array (n_clusters, d) or callable(X, n_clusters, random_state), default='k-means++'
        Where to start. From a large table (above 65536 rows or 16 million values), rows are drawn from a random part.
        A single column is solved exactly with 'k-means++' and up to 1024 clusters, unless max_iter is 0.
    n_init : 'auto' or int, default='auto'
        Number of starts, of which the best result is kept; 'auto' is 1 for 'k-means++' and arrays, 10 otherwise (and
        see `target_ratio`).
    swaps : 'auto' or int, default='auto'
        How often, from the local optimum of each start, one centre is moved to where rows are far from theirs, to be
        kept if Lloyd's algorithm then reaches a smaller objective. 'auto' is twice n_clusters, at most 32, on
        tables of up to 65536 rows x columns x clusters with drawn starts, where it takes little time; else 0.
    target_ratio : float or None, default=None
        Start again until the objective is proved to be at most this many times the optimum: at most n_init times,
        with 'auto' 100 times or, where max_time is given, as often as it allows. For up to 256 rows, seconds more are
        then spent on the proof: it may be what is missing.
    max_iter : int, default=300
        Most updates of the centres from each start.
    tol : float, default=1e-6
        Stop when moving the centres to the means of their rows lowers the objective by at most this share.
    max_time : float or None, default=None
        Seconds after which the best clustering so far is returned. Where it passes while a start is still drawn (from
        thousands of clusters), the other centres are rows at random, and one pass is made.
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
        swaps="auto",
        target_ratio=None,
        max_iter=300,
        tol=1e-6,
        max_time=None,
        random_state=None,
    ):
        self.n_clusters = n_clusters
        self.init = init
        self.n_init = n_init
        self.swaps = swaps
        self.target_ratio = target_ratio
        self.max_iter = max_iter
        self.tol = tol
        self.max_time = max_time
        self.random_state = random_state

    def _fit(self, rows: Rows, previous: Attributes) -> Attributes:
        k, n_init, swaps = self._check(rows)
        lloyd = Lloyd(rows, k)
        seeded = isinstance(self.init, str) and self.init == "k-means++"
        exact = best_intervals(rows, k) if seeded and self.max_iter > 0 else None
        init = self.init
        if exact is not None:
            init, n_init, swaps = exact.centres, 1, 0
        starts = Starts(init, k, rows, check_random_state(self.random_state))
        search = Search(lloyd, starts, swaps, self.tol, self.max_iter, self.max_time, self._watch)
        best, bound = search.local_optimum("start 1"), None
        for i in range(1, n_init):
            if self.target_ratio is not None and bound is None:
                bound = lloyd.bound(best.params.centres, self.target_ratio, search.until)
            if search.over or (bound is not None and best.objective <= self.target_ratio * bound):
                break
            found = search.local_optimum(f"start {i + 1}")
            if is_better(found, best):
                best, bound = found, None
        certificates.check_underflow(rows, best.params.centres, best.objective)
        clusters = lloyd.last if lloyd.at is best.params else lloyd.measure(best.params)
        if best.objective == 0 and (clusters.weight == 0).any():
            empty = int((clusters.weight == 0).sum())
            warn_caller(
                f"Got {k - empty} distinct rows for n_clusters={k}: {empty} centres repeat others and have no rows.",
                ConvergenceWarning,
            )
        if bound is None:
            bound = exact.bound if exact else lloyd.bound(best.params.centres, self.target_ratio, search.until)
        return {
            "cluster_centers_": best.params.centres,
            "labels_": lloyd.labels(),
            "inertia_": best.objective,
            "n_iter_": best.n_iter,
            "history_": best.history,
            "certificate_": self._certificate(best, clusters, bound),
        }

    def _check(self, rows: Rows) -> tuple[int, int, int]:
        k, n_init, swaps = self.n_clusters, self.n_init, self.swaps
        check_settings(self, n_clusters=1, max_iter=0)
        drawn = is_drawn(self.init)
        if n_init == "auto" and self.target_ratio is not None and drawn:
            n_init = 100 if self.max_time is None else 2**31
        elif n_init == "auto":
            n_init = 10 if drawn and not (isinstance(self.init, str) and self.init == "k-means++") else 1
        if swaps == "auto":
            swaps = min(2 * k, MOST_SWAPS) if drawn and rows.n_rows * rows.n_features * k <= SWAPPED else 0
        for name, value, least in (("n_init", n_init, 1), ("swaps", swaps, 0)):
            if not isinstance(value, Integral) or value < least:
                raise DataError(got=f"{name}={value!r}", wanted=f"a whole number of at least {least}, or 'auto'")
        if swaps and not drawn:
            raise DataError(got=f"swaps={swaps} from given centres", wanted="starts drawn from the rows, or swaps=0")
        if self.target_ratio is not None and not (
            isinstance(self.target_ratio, Real) and float(self.target_ratio) >= 1
        ):
            raise DataError(got=f"target_ratio={self.target_ratio!r}", wanted="a number of at least 1, or None")
        if rows.n_rows < k:
            raise DataError(
                got=f"fewer rows than clusters (n_samples={rows.n_rows} should be >= n_clusters={k})",
                wanted="at least one row for each cluster",
                fix="Ask for fewer clusters.",
            )
        return int(k), int(n_init), int(swaps)

    def _certificate(self, best: Solution[Point], clusters: Clusters, bound: float) -> Certificate:
        C, A = best.params
        weight = clusters.weight
        sums = clusters.sums - weight[:, None] * (C - A)
        found = certificates.Measured(best.objective, weight, sums, 0.0)
        trace = np.array([mark.objective for mark in best.history])
        rise = float((np.diff(trace) / np.maximum(trace[:-1], np.finfo(float).tiny)).max(initial=0.0))
        limit = 1e-10 + rounding(C, weight) / max(best.objective, np.finfo(float).tiny)
        never_rose = Check("largest rise of the objective, relative", rise, limit)
        return certificates.assemble(found, C, bound, self.tol, C.dtype, self.target_ratio, (never_rose,))

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

    def objective(self, X: Any, y: Any = None, sample_weight: Any = None) -> Objective:
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


def _lengths(C: Array, small: bool, block: Block) -> Array:
    return np.sqrt(square_distances(C, small, block.X)).astype(block.X.dtype)
