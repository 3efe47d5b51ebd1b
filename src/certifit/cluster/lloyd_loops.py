"""Compiled loops of one Lloyd pass over a block of dense rows: give each row its nearest centre, add up the clusters.

The textbook pass computes every distance |x - c| and adds up every row. This one computes few distances and adds few
rows, yet labels and sums have the same bits: each shortcut is taken only where a proved bound leaves no doubt.

    step  function          what it does                                           why no result changes
    1     _move_bounds      widens each row's two distance bounds by how far       triangle inequality (Hamerly 2010)
                            centres moved; lists the rows left in doubt
    2     _read_rows        measures these rows' distance to their own centre;     triangle inequality
                            copies the rows still in doubt to float32
    2'    _read_sketches    instead of 2, for wide rows: takes their coordinates   Cauchy-Schwarz inequality bounds
                            in a few leading directions                            what is outside these
    3     np.dot            multiplies these rows with all centres, in float32     its rounding error is bounded
    4     _settle           finds the nearest centre and new bounds from the       where that error leaves a doubt, it
                            products                                               sums squared differences in float64
    5     _update_sums      takes rows that changed their cluster out of one sum   sums on a grid do not round, in any
                            and adds them to another                               order (Demmel & Nguyen 2013)

Among equally near centres the lowest number wins. Arguments are records: `centres` (`ScaledCentres`), `moves`
(`CentreMoves`) and `bounds` (`RowBounds`) of `distance_bounds`, `sketch` (`RowSketch`) of `leading_directions`,
`anchors` (`Anchors`) and `exact` (`ExactSums`) of `exact_sums`; their fields are explained there.
References: Hamerly, Making k-means even faster (2010); Demmel & Nguyen, Fast reproducible floating-point summation
(2013).
"""

from typing import Any, NamedTuple

import numpy as np

from certifit.numerics.compiled.compiling import INSIDE, compiled_with

BATCH = 1024  # rows that are read, compared and added up before the next ones
TILE = 512  # rows in one product with the centres
EPS = 2.0**-52  # spacing of float64 at 1

# Reassociation lets sums of squares run in vector lanes; nothing is assumed about NaN or infinity.
_any_order: dict[str, Any] = {"fastmath": {"reassoc", "contract", "nsz"}}
vectorised, vectorised_inside = compiled_with(**_any_order), compiled_with(**_any_order, **INSIDE)
vectorised_into_loops = compiled_with(**_any_order, **INSIDE, inline="always")
# False has to be said: an inlined loop would inherit its caller's setting, and (t + grid) - grid would become t.
as_written_inside = compiled_with(fastmath=False, **INSIDE)
as_written_into_loops = compiled_with(fastmath=False, **INSIDE, inline="always")


class Scratch(NamedTuple):
    """Memory that a pass uses again for every tile of rows; position r of a tile holds row `todo[first + r]`."""

    todo: Any  # (BATCH,) numbers of the rows in doubt
    Z: Any  # (TILE, p) float32, these rows in the coordinates of the scaled centres
    products: Any  # (TILE, k) float32, Z times the scaled centres
    known: Any  # (TILE,) |x - c|² for the row's old centre c; |x - shift|² of sketched rows
    length: Any  # (TILE,) at least the scaled row's length
    offset: Any  # (k,) float32, half the centres' squared lengths plus a number that makes all values positive


@vectorised_inside
def _square_distance(X, i, C, a):
    """Return |x - c|² of row i and centre a."""
    q = 0.0
    for j in range(X.shape[1]):
        t = X[i, j] - C[a, j]
        q += t * t
    return q


@vectorised
def square_distances(X, C, out):
    """Write |x - c|², summed difference by difference, to `out` (n, k)."""
    for i in range(X.shape[0]):
        for a in range(C.shape[0]):
            out[i, a] = _square_distance(X, i, C, a)


