"""Compiled loops of naive Bayes: sums by class in one pass over a block, and scores of its rows under every class.

They write into arrays that the caller gives and make no temporary copies of the block. Four rows are taken at a time,
so that the table of sums (or of parameters) is read once for four rows; the rows of a class follow one another, so
that its sums stay in the nearest cache. Where a block may have missing entries (NaN) there is a second, slower loop
whose name ends in `of_entries`: the fast one is tried first, and a NaN in its result says that the second is needed.

| columns | sums | scores |
|---|---|---|
| Gaussian | `add_moments`, `add_moments_of_entries` | `squared_distances`, `squared_distances_of_entries` |
| Bernoulli | `add_threshold_counts`, `add_whole_counts` | `threshold_products`, `threshold_scores_of_entries` |
| categorical | `add_category_counts` | `category_scores` |
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from certifit.numerics.compiled.compiling import called_from_python, compiled_with, twin_of
from certifit.numerics.compiled.whole_arrays import add_one_after_another, in_fours

# Scores are sums over columns. Allowing any order of addition lets the compiler use vector instructions; NaN and
# infinities keep their meaning.
ANY_ORDER = {"reassoc", "contract"}


class RowsByClass(NamedTuple):
    """The rows of a block with a positive weight, class after class."""

    order: NDArray[np.int64]  # row numbers, grouped by class  (at most n,)
    start: NDArray[np.int64]  # where each class begins in `order`, and where the last one ends  (k + 1,)


@called_from_python
def group_rows_by_class(y, w, k):
    """Group the numbers of the rows with a positive weight by their class 0 … k-1, as `RowsByClass`."""
    start = np.zeros(k + 1, np.int64)
    for i in range(y.shape[0]):
        if w[i] > 0:
            start[y[i] + 1] += 1
    for c in range(k):
        start[c + 1] += start[c]
    order = np.empty(start[k], np.int64)
    place = start[:k].copy()
    for i in range(y.shape[0]):
        if w[i] > 0:
            order[place[y[i]]] = i
            place[y[i]] += 1
    return RowsByClass(order, start)


@twin_of(group_rows_by_class)
def _group_rows_of_arrays(y, w, k):
    kept = np.flatnonzero(w > 0)
    classes = y[kept].astype(np.int64)
    start = np.concatenate(([0], np.cumsum(np.bincount(classes, minlength=k))))
    return RowsByClass(kept[np.argsort(classes, kind="stable")], start)


@called_from_python
def add_moments(X, w, groups, shift, z, zz):
    """Add Σ w (x - c) to z and Σ w (x - c)² to zz (k, d), c the row of `shift` (k, d) of a class.

    A missing entry makes the sums of its class and column NaN.
    """
    order, start = groups
    k, d = shift.shape
    for c in range(k):
        end = start[c + 1]
        i = start[c]
        s, zc, zzc = shift[c], z[c], zz[c]
        while i + 4 <= end:
            a, b, e, f = X[order[i]], X[order[i + 1]], X[order[i + 2]], X[order[i + 3]]
            wa, wb, we, wf = w[order[i]], w[order[i + 1]], w[order[i + 2]], w[order[i + 3]]
            for j in range(d):
                ta, tb, te, tf = a[j] - s[j], b[j] - s[j], e[j] - s[j], f[j] - s[j]
                zc[j] += (wa * ta + wb * tb) + (we * te + wf * tf)
                zzc[j] += (wa * ta * ta + wb * tb * tb) + (we * te * te + wf * tf * tf)
            i += 4
        while i < end:
            a, wa = X[order[i]], w[order[i]]
            for j in range(d):
                ta = a[j] - s[j]
                zc[j] += wa * ta
                zzc[j] += wa * ta * ta
            i += 1


@twin_of(add_moments)
def _add_moments_of_arrays(X, w, groups, shift, z, zz):
    order, start = groups
    for c in range(len(shift)):
        rows = order[start[c] : start[c + 1]]
        t = X[rows] - shift[c]
        first = w[rows, None] * t
        add_one_after_another(z[c], in_fours(first))
        add_one_after_another(zz[c], in_fours(first * t))


@called_from_python
def add_moments_of_entries(X, w, groups, shift, weight, z, zz):
    """As `add_moments`, leaving missing entries out; also add Σ w of the entries that are there to weight (k, d)."""
    order, start = groups
    k, d = shift.shape
    for c in range(k):
        for i in range(start[c], start[c + 1]):
            row, wi = X[order[i]], w[order[i]]
            for j in range(d):
                if not np.isnan(row[j]):
                    t = row[j] - shift[c, j]
                    weight[c, j] += wi
                    z[c, j] += wi * t
                    zz[c, j] += wi * t * t


@compiled_with(fastmath=ANY_ORDER)
def squared_distances(X, mean, root, out):
    """Set out (n, k) to Σ_j [(x - mean) root]² for means and roots (k, d); NaN for a row with a missing entry."""
    n, d = X.shape
    last = n - 1  # computed again in place of rows that do not exist where n is no multiple of four
    for i in range(0, n, 4):
        i_b, i_e, i_f = min(i + 1, last), min(i + 2, last), min(i + 3, last)
        a, b, e, f = X[i], X[i_b], X[i_e], X[i_f]
        for c in range(mean.shape[0]):
            m, r = mean[c], root[c]
            sa, sb, se, sf = 0.0, 0.0, 0.0, 0.0
            for j in range(d):
                ta, tb = (a[j] - m[j]) * r[j], (b[j] - m[j]) * r[j]
                te, tf = (e[j] - m[j]) * r[j], (f[j] - m[j]) * r[j]
                sa += ta * ta
                sb += tb * tb
                se += te * te
                sf += tf * tf
            out[i, c], out[i_b, c], out[i_e, c], out[i_f, c] = sa, sb, se, sf


@called_from_python
def squared_distances_of_entries(X, mean, root, log_norm, out):
    """Set out (n, k) to Σ_j [(x - mean) root]² + log_norm (k, d) over the entries of a row that are there."""
    for i in range(X.shape[0]):
        for c in range(mean.shape[0]):
            s = 0.0
            for j in range(X.shape[1]):
                if not np.isnan(X[i, j]):
                    t = (X[i, j] - mean[c, j]) * root[c, j]
                    s += t * t + log_norm[c, j]
            out[i, c] = s


@called_from_python
def add_threshold_counts(X, w, groups, t, above, below, odd):
    """Add Σ w [x > t] to above and Σ w [x <= t] to below (k, d).

    odd (d,) becomes NaN in columns with an entry that is missing or infinite.
    """
    order, start = groups
    d = X.shape[1]
    for c in range(above.shape[0]):
        end = start[c + 1]
        i = start[c]
        up, down = above[c], below[c]
        while i + 4 <= end:
            a, b, e, f = X[order[i]], X[order[i + 1]], X[order[i + 2]], X[order[i + 3]]
            wa, wb, we, wf = w[order[i]], w[order[i + 1]], w[order[i + 2]], w[order[i + 3]]
            for j in range(d):
                up[j] += ((wa if a[j] > t else 0.0) + (wb if b[j] > t else 0.0)) + (
                    (we if e[j] > t else 0.0) + (wf if f[j] > t else 0.0)
                )
                odd[j] += ((a[j] - a[j]) + (b[j] - b[j])) + ((e[j] - e[j]) + (f[j] - f[j]))
                down[j] += ((wa if a[j] <= t else 0.0) + (wb if b[j] <= t else 0.0)) + (
                    (we if e[j] <= t else 0.0) + (wf if f[j] <= t else 0.0)
                )
            i += 4
        while i < end:
            a, wa = X[order[i]], w[order[i]]
            for j in range(d):
                up[j] += wa if a[j] > t else 0.0
                down[j] += wa if a[j] <= t else 0.0
                odd[j] += a[j] - a[j]
            i += 1


@twin_of(add_threshold_counts)
def _add_threshold_counts_of_arrays(X, w, groups, t, above, below, odd):
    order, start = groups
    for c in range(len(above)):
        rows = order[start[c] : start[c + 1]]
        x, weight = X[rows].astype(np.float64), w[rows, None]
        add_one_after_another(above[c], in_fours(np.where(x > t, weight, 0.0)))
        add_one_after_another(below[c], in_fours(np.where(x <= t, weight, 0.0)))
        odd[~np.isfinite(x).all(axis=0)] = np.nan


@compiled_with(fastmath=ANY_ORDER)
def add_whole_counts(X, w, groups, t, above):
    """Add Σ w [x > t] to above (k, d); return the sum of all entries, no number where one of them is not finite.

    Of whole weights every order of addition gives the same bits, and what is not above t is the rest.
    """
    order, start = groups
    total = 0.0
    for c in range(above.shape[0]):
        i, end, up = start[c], start[c + 1], above[c]
        while i + 4 <= end:
            a, b, e, f = X[order[i]], X[order[i + 1]], X[order[i + 2]], X[order[i + 3]]
            wa, wb, we, wf = w[order[i]], w[order[i + 1]], w[order[i + 2]], w[order[i + 3]]
            for j in range(X.shape[1]):
                up[j] += ((wa if a[j] > t else 0.0) + (wb if b[j] > t else 0.0)) + (
                    (we if e[j] > t else 0.0) + (wf if f[j] > t else 0.0)
                )
                total += (a[j] + b[j]) + (e[j] + f[j])
            i += 4
        while i < end:
            a, wa = X[order[i]], w[order[i]]
            for j in range(X.shape[1]):
                up[j] += wa if a[j] > t else 0.0
                total += a[j]
            i += 1
    return total


@compiled_with(fastmath=ANY_ORDER)
def threshold_products(X, t, D, out):
    """Set out (n, k) to Σ_j D[c, j] over the x > t; NaN for a row with an entry that is missing or infinite.

    Four rows and five classes at a time: their twenty sums stay in registers, and what is loaded is used often.
    """
    n, d = X.shape
    k = D.shape[0]
    flat, ahead = X.reshape(-1), 0.0
    for i in range(0, n, 4):
        i_b, i_e, i_f = min(i + 1, n - 1), min(i + 2, n - 1), min(i + 3, n - 1)
        a, b, e, f = X[i], X[i_b], X[i_e], X[i_f]
        # One entry of each 64 bytes of the next rows: memory sends them while these rows are worked on.
        for j in range((i + 4) * d, min(i + 8, n) * d, 8):
            ahead = max(ahead, flat[j])
        for c in range(0, k, 5):
            c_q, c_u, c_v, c_z = min(c + 1, k - 1), min(c + 2, k - 1), min(c + 3, k - 1), min(c + 4, k - 1)
            p, q, u, v, z = D[c], D[c_q], D[c_u], D[c_v], D[c_z]
            sa, ap, aq, au, av, az = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
            sb, bp, bq, bu, bv, bz = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
            se, ep, eq, eu, ev, ez = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
            sf, fp, fq, fu, fv, fz = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
            for j in range(d):
                x, sa = (1.0 if a[j] > t else 0.0), sa + a[j]
                ap += x * p[j]
                aq += x * q[j]
                au += x * u[j]
                av += x * v[j]
                az += x * z[j]
                x, sb = (1.0 if b[j] > t else 0.0), sb + b[j]
                bp += x * p[j]
                bq += x * q[j]
                bu += x * u[j]
                bv += x * v[j]
                bz += x * z[j]
                x, se = (1.0 if e[j] > t else 0.0), se + e[j]
                ep += x * p[j]
                eq += x * q[j]
                eu += x * u[j]
                ev += x * v[j]
                ez += x * z[j]
                x, sf = (1.0 if f[j] > t else 0.0), sf + f[j]
                fp += x * p[j]
                fq += x * q[j]
                fu += x * u[j]
                fv += x * v[j]
                fz += x * z[j]
            # 0, or NaN for a row with an entry that is not finite.
            sa, sb, se, sf = sa - sa, sb - sb, se - se, sf - sf
            out[i, c], out[i_b, c], out[i_e, c], out[i_f, c] = ap + sa, bp + sb, ep + se, fp + sf
            out[i, c_q], out[i_b, c_q], out[i_e, c_q], out[i_f, c_q] = aq + sa, bq + sb, eq + se, fq + sf
            out[i, c_u], out[i_b, c_u], out[i_e, c_u], out[i_f, c_u] = au + sa, bu + sb, eu + se, fu + sf
            out[i, c_v], out[i_b, c_v], out[i_e, c_v], out[i_f, c_v] = av + sa, bv + sb, ev + se, fv + sf
            out[i, c_z], out[i_b, c_z], out[i_e, c_z], out[i_f, c_z] = az + sa, bz + sb, ez + se, fz + sf
    return ahead  # so that the compiler leaves these reads in


@called_from_python
def threshold_scores_of_entries(X, t, above, below, out):
    """Set out (n, k) to Σ_j above (k, d) over the x > t and below over the x <= t; both may be -inf."""
    for i in range(X.shape[0]):
        for c in range(above.shape[0]):
            s = 0.0
            for j in range(X.shape[1]):
                s += above[c, j] if X[i, j] > t else (below[c, j] if X[i, j] <= t else 0.0)
            out[i, c] = s


@called_from_python
def add_category_counts(X, y, w, first, counts):
    """Add w to counts[y, first_j + x_j] for every entry x_j that is not missing; counts is (k, Σ categories)."""
    for i in range(X.shape[0]):
        if w[i] > 0:
            for j in range(X.shape[1]):
                if not np.isnan(X[i, j]):
                    counts[y[i], first[j] + np.int64(X[i, j])] += w[i]


@twin_of(add_category_counts)
def _add_category_counts_of_arrays(X, y, w, first, counts):
    rows, columns = np.nonzero(~np.isnan(X) & (w > 0)[:, None])
    np.add.at(counts, (y[rows], first[columns] + X[rows, columns].astype(np.int64)), w[rows])


@called_from_python
def category_scores(X, first, table, out):
    """Add Σ_j table[first_j + x_j] to out (n, k) over the entries that are there; table is (Σ categories, k)."""
    for i in range(X.shape[0]):
        for j in range(X.shape[1]):
            if not np.isnan(X[i, j]):
                row = table[first[j] + np.int64(X[i, j])]
                for c in range(out.shape[1]):
                    out[i, c] += row[c]
