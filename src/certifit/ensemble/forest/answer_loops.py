"""The compiled loops that send rows down all trees of a forest, and add up what the leaves say."""

from __future__ import annotations

import numpy as np
from numba import njit

from certifit.numerics.compiled.compiling import called_from_python


@njit(cache=True, nogil=True, inline="always")
def _leaf_of(x, base, left, right, feature, threshold, missing_left):
    """Return the number of the leaf that a row reaches in the tree whose nodes begin at `base`."""
    k = base
    while left[k] >= 0:
        value = x[feature[k]]
        goes_left = value <= threshold[k] or (np.isnan(value) and missing_left[k] != 0)
        k = base + (left[k] if goes_left else right[k])
    return k


@called_from_python
def forest_leaves(X, trees, out):
    """Fill in the leaf of each row in each tree, (n, trees), counted from the tree's first node."""
    first, left, right, feature, threshold, missing_left = trees
    for t in range(len(first) - 1):
        base = first[t]
        for i in range(len(X)):
            out[i, t] = _leaf_of(X[i], base, left, right, feature, threshold, missing_left) - base


@called_from_python
def add_answers(X, trees, value, out):
    """Add to `out` (n, k) the values (m, k) of the leaves that each row reaches, tree after tree."""
    first, left, right, feature, threshold, missing_left = trees
    for t in range(len(first) - 1):
        base = first[t]
        for i in range(len(X)):
            leaf = _leaf_of(X[i], base, left, right, feature, threshold, missing_left)
            for c in range(value.shape[1]):
                out[i, c] += value[leaf, c]


@called_from_python
def add_unseen_answers(X, trees, value, unseen, out):
    """The same for the trees that did not see a row in growing, `unseen` (trees, n); return how many, (n,)."""
    first, left, right, feature, threshold, missing_left = trees
    count = np.zeros(len(X), np.int64)
    for t in range(len(first) - 1):
        base = first[t]
        for i in range(len(X)):
            if unseen[t, i]:
                leaf = _leaf_of(X[i], base, left, right, feature, threshold, missing_left)
                count[i] += 1
                for c in range(value.shape[1]):
                    out[i, c] += value[leaf, c]
    return count