@vectorised_into_loops
def _move_bounds(bounds, moves, todo, first, last):
    """Widen the bounds by how far centres moved; list in `todo`, and count, the rows for which they leave a doubt."""
    labels, upper, lower = bounds.labels, bounds.upper, bounds.lower
    half_gap, drift, other_drift = moves.half_gap, moves.drift, moves.other_drift
    m = 0
    for i in range(first, last):
        a = labels[i]
        low = lower[i] * (1.0 - 4.0 * EPS) - other_drift[a]
        lower[i] = low
        up = (upper[i] + drift[a]) * (1.0 + 4.0 * EPS)
        upper[i] = up
        # Written in any case and kept by counting it: no branch that the processor has to guess.
        todo[m] = i
        m += 0 if up < max(low, half_gap[a]) else 1
    return m


@vectorised_into_loops
def _read_rows(X, centres, half_gap, bounds, trust_lower, scratch, span):
    """Measure the distance of a span of rows `todo` to their own centre; copy to Z, and count, those in doubt.

    Rows that are settled leave `todo` from the span's first on. `trust_lower` says whether `lower` bounds a
    distance: where rows have a sketch, only `lower - upper` is known to bound a difference of distances.
    """
    C, shift, scale, norms = centres.centres, centres.shift, centres.scale, centres.norms
    labels, upper, lower = bounds.labels, bounds.upper, bounds.lower
    todo, Z, known, length = scratch.todo, scratch.Z, scratch.known, scratch.length
    (first, last), m = span, 0
    for r in range(first, last):
        i = todo[r]
        a = labels[i]
        q = 0.0
        for j in range(X.shape[1]):
            t = X[i, j] - C[a, j]
            q += t * t
            Z[m, j] = (X[i, j] - shift[j]) * scale
        up = np.sqrt(q) * (1.0 + (X.shape[1] + 8) * EPS)
        upper[i] = up
        if up < half_gap[a] or (trust_lower and up < lower[i]):
            continue
        size = (up + norms[a]) * scale
        # Rows out of float32's range are compared in float64: an infinite length makes every bound useless.
        if not size < 2.0**60:
            size = np.inf
            for j in range(X.shape[1]):
                Z[m, j] = 0.0
        todo[first + m], known[m], length[m] = i, q, size
        m += 1
    return m


@vectorised_into_loops
def _read_sketches(sketch, scale, scratch, first, last):
    """Copy the sketches of rows `todo[first:last]` to Z, count them."""
    Y, lengths = sketch.Y, sketch.length
    todo, Z, known, length = scratch.todo, scratch.Z, scratch.known, scratch.length
    m = last - first
    for r in range(m):
        i = todo[first + r]
        length[r] = lengths[i]
        known[r] = (lengths[i] / scale) ** 2
        for j in range(Y.shape[1]):
            Z[r, j] = Y[i, j]
    return m


@vectorised_into_loops
def _smallest_other(P, r, offset, a):
    """Return the smallest offset - P[r] at a position other than a, as bits.

    Positive floats compare like their bits, and integers compare in vectors.
    """
    kept = P[r, a]
    P[r, a] = -3e38
    best = np.int32(2**31 - 1)
    for j in range(P.shape[1]):
        v = np.float32(offset[j] - P[r, j]).view(np.int32)
        best = v if v < best else best
    P[r, a] = kept
    return best


@vectorised_into_loops
def _nearest_by_products(P, r, offset, old):
    """Return where offset - P[r] is smallest, trying `old` first, and the smallest elsewhere, as bits."""
    a = old
    while True:
        bits = _smallest_other(P, r, offset, a)
        if not bits < np.float32(offset[a] - P[r, a]).view(np.int32):
            break
        a = 0
        while np.float32(offset[a] - P[r, a]).view(np.int32) != bits:
            a += 1
    return a, bits


