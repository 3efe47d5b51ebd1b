"""The compiled loop that measures medians of nodes."""

from __future__ import annotations

import numpy as np

from certifit.numerics.compiled.compiling import called_from_python


@called_from_python
def medians_of_nodes(y, w, start, end):
    """Return the weighted median of each run [start, end) of rows (m,), and their mean distance to it (m,).

    Where exactly half of the weight lies below, the median is the middle between the two neighbours.
    """
    median, away = np.empty(len(start)), np.empty(len(start))
    for k in range(len(start)):
        own, weights = y[start[k] : end[k]], w[start[k] : end[k]]
        order = np.argsort(own, kind="mergesort")
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
