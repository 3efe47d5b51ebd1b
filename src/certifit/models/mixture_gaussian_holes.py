"""Rows with holes under Gaussian components, exactly.

With M the missing columns of a row, O the others, and z the row with anything at all (here 0) in its holes,
g = P (z - m), P = C⁻¹:
    (x - m)_Oᵀ (C_OO)⁻¹ (x - m)_O = (z - m)ᵀ P (z - m) - g_Mᵀ P_MM⁻¹ g_M,     log |C_OO| = log |C| + log |P_MM|,
and given the observed entries, the missing ones are N(z_M - P_MM⁻¹ g_M, P_MM⁻¹). So the work beyond that of complete
rows grows with the number of holes. Rows are sorted by their holes, and those with the same share P_MM.
"""

from __future__ import annotations

import numpy as np

from certifit.core import Array
from certifit.kernels.mixture import complete, gather, pair_features
from certifit.linalg.packed import pack
from certifit.models.mixture_gaussian_shapes import pair_coefficients

LOG_2PI = float(np.log(2 * np.pi))


def by_pattern(X: Array, counts: Array) -> Array:
    """The rows that `counts` marks, those with the same holes side by side."""
    some = np.flatnonzero(counts)
    return some[np.lexsort(_words(np.isnan(X[some])))]


def _words(missing: Array) -> Array:
    """Each row's pattern (n, d) as whole numbers (words, n)."""
    bits = np.packbits(missing, axis=1)
    bits = np.ascontiguousarray(np.pad(bits, ((0, 0), (0, -bits.shape[1] % 8))))
    return bits.view(np.uint64).T


class Holes:
    """Some rows, sorted by pattern, under components m (k, d), P (k, d, d); all less the same anchor."""

    def __init__(self, Z: Array, m: Array, P: Array) -> None:
        missing = np.isnan(Z.T)
        words = _words(missing)
        new = (words[:, 1:] != words[:, :-1]).any(axis=0)
        self.starts = np.concatenate([[0], np.flatnonzero(new) + 1, [Z.shape[1]]])  # of each pattern's rows
        self.missing = np.ascontiguousarray(missing[self.starts[:-1]])  # (patterns, d)
        self.Z = np.where(missing, 0.0, Z.T)  # (n, d)
        self.P, self.m, self.Pm = np.ascontiguousarray(P), m, (P @ m[..., None])[..., 0]
        d = Z.shape[0]
        self.pairs = np.empty((d * (d + 1) // 2, Z.shape[1]))
        pair_features(np.ascontiguousarray(self.Z.T), self.pairs)
        self.fill = np.zeros((len(P), *self.Z.shape))  # what is expected in the holes, by component

    def log_densities(self, log_det: Array) -> Array:
        """log f_k of the observed entries (k, n); log_det (k,) are those of the covariances."""
        d = self.Z.shape[1]
        squares = pair_coefficients(self.P) @ self.pairs - 2 * self.Pm @ self.Z.T
        squares += ((self.m * self.Pm).sum(axis=1) + log_det + d * LOG_2PI)[:, None]
        complete(self.Z, self.missing, self.starts, self.P, self.Pm, squares, self.fill)
        return -0.5 * squares

    def collect(self, R: Array) -> tuple[Array, Array]:
        """Expected sums of z (k, d) and of the products of its pairs, packed, given what is observed."""
        first = R @ self.Z
        second = np.zeros((len(R), self.Z.shape[1], self.Z.shape[1]))
        gather(self.Z, self.missing, self.starts, self.P, self.fill, R, first, second)
        return first, R @ self.pairs.T + pack(second)