@vectorised_into_loops
def _shared_offset(half, reach, scratch, m):
    """Write `offset` = |c|²/2 + top, with the same top for all m rows of a tile, and return top.

    |z·c| <= |z| reach <= top, so that offset - z·c is positive.
    """
    top = 0.0
    for r in range(m):
        if scratch.length[r] < np.inf:
            top = max(top, scratch.length[r])
    top = 2.0 * reach * (top + reach)
    for j in range(half.shape[0]):
        scratch.offset[j] = half[j] + np.float32(top)
    return top


@vectorised_into_loops
def _nearest_by_differences(X, i, centres, rest, scratch, r, likely, limit):
    """Sum squared differences of row i to every centre that may be the nearest: those with top + h up to `limit`.

    Returns the nearest centre, its squared distance, and a number that no other squared distance is below. `likely`
    is the nearest by products; centres above the limit are farther than it by what their products say.
    """
    C, apart = centres.centres, centres.apart
    P, offset = scratch.products, scratch.offset
    sketched = apart.shape[0] > 0
    back = 2.0 / (centres.scale * centres.scale)  # from h to squared distances
    a, nearest, second, others, base = likely, np.inf, np.inf, np.inf, 0.0
    for j in range(P.shape[1]):
        v = np.float64(offset[j] - P[r, j]) - (rest[i] * apart[likely, j] if sketched else 0.0)
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
    return a, nearest, min(second, base + back * (others - limit))


@vectorised_into_loops
def _settle(X, centres, bounds, rest, scratch, first, m):
    """Write labels and bounds of m rows from their products with the scaled centres.

    With h = |c|²/2 - z·c, squared distances are |z|² + 2h. The products give h up to `slack` and, if they are over
    leading directions only, up to |z outside them| |c outside them|. Three cases: products of sketches decide,
    products of whole rows decide, or neither does and differences are summed.
    """
    apart = centres.apart
    P, offset, known = scratch.products, scratch.offset, scratch.known
    labels, upper, lower = bounds.labels, bounds.upper, bounds.lower
    k = P.shape[1]
    sketched = apart.shape[0] > 0
    top = _shared_offset(centres.half, centres.reach, scratch, m)
    back = 2.0 / (centres.scale * centres.scale)  # from h to squared distances
    small = (X.shape[1] + 8) * EPS
    for r in range(m):
        i = scratch.todo[first + r]
        old = labels[i]
        # 2^-24 is half the spacing of float32 at 1.
        slack = 2.0**-24 * (centres.roundings * centres.reach * scratch.length[r] + 5.0 * top) + 1e-30
        a, bits = _nearest_by_products(P, r, offset, old)
        best = np.float64(offset[a] - P[r, a])  # top + h, positive
        rival = np.float64(np.int32(bits).view(np.float32))
        limit = best + 2.0 * slack  # a centre above it is not the nearest
        clear = np.inf if sketched else rival
        if sketched:
            for j in range(k):
                v = np.float64(offset[j] - P[r, j]) - rest[i] * apart[a, j]
                clear = v if j != a and v < clear else clear
        if clear > limit and sketched:
            up = known[r] * (1.0 + small) + back * (best - top + slack + rest[i] * centres.outside)
            upper[i] = np.sqrt(max(0.0, up))
            # as far above `upper` as any other centre is farther away
            lower[i] = np.sqrt(max(0.0, up) + back * (clear - limit))
        elif clear > limit:
            here = np.float64(offset[old] - P[r, old])
            if a != old:
                upper[i] = np.sqrt(max(0.0, known[r] * (1.0 + small) + back * (best - here + 2.0 * slack)))
            lower[i] = np.sqrt(max(0.0, known[r] * (1.0 - small) + back * (rival - here - 2.0 * slack)))
        else:
            a, nearest, second = _nearest_by_differences(X, i, centres, rest, scratch, r, a, limit)
            upper[i] = np.sqrt(nearest) * (1.0 + small)
            lower[i] = np.sqrt(max(0.0, second)) * (1.0 - small)
        labels[i] = a


