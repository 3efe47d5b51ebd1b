"""Rows multiplied by roots of weights, with a column of ones: one buffer for a weighted Gram matrix."""

import numpy as np

from certifit.numerics.compiled.compiling import called_from_python, twin_of


@called_from_python
def root_rows(Z, h, out):
    """Write diag(√h) (Z, 1) to out (n, d1), whose product with itself is the weighted Gram matrix.

    Z is (n, d), h (n,) >= 0; where out has only d columns, the column of ones is left out.
    """
    n, d = Z.shape
    for i in range(n):
        s = np.sqrt(h[i])
        for j in range(d):
            out[i, j] = s * Z[i, j]
        for j in range(d, out.shape[1]):
            out[i, j] = s


@twin_of(root_rows)
def _root_rows_of_arrays(Z, h, out):
    s, d = np.sqrt(h)[:, None], Z.shape[1]
    out[:, :d] = s * Z
    out[:, d:] = s
