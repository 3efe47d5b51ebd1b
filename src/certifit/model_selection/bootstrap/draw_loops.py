"""Compiled loops that draw rows with replacement by a hash, so that anybody can draw the same rows again."""

import numpy as np

from certifit.numerics.compiled.compiling import called_from_python


@called_from_python
def add_drawn_rows(key, counts):
    """Add 1 to `counts` (n,) for each of n rows drawn by the replicate's key: the halves of each hash give two."""
    n = np.uint64(counts.shape[0])
    state, half = key, np.uint64(32)
    for i in range(0, counts.shape[0], 2):
        state += np.uint64(0x9E3779B97F4A7C15)
        x = state
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        x = x ^ (x >> np.uint64(31))
        counts[((x >> half) * n) >> half] += 1
        if i + 1 < counts.shape[0]:
            counts[((x & np.uint64(0xFFFFFFFF)) * n) >> half] += 1
