"""Groups of rows from which EM starts: each group gives the first parameters of one component.

| init_params        | groups                                                                     |
|--------------------|----------------------------------------------------------------------------|
| 'kmeans'           | k-means clusters, from k-means++ seeds                                      |
| 'k-means++'        | rows by their nearest of k seeds that lie far from each other               |
| 'random_from_data' | rows by their nearest of k rows drawn at random                             |
| 'random'           | random groups of equal size                                                 |
| 'hierarchical'     | Ward's hierarchical clusters of some rows, others by their nearest cluster  |

References: Arthur & Vassilvitskii, k-means++ (2007); Ward, Hierarchical grouping to optimize an objective function
(1963), the start that Fraley & Raftery, Model-based clustering (2002), take.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.cluster.hierarchy import fcluster, ward
from scipy.spatial.distance import cdist

from certifit.cluster.lloyd import Lloyd, nearest
from certifit.cluster.local_search import descend
from certifit.cluster.seeding import Starts
from certifit.rows import Array, ArrayRows


@dataclass(frozen=True)
class StartTuning:
    """How much work goes into finding groups."""

    ward_rows: int = 2000  # rows at most among which hierarchical clusters are found
    kmeans_steps: int = 30  # steps of k-means at most
    kmeans_tol: float = 1e-4  # relative gain at which k-means stops


# (rows, k, random numbers, tuning) -> the group 0 … k - 1 of each row (n,)
FindGroups = Callable[[ArrayRows, int, np.random.RandomState, StartTuning], Array]


def kmeans_clusters(rows: ArrayRows, k: int, rng: np.random.RandomState, tuning: StartTuning) -> Array:
    centres = Starts("k-means++", k, rows, rng).draw()
    found = descend(Lloyd(rows, k), centres, tol=tuning.kmeans_tol, max_iter=tuning.kmeans_steps)
    return nearest(rows, found.params.centres)


def nearest_seeds(rows: ArrayRows, k: int, rng: np.random.RandomState, _tuning: StartTuning) -> Array:
    return nearest(rows, Starts("k-means++", k, rows, rng).draw())


def nearest_random_rows(rows: ArrayRows, k: int, rng: np.random.RandomState, _tuning: StartTuning) -> Array:
    return nearest(rows, Starts("random", k, rows, rng).draw())


def random_groups(rows: ArrayRows, k: int, rng: np.random.RandomState, _tuning: StartTuning) -> Array:
    return rng.permutation(rows.n_rows) % k


def ward_clusters(rows: ArrayRows, k: int, rng: np.random.RandomState, tuning: StartTuning) -> Array:
    n, most = rows.n_rows, tuning.ward_rows
    some = rows.X if n <= most else rows.X[np.sort(rng.choice(n, most, replace=False))]
    groups = fcluster(ward(some), k, criterion="maxclust") - 1 if n > 1 else np.zeros(1, np.intp)
    centres = np.stack([some[groups == j].mean(axis=0) for j in range(groups.max() + 1)])
    return groups if len(some) == n else cdist(rows.X, centres, "sqeuclidean").argmin(axis=1)


STARTING_GROUPS: dict[str, FindGroups] = {
    "kmeans": kmeans_clusters,
    "k-means++": nearest_seeds,
    "random": random_groups,
    "random_from_data": nearest_random_rows,
    "hierarchical": ward_clusters,
}
