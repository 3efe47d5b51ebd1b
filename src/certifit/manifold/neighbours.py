"""The nearest rows of each row, exactly; and whether they join all rows into one graph.

A KD-tree in few columns. In many, products in float32 find candidates, exact differences rank them, and a bound on
the rounding proves that no nearer row was left out; rows for which it does not are searched again without products.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from scipy.spatial import KDTree
from scipy.spatial.distance import cdist
from sklearn.neighbors import NearestNeighbors

from certifit.exceptions import DataError
from certifit.numerics.sparse_cholesky.loops import smallest, square_distances
from certifit.rows import Array, thread_count
from certifit.rows.threads import parallel_map

FEW = 12  # columns up to which a tree is quicker than products
SPARE = 12  # candidates beyond those wanted
ROWS = 512  # rows in a block of products
SHOWN = 5  # parts of a graph that an error names


def framed(X: Array, like: Array | None = None) -> Array:
    """Rows in float64 about the mean of `like` (or their own) and of about unit size, so that no digits are lost.

    Neighbours and weights do not change: the scale is a power of 2, and differences are taken before anything else.
    """
    like = X if like is None else like
    origin = like[0].astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        reference = like - origin
        mean = reference.mean(axis=0)
        size = float(np.abs(reference - mean).max())
    if not np.isfinite(size):
        raise DataError(
            got="values so large that their differences overflow",
            wanted="differences below 1e308",
            fix="Rescale the columns.",
        )
    return ((X - origin) - mean) * 2.0 ** -np.frexp(size)[1]


def nearest(X: Array, k: int, algorithm: str) -> Array:
    """For each row of X (n, d) the k nearest others, nearest first: (n, k) row numbers."""
    found = SEARCHES[_choose(algorithm, X.shape[1])](X, X, k + 1)
    drop = found == np.arange(len(X))[:, None]
    drop[~drop.any(axis=1), -1] = True  # a row with more than k copies need not be among its own nearest
    return found[~drop].reshape(len(X), k)


def nearest_to(Q: Array, X: Array, k: int, algorithm: str) -> Array:
    """For each row of Q the k nearest rows of X, nearest first: (rows of Q, k) row numbers."""
    return SEARCHES[_choose(algorithm, X.shape[1])](X, Q, k)


def _choose(algorithm: str, d: int) -> str:
    return ("kd_tree" if d <= FEW else "brute") if algorithm == "auto" else algorithm


def _kd_tree(X: Array, Q: Array, k: int) -> Array:
    return KDTree(X).query(Q, np.arange(1, k + 1), workers=thread_count())[1]


def _ball_tree(X: Array, Q: Array, k: int) -> Array:
    return NearestNeighbors(n_neighbors=k, algorithm="ball_tree").fit(X).kneighbors(Q, return_distance=False)


def _brute(X: Array, Q: Array, k: int) -> Array:
    X32, squares = X.astype(np.float32), (X**2).sum(axis=1)
    blocks = [Q[first : first + ROWS] for first in range(0, len(Q), ROWS)]
    return np.concatenate(parallel_map(partial(_search_block, X, X32, squares.astype(np.float32), k), blocks))


def _search_block(X: Array, X32: Array, squares: Array, k: int, Q: Array) -> Array:
    m = min(k + SPARE, len(X))
    index, value = np.empty((len(Q), m), np.int64), np.empty((len(Q), m), np.float32)
    smallest((-2 * Q).astype(np.float32) @ X32.T, squares, index, value)
    exact = np.empty((len(Q), m))
    square_distances(Q, X, index, exact)
    order = np.lexsort((index, exact), axis=1)[:, :k]
    found, last = np.take_along_axis(index, order, axis=1), np.take_along_axis(exact, order[:, -1:], axis=1)[:, 0]
    own = (Q**2).sum(axis=1)
    reach = np.sqrt(own) + np.sqrt(float(squares.max()))
    error = (X.shape[1] + 16) * np.finfo(np.float32).eps * reach**2  # of any value, products and sums included
    doubtful = (last > 0) & (value[:, -1] + own - error < last) if m < len(X) else np.zeros(len(Q), bool)
    for row in np.flatnonzero(doubtful):
        distance = cdist(Q[row : row + 1], X, "sqeuclidean")[0]
        found[row] = np.lexsort((np.arange(len(X)), distance))[:k]
    return found


def _pynndescent(X: Array, Q: Array, k: int) -> Array:
    try:
        from pynndescent import NNDescent
    except ImportError as error:
        raise DataError(
            got="neighbors_algorithm='pynndescent' without the package pynndescent",
            wanted="it installed, or another algorithm",
            fix="Run `pip install pynndescent`, or use neighbors_algorithm='auto', which is exact.",
        ) from error
    search = NNDescent(X, n_neighbors=k, random_state=0)
    return search.neighbor_graph[0] if Q is X else search.query(Q, k)[0]


SEARCHES: dict[str, Callable[[Array, Array, int], Array]] = {
    "kd_tree": _kd_tree,
    "ball_tree": _ball_tree,
    "brute": _brute,
    "pynndescent": _pynndescent,
}
APPROXIMATE = ("pynndescent",)


def check_connected(neighbours: Array) -> None:
    """Refuse a graph that falls into parts: each could be moved about freely, so no coordinates are smoothest."""
    parts, label = _parts(neighbours)
    if parts == 1:
        return
    sizes = np.bincount(label)
    first = np.unique(label, return_index=True)[1]
    largest = np.argsort(-sizes, kind="stable")[:SHOWN]
    words = ", ".join(f"{sizes[p]} rows (row {first[p]} is one)" for p in largest)
    more = f" and {parts - SHOWN} more" if parts > SHOWN else ""
    raise DataError(
        got=f"a neighbour graph in {parts} parts that no neighbour joins: {words}{more}",
        wanted="one connected graph: nothing says how its parts lie to each other",
        fix=f"Use more than n_neighbors={neighbours.shape[1]}, drop duplicate or outlying rows, fit each part by "
        "itself, or join them with disconnected='join'.",
    )


def joined(X: Array, neighbours: Array) -> Array:
    """Neighbours that make one connected graph: while there are parts, the row of the smallest that is nearest to any
    other part takes the row it is nearest to for its farthest neighbour."""
    neighbours = neighbours.copy()
    parts, label = _parts(neighbours)
    for _ in range(2 * parts):
        if parts == 1:
            break
        here = label == np.bincount(label).argmin()
        inside, outside = np.flatnonzero(here), np.flatnonzero(~here)
        D = cdist(X[inside], X[outside])
        i, j = np.unravel_index(D.argmin(), D.shape)
        neighbours[inside[i], -1] = outside[j]
        parts, label = _parts(neighbours)
    return neighbours


def _parts(neighbours: Array) -> tuple[int, Array]:
    """The number of connected parts, and each row's (n,)."""
    n, k = neighbours.shape
    ends = np.arange(0, n * k + 1, k)
    graph: Any = sparse.csr_array((np.ones(n * k, np.int8), neighbours.ravel(), ends), shape=(n, n))
    return connected_components(graph, directed=False)
