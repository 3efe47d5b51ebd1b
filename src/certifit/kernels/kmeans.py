"""One Lloyd pass over a block of dense rows: the nearest centre of each row, and the sums over each cluster.

Three things make it fast; none of them shows in the result, down to the last bit.

- Distance bounds settle most rows unread: one lower bound per row (Hamerly 2010) or, where rows are wide, one per row
  and centre (Elkan 2003). They are kept on the safe side of rounding.
- The other rows meet the centres in a float32 product. Where its proved error leaves a doubt, squared differences are
  summed in float64 and the smallest wins, the lowest number among equals: a label depends on row and centres alone.
- Rows come in cells. A cell's sum for a cluster is kept until a row enters or leaves the cluster, and is then taken
  afresh in the order of the rows. Sums are about anchors, points near the centres, so that nothing cancels.
"""

import numpy as np
from numba import njit

TILE = 512  # rows in one product with the centres
EPS = 2.0**-52
UNIT = 2.0**-24  # half the spacing of float32 at 1
BIG = np.int32(2**31 - 1)

# Reassociation lets sums of squares run in vector lanes; nothing is assumed about NaN or infinity.
SUMS = {"reassoc", "contract", "nsz"}


@njit(cache=True, nogil=True, fastmath=SUMS, error_model="numpy", inline="always")
def _square_distance(X, i, C, a):
    q = 0.0
    for j in range(X.shape[1]):
        t = X[i, j] - C[a, j]
        q += t * t
    return q


@njit(cache=True, nogil=True, fastmath=SUMS, error_model="numpy")
def square_distances(X, C, out):
    """out (n, k): |x - c|², summed difference by difference."""
    for i in range(X.shape[0]):
        for a in range(C.shape[0]):
            out[i, a] = _square_distance(X, i, C, a)


@njit(cache=True, nogil=True, fastmath=SUMS, error_model="numpy", inline="always")
def _undecided(first, last, labels, up, low, drift, fall, near, todo):
    """Move the bounds by how far the centres moved; list the rows for which they leave a doubt. Returns how many."""
    m = 0
    for i in range(first, last):
        a = labels[i]
        if low.shape[1] == 1:
            bound = low[i, 0] * (1.0 - 4.0 * EPS) - fall[a]
            low[i, 0] = bound
        else:
            bound = np.inf
            for j in range(low.shape[1]):
                t = low[i, j] * (1.0 - 4.0 * EPS) - drift[j]
                low[i, j] = t
                bound = t if t < bound else bound
        u = (up[i] + drift[a]) * (1.0 + 4.0 * EPS)
        up[i] = u
        todo[m] = i
        m += 0 if u < max(bound, near[a]) else 1
    return m


@njit(cache=True, nogil=True, fastmath=SUMS, error_model="numpy", inline="always")
def _gather(X, C, shift, scale, norms, near, labels, up, low, todo, first, last, Z, own, size):
    """Measure these rows' distance to their own centre; shift and scale those still in doubt into Z.

    Writes |x - c|² to `own` and a bound on the scaled row's length to `size`; compacts `todo[first:]`; returns how many.
    """
    m = 0
    for r in range(first, last):
        i = todo[r]
        a = labels[i]
        q = 0.0
        for j in range(X.shape[1]):
            t = X[i, j] - C[a, j]
            q += t * t
            Z[m, j] = (X[i, j] - shift[j]) * scale
        u = np.sqrt(q) * (1.0 + (X.shape[1] + 8) * EPS)
        up[i] = u
        bound = near[a]
        least = np.inf
        for j in range(low.shape[1]):
            t = low[i, j]
            least = t if t < least else least
        if u < max(bound, least):
            continue
        length = (u + norms[a]) * scale
        if not length < 2.0**60:  # out of float32's range: told apart in float64
            length = np.inf
            for j in range(X.shape[1]):
                Z[m, j] = 0.0
        todo[first + m], own[m], size[m] = i, q, length
        m += 1
    return m


@njit(cache=True, nogil=True, fastmath=SUMS, error_model="numpy", inline="always")
def _smallest(P, bits, r, offset, guess):
    """Position of the smallest offset - P[r]. All are positive, so that they compare like their bits, in vectors."""
    k = P.shape[1]
    for j in range(k):
        P[r, j] = offset[j] - P[r, j]
    best = BIG
    for j in range(k):
        v = bits[r, j]
        best = v if v < best else best
    a = guess
    if bits[r, a] != best:
        a = 0
        while bits[r, a] != best:
            a += 1
    return a


