"""Compiled loops that keep the books of a sparse Cholesky factor: where its entries are, and sums of dense blocks.

See `multifrontal` for the method that needs them.
"""

import numpy as np

from certifit.numerics.compiled.compiling import called_from_python, twin_of


@called_from_python
def elimination_tree(indptr, indices, parent, count):
    """Find the parent of every column of the Cholesky factor L, and how many entries the column has.

    `indptr` and `indices` are the pattern of a symmetric matrix (n, n) in CSC or CSR; `parent` and `count` (n,) are
    written to, -1 for a column without a parent. Column j of L has an entry in row i where a path through smaller
    numbers joins them; walking up from every entry left of the diagonal to the last column that row i has reached
    finds each such pair once (Liu 1990).
    """
    n = len(parent)
    seen = np.full(n, -1)
    for i in range(n):
        parent[i], count[i], seen[i] = -1, 1, i
        for entry in range(indptr[i], indptr[i + 1]):
            j = indices[entry]
            while j < i and seen[j] != i:
                if parent[j] == -1:
                    parent[j] = i
                count[j] += 1
                seen[j] = i
                j = parent[j]


@twin_of(elimination_tree)
def _elimination_tree_of_lists(indptr, indices, parent, count):
    n, pointers, rows = len(parent), indptr.tolist(), indices.tolist()
    found, entries, seen = [-1] * n, [1] * n, [-1] * n
    for i in range(n):
        seen[i] = i
        for j in rows[pointers[i] : pointers[i + 1]]:
            while j < i and seen[j] != i:
                if found[j] == -1:
                    found[j] = i
                entries[j] += 1
                seen[j] = i
                j = found[j]
    parent[:], count[:] = found, entries


@called_from_python
def extend_add(panel, corner, update, place):
    """Add the lower triangle of `update` to the rows and columns `place` (ascending) of a front.

    The front (f, f) is stored as its first columns, `panel` (f, p), and the `corner` (f - p, f - p) beside them.
    """
    p = panel.shape[1]
    for j in range(update.shape[1]):
        column = place[j]
        if column < p:
            for i in range(j, update.shape[0]):
                panel[place[i], column] += update[i, j]
        else:
            for i in range(j, update.shape[0]):
                corner[place[i] - p, column - p] += update[i, j]
