"""The compiled loops that send rows down packed trees, eight rows side by side where all questions are about numbers.

While one row waits for its node to come from memory, the others go on. A leaf leads to itself, so that no row has to
be asked whether it has arrived before all eight have.
"""

from __future__ import annotations

import numpy as np

from certifit.numerics.compiled.compiling import called_by_loops, called_from_python

# Marks of a packed column: a leaf; missing values go left; the threshold is the number of a set of categories.
LEAF, MISSING_LEFT, BY_SET = np.uint32(1 << 31), np.uint32(1 << 30), np.uint32(1 << 29)
COLUMN = np.uint32((1 << 29) - 1)
SIDE_BY_SIDE = 8
LANES = 64  # rows of a run, whose values stay in the cache


@called_by_loops
def _next(X, i, steps, k):
    """Return the place that row i goes to from place k, which asks for a number: of a leaf, the leaf itself."""
    step = steps[k]
    x = X[i, step.column & COLUMN]
    right = not x <= step.threshold
    if x != x:
        right = step.column & MISSING_LEFT == 0
    return np.uint64(step.left) + np.uint64(right)


@called_by_loops
def _walk_by_numbers(X, steps, root, at):
    """Fill in the leaf that each row of a run reaches in a tree without categories: its place among the steps."""
    for start in range(0, len(X), SIDE_BY_SIDE):
        # The last rows go together with some of those before them once more.
        first = max(0, min(start, len(X) - SIDE_BY_SIDE))
        rows, here = X[first : first + SIDE_BY_SIDE], at[first : first + SIDE_BY_SIDE]
        here[:] = root
        if len(rows) < SIDE_BY_SIDE:
            _walk_some(rows, steps, here)
            continue
        moving = True
        while moving:
            moving = False
            for i in range(SIDE_BY_SIDE):  # a number that the compiler knows: eight steps without a loop
                k = _next(rows, i, steps, here[i])
                moving |= k != here[i]
                here[i] = k


@called_by_loops
def _walk_some(rows, steps, here):
    """Send a few rows down from the places where they are."""
    for i in range(len(rows)):
        k = _next(rows, i, steps, here[i])
        while k != here[i]:
            here[i] = k
            k = _next(rows, i, steps, here[i])


@called_by_loops
def _walk(X, trees, t, at):
    """Fill in the leaf that each row of a run reaches in tree t: its place among the steps."""
    steps, sets, root = trees.steps, trees.sets, np.uint64(trees.first[t])
    if len(sets) == 0:
        _walk_by_numbers(X, steps, root, at)
        return
    for i in range(len(X)):
        k = root
        while steps[k].column & LEAF == 0:
            step = steps[k]
            x = X[i, step.column & COLUMN]
            right = not x <= step.threshold
            if x != x:
                right = step.column & MISSING_LEFT == 0
            elif step.column & BY_SET:
                right = sets[np.int64(step.threshold), np.int64(x)] == 0
            k = np.uint64(step.left) + np.uint64(right)
        at[i] = k


@called_from_python
def find_leaves(X, trees, out):
    """Fill in the leaf of each row in each tree, (n, T), counted from the tree's first node."""
    at = np.empty(LANES, np.uint64)
    for t in range(len(trees.first) - 1):
        for start in range(0, len(X), LANES):
            rows = X[start : start + LANES]
            _walk(rows, trees, t, at)
            for i in range(len(rows)):
                out[start + i, t] = np.int64(trees.number[at[i]]) - trees.first[t]


@called_from_python
def add_answers(X, trees, value, out):
    """Add to `out` (n, k) the values (m, k) of the leaves that each row reaches, tree after tree."""
    at = np.empty(LANES, np.uint64)
    for t in range(len(trees.first) - 1):
        for start in range(0, len(X), LANES):
            rows = X[start : start + LANES]
            _walk(rows, trees, t, at)
            for i in range(len(rows)):
                leaf = trees.number[at[i]]
                for c in range(value.shape[1]):
                    out[start + i, c] += value[leaf, c]


@called_from_python
def add_scores(X, trees, value, span, out):
    """Add the values (m,) of the leaves that rows reach in the trees [first, last): tree t to column t mod k."""
    at = np.empty(LANES, np.uint64)
    for start in range(0, len(X), LANES):
        rows = X[start : start + LANES]
        for t in range(span[0], span[1]):
            _walk(rows, trees, t, at)
            for i in range(len(rows)):
                out[start + i, t % out.shape[1]] += value[trees.number[at[i]]]
