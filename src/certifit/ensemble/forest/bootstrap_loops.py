"""The compiled loops of the bootstrap: which rows a tree is grown on, and how often each.

Draws fall on rows laid end to end, each as long as its weight, in the order of a hash of their contents. So neither
the order of the rows matters nor whether a row of weight 2 is written twice.
"""

from __future__ import annotations

import numpy as np

from certifit.numerics.compiled.compiling import called_from_python
from certifit.numerics.compiled.random_bits import random_bits

DRAWING = 0x8CB92BA72F3D8DD7  # tells the draws of rows from those of columns


@called_from_python
def row_hashes(values, target):
    """Return 64 bits of each row, from those of its values (n, d) and of its target (n,), both whole numbers."""
    found = np.empty(len(values), np.uint64)
    for i in range(len(values)):
        h = random_bits(0, target[i])
        for j in range(values.shape[1]):
            h = random_bits(h, values[i, j])
        found[i] = h
    return found


@called_from_python
def drawn_counts(seed, draws, order, ends):
    """Return how often each row is drawn; `ends` (n,) are the running sums of weights in this order of the rows."""
    n, total = len(order), ends[-1]
    counts = np.zeros(n, np.int32)
    # Weights that merely add up to n, such as 2 and 0, are not even: ends are 1, 2, 3, … where all of them are 1.
    even = True
    for i in range(n):
        even = even and ends[i] == i + 1
    key = np.uint64(seed) ^ np.uint64(DRAWING)
    for i in range(draws):
        at = float(random_bits(key, i) >> np.uint64(11)) / 2.0**53 * total
        p = np.int64(at) if even else np.searchsorted(ends, at, side="right")
        counts[order[min(p, n - 1)]] += 1
    return counts
