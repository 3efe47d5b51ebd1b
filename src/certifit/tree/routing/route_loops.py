"""The compiled loop that sends rows down a tree."""

from __future__ import annotations

import numpy as np

from certifit.numerics.compiled.compiling import called_from_python


@called_from_python
def leaves_of_rows(X, left, right, feature, threshold, missing_left):
    """Return the number of the leaf that each row of X (n, d) reaches."""
    out = np.empty(len(X), np.int64)
    for i in range(len(X)):
        k = 0
        while left[k] >= 0:
            x = X[i, feature[k]]
            k = left[k] if (x <= threshold[k] or (np.isnan(x) and missing_left[k])) else right[k]
        out[i] = k
    return out


@called_from_python
def leaves_by_sets(X, route, chosen, sets):
    """The same where nodes may ask for a category: `chosen` (m,) is the number of its set in `sets` (s, c) or -1."""
    left, right, feature, threshold, missing_left = route
    out = np.empty(len(X), np.int64)
    for i in range(len(X)):
        k = 0
        while left[k] >= 0:
            x = X[i, feature[k]]
            if np.isnan(x):
                goes_left = missing_left[k] != 0
            elif chosen[k] >= 0:
                goes_left = sets[chosen[k], int(x)] != 0
            else:
                goes_left = x <= threshold[k]
            k = left[k] if goes_left else right[k]
        out[i] = k
    return out
