"""The nearest rows of each row, exactly; and whether they join all rows into one graph.

| algorithm | where 'auto' takes it | how |
|---|---|---|
| 'kd_tree' | in few columns | SciPy's tree |
| 'brute' | in many columns | products in float32 find candidates, exact differences rank them |
| 'ball_tree' | never | scikit-learn's tree |
| 'pynndescent' | never | a package of its own; approximate |

A bound on the rounding of the products proves that no nearer row was left out of the candidates; rows for which it
does not are searched again without products.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from scipy.spatial import KDTree
from scipy.spatial.distance import cdist
from sklearn.neighbors import NearestNeighbors

from certifit.exceptions import DataError, warn_caller
from certifit.manifold.neighbour_loops import smallest_entries, square_distances
from certifit.rows import Array, thread_count
from certifit.rows.threads import parallel_map


@dataclass(frozen=True)
class NeighbourTuning:
    """How nearest rows are searched for."""

    tree_columns: int = 12  # up to which a tree is faster than products
    spare_candidates: int = 12  # rows ranked exactly beyond the number wanted
    block_rows: int = 512  # rows whose products with all others are held at a time


def centre_and_scale(X: Array, like: Array | None = None) -> Array:
    """Return rows in float64 about the mean of `like` (or their own) and of about unit size: no digits are lost.

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


def scale_rows(X: Array, like: Array | None = None) -> Array:
    """Return rows in float64 times the power of 2 of `centre_and_scale`: differences of close rows stay exact."""
    like = X if like is None else like
    reference = like - like[0].astype(np.float64)
    return X * 2.0 ** -np.frexp(float(np.abs(reference - reference.mean(axis=0)).max()))[1]


def nearest_others(X: Array, k: int, algorithm: str, tuning: NeighbourTuning = NeighbourTuning()) -> Array:
    """Find the k nearest other rows of each row of X (n, d), nearest first: (n, k) row numbers."""
    found = nearest_rows(X, X, k + 1, algorithm, tuning)
    drop = found == np.arange(len(X))[:, None]
    drop[~drop.any(axis=1), -1] = True  # a row with more than k copies need not be among its own nearest
    return found[~drop].reshape(len(X), k)


def nearest_rows(Q: Array, X: Array, k: int, algorithm: str, tuning: NeighbourTuning = NeighbourTuning()) -> Array:
    """Find the k nearest rows of X (n, d) for each row of Q (m, d), nearest first: (m, k) row numbers."""
    if algorithm == "auto":
        algorithm = "kd_tree" if X.shape[1] <= tuning.tree_columns else "brute"
    if algorithm == "kd_tree":
        return KDTree(X).query(Q, np.arange(1, k + 1), workers=thread_count())[1]
    if algorithm == "ball_tree":
        return NearestNeighbors(n_neighbors=k, algorithm="ball_tree").fit(X).kneighbors(Q, return_distance=False)
    if algorithm == "pynndescent":
        return _approximate_nearest(Q, X, k)
    table = _SearchedRows(X, X.astype(np.float32), (X**2).sum(axis=1).astype(np.float32))
    blocks = [Q[first : first + tuning.block_rows] for first in range(0, len(Q), tuning.block_rows)]
    return np.concatenate(parallel_map(partial(_search_block, table, k, k + tuning.spare_candidates), blocks))


class _SearchedRows(NamedTuple):
    """The rows among which neighbours are searched for by products."""

    X: Array  # (n, d) float64
    single: Array  # (n, d) the same in float32
    squares: Array  # (n,) |x|², float32


def _search_block(table: _SearchedRows, k: int, candidates: int, Q: Array) -> Array:
    """Find the k nearest rows of the table for each row of Q, from so many candidates."""
    X, m = table.X, min(candidates, len(table.X))
    index, value = np.empty((len(Q), m), np.int64), np.empty((len(Q), m), np.float32)
    smallest_entries((-2 * Q).astype(np.float32) @ table.single.T, table.squares, index, value)
    exact = np.empty((len(Q), m))
    square_distances(Q, X, index, exact)
    order = np.lexsort((index, exact), axis=1)[:, :k]
    found, last = np.take_along_axis(index, order, axis=1), np.take_along_axis(exact, order[:, -1:], axis=1)[:, 0]
    own = (Q**2).sum(axis=1)
    reach = np.sqrt(own) + np.sqrt(float(table.squares.max()))
    error = (X.shape[1] + 16) * np.finfo(np.float32).eps * reach**2  # of any value, products and sums included
    doubtful = (last > 0) & (value[:, -1] + own - error < last) if m < len(X) else np.zeros(len(Q), bool)
    for row in np.flatnonzero(doubtful):
        distance = cdist(Q[row : row + 1], X, "sqeuclidean")[0]
        found[row] = np.lexsort((np.arange(len(X)), distance))[:k]
    return found


def _approximate_nearest(Q: Array, X: Array, k: int) -> Array:
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


class DisconnectedWarning(UserWarning):
    """The neighbour graph falls into parts, each of which has coordinates of its own."""


def check_connected(neighbours: Array) -> None:
    """Refuse a neighbour graph that falls into parts, naming the largest of them."""
    label = connected_parts(neighbours)
    if label.any():
        raise DataError(
            got=_parts_in_words(label),
            wanted="one connected graph: nothing says how its parts lie to each other",
            fix=f"Use more than n_neighbors={neighbours.shape[1]}, drop duplicate or outlying rows, or join the "
            "parts (disconnected='join') or embed each (disconnected='embed').",
        )


def warn_of_parts(label: Array, k: int) -> None:
    """Warn that rows of different parts cannot be compared, where there are several."""
    if label.any():
        warn_caller(
            f"LocallyLinearEmbedding: got {_parts_in_words(label)}. Each is embedded by itself, and nothing says how "
            f"they lie to each other; `parts_` tells them apart. Use more than n_neighbors={k}, or "
            "disconnected='join', for one embedding of all rows.",
            DisconnectedWarning,
        )


def _parts_in_words(label: Array, shown: int = 3) -> str:
    """Name the largest parts (so many are `shown`)."""
    sizes = np.bincount(label)
    first = np.unique(label, return_index=True)[1]
    largest = np.argsort(-sizes, kind="stable")[:shown]
    words = ", ".join(f"{sizes[p]} rows (row {first[p]} is one)" for p in largest)
    more = f" and {len(sizes) - shown} more" if len(sizes) > shown else ""
    return f"a neighbour graph in {len(sizes)} parts that no neighbour joins: {words}{more}"


def join_parts(X: Array, neighbours: Array) -> Array:
    """Return neighbours (n, k) that make one connected graph.

    While there are several parts, the two nearest rows of the smallest part and of all others are joined: the row
    outside replaces the farthest neighbour of the row inside.
    """
    neighbours = neighbours.copy()
    label = connected_parts(neighbours)
    for _ in range(2 * (int(label.max()) + 1)):
        if not label.any():
            break
        here = label == np.bincount(label).argmin()
        inside, outside = np.flatnonzero(here), np.flatnonzero(~here)
        D = cdist(X[inside], X[outside])
        i, j = np.unravel_index(D.argmin(), D.shape)
        neighbours[inside[i], -1] = outside[j]
        label = connected_parts(neighbours)
    return neighbours


def connected_parts(neighbours: Array) -> Array:
    """The number of the connected part of each row (n,), 0 everywhere where there is one."""
    n, k = neighbours.shape
    ends = np.arange(0, n * k + 1, k)
    graph: Any = sparse.csr_array((np.ones(n * k, np.int8), neighbours.ravel(), ends), shape=(n, n))
    return connected_components(graph, directed=False)[1]
