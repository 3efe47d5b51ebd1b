"""The compiled loop that centres rows with missing entries (NaN)."""

from __future__ import annotations

from certifit.numerics.compiled.compiling import called_from_python


@called_from_python
def centre(X, mean, Z):
    """Write X - mean to Z, with 0 where an entry of X is missing."""
    for r in range(len(X)):
        x, z = X[r], Z[r]
        for j in range(len(x)):
            difference = x[j] - mean[j]
            # NaN is not equal to itself.
            z[j] = difference if difference == difference else 0.0
