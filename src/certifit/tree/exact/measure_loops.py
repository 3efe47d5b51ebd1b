"""Medians of nodes, by a compiled loop."""

from __future__ import annotations

import numpy as np

from certifit.numerics.compiled.compiling import called_from_python_uncounted
from certifit.rows import Array
from certifit.tree.exact.median_loops import sorted_keys


def medians_of_nodes(y: Array, w: Array, start: Array, end: Array) -> tuple[Array, Array]:
    """Return the weighted median of each run [start, end) of rows (m,), and their mean distance to it (m,).

    Where exactly half of the weight lies below, the median is the middle between the two neighbours.
    """
    order = np.argsort(y, kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    found, scratch = np.empty((2, len(start))), np.empty((2, len(y)), np.int64)
    _medians_of_runs(y, w, (start, end), (order, place), scratch, found)
    return found[0], found[1]


@called_from_python_uncounted
def _medians_of_runs(y, w, runs, orders, scratch, found):
    """The same, told which row is the k-th by value, and each row's place among all; `found` (2, m) is filled in."""
    start, end = runs
    by_value, place = orders
    median, away = found[0], found[1]
    for k in range(len(start)):
        own, weights = y[start[k] : end[k]], w[start[k] : end[k]]
        for i in range(len(own)):
            scratch[0, i] = place[start[k] + i]
        order = sorted_keys(scratch[0], scratch[1], len(own))
        for i in range(len(own)):
            order[i] = by_value[order[i]] - start[k]
        total = below = 0.0
        for i in range(len(weights)):
            total += weights[i]
        for i in range(len(own)):
            below += weights[order[i]]
            if 2 * below >= total:
                break
        median[k] = own[order[i]]
        if 2 * below == total and i + 1 < len(own):
            median[k] = own[order[i]] / 2 + own[order[i + 1]] / 2
        distance = 0.0
        for i in range(len(own)):
            distance += weights[i] * abs(own[i] - median[k])
        away[k] = distance / total
