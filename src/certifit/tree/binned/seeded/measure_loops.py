"""The compiled loops that measure the nodes of a grown tree: weights, values and impurities, from its rows."""

from __future__ import annotations

import math

import numpy as np

from certifit.numerics.compiled.compiling import called_from_python_uncounted
from certifit.rows import Array
from certifit.tree.binned.seeded.candidate_loops import ENTROPY, GINI, POISSON
from certifit.tree.binned.seeded.growth_loops import GrownNodes


def measure_classes(
    nodes: GrownNodes, made: int, row: Array, labels: Array, weight: Array, classes: int, score: int
) -> tuple[Array, Array, Array]:
    """Return weights (m,), class shares (m, k) and impurities (m,); `weight` (n,) are the tree's row weights."""
    found = np.zeros(made), np.zeros((made, classes)), np.zeros(made)
    _measure_classes(nodes, made, row, labels, weight, score, found)
    return found


@called_from_python_uncounted
def _measure_classes(nodes, made, row, labels, weight, score, found):
    """Fill in weights, shares and impurities, which are 0 so far: arrays that loops make take long to compile."""
    total, value, impurity = found
    for k in range(made - 1, -1, -1):  # children come after their parents
        if nodes.left[k] < 0:
            for i in range(nodes.start[k], nodes.end[k]):
                value[k, np.int64(labels[row[i]])] += weight[row[i]]
        else:
            for c in range(value.shape[1]):
                value[k, c] = value[nodes.left[k], c] + value[nodes.right[k], c]
    for k in range(made):
        for c in range(value.shape[1]):
            total[k] += value[k, c]
        squares, logs = 0.0, 0.0
        for c in range(value.shape[1]):
            p = value[k, c] / total[k]
            value[k, c] = p
            squares += p * p
            if score == ENTROPY and p > 0:
                logs -= p * math.log(p)
        impurity[k] = 1.0 - squares if score == GINI else logs / math.log(2.0)


def measure_amounts(
    nodes: GrownNodes, made: int, row: Array, y: Array, weight: Array, score: int
) -> tuple[Array, Array, Array]:
    """Return weights (m,), means (m, 1) and impurities (m,)."""
    found = np.zeros(made), np.zeros((made, 1)), np.zeros(made)
    _measure_amounts(nodes, made, row, y, weight, score, found)
    return found


@called_from_python_uncounted
def _measure_amounts(nodes, made, row, y, weight, score, found):
    """Fill in weights, means and impurities, which are 0 so far."""
    total, mean, spread = found
    for k in range(made - 1, -1, -1):
        if nodes.left[k] >= 0:
            a, b = nodes.left[k], nodes.right[k]
            if total[b] > total[a]:  # from the heavier child's mean, so that no digit cancels
                a, b = b, a
            total[k] = total[a] + total[b]
            mean[k, 0] = mean[a, 0] + total[b] * (mean[b, 0] - mean[a, 0]) / total[k]
            spread[k] = spread[a] + spread[b]
            if score != POISSON:
                one, two = mean[a, 0] - mean[k, 0], mean[b, 0] - mean[k, 0]
                spread[k] += total[a] * (one * one) + total[b] * (two * two)
            continue
        start, end = nodes.start[k], nodes.end[k]
        first, away, w = y[row[start]], 0.0, 0.0
        for i in range(start, end):
            away += weight[row[i]] * (y[row[i]] - first)
            w += weight[row[i]]
        centre = first + away / w
        rest = 0.0
        for i in range(start, end):  # what rounding has left
            rest += weight[row[i]] * (y[row[i]] - centre)
        centre += rest / w
        for i in range(start, end):
            t = y[row[i]]
            if score == POISSON:
                spread[k] += weight[row[i]] * t * math.log(t) if t > 0 else 0.0
            else:
                spread[k] += weight[row[i]] * ((t - centre) * (t - centre))
        total[k], mean[k, 0] = w, centre
    for k in range(made):
        spread[k] /= total[k]
        if score == POISSON:
            m = mean[k, 0]
            spread[k] = max(spread[k] - (m * math.log(m) if m > 0 else 0.0), 0.0)
