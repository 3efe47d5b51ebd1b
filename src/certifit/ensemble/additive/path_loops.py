"""The compiled loops of additive models: total-variation steps along the levels of a column, and passes over rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from certifit.numerics.compiled.compiling import called_from_python, twin_of, written_into_loops
from certifit.numerics.compiled.whole_arrays import exponentials, sums_by_place
from certifit.rows import Array


class RowRun(NamedTuple):
    """A run of rows."""

    y: Array  # (n,)
    s: Array  # (n,)
    score: Array  # (n,) changed by a pass


SQUARED, LOGISTIC, POISSON = 0, 1, 2
CAREFUL_LOGISTIC, CAREFUL_POISSON = 3, 4  # with curvatures that do not vanish where the loss is nearly straight


@called_from_python
def fused_path(target, weight, low, high, values):
    """Fill in the values (k,) with the least Σ w/2 (v - target)² + Σ over neighbours of the cost of a jump.

    A jump up from level e to the next costs high[e] times its size, one down -low[e] times; an infinite cost forbids
    it. Dynamic programming on the derivative of the best cost so far, which is piecewise linear and rises: knots hold
    where its line changes, and each level clips it to [low, high] (Johnson 2013).
    """
    k = len(target)
    knot, slope_change, offset_change = np.empty(2 * k + 2), np.empty(2 * k + 2), np.empty(2 * k + 2)
    below, above = np.empty(k), np.empty(k)
    first, last = k, k - 1  # the knots in use, first … last
    slope, offset = weight[0], -weight[0] * target[0]  # the line on the left of all knots
    slope_right, offset_right = slope, offset  # and on the right
    for e in range(k - 1):
        below[e], above[e] = -np.inf, np.inf
        if low[e] > -np.inf:
            while first <= last and slope * knot[first] + offset <= low[e]:
                slope += slope_change[first]
                offset += offset_change[first]
                first += 1
            below[e] = (low[e] - offset) / slope
            first -= 1
            knot[first], slope_change[first], offset_change[first] = below[e], slope, offset - low[e]
            slope, offset = 0.0, low[e]
        if high[e] < np.inf:
            while first <= last and slope_right * knot[last] + offset_right >= high[e]:
                slope_right -= slope_change[last]
                offset_right -= offset_change[last]
                last -= 1
            above[e] = (high[e] - offset_right) / slope_right
            last += 1
            knot[last], slope_change[last], offset_change[last] = above[e], -slope_right, high[e] - offset_right
            slope_right, offset_right = 0.0, high[e]
        w, t = weight[e + 1], target[e + 1]
        slope += w
        offset -= w * t
        slope_right += w
        offset_right -= w * t
    while first <= last and slope * knot[first] + offset < 0:
        slope += slope_change[first]
        offset += offset_change[first]
        first += 1
    values[k - 1] = -offset / slope
    for e in range(k - 2, -1, -1):
        values[e] = min(max(values[e + 1], below[e]), above[e])


@twin_of(fused_path)
def _fused_path_in_python(target, weight, low, high, values):
    fused_path.py_func(target, weight, low, high, values)


@written_into_loops
def _derivatives(kind, y, score):
    """Return the first and second derivative of a row's loss in its score; the careful ones are no less."""
    if kind == SQUARED:
        return score - y, 1.0
    if kind in (LOGISTIC, CAREFUL_LOGISTIC):
        size = abs(score)
        e = np.exp(-size)
        # The probability of the other class, whose digits 1 - p would lose.
        other = 1.0 / (1.0 + e) if (score >= 0) == (y < 0.5) else e / (1.0 + e)
        slope = other if y < 0.5 else -other
        if kind == LOGISTIC:
            return slope, e / ((1.0 + e) * (1.0 + e))
        # A parabola of this curvature that touches the loss lies above it everywhere (Jaakkola & Jordan 2000).
        return slope, (1.0 - e) / (1.0 + e) / (2.0 * size) if size > 1e-6 else 0.25
    mean = np.exp(score)
    return mean - y, mean if kind == POISSON else max(mean, y)


@called_from_python
def add_and_sum(kind, before, step, codes, rows, sums):
    """Add step[before] to the scores of rows, and sum up their derivatives by level: sums (2, k)."""
    y, s, score = rows.y, rows.s, rows.score
    sums[:] = 0.0
    for i in range(len(codes)):
        score[i] += step[before[i]]
        g, h = _derivatives(kind, y[i], score[i])
        sums[0, codes[i]] += s[i] * g
        sums[1, codes[i]] += s[i] * h


@twin_of(add_and_sum)
def _add_and_sum_of_arrays(kind, before, step, codes, rows, sums):
    rows.score[:] += step[before]
    g, h = _derivatives_of_arrays(kind, rows.y, rows.score)
    sums[0], sums[1] = (sums_by_place(codes, rows.s * x, sums.shape[1]) for x in (g, h))


def _derivatives_of_arrays(kind, y, score):
    if kind == SQUARED:
        return score - y, np.ones(len(score))
    if kind in (LOGISTIC, CAREFUL_LOGISTIC):
        size = np.abs(score)
        e = exponentials(-size)
        other = np.where((score >= 0) == (y < 0.5), 1.0 / (1.0 + e), e / (1.0 + e))
        slope = np.where(y < 0.5, other, -other)
        if kind == LOGISTIC:
            return slope, e / ((1.0 + e) * (1.0 + e))
        return slope, np.where(size > 1e-6, (1.0 - e) / (1.0 + e) / (2.0 * size), 0.25)
    mean = exponentials(score)
    return mean - y, mean if kind == POISSON else np.maximum(mean, y)


@called_from_python
def add_columns(codes, values, score):
    """Add the values (d, 256) of every column's level to the scores of rows (n,); codes are (d, n)."""
    for j in range(len(codes)):
        for i in range(len(score)):
            score[i] += values[j, codes[j, i]]


@twin_of(add_columns)
def _add_columns_of_arrays(codes, values, score):
    for of_level, own in zip(values, codes, strict=True):
        score += of_level[own]


@called_from_python
def segment_hessian(codes, segment, h, found):
    """Add h of every row to found (m, m) at the segments of every pair of columns, the upper triangle.

    `segment` (d, 256) numbers the segments of all columns, one column after another.
    """
    d, n = codes.shape
    at = np.empty(d, np.int64)
    for i in range(n):
        for j in range(d):
            at[j] = segment[j, codes[j, i]]
        for a in range(d):
            row = found[at[a]]
            for b in range(a, d):
                row[at[b]] += h[i]


@twin_of(segment_hessian)
def _segment_hessian_of_arrays(codes, segment, h, found):
    at = np.take_along_axis(segment, codes.astype(np.int64), axis=1)
    for a in range(len(at)):
        for b in range(a, len(at)):
            np.add.at(found, (at[a], at[b]), h)
