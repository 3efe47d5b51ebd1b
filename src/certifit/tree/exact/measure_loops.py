"""Medians of nodes, by a compiled loop."""

from __future__ import annotations

import numpy as np

from certifit.numerics.compiled.compiling import called_from_python
from certifit.rows import Array
from certifit.tree.exact.median_loops import sorted_keys


def medians_of_nodes(y: Array, w: Array, start: Array, end: Array) -> tuple[Array, Array]:
    """Return the weighted median of each run [start, end) of rows (m,), and their mean distance to it (m,).

    Where exactly half of the weight lies below, the median is the middle between the two neighbours.
    """
    order = np.argsort(y, kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    return _medians_of_runs(y, w, start, end, order, place)


@called_from_python
def _medians_of_runs(y, w, start, end, by_value, place):
    """The same, told which row is the k-th by value, and each row's place among all."""
    median, away = np.empty(len(start)), np.empty(len(start))
    for k in range(len(start)):
        own, weights = y[start[k] : end[k]], w[start[k] : end[k]]
        order = sorted_keys(place[start[k] : end[k]].copy())
        for i in range(len(order)):
            order[i] = by_value[order[i]] - start[k]
        total = below = 0.0
        for i in range(len(weights)):
            total += weights[i]
        for i in range(len(order)):
            below += weights[order[i]]
            if 2 * below >= total:
                break
        median[k] = own[order[i]]
        if 2 * below == total and i + 1 < len(order):
            median[k] = own[order[i]] / 2 + own[order[i + 1]] / 2
        distance = 0.0
        for i in range(len(own)):
            distance += weights[i] * abs(own[i] - median[k])
        away[k] = distance / total
    return median, away
