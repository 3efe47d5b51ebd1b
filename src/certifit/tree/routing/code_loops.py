"""The compiled loop that sends rows down by codes of one byte: a row and a node take up a fraction of the cache."""

from __future__ import annotations

import numpy as np

from certifit.numerics.compiled.compiling import called_by_loops, called_from_python, written_into_loops

SIDE_BY_SIDE = 8  # rows that go down together: while one waits for its node, the others go on
RUN = 64
MISSING = np.uint64(255)
# Where in the word of a node its left child, its column and its code begin; its lowest bit: missing values go left.
# The seven bits above are 0, or of a leaf whose only value that is not 0 is a 1, the number of that value plus 1.
LEFT, COLUMN, CODE, CERTAIN = np.uint64(32), np.uint64(16), np.uint64(8), np.uint64(1)
TWO_BYTES, BYTE, SEVEN_BITS, ONE = np.uint64(0xFFFF), np.uint64(0xFF), np.uint64(127), np.uint64(1)


@written_into_loops
def _next(codes, steps, k):
    """Return the place that a row of codes (d,) goes to from place k: of a leaf, the leaf itself."""
    step = steps[k]
    x = np.uint64(codes[(step >> COLUMN) & TWO_BYTES])
    right = x > ((step >> CODE) & BYTE)
    if x == MISSING:
        right = step & ONE == 0
    return (step >> LEFT) + np.uint64(right)


@called_by_loops
def _walk_eight(codes, steps, root, at):
    """Fill in the place that each of eight rows reaches: numbers, which compile better than an array of them."""
    r0, r1, r2, r3, r4, r5, r6, r7 = codes[0], codes[1], codes[2], codes[3], codes[4], codes[5], codes[6], codes[7]
    a = b = c = d = e = f = g = h = root
    moved = ONE
    while moved != 0:
        a1, b1, c1, d1 = _next(r0, steps, a), _next(r1, steps, b), _next(r2, steps, c), _next(r3, steps, d)
        e1, f1, g1, h1 = _next(r4, steps, e), _next(r5, steps, f), _next(r6, steps, g), _next(r7, steps, h)
        moved = (a ^ a1) | (b ^ b1) | (c ^ c1) | (d ^ d1) | (e ^ e1) | (f ^ f1) | (g ^ g1) | (h ^ h1)
        a, b, c, d, e, f, g, h = a1, b1, c1, d1, e1, f1, g1, h1
    at[0], at[1], at[2], at[3], at[4], at[5], at[6], at[7] = a, b, c, d, e, f, g, h


@called_by_loops
def _walk(codes, steps, root, at):
    """Fill in the place that each row of a run reaches below a root."""
    eights = len(codes) // SIDE_BY_SIDE * SIDE_BY_SIDE
    for start in range(0, eights, SIDE_BY_SIDE):
        _walk_eight(codes[start : start + SIDE_BY_SIDE], steps, root, at[start : start + SIDE_BY_SIDE])
    for i in range(eights, len(codes)):
        k, at[i] = _next(codes[i], steps, root), root
        while k != at[i]:
            at[i], k = k, _next(codes[i], steps, k)


@called_from_python
def add_coded_answers(codes, trees, value, out):
    """Add to `out` (n, k) the values (m, k), by place, of the leaves that rows (n, d) reach, tree after tree."""
    at = np.empty(RUN, np.uint64)
    for t in range(len(trees.first) - 1):
        root = np.uint64(trees.first[t])
        for start in range(0, len(codes), RUN):
            rows = codes[start : start + RUN]
            _walk(rows, trees.steps, root, at)
            for i in range(len(rows)):
                leaf = at[i]
                certain = (trees.steps[leaf] >> CERTAIN) & SEVEN_BITS
                if certain != 0:  # its word is at hand, its values are not
                    out[start + i, certain - ONE] += 1.0
                    continue
                for c in range(value.shape[1]):
                    out[start + i, c] += value[leaf, c]
