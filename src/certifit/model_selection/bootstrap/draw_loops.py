"""Compiled loops that draw rows with replacement by a hash, so that anybody can draw the same rows again."""

import numpy as np

from certifit.numerics.compiled.compiling import called_from_python


@called_from_python
def add_drawn_rows(key, counts):
    """Add 1 to `counts` (n,) for each of n rows drawn by the replicate's key: the halves of each hash give two."""
    n, half = np.uint64(counts.shape[0]), np.uint64(32)
    # Hashes are made in runs without a branch, so that the compiler uses vector instructions.
    run = 1024
    first, second = np.empty(run, np.uint32), np.empty(run, np.uint32)
    hashes = (counts.shape[0] + 1) // 2
    for start in range(0, hashes, run):
        size = min(run, hashes - start)
        for i in range(size):
            x = key + np.uint64(start + i + 1) * np.uint64(0x9E3779B97F4A7C15)
            x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            x = x ^ (x >> np.uint64(31))
            first[i] = ((x >> half) * n) >> half
            second[i] = ((x & np.uint64(0xFFFFFFFF)) * n) >> half
        for i in range(size):
            counts[first[i]] += 1
        # Of an odd number of rows, the last hash gives one.
        for i in range(min(size, counts.shape[0] // 2 - start)):
            counts[second[i]] += 1
