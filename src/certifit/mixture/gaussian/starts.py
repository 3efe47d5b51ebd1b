"""Where EM for Gaussian components starts: groups of rows in a sample, each the rows of one component.

Groups are found in units of the columns' spreads, so that a column's unit does not matter; holes count as medians
there. The first components are the likeliest given these groups.
References: Arthur & Vassilvitskii, k-means++ (2007); Ward, Hierarchical grouping to optimize an objective function
(1963), the start that Fraley & Raftery, Model-based clustering (2002), take.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.cluster.hierarchy import fcluster, ward
from scipy.spatial.distance import cdist

from certifit.checkers.mixture.gaussian import Survey
from certifit.cluster.lloyd import Lloyd, nearest
from certifit.cluster.local_search import descend
from certifit.cluster.seeding import Starts
from certifit.exceptions import DataError
from certifit.mixture.em import Mixture
from certifit.mixture.gaussian.components import Gaussians
from certifit.mixture.gaussian.covariance_shapes import SHAPES, Shape
from certifit.numerics.packed import pack
from certifit.rows import Array, ArrayRows

WARD_ROWS = 2000  # hierarchical groups are found in at most so many rows
STEPS = 30  # most steps of k-means
NONE = 1e-12  # of all weight: that of a group without rows among pooled ones

Groups = Callable[[ArrayRows, int, np.random.RandomState], Array]  # each row's number in 0 … k - 1


def _by_kmeans(rows: ArrayRows, k: int, rng: np.random.RandomState) -> Array:
    centres = Starts("k-means++", k, rows, rng).draw()
    found = descend(Lloyd(rows, k), centres, tol=1e-4, max_iter=STEPS)
    return nearest(rows, found.params.centres)


def _by_seeds(rows: ArrayRows, k: int, rng: np.random.RandomState) -> Array:
    return nearest(rows, Starts("k-means++", k, rows, rng).draw())


def _by_random_rows(rows: ArrayRows, k: int, rng: np.random.RandomState) -> Array:
    return nearest(rows, Starts("random", k, rows, rng).draw())


def _at_random(rows: ArrayRows, k: int, rng: np.random.RandomState) -> Array:
    return rng.permutation(rows.n_rows) % k


def _by_ward(rows: ArrayRows, k: int, rng: np.random.RandomState) -> Array:
    n = rows.n_rows
    some = rows.X if n <= WARD_ROWS else rows.X[np.sort(rng.choice(n, WARD_ROWS, replace=False))]
    groups = fcluster(ward(some), k, criterion="maxclust") - 1 if n > 1 else np.zeros(1, np.intp)
    centres = np.stack([some[groups == j].mean(axis=0) for j in range(groups.max() + 1)])
    return groups if len(some) == n else cdist(rows.X, centres, "sqeuclidean").argmin(axis=1)


GROUPS: dict[str, Groups] = {
    "kmeans": _by_kmeans,
    "k-means++": _by_seeds,
    "random": _at_random,
    "random_from_data": _by_random_rows,
    "hierarchical": _by_ward,
}


def start(
    about: Survey,
    covariance_type: str,
    k: int,
    floor: Array,
    init: str,
    rng: np.random.RandomState,
    weights: Any = None,
    means: Any = None,
    precisions: Any = None,
) -> Mixture:
    """A mixture of k components to start from; weights, means and precisions are taken as given where they are."""
    shape, d = SHAPES[covariance_type], len(floor)
    weights = _given(weights, "weights_init", (k,))
    means = _given(means, "means_init", (k, d))
    precisions = _given(precisions, "precisions_init", shape.size(k, d))
    if weights is not None and not ((weights >= 0).all() and weights.sum() > 0):
        raise DataError(got=f"weights_init={weights.tolist()}", wanted="numbers of at least 0, not all of them 0")
    means = None if means is None else means - about.median
    C = None if precisions is None else _inverse(shape, precisions)
    if weights is None or means is None or C is None:
        found = _from_groups(about, covariance_type, k, floor, GROUPS[init], rng)
        weights = found.weights if weights is None else weights
        means = found.components.means if means is None else means
        C = found.components.C if C is None else C
    return Mixture(weights / weights.sum(), Gaussians(covariance_type, about.median, means, C, floor))


def _given(values: Any, name: str, size: tuple[int, ...]) -> Array | None:
    if values is None:
        return None
    found = np.array(values, dtype=np.float64)
    if found.shape != size or not np.isfinite(found).all():
        raise DataError(got=f"{name} of shape {found.shape}", wanted=f"finite numbers of shape {size}")
    return found


def _inverse(shape: Shape, precisions: Array) -> Array:
    P = shape.private(precisions)
    try:
        if P.ndim == 3 and not np.allclose(P, P.swapaxes(1, 2), rtol=1e-6, atol=0.0):
            raise np.linalg.LinAlgError("not symmetric")
        with np.errstate(invalid="raise", divide="raise"):
            C = shape.invert(P)
            shape.log_det(P, 1)
    except (np.linalg.LinAlgError, FloatingPointError) as error:
        raise DataError(
            got="precisions_init that are not positive definite", wanted="symmetric positive definite matrices"
        ) from error
    return C


def _from_groups(
    about: Survey, covariance_type: str, k: int, floor: Array, find: Groups, rng: np.random.RandomState
) -> Mixture:
    """The likeliest components given groups of the sample's rows."""
    sample, shape = about.sample, SHAPES[covariance_type]
    d = sample.n_features
    Z = np.asarray(sample.X, np.float64) - about.median
    Z[np.isnan(Z)] = 0.0
    labels = find(ArrayRows(Z / about.spread, None, sample.w), k, rng)
    n = np.bincount(labels, sample.w, k)
    means, second = np.zeros((k, d)), np.empty((k, shape.width(d)))
    for j in range(k):
        mine, w = Z[labels == j], sample.w[labels == j]
        if n[j] > 0:
            means[j] = w @ mine / n[j]
            away = mine - means[j]  # about the group's own mean: nothing cancels
            S = (away.T * w) @ away
        else:  # a group without rows: as wide as all rows, and of no weight
            S = np.diag(about.spread**2) * NONE * n.sum()
        second[j] = shape.reduce(pack(S)[None], d)[0]
    share = np.where(n > 0, n, NONE * n.sum())
    least = floor * np.where(n > 0, n.sum() / (k * share), 1.0)[:, None]
    C = shape.covariances(share, np.zeros((k, d)), second, least)
    return Mixture(n / n.sum(), Gaussians(covariance_type, about.median, means, C, floor))
