"""The compiled loops that touch rows: histograms of packed whole numbers, and a node's rows put in two parts.

What a row adds to a histogram is its gradient and its Hessian as whole numbers in one, (qg << shift) + qh: one
addition an entry, exact in any order. The Hessian's part is never negative nor overflows, so both can be told apart.
"""

from __future__ import annotations

import numpy as np

from certifit.numerics.compiled.compiling import called_by_loops_uncounted, called_from_python_uncounted
from certifit.numerics.compiled.random_bits import random_bits


@called_from_python_uncounted
def pack_pairs(pairs, scales, shift, seed, span, packed):
    """Round the pairs (g, h) of a span of rows up or down at random, by their numbers alone, and pack them."""
    g, h = pairs
    for i in range(span[0], span[1]):
        bits = random_bits(seed, i)
        up_g = float(bits >> np.uint64(32)) / 4294967296.0
        up_h = float(bits & np.uint64(0xFFFFFFFF)) / 4294967296.0
        qg = np.int64(np.floor(g[i] * scales[0] + up_g))
        # A positive Hessian stays positive: else its gradient would have nothing to be divided by.
        qh = max(np.int64(np.floor(h[i] * scales[1] + up_h)), np.int64(1))
        packed[i] = (qg << shift) + qh


@called_by_loops_uncounted
def add_histogram(rows, start, stop, codes, packed, histogram):
    """Add the rows at places [start, stop) of `rows` to a flat histogram (d · 256,); `codes` are flat too.

    Where a node's rows lie far apart, a first loop touches some dozens of them, so that the misses of the cache wait
    together and not one after the other: 3 times faster. The number it returns means nothing.
    """
    d = np.uint64(len(histogram) >> 8)
    if start >= stop:
        return np.int64(0)
    far_apart = 4 * (stop - start) < np.int64(rows[stop - 1]) - np.int64(rows[start])
    seen = np.int64(0)
    for some in range(start, stop, 32):
        end = min(some + 32, stop)
        if far_apart:
            for i in range(some, end):
                r = np.uint64(rows[i])
                seen += np.int64(codes[r * d]) + np.int64(codes[r * d + d - np.uint64(1)]) + packed[r]
        for i in range(some, end):
            r = np.uint64(rows[i])
            v = packed[r]
            first = r * d
            for j in range(d):
                histogram[(j << np.uint64(8)) + np.uint64(codes[first + j])] += v
    return seen


@called_by_loops_uncounted
def add_counts(rows, start, stop, codes, counts):
    """Count the rows of each bin, in a flat table (d · 256,)."""
    d = np.uint64(len(counts) >> 8)
    for i in range(start, stop):
        first = np.uint64(rows[i]) * d
        for j in range(d):
            counts[(j << np.uint64(8)) + np.uint64(codes[first + j])] += 1


@called_by_loops_uncounted
def part_rows(rows, scratch, span, codes, d, column, goes_left):
    """Put the rows that go left before the others, both in their order, and return how many."""
    start, stop = span
    at, others = start, start
    step, first = np.uint64(d), np.uint64(column)
    # Written to both sides, and one counted: a branch would be guessed wrong for half of the rows.
    for i in range(start, stop):
        r = rows[i]
        left = np.int64(goes_left[codes[np.uint64(r) * step + first]])
        rows[at] = r
        scratch[others] = r
        at += left
        others += 1 - left
    for i in range(others - start):
        rows[at + i] = scratch[start + i]
    return at - start


@called_by_loops_uncounted
def count_left(rows, start, stop, codes, d, column, goes_left):
    """Return how many rows would go left."""
    found = np.int64(0)
    step, first = np.uint64(d), np.uint64(column)
    for i in range(start, stop):
        found += np.int64(goes_left[codes[np.uint64(rows[i]) * step + first]])
    return found
