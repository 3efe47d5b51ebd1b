"""One Lloyd pass over a block of dense rows: the nearest centre of each row, and the sums over each cluster.

Four things make it fast; none of them shows in the result, down to the last bit.

- Distance bounds (Hamerly, Making k-means even faster, 2010) settle most rows unread.
- The others meet the centres in a float32 product. Where its proved error leaves a doubt, squared differences are
  summed in float64 and the smallest wins, the lowest number among equals: a label depends on row and centres alone.
- Wide rows meet the centres in a few leading directions only. Means of many rows have little beyond these, and the
  Cauchy-Schwarz inequality bounds what that little can do.
- A row that changes its cluster is taken from one sum and added to another. Before, it is split into multiples of two
  grids, so coarse that sums of a whole block do not round: they are the same in any order (Demmel & Nguyen, Fast
  reproducible floating-point summation, 2013). Sums are about anchors, points near the centres, so that nothing
  cancels.
"""

import numpy as np
from numba import njit

BATCH = 1024  # rows that are read, compared and added up before the next ones
TILE = 512  # rows in one product with the centres
EPS = 2.0**-52
UNIT = 2.0**-24  # half the spacing of float32 at 1
BIG = np.int32(2**31 - 1)

# Reassociation lets sums of squares run in vector lanes; nothing is assumed about NaN or infinity.
SUMS = {"reassoc", "contract", "nsz"}


@njit(cache=True, nogil=True, fastmath=SUMS, error_model="numpy")
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
        bound = low[i] * (1.0 - 4.0 * EPS) - fall[a]
        low[i] = bound
        u = (up[i] + drift[a]) * (1.0 + 4.0 * EPS)
        up[i] = u
        todo[m] = i
        m += 0 if u < max(bound, near[a]) else 1
    return m


