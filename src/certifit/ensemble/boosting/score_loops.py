"""The compiled loop that sends rows through many trees."""

from __future__ import annotations

import numpy as np

from certifit.numerics.compiled.compiling import called_from_python


@called_from_python
def add_scores(X, walk, value, first, depth, sides, out):
    """Add the values of the leaves that rows X (n, d) reach: tree t adds to column t mod k of `out` (n, k).

    `walk.left` and `walk.right` of a leaf are the leaf itself. Rows go down side by side, a level at a time: one
    row's wait for memory is another's turn.
    """
    at = np.empty(64, np.int64)
    for start in range(0, len(X), 64):
        rows = min(64, len(X) - start)
        for t in range(len(depth)):
            for i in range(rows):
                at[i] = first[t]
            for _ in range(depth[t]):
                for i in range(rows):
                    k = at[i]
                    x = X[start + i, walk.column[k]]
                    left = x <= walk.threshold[k]
                    if x != x:
                        left = walk.missing_left[k] != 0
                    elif walk.kinds[k] >= 0:
                        left = sides[walk.kinds[k], int(x)] != 0
                    at[i] = walk.left[k] if left else walk.right[k]
            for i in range(rows):
                out[start + i, t % out.shape[1]] += value[at[i]]
