"""Sums by class in one pass over a block, and scores against every class, without temporary copies.

Four rows go together, so that the table of sums (or of parameters) is read once for four rows; within a class rows
are consecutive, so that its sums stay in the nearest cache. A missing entry (NaN) is left out.
"""

import numpy as np
from numba import njit

# Scores are sums over columns: allowed in any order, they vectorise. NaN and infinities keep their meaning.
ANY_ORDER = {"reassoc", "contract"}


@njit(cache=True, nogil=True)
def by_class(y, w, k):
    """Row numbers grouped by class (<= n,), and where each class begins (k + 1,); rows without weight left out."""
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
    return order, start


@njit(cache=True, nogil=True)
def class_moments(X, w, order, start, shift, z, zz):
    """z += Σ w (x - c),  zz += Σ w (x - c)²  by class, about its own shift c (k, d). NaN anywhere gives NaN."""
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


@njit(cache=True, nogil=True)
def class_moments_with_holes(X, w, order, start, shift, weight, z, zz):
    """As `class_moments`, each column over the rows that have it; weight += Σ w of those (k, d)."""
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


@njit(cache=True, nogil=True, fastmath=ANY_ORDER)
def gaussian_scores(X, mean, root, out):
    """out (n, k) = Σ_j [(x - mean) root]²; NaN for a row with a hole."""
    n, d = X.shape
    last = n - 1  # stands in for the rows that the last four lack
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


@njit(cache=True, nogil=True)
def gaussian_scores_with_holes(X, mean, root, log_norm, out):
    """out (n, k) = Σ_j [(x - mean) root]² + log_norm over the columns a row has."""
    for i in range(X.shape[0]):
        for c in range(mean.shape[0]):
            s = 0.0
            for j in range(X.shape[1]):
                if not np.isnan(X[i, j]):
                    t = (X[i, j] - mean[c, j]) * root[c, j]
                    s += t * t + log_norm[c, j]
            out[i, c] = s


@njit(cache=True, nogil=True)
def class_threshold_counts(X, w, order, start, t, above, below, odd):
    """above += Σ w [x > t],  below += Σ w [x <= t]  by class (k, d); odd (d,) is NaN where an x is not finite."""
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


@njit(cache=True, nogil=True, fastmath=ANY_ORDER)
def threshold_products(X, t, D, out):
    """out (n, k) = Σ_j D[c, j] where x > t; NaN for a row with an x that is not finite."""
    n, d = X.shape
    k = D.shape[0]
    B = np.empty((4, d))  # four rows as 0 and 1, once for all classes
    holes = np.zeros(4)
    for i in range(0, n, 4):
        for r in range(4):
            row, b = X[min(i + r, n - 1)], B[r]
            total = 0.0
            for j in range(d):
                b[j] = 1.0 if row[j] > t else 0.0
                total += row[j]
            holes[r] = total - total  # 0, or NaN
        a, b, e, f = B[0], B[1], B[2], B[3]
        i_b, i_e, i_f = min(i + 1, n - 1), min(i + 2, n - 1), min(i + 3, n - 1)
        for c in range(0, k, 2):  # two classes at a time: each 0 or 1 is loaded half as often
            c_q = min(c + 1, k - 1)
            p, q = D[c], D[c_q]
            sa, sb, se, sf = holes[0], holes[1], holes[2], holes[3]
            ta, tb, te, tf = sa, sb, se, sf
            for j in range(d):
                sa += a[j] * p[j]
                sb += b[j] * p[j]
                se += e[j] * p[j]
                sf += f[j] * p[j]
                ta += a[j] * q[j]
                tb += b[j] * q[j]
                te += e[j] * q[j]
                tf += f[j] * q[j]
            out[i, c], out[i_b, c], out[i_e, c], out[i_f, c] = sa, sb, se, sf
            out[i, c_q], out[i_b, c_q], out[i_e, c_q], out[i_f, c_q] = ta, tb, te, tf


@njit(cache=True, nogil=True)
def threshold_scores(X, t, above, below, out):
    """out (n, k) = Σ_j above where x > t, below where x <= t, nothing where x is missing; both may be -inf."""
    for i in range(X.shape[0]):
        for c in range(above.shape[0]):
            s = 0.0
            for j in range(X.shape[1]):
                s += above[c, j] if X[i, j] > t else (below[c, j] if X[i, j] <= t else 0.0)
            out[i, c] = s


@njit(cache=True, nogil=True)
def class_category_counts(X, y, w, first, counts):
    """counts[y, first_j + x_j] += w for every row and column that has a value; counts (k, Σ categories)."""
    for i in range(X.shape[0]):
        if w[i] > 0:
            for j in range(X.shape[1]):
                if not np.isnan(X[i, j]):
                    counts[y[i], first[j] + np.int64(X[i, j])] += w[i]


@njit(cache=True, nogil=True)
def category_scores(X, first, table, out):
    """out (n, k) += Σ_j table[first_j + x_j] over the columns that have a value; table (Σ categories, k)."""
    for i in range(X.shape[0]):
        for j in range(X.shape[1]):
            if not np.isnan(X[i, j]):
                row = table[first[j] + np.int64(X[i, j])]
                for c in range(out.shape[1]):
                    out[i, c] += row[c]
