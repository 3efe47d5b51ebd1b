"""Medians of nodes: of few by sorting each, of many by a compiled loop."""

from __future__ import annotations

import numpy as np

from certifit.numerics.compiled.compiling import PlainFirst, PlainTuning, called_from_python_uncounted
from certifit.numerics.compiled.whole_arrays import running_total
from certifit.rows import Array
from certifit.tree.exact.median_loops import sorted_keys


@called_from_python_uncounted
def _medians_of_runs(y, w, runs, orders, scratch, found):
    """Fill in medians and distances, (2, m), told which row is the k-th by value, and each row's place among all."""
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


PLAIN_FIRST = PlainFirst(_medians_of_runs, PlainTuning(most_entries=500, seconds=0.5))  # nodes


def medians_of_nodes(y: Array, w: Array, start: Array, end: Array) -> tuple[Array, Array]:
    """Return the weighted median of each run [start, end) of rows (m,), and their mean distance to it (m,).

    Where exactly half of the weight lies below, the median is the middle between the two neighbours.
    """
    if PLAIN_FIRST.suffices(len(start)):
        with PLAIN_FIRST.timed():
            found = np.array([_median_of_run(y[a:b], w[a:b]) for a, b in zip(start, end, strict=True)])
        return found[:, 0], found[:, 1]
    order = np.argsort(y, kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    found, scratch = np.empty((2, len(start))), np.empty((2, len(y)), np.int64)
    _medians_of_runs(y, w, (start, end), (order, place), scratch, found)
    return found[0], found[1]


def _median_of_run(own: Array, weights: Array) -> tuple[float, float]:
    """Return the weighted median of some rows, and their mean distance to it, with the bits of the loop."""
    order = np.argsort(own, kind="stable")
    total, below = running_total(weights), np.add.accumulate(weights[order])
    i = int(np.argmax(2 * below >= total))
    median = float(own[order[i]])
    if 2 * below[i] == total and i + 1 < len(own):
        median = float(own[order[i]] / 2 + own[order[i + 1]] / 2)
    return median, running_total(weights * np.abs(own - median)) / total
