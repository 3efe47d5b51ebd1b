"""k-means under scikit-learn's name for large tables: the same centres and the same proof as `KMeans`.

Mini-batches spare passes over the rows and leave centres beside the means of their rows. Passes here read any table
block by block, and remember which rows cannot have changed their cluster: nothing has to be given up for size.
Only `partial_fit`, which never sees all rows, moves centres batch by batch.
Reference: Sculley, Web-scale k-means clustering (2010).
"""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils import check_random_state

from certifit.checkers.cluster import kmeans as checker
from certifit.checkers.cluster.semidefinite_bound import SemidefiniteTuning
from certifit.cluster.exact_sums import ClusterSums
from certifit.cluster.kmeans import KMeans
from certifit.cluster.lloyd import cluster_sums, nearest
from certifit.cluster.local_search import PrintedPasses
from certifit.cluster.seeding import Starts
from certifit.core import Attributes
from certifit.rows import Array, Rows


class PrintedSteps(PrintedPasses):
    """Says why passes ended in the words of scikit-learn's class."""

    def ended(self, gain: float, tol: float) -> str:
        why = "small centers change" if gain > 0 or tol > 0 else "lack of improvement in inertia"
        return f"Converged ({why}) at step {self.passes}"


class MiniBatchKMeans(KMeans):
    """k-means clustering of all rows, not of batches, with scikit-learn's parameters for these.

    Parameters
    ----------
    n_clusters : int, default=8
    init, n_init, max_iter, tol, random_state, verbose : as for KMeans
    swaps, target_ratio, max_time : as for KMeans
    batch_size, compute_labels, max_no_improvement, init_size, reassignment_ratio : ignored
        There are no batches, and labels cost nothing; accepted so that scikit-learn code runs unchanged.

    Attributes
    ----------
    cluster_centers_ : (n_clusters, d) float64
    labels_ : (n,) the nearest centre of each row, the lowest number among equals
    inertia_ : float, Σ w |x - c|²
    counts_ : (n_clusters,) Σ w of the rows of each centre; after `partial_fit`, of all rows seen
    n_iter_ : int, passes over the rows from the best start, at most max_iter (diagnostic)
    history_ : tuple of Mark, the objective and the (relative) gain still promised at each pass (diagnostic)
    certificate_ : Certificate

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from certifit import MiniBatchKMeans
    >>> X, _ = load_iris(return_X_y=True)
    >>> model = MiniBatchKMeans(n_clusters=3, batch_size=50, random_state=0).fit(X)
    >>> round(model.inertia_, 4)
    78.8514
    >>> model.certificate_.holds
    True
    """

    ignored: ClassVar[tuple[str, ...]] = (
        "batch_size",
        "compute_labels",
        "max_no_improvement",
        "init_size",
        "reassignment_ratio",
    )
    differences: ClassVar[dict[str, str]] = {
        **{name: reason for name, reason in KMeans.differences.items() if name != "tol"},
        "tol": "The share of the objective that one more pass over all rows may gain, which the certificate states.",
        "max_iter": "It counts passes over all rows from each start, not over batches.",
        "n_init": "One start is made from drawn rows, not three.",
        "n_steps_": "There are no batches to be counted.",
        "partial_fit": "Centres without rows stay where they are. Moved batch by batch, centres are not the best for "
        "the rows seen, and the certificate of the last batch says so; fit reads tables of any size block by block.",
    }

    _printed: ClassVar[type[PrintedPasses]] = PrintedSteps

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
        batch_size=1024,
        verbose=0,
        compute_labels=True,
        max_no_improvement=10,
        init_size=None,
        reassignment_ratio=0.01,
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
        self.batch_size = batch_size
        self.verbose = verbose
        self.compute_labels = compute_labels
        self.max_no_improvement = max_no_improvement
        self.init_size = init_size
        self.reassignment_ratio = reassignment_ratio

    def _more_attributes(self, clusters: ClusterSums) -> Attributes:
        return {"counts_": clusters.weight}

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Move every centre towards the mean of its rows in X, the less the more rows it has had.

        The certificate is that of these centres on X: nothing can be proved about rows that are no longer there.
        """
        first = not hasattr(self, "cluster_centers_")
        with self._all_or_nothing(first):
            self._check_settings()
            rows = self._rows_to_fit(X, None, sample_weight, reset=first)
            C, counts = self._first_centres(rows) if first else (self._centres, self.counts_)
            found = cluster_sums(rows, C, self._tuning)
            counts = counts + found.weight
            # Sums are about the centres: of all rows that a centre has had, these pull by their share.
            C = C + found.sums / np.where(counts > 0, counts, 1.0)[:, None]
            labels = nearest(rows, C, self._tuning)
            inertia = float(cluster_sums(rows, C, self._tuning).squares.sum())
            # The semidefinite bound would take longer than many batches.
            plain = checker.ClusterCheckTuning(gram=SemidefiniteTuning(most_rows=0))
            tuning = plain if self.target_ratio is None else checker.ClusterCheckTuning()
            certificate = checker.certify(C, labels, self.tol, rows, self.target_ratio, inertia, tuning=tuning)
        self.__dict__.update(
            cluster_centers_=C,
            labels_=labels,
            inertia_=inertia,
            counts_=counts,
            n_iter_=0 if first else self.n_iter_ + 1,
            history_=(),
            certificate_=certificate,
        )
        return self

    def _first_centres(self, rows: Rows) -> tuple[Array, Array]:
        """The best of n_init starts on the first batch, and no rows yet."""
        self._check_rows(rows)
        k = int(self.n_clusters)
        starts = Starts(self.init, k, rows, check_random_state(self.random_state), self._tuning)
        drawn = [starts.draw() for _ in range(min(self._number_of_starts(), 100))]
        costs = [float(cluster_sums(rows, C, self._tuning).squares.sum()) for C in drawn]
        return drawn[int(np.argmin(costs))], np.zeros(k)