@njit(cache=True, nogil=True, fastmath=SUMS, error_model="numpy", inline="always")
def _gather(X, C, shift, scale, norms, near, trust, labels, up, low, todo, first, last, Z, own, size):
    """Measure these rows' distance to their own centre; shift and scale those still in doubt into Z.

    Writes |x - c|² to `own`, at least the scaled row's length to `size`; compacts `todo[first:]`; returns how many.
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
        if u < near[a] or (trust and u < low[i]):
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
def _rival(P, r, offset, a):
    """Smallest offset - P[r] away from position a, as bits: positive numbers compare like them, and in vectors."""
    kept = P[r, a]
    P[r, a] = -3e38
    best = BIG
    for j in range(P.shape[1]):
        v = np.float32(offset[j] - P[r, j]).view(np.int32)
        best = v if v < best else best
    P[r, a] = kept
    return best


@njit(cache=True, nogil=True, fastmath=SUMS, error_model="numpy", inline="always")
def _settle(
    X, C, half, scale, reach, steps, outside, apart, rest, labels, up, low, todo, first, m, P, own, size,
    offset,
):  # fmt: skip
    """Labels and bounds of m rows from their products P (m, k) with the scaled centres.

    With h = |c|²/2 - z·c, squared distances are |z|² + 2h. The products give h up to `slack` and, if they are over
    leading directions only, up to |z outside them| |c outside them|. `own` is |x - c|² for the row's old centre or,
    in that case, |x - shift|².
    """
    k = P.shape[1]
    wide = apart.shape[0] > 0
    top = 0.0
    for r in range(m):
        if size[r] < np.inf:
            top = max(top, size[r])
    top = 2.0 * reach * (top + reach)
    for j in range(k):
        offset[j] = half[j] + np.float32(top)
    back = 2.0 / (scale * scale)  # from h to squared distances
    small = (X.shape[1] + 8) * EPS
    for r in range(m):
        i = todo[first + r]
        old = labels[i]
        slack = UNIT * (steps * reach * size[r] + 5.0 * top) + 1e-30
        a = old
        while True:
            bits = _rival(P, r, offset, a)
            if not bits < np.float32(offset[a] - P[r, a]).view(np.int32):
                break
            a = 0
            while np.float32(offset[a] - P[r, a]).view(np.int32) != bits:
                a += 1
        best = np.float64(offset[a] - P[r, a])  # top + h, positive
        rival = np.float64(np.int32(bits).view(np.float32))
        limit = best + 2.0 * slack  # a centre above it is not the nearest
        clear = np.inf if wide else rival
        if wide:
            for j in range(k):
                v = np.float64(offset[j] - P[r, j]) - rest[i] * apart[a, j]
                clear = v if j != a and v < clear else clear
        if clear > limit and wide:
            u = own[r] * (1.0 + small) + back * (best - top + slack + rest[i] * outside)
            up[i] = np.sqrt(max(0.0, u))
            low[i] = np.sqrt(max(0.0, u) + back * (clear - limit))  # as far above `up` as any other centre is away
        elif clear > limit:
            here = np.float64(offset[old] - P[r, old])
            if a != old:
                up[i] = np.sqrt(max(0.0, own[r] * (1.0 + small) + back * (best - here + 2.0 * slack)))
            low[i] = np.sqrt(max(0.0, own[r] * (1.0 - small) + back * (rival - here - 2.0 * slack)))
        else:
            nearest, second, others, likely, base = np.inf, np.inf, np.inf, a, 0.0
            for j in range(k):
                v = np.float64(offset[j] - P[r, j]) - (rest[i] * apart[likely, j] if wide else 0.0)
                if v > limit:
                    others = v if v < others else others
                    continue
                q = _square_distance(X, i, C, j)
                base = q if j == likely else base
                if q < nearest:
                    second = nearest
                    nearest = q
                    a = j
                else:
                    second = q if q < second else second
            up[i] = np.sqrt(nearest) * (1.0 + small)
            low[i] = np.sqrt(max(0.0, min(second, base + back * (others - limit)))) * (1.0 - small)
        labels[i] = a


# False has to be said: else the caller's way is inherited, and (t + coarse) - coarse becomes t.
@njit(cache=True, nogil=True, fastmath=False, error_model="numpy", inline="always")
def _add(X, i, wi, anchors, a, coarse, fine, major, minor):
    """Add w (x - anchor): its multiple of a coarse grid to `major`, that of a fine grid in what is left to `minor`.

    Adding and taking away 3/2 2^52 steps of a grid rounds to it, and to the opposite where w is negative.
    """
    for j in range(X.shape[1]):
        t = wi * (X[i, j] - anchors[a, j])
        whole = (t + coarse) - coarse
        left = t - whole
        major[a, j] += whole
        minor[a, j] += (left + fine) - fine


@njit(cache=True, nogil=True, fastmath=False, error_model="numpy")
def _add_up(
    X, w, anchors, moved, labels, before, first, last, coarse, fine, limit, least, major, minor, square, stray,
    sums, weight, squares,
):  # fmt: skip
    """Bring the sums of a run of rows up to date with their labels; add up its weights and squares."""
    for i in range(first, last):
        a, b, wi = labels[i], before[i - first], w[i]
        if wi > 0.0 and (a != b or moved[a]):
            if not (moved[b] or stray[i]):
                _add(X, i, -wi, anchors, b, coarse, fine, major, minor)
            square[i] = wi * _square_distance(X, i, anchors, a)
            stray[i] = not (wi >= least and wi * square[i] <= limit)
            if not stray[i]:
                _add(X, i, wi, anchors, a, coarse, fine, major, minor)
        weight[a] += wi
        squares[a] += square[i]
        if stray[i]:
            for j in range(X.shape[1]):
                sums[a, j] += wi * (X[i, j] - anchors[a, j])


@njit(cache=True, nogil=True, fastmath=SUMS, error_model="numpy")
def assign(
    X, w, C, anchors, moved, shift, scale, small, half, norms, reach, steps, near, drift, fall, outside, apart,
    labels, up, low, sketch, length, rest, coarse, fine, limit, least,
    major, minor, square, stray, sums, weight, squares,
):  # fmt: skip
    """Give each row its nearest centre; add up the clusters.

    Rows X (n, d), w (n,). Centres C (k, d) and, in the coordinates z = (x - shift) * scale, `half` (k,) half their
    squared lengths and `reach` at least their greatest length; `norms` (k,) is at least |C - shift|. `small` (k, p)
    are the scaled centres in float32, p = d, or their coordinates in p leading directions; `steps` is how many
    roundings a product takes. In the second case `outside` is at least the length of any centre outside these
    directions, `apart` (k, k) at least that of their differences (else (0, 0)), `sketch` (n, p) are the rows' own
    coordinates, `length` (n,) their lengths and `rest` (n,) at least their lengths outside.
    `near` (k,) is at most half the distance to the closest other centre; `drift` (k,) at least how far each centre
    has moved since the bounds were set, `fall` (k,) the farthest that any other has. Sums are about `anchors` (k, d),
    of which those marked `moved` (k,) have changed.
    Kept from pass to pass: `labels`; bounds on the distances to the own centre, `up`, and to any other, `low` (n,)
    (with a sketch, `low - up` bounds their difference); the sums `major` and `minor` (k, d) on the grids of `coarse`
    and `fine`; each row's part of the squares, `square` (n,); and which rows are `stray` (n,), of less weight than
    `least` or too far out, (w |x - anchor|)² above `limit`: these fit no grid and are added in every pass.
    Adds Σ w (x - anchor) to `sums` (k, d), Σ w to `weight` (k,), Σ w |x - anchor|² to `squares` (k,).
    """
    n = X.shape[0]
    k, p = small.shape
    wide = apart.shape[0] > 0
    tile = min(n, TILE)
    todo = np.empty(BATCH, np.int64)
    before = np.empty(BATCH, np.int32)
    Z = np.empty((tile, p), np.float32)
    P = np.empty((tile, k), np.float32)
    own = np.empty(tile)
    size = np.empty(tile)
    offset = np.empty(k, np.float32)
    for a in range(k):
        if moved[a]:
            major[a] = 0.0
            minor[a] = 0.0
    for start in range(0, n, BATCH):
        stop = min(n, start + BATCH)
        before[: stop - start] = labels[start:stop]
        doubts = _undecided(start, stop, labels, up, low, drift, fall, near, todo)
        for first in range(0, doubts, tile):
            last = min(doubts, first + tile)
            if wide:
                m = last - first
                for r in range(m):
                    i = todo[first + r]
                    size[r] = length[i]
                    own[r] = (length[i] / scale) ** 2
                    for j in range(p):
                        Z[r, j] = sketch[i, j]
            else:
                trust = sketch.shape[0] == 0  # else `low` is known relative to `up` only
                m = _gather(X, C, shift, scale, norms, near, trust, labels, up, low, todo, first, last, Z, own, size)
            if m > 0:
                np.dot(Z[:m], small.T, P[:m])
                _settle(
                    X, C, half, scale, reach, steps, outside, apart, rest, labels, up, low, todo, first, m, P,
                    own, size, offset,
                )  # fmt: skip
        _add_up(
            X, w, anchors, moved, labels, before, start, stop, coarse, fine, limit, least, major, minor,
            square, stray, sums, weight, squares,
        )  # fmt: skip
    for a in range(k):
        for j in range(X.shape[1]):
            sums[a, j] += major[a, j] + minor[a, j]