@as_written_into_loops
def _add_row(X, i, weight, points, a, exact):
    """Add w (x - anchor): its multiple of a coarse grid to `coarse_sums`, the rest's of a fine grid to `fine_sums`.

    Adding and subtracting 3/2 2^52 steps of a grid rounds to it. A negative weight gives the opposite multiples, so
    that it takes a row out of a sum exactly.
    """
    coarse, fine, coarse_sums, fine_sums = exact.coarse, exact.fine, exact.coarse_sums, exact.fine_sums
    for j in range(X.shape[1]):
        t = weight * (X[i, j] - points[a, j])
        whole = (t + coarse) - coarse
        left = t - whole
        coarse_sums[a, j] += whole
        fine_sums[a, j] += (left + fine) - fine


@as_written_inside
def _update_sums(rows, anchors, labels, before, first, exact, totals):
    """Bring the sums up to date with the labels of the rows from `first` on; add their weights and squares to totals.

    `before` (·,) holds these rows' labels in the pass before.
    """
    X, w = rows
    points, changed = anchors.points, anchors.changed
    square, off_grid = exact.square, exact.off_grid
    weight, sums, squares = totals
    for i in range(first, first + len(before)):
        a, b, wi = labels[i], before[i - first], w[i]
        if wi > 0.0 and (a != b or changed[a]):
            if not (changed[b] or off_grid[i]):
                _add_row(X, i, -wi, points, b, exact)
            square[i] = wi * _square_distance(X, i, points, a)
            off_grid[i] = not (wi >= exact.least and wi * square[i] <= exact.limit)
            if not off_grid[i]:
                _add_row(X, i, wi, points, a, exact)
        weight[a] += wi
        squares[a] += square[i]
        if off_grid[i]:
            for j in range(X.shape[1]):
                sums[a, j] += wi * (X[i, j] - points[a, j])


@vectorised
def assign(rows, centres, moves, bounds, sketch, anchors, exact, totals):
    """Give each row its nearest centre and add up the clusters.

    Reads rows = (X (n, d), w (n,)), `centres`, `moves` and `anchors`. Updates what is kept from pass to pass:
    `bounds`, with the labels, and `exact`. Adds to totals = (Σ w (k,), Σ w (x - anchor) (k, d),
    Σ w |x - anchor|² (k,)).
    """
    X = rows[0]
    n = X.shape[0]
    k, p = centres.small.shape
    sketched = centres.apart.shape[0] > 0
    tile = min(n, TILE)
    scratch = Scratch(
        np.empty(BATCH, np.int64),
        np.empty((tile, p), np.float32),
        np.empty((tile, k), np.float32),
        np.empty(tile),
        np.empty(tile),
        np.empty(k, np.float32),
    )
    before = np.empty(BATCH, np.int32)
    for a in range(k):
        if anchors.changed[a]:
            for j in range(X.shape[1]):
                exact.coarse_sums[a, j] = exact.fine_sums[a, j] = 0.0
    for start in range(0, n, BATCH):
        stop = min(n, start + BATCH)
        for i in range(start, stop):  # a loop: to compile the assignment of a slice takes seconds
            before[i - start] = bounds.labels[i]
        doubts = _move_bounds(bounds, moves, scratch.todo, start, stop)
        for first in range(0, doubts, tile):
            last = min(doubts, first + tile)
            if sketched:
                m = _read_sketches(sketch, centres.scale, scratch, first, last)
            else:
                m = _read_rows(X, centres, moves.half_gap, bounds, len(sketch.Y) == 0, scratch, (first, last))
            if m > 0:
                np.dot(scratch.Z[:m], centres.small.T, scratch.products[:m])
                _settle(X, centres, bounds, sketch.rest, scratch, first, m)
        _update_sums(rows, anchors, bounds.labels, before[: stop - start], start, exact, totals)
    sums = totals[1]
    for a in range(k):
        for j in range(X.shape[1]):
            sums[a, j] += exact.coarse_sums[a, j] + exact.fine_sums[a, j]
