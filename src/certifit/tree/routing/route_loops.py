"""The compiled loops that send rows down packed trees, some dozens of rows side by side.

While one row waits for its node to come from memory, others go on.
"""

from __future__ import annotations

import numpy as np

from certifit.numerics.compiled.compiling import called_by_loops, called_from_python

# Marks of a packed column: a leaf; missing values go left; the threshold is the number of a set of categories.
LEAF, MISSING_LEFT, BY_SET = np.uint32(1 << 31), np.uint32(1 << 30), np.uint32(1 << 29)
COLUMN = np.uint32((1 << 29) - 1)
LANES = 64  # rows that go down a tree side by side


@called_by_loops
def _walk(X, trees, t, at, active):
    """Fill in the leaf that each of a few rows X reaches in tree t: its place among the steps."""
    steps, sets, root = trees.steps, trees.sets, trees.first[t]
    left = np.uint32(0) if steps[root].column & LEAF else np.uint32(len(X))
    for i in range(len(X)):
        at[i], active[i] = root, i
    while left > 0:
        going = np.uint32(0)
        for a in range(left):
            i = active[a]
            step = steps[at[i]]
            column = step.column
            x = X[i, column & COLUMN]
            right = not x <= step.threshold
            if x != x:
                right = column & MISSING_LEFT == 0
            elif column & BY_SET:
                right = sets[np.int64(step.threshold), np.int64(x)] == 0
            k = step.left + np.uint32(right)
            at[i] = k
            # Written always, and counted where the row goes on: a branch would be guessed wrong.
            active[going] = i
            going += np.uint32(1) - (steps[k].column >> np.uint32(31))
        left = going


@called_from_python
def find_leaves(X, trees, out):
    """Fill in the leaf of each row in each tree, (n, T), counted from the tree's first node."""
    at, active = np.empty(LANES, np.uint32), np.empty(LANES, np.uint32)
    for t in range(len(trees.first) - 1):
        for start in range(0, len(X), LANES):
            rows = X[start : start + LANES]
            _walk(rows, trees, t, at, active)
            for i in range(len(rows)):
                out[start + i, t] = np.int64(trees.steps[at[i]].left) - trees.first[t]


@called_from_python
def add_answers(X, trees, value, out):
    """Add to `out` (n, k) the values (m, k) of the leaves that each row reaches, tree after tree."""
    at, active = np.empty(LANES, np.uint32), np.empty(LANES, np.uint32)
    for t in range(len(trees.first) - 1):
        for start in range(0, len(X), LANES):
            rows = X[start : start + LANES]
            _walk(rows, trees, t, at, active)
            for i in range(len(rows)):
                leaf = trees.steps[at[i]].left
                for c in range(value.shape[1]):
                    out[start + i, c] += value[leaf, c]


@called_from_python
def add_scores(X, trees, value, span, out):
    """Add the values (m,) of the leaves that rows reach in the trees [first, last): tree t to column t mod k."""
    at, active = np.empty(LANES, np.uint32), np.empty(LANES, np.uint32)
    for start in range(0, len(X), LANES):
        rows = X[start : start + LANES]
        for t in range(span[0], span[1]):
            _walk(rows, trees, t, at, active)
            for i in range(len(rows)):
                out[start + i, t % out.shape[1]] += value[trees.steps[at[i]].left]
