"""k-means clustering, certified.

    min over centres c₁ … c_k of  Σ wᵢ min_j |xᵢ - c_j|²

Lloyd's algorithm: rows go to their nearest centre, centres to the mean of their rows, until that gains too little.
From the local optimum where it ends, centres are swapped. A single column is solved exactly. The certificate says how
far the result is at most from the best k centres: by eigenvalues, or, where that takes no more than it is worth to
you, by semidefinite programming (`with certifit.config(proof="best")`, `target_ratio`, or an audit).

    what                                         where
    starting centres                             seeding.py
    distances, and sums over clusters            lloyd.py; compiled in lloyd_loops.py, with shortcuts explained in
                                                 distance_bounds.py, leading_directions.py and exact_sums.py
    means, the stopping rule, swaps              local_search.py
    one column                                   one_column.py, one_column_loops.py
    how many clusters                            choose_k.py, plots.py
    lower bounds and the certificate             certifit/checkers/cluster

Reference: Lloyd, Least squares quantization in PCM (1982).
"""

from __future__ import annotations

from functools import partial
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from certifit.checkers.cluster import kmeans as checker
from certifit.cluster.exact_sums import ClusterSums, LloydState
from certifit.cluster.lloyd import Lloyd, cluster_sums, is_large, nearest, square_distances
from certifit.cluster.local_search import LocalSearch, PrintedPasses, is_better, rounding_gain
from certifit.cluster.one_column import best_intervals
from certifit.cluster.seeding import Starts, is_drawn
from certifit.cluster.tuning import KMeansTuning
from certifit.core import Attributes, Certificate, Check, Estimator, Objective, Solution, certified, proves_later
from certifit.core.settings import LOOP, Setting, Settings, is_array
from certifit.exceptions import DataError, warn_caller
from certifit.rows import Array, Block, Rows


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
    verbose : int, default=0
        Whether every pass prints a line; `set_callbacks` shows a progress bar.
    algorithm, copy_x : ignored
        Distances are saved wherever bounds allow it, and the input is never changed; accepted so that scikit-learn
        code runs unchanged.

    Attributes
    ----------
    cluster_centers_ : (n_clusters, d) float64
    labels_ : (n,) the nearest centre of each row, the lowest number among equals
    inertia_ : float, Σ w |x - c|²
    n_iter_ : int, passes over the rows from the best start, at most max_iter (diagnostic)
    history_ : tuple of Mark, the objective and the (relative) gain still promised at each pass (diagnostic)
    certificate_ : Certificate; with `certifit.config(proof="best")`, on tables of up to 1024 rows, it proves a larger
        bound, on many of them that no clustering is better, and takes longer than the fit

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
    diagnostics: ClassVar[tuple[str, ...]] = ("n_iter_", "history_")
    settings: ClassVar[Settings] = {
        **LOOP,
        "n_clusters": Setting(int, least=1),
        "init": Setting(
            choices=("k-means++", "random"),
            other=lambda value: callable(value) or is_array(value),  # its shape is checked when the rows are known
            other_words="centres (an array or a function that makes one)",
        ),
        "n_init": Setting(int, least=1, choices=("auto",)),
        "swaps": Setting(int, least=0, choices=("auto",), other=lambda value: isinstance(value, bool)),
        "target_ratio": Setting(float, least=1, none=True),
    }
    ignored: ClassVar[tuple[str, ...]] = ("algorithm", "copy_x")
    differences: ClassVar[dict[str, str]] = {
        "tol": "It is the share of the objective that one more step may gain, which the certificate states; in "
        "scikit-learn it is how far centres may move.",
        "n_init": "Given centres are tried once, whatever the number.",
        "cluster_centers_": "Centres are float64 for float32 rows too: their means have these digits.",
        "random_state": "Equal seeds draw other starts than scikit-learn's, and swaps of centres follow them.",
    }
    _tuning: ClassVar[KMeansTuning] = KMeansTuning()
    _printed: ClassVar[type[PrintedPasses]] = PrintedPasses

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
        verbose=0,
        copy_x=True,
        algorithm="lloyd",
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
        self.verbose = verbose
        self.copy_x = copy_x
        self.algorithm = algorithm

    def _check_settings(self) -> None:
        super()._check_settings()
        if self.swaps != "auto" and self.swaps and not is_drawn(self.init):
            raise DataError(
                got=f"swaps={self.swaps} from given centres", wanted="starts drawn from the rows, or swaps=0"
            )

    def _fit(self, rows: Rows, previous: Attributes) -> Attributes:
        k = int(self.n_clusters)
        self._check_rows(rows)
        init, n_init, swaps = self.init, self._number_of_starts(), self._number_of_swaps(rows, k)
        lloyd = Lloyd(rows, k, self._tuning)
        exact = best_intervals(rows, k, self._tuning)
        if exact is not None and self._is_seeded and self.max_iter > 0:
            init, n_init, swaps = exact.centres, 1, 0
        starts = Starts(init, k, rows, check_random_state(self.random_state), self._tuning)
        limits = self.tol, self.max_iter, self.max_time
        search = LocalSearch(lloyd, starts, swaps, *limits, self._watch, self._printed if self.verbose else None)
        best, bound = self._best_of_starts(search, n_init, None if exact is None else exact.bound)
        checker.check_underflow(rows, best.params.centres, best.objective)
        clusters = lloyd.clusters if lloyd.state is best.params else lloyd.measure(best.params)
        if best.objective == 0 and (clusters.weight == 0).any():
            empty = int((clusters.weight == 0).sum())
            warn_caller(
                f"Number of distinct clusters ({k - empty}) found smaller than n_clusters ({k}). Possibly due to "
                f"duplicate points in X: {empty} centres repeat others and have no rows.",
                ConvergenceWarning,
            )
        if bound is None and not proves_later():
            bound = lloyd.bound(best.params.centres, self.target_ratio, search.until)
        return {
            "cluster_centers_": best.params.centres,
            "labels_": lloyd.labels(),
            "inertia_": best.objective,
            "n_iter_": min(best.n_iter + 1, int(self.max_iter)),
            "history_": best.history,
            "certificate_": certified(self._certificate, best, clusters, bound),
            **self._more_attributes(clusters),
        }

    def _check_rows(self, rows: Rows) -> None:
        if rows.n_rows < self.n_clusters:
            raise DataError(
                got=f"fewer rows than clusters (n_samples={rows.n_rows} should be >= n_clusters={self.n_clusters})",
                wanted="at least one row for each cluster",
                fix="Ask for fewer clusters.",
            )

    def _more_attributes(self, clusters: ClusterSums) -> Attributes:
        """Further fitted attributes, from each cluster's sums."""
        return {}

    @property
    def _is_seeded(self) -> bool:
        return isinstance(self.init, str) and self.init == "k-means++"

    def _number_of_starts(self) -> int:
        if isinstance(self.n_init, Integral) and int(self.n_init) > 1 and not is_drawn(self.init):
            warn_caller(
                f"Explicit initial center position passed: performing only one init, not n_init={self.n_init}.",
                RuntimeWarning,
            )
            return 1
        if self.n_init != "auto":
            return int(self.n_init)
        if self.target_ratio is not None and is_drawn(self.init):
            return 100 if self.max_time is None else 2**31
        return 10 if is_drawn(self.init) and not self._is_seeded else 1

    def _number_of_swaps(self, rows: Rows, k: int) -> int:
        if self.swaps != "auto":
            return int(self.swaps)
        cheap = rows.n_rows * rows.n_features * k <= self._tuning.swapped_up_to
        return min(2 * k, self._tuning.most_swaps) if cheap and is_drawn(self.init) else 0

    def _best_of_starts(
        self, search: LocalSearch, n_init: int, known: float | None
    ) -> tuple[Solution[LloydState], float | None]:
        """Return the best local optimum of at most n_init starts, and its lower bound where `known` or asked for.

        Starts end early where the time is over or the target ratio is proved.
        """
        best, bound = search.local_optimum("start 1"), known
        for i in range(1, n_init):
            if self.target_ratio is not None and bound is None:
                bound = search.lloyd.bound(best.params.centres, self.target_ratio, search.until)
            reached = self.target_ratio is not None and best.objective <= self.target_ratio * bound
            if search.over or reached:
                break
            found = search.local_optimum(f"start {i + 1}")
            if is_better(found, best):
                best, bound = found, known
        return best, bound

    def _certificate(self, best: Solution[LloydState], clusters: ClusterSums, bound: float) -> Certificate:
        C, A = best.params
        weight = clusters.weight
        sums = clusters.sums - weight[:, None] * (C - A)
        found = checker.MeasuredClusters(best.objective, weight, sums, 0.0)
        trace = np.array([mark.objective for mark in best.history])
        rise = float((np.diff(trace) / np.maximum(trace[:-1], np.finfo(float).tiny)).max(initial=0.0))
        with np.errstate(over="ignore"):  # of huge rows that cost nothing
            limit = min(1.0, 1e-10 + rounding_gain(C, weight) / max(best.objective, np.finfo(float).tiny))
        never_rose = Check("largest rise of the objective, relative", rise, limit)
        return checker.assemble(found, C, bound, self.tol, C.dtype, self.target_ratio, (never_rose,))

    def predict(self, X: Any) -> Array:
        """Return the number of each row's nearest centre (n,)."""
        return nearest(self._rows(X), self._centres, self._tuning)

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> Array:
        """Fit and return the label of each row."""
        return self.fit(X, y, sample_weight).labels_

    def transform(self, X: Any) -> Array:
        """Return distances to the centres (n, n_clusters)."""
        rows = self._rows(X)
        compiled = is_large(rows, len(self.cluster_centers_), self._tuning)
        return rows.map(partial(_distances, self._centres, compiled))

    def objective(self, X: Any, y: Any = None, sample_weight: Any = None) -> Objective:
        """Return Σ w |x - c|² to the nearest centres."""
        rows = self._rows(X, sample_weight=sample_weight)
        total = cluster_sums(rows, self._centres, self._tuning).squares.sum()
        return Objective(float(total), float(total), 0.0)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return minus the objective on these rows."""
        return -self.objective(X, y, sample_weight).total

    @property
    def _centres(self) -> Array:
        """The centres as the audit reads them: of a lower precision they would compare rows in it, far from 0 too."""
        return np.asarray(self.cluster_centers_, dtype=np.float64)

    @property
    def _n_features_out(self) -> int:
        return len(self.cluster_centers_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _distances(C: Array, compiled: bool, block: Block) -> Array:
    return np.sqrt(square_distances(block.X, C, compiled)).astype(block.X.dtype)


def k_means(X: Any, n_clusters: int, *, sample_weight: Any = None, return_n_iter: bool = False, **params: Any) -> Any:
    """K-means as a function: centres, labels and inertia, proved as `KMeans` proves them.

    Parameters
    ----------
    X : any table that KMeans takes
    n_clusters : int
    sample_weight : (n,) or None
    return_n_iter : bool, default=False
        Whether to return the number of passes too.
    **params : further settings of KMeans: init, n_init, max_iter, tol, random_state …

    Returns
    -------
    centroid : (n_clusters, d)
    label : (n,)
    inertia : float
        The sum of squared distances.
    best_n_iter : int, with return_n_iter=True

    Examples
    --------
    >>> from certifit import k_means
    >>> centroid, label, inertia = k_means([[0.0], [1.0], [10.0], [11.0]], 2, random_state=0)
    >>> sorted(centroid.ravel().tolist()), inertia
    ([0.5, 10.5], 1.0)
    """
    model = KMeans(n_clusters, **params).fit(X, sample_weight=sample_weight)
    found = model.cluster_centers_, model.labels_, model.inertia_
    return (*found, model.n_iter_) if return_n_iter else found