@njit(cache=True, nogil=True, fastmath=SUMS, error_model="numpy", inline="always")
def _settle(X, C, half, reach, scale, labels, up, low, todo, first, m, P, bits, own, size, offset, dirty, start, R):
    """Labels and bounds of m rows from their products P (m, k) with the scaled centres."""
    k = P.shape[1]
    d = X.shape[1]
    top = 0.0
    for r in range(m):
        if size[r] < np.inf:
            top = max(top, size[r])
    top = 2.0 * reach * (top + reach)
    for j in range(k):
        offset[j] = half[j] + np.float32(top)
    back = 2.0 / (scale * scale)  # from these half squares to squared distances
    for r in range(m):
        i = todo[first + r]
        # |(offset - P) - (top + |c|²/2 - z·c)| <= slack, for any order of summation in the product
        slack = UNIT * ((d + 8) * reach * size[r] + 5.0 * top)
        if d >= 2**20:
            slack = np.inf
        old = labels[i]
        a = _smallest(P, bits, r, offset, old)
        best = np.float64(P[r, a])
        here = np.float64(P[r, old])
        limit = best + 2.0 * slack
        base = own[r] * (1.0 - (d + 8) * EPS) - back * (here + 2.0 * slack)
        bits[r, a] = BIG
        second = BIG
        for j in range(k):
            v = bits[r, j]
            second = v if v < second else second
        bits[r, a] = second
        next_best = np.float64(P[r, a]) if k > 1 else np.inf
        P[r, a] = best
        rival = next_best
        if next_best > limit:
            if a != old:
                q = own[r] * (1.0 + (d + 8) * EPS) + back * (best - here + 2.0 * slack)
                up[i] = np.sqrt(q)
        else:
            rival = best
            nearest = np.inf
            for j in range(k):
                if not P[r, j] > limit:
                    q = _square_distance(X, i, C, j)
                    if q < nearest:
                        nearest = q
                        a = j
            up[i] = np.sqrt(nearest) * (1.0 + (d + 8) * EPS)
        if low.shape[1] == 1:
            low[i, 0] = np.sqrt(max(0.0, base + back * rival))
        else:
            for j in range(k):
                low[i, j] = np.sqrt(max(0.0, base + back * P[r, j]))
            low[i, a] = np.inf
        if a != old:
            labels[i] = a
            cell = (i - start) // R
            dirty[cell, a] = True
            dirty[cell, old] = True


@njit(cache=True, nogil=True, fastmath=SUMS, error_model="numpy", inline="always")
def _add_up(X, w, anchors, labels, first, last, cell, dirty, cells, counts, squares, sums, weight, square):
    """Renew the sums of a cell's clusters that changed; add the cell's sums to the block's."""
    k, d = anchors.shape
    some = False
    for a in range(k):
        if dirty[a]:
            some = True
            counts[cell, a] = 0.0
            squares[cell, a] = 0.0
            for j in range(d):
                cells[cell, a, j] = 0.0
    if some:
        for i in range(first, last):
            a = labels[i]
            if dirty[a]:
                wi = w[i]
                q = 0.0
                for j in range(d):
                    t = X[i, j] - anchors[a, j]
                    cells[cell, a, j] += wi * t
                    q += t * t
                counts[cell, a] += wi
                squares[cell, a] += wi * q
    for a in range(k):
        if counts[cell, a] > 0.0:
            weight[a] += counts[cell, a]
            square[a] += squares[cell, a]
            for j in range(d):
                sums[a, j] += cells[cell, a, j]


@njit(cache=True, nogil=True, fastmath=SUMS, error_model="numpy")
def assign(
    X, w, C, anchors, moved, shift, scale, small, half, norms, reach, near, drift, fall,
    labels, up, low, cells, counts, squares, R, sums, weight, square,
):  # fmt: skip
    """Give each row its nearest centre; add up the clusters.

    Rows X (n, d), w (n,). Centres C (k, d); `small` (k, d) float32 are (C - shift) * scale, `half` (k,) half their
    squared lengths, `reach` the greatest length, below 1; `norms` (k,) bounds |C - shift|; `near` (k,) is at most half
    the distance to the closest other centre; `drift` (k,) is how far each centre has moved since the bounds were set
    and `fall` (k,) the farthest that any other has. Sums are about `anchors` (k, d), of which those marked `moved` (k,)
    have changed.
    Kept from pass to pass: `labels`, `up` (n,), `low` (n, 1 or k), and for each cell of R rows `cells` (·, k, d),
    `counts`, `squares` (·, k).
    Adds Σ w (x - anchor) to `sums` (k, d), Σ w to `weight` (k,), Σ w |x - anchor|² to `square` (k,).
    """
    n, d = X.shape
    k = C.shape[0]
    batch = max(R, TILE)
    rows = min(n, TILE)
    todo = np.empty(batch, np.int64)
    Z = np.empty((rows, d), np.float32)
    P = np.empty((rows, k), np.float32)
    bits = P.view(np.int32)
    own = np.empty(rows)
    size = np.empty(rows)
    offset = np.empty(k, np.float32)
    dirty = np.empty((batch // R, k), np.bool_)
    for start in range(0, n, batch):
        stop = min(n, start + batch)
        for cell in range(dirty.shape[0]):
            for a in range(k):
                dirty[cell, a] = moved[a]
        doubts = _undecided(start, stop, labels, up, low, drift, fall, near, todo)
        for first in range(0, doubts, TILE):
            last = min(doubts, first + TILE)
            m = _gather(X, C, shift, scale, norms, near, labels, up, low, todo, first, last, Z, own, size)
            if m > 0:
                np.dot(Z[:m], small.T, P[:m])
                _settle(
                    X, C, half, reach, scale, labels, up, low, todo, first, m, P, bits, own, size, offset, dirty, start, R
                )  # fmt: skip
        for first in range(start, stop, R):
            cell = first // R
            _add_up(
                X, w, anchors, labels, first, min(stop, first + R), cell, dirty[cell - start // R],
                cells, counts, squares, sums, weight, square,
            )  # fmt: skip
