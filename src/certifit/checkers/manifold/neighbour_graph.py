"""The neighbour graph of an embedding: whether neighbours are the nearest rows, and into how many parts it falls."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from certifit.rows import Array

EPS = float(np.finfo(float).eps)


@dataclass(frozen=True)
class NeighbourSearchTuning:
    """How much memory the search takes."""

    distances: int = 2**23  # held at a time


@dataclass(frozen=True)
class NeighbourFaults:
    """For each row (n,), what is wrong with its neighbours."""

    further: Array  # whether another row is nearer than one of its neighbours
    further_but_last: Array  # the same of its neighbours but the last
    twice: Array  # whether it is its own neighbour, or has the same one twice
    disorder: Array  # whether a neighbour is nearer than the one before it


def find_faults(
    X: Array, neighbours: Array, eps: float, tuning: NeighbourSearchTuning = NeighbourSearchTuning()
) -> NeighbourFaults:
    """Compare the neighbours (n, size) with all rows X (n, d), which are known to a relative `eps`."""
    X = X - X[0]
    X = X - X.mean(axis=0)
    n, d = X.shape
    squares = (X**2).sum(axis=1)
    found = []
    step = max(1, tuning.distances // n)
    for first in range(0, n, step):
        rows = np.arange(first, min(first + step, n))
        near = neighbours[rows]
        own = ((X[near] - X[rows, None]) ** 2).sum(axis=2)
        reach = np.sqrt(squares[rows]) + np.sqrt(squares.max())
        slack = (d + 8) * EPS * reach**2 + 16 * eps * own.max(axis=1)
        distance = squares[rows, None] + squares - 2 * (X[rows] @ X.T)
        distance[np.arange(len(rows)), rows] = np.inf
        distance[np.arange(len(rows))[:, None], near] = np.inf
        nearest = distance.min(axis=1)
        ordered = np.sort(near, axis=1)
        twice = (np.diff(ordered, axis=1) == 0).any(axis=1) | (near == rows[:, None]).any(axis=1)
        further = nearest < own.max(axis=1) - slack
        but_last = nearest < own[:, :-1].max(axis=1, initial=0.0) - slack
        disorder = (np.diff(own, axis=1) < -slack[:, None]).any(axis=1)
        found.append((further, but_last, twice, disorder))
    return NeighbourFaults(*(np.concatenate(part) for part in zip(*found, strict=True)))


def connected_parts(neighbours: Array) -> Array:
    """The number of the connected part of each row (n,), parts numbered by their first rows."""
    n, size = neighbours.shape
    ends = np.arange(0, n * size + 1, size)
    graph = sparse.csr_array((np.ones(n * size), neighbours.ravel(), ends), shape=(n, n))
    label = connected_components(graph, directed=False)[1]
    _, first, label = np.unique(label, return_index=True, return_inverse=True)
    return np.asarray(np.argsort(np.argsort(first))[label])


def count_needless_joins(neighbours: Array, joined: Array) -> int:
    """Count joins that were not needed to make one graph.

    The last neighbours of the rows `joined` (n,) join parts; without them there must be one part more than joins.
    """
    graph = neighbours.copy()
    graph[joined, -1] = np.flatnonzero(joined)  # to itself, which joins nothing
    return abs(int(connected_parts(graph).max()) - int(joined.sum()))
