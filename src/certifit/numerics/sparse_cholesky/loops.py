"""Selection of the nearest candidates, and bookkeeping of a sparse Cholesky factor (see `multifrontal`)."""

import numpy as np
from numba import njit

# Sums over columns, allowed in any order, vectorise. NaN and infinities keep their meaning.
ANY_ORDER = {"reassoc", "contract"}


@njit(cache=True, nogil=True)
def smallest(P, c, index, value):
    """For each row p of P (rows, n): the m smallest entries of p + c, ascending, and their columns (rows, m)."""
    m = index.shape[1]
    for i in range(P.shape[0]):
        row, best, place = P[i], value[i], index[i]
        filled = 0
        for j in range(P.shape[1]):
            x = row[j] + c[j]
            if filled < m:
                at = filled
                filled += 1
            elif x < best[m - 1]:
                at = m - 1
            else:
                continue
            while at > 0 and best[at - 1] > x:
                best[at], place[at] = best[at - 1], place[at - 1]
                at -= 1
            best[at], place[at] = x, j


@njit(cache=True, nogil=True, fastmath=ANY_ORDER)
def square_distances(Q, X, index, out):
    """out (rows, m) = |q - x|² for each row q of Q and the rows x of X that `index` names."""
    for i in range(index.shape[0]):
        q = Q[i]
        for j in range(index.shape[1]):
            x = X[index[i, j]]
            total = 0.0
            for c in range(X.shape[1]):
                t = q[c] - x[c]
                total += t * t
            out[i, j] = total


@njit(cache=True, nogil=True)
def elimination_tree(indptr, indices, parent, count):
    """Of a symmetric pattern (n, n) in CSC or CSR: each column's parent in the factor L, and how many entries it has.

    Column j of L has an entry in row i where a path through smaller numbers joins them; walking up from every entry
    left of the diagonal to the last column that row i has reached finds each such pair once (Liu 1990).
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


@njit(cache=True, nogil=True)
def extend_add(panel, corner, update, place):
    """front[place, place] += update, lower triangles only, where the front (f, f) is stored as its first columns,
    `panel` (f, p), and the `corner` (f - p, f - p) beside them; `place` ascends."""
    p = panel.shape[1]
    for j in range(update.shape[1]):
        column = place[j]
        if column < p:
            for i in range(j, update.shape[0]):
                panel[place[i], column] += update[i, j]
        else:
            for i in range(j, update.shape[0]):
                corner[place[i] - p, column - p] += update[i, j]
