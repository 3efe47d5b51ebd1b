"""Compiled rounds of dual coordinate ascent: each dual variable in turn becomes the best with all others fixed.

    max over 0 <= a <= top of   Σ [a q - soft a² / 2] - ½ |Σ a s x|² - τ/2 (Σ a s)² - b₀ Σ a s

`terms` are `DualTerms` with row numbers of an unsigned type, `order` is unsigned too: compiled loops then need no
code for negative indices. norms (rows,) are |x|². a, β = Σ a s x and b = b₀ + τ Σ a s, the fields of `point`, are
changed in place.
"""

import numpy as np

from certifit.numerics.compiled.compiling import compiled_with, written_into_loops

# Reassociation lets dot products run in vector lanes; nothing is assumed about NaN or infinity.
SUMS = {"reassoc", "contract", "nsz"}


@written_into_loops
def _best_value(a, g, curvature, top):
    """Where the dual is largest along one coordinate: a Newton step of slope g, cut off at the limits."""
    return min(max(a + g / curvature, 0.0), top)


@compiled_with(fastmath=SUMS)
def ascend_dense(X, terms, norms, order, tau, point):
    """Visit the dual variables in `order`; X (rows, d) is dense."""
    row, s, q, soft, top = terms
    a, beta, b = point
    d = X.shape[1]
    for k in order:
        i = row[k]
        score = b[0]
        for j in range(d):
            score += X[i, j] * beta[j]
        g = q[k] - s[k] * score - soft[k] * a[k]
        new = _best_value(a[k], g, norms[i] + tau + soft[k], top[k])
        move = new - a[k]
        if move != 0.0:
            a[k] = new
            b[0] += tau * move * s[k]
            for j in range(d):
                beta[j] += move * s[k] * X[i, j]


@compiled_with(fastmath=SUMS)
def ascend_sparse(csr, terms, norms, order, tau, point):
    """Visit the dual variables in `order`; csr are the data, indices and indptr of the rows."""
    data, indices, indptr = csr
    row, s, q, soft, top = terms
    a, beta, b = point
    for k in order:
        i = row[k]
        first, last = indptr[i], indptr[i + np.uint64(1)]
        score = b[0]
        for j in range(first, last):
            score += data[j] * beta[indices[j]]
        g = q[k] - s[k] * score - soft[k] * a[k]
        new = _best_value(a[k], g, norms[i] + tau + soft[k], top[k])
        move = new - a[k]
        if move != 0.0:
            a[k] = new
            b[0] += tau * move * s[k]
            for j in range(first, last):
                beta[indices[j]] += move * s[k] * data[j]
