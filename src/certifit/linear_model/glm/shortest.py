"""The shortest coefficients among all that give the same scores, where columns are combinations of others.

With z_left = z_kept C the scores are those of a = γ_kept + C γ_left alone, whatever γ_left is. Of all such γ one has
the smallest |β|², β = γ / scale; the intercept is free and costs nothing. It is unique, and the one that a
pseudo-inverse of the centred columns gives.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import qr, solve_triangular

from certifit.rows import Array


class ShortestCoefficients(NamedTuple):
    """How the columns left out follow from those kept, and what that makes of coefficients."""

    combinations: Array  # (m, l) C: z_left = z_kept C
    kept: Array  # (m,) numbers of columns of z
    left: Array  # (l,)
    expand: Array  # (d1, m) from coefficients of the columns kept to the shortest of all
    determined: Array  # (d1,) whether all coefficients with the same scores agree in this one

    @property
    def directions(self) -> Array:
        """Directions (d1, l) of the coefficients of z along which no score changes."""
        out = np.zeros((len(self.expand), len(self.left)))
        out[self.kept], out[self.left] = -self.combinations, np.eye(len(self.left))
        return out

    def gather(self, full: Array) -> Array:
        """The coefficients (m,) of the columns kept alone that give the same scores as these of all (d1,)."""
        return full[self.kept] + self.combinations @ full[self.left]


def shortest_coefficients(R: Array, kept: Array, intercept: bool, scale: Array | None) -> ShortestCoefficients:
    """From the triangular factor R (<= d1, d1) of the rows, the column of ones last where there is one."""
    size = R.shape[1]
    left = np.setdiff1d(np.arange(size), kept)
    C = _combinations(R, kept, left)
    unit = np.ones(size) if scale is None else np.append(scale, np.ones(size - len(scale)))
    slopes = kept < size - intercept  # the intercept costs nothing
    beside = C[slopes] * unit[left] / unit[kept[slopes], None]
    # β_kept + beside β_left is given: the shortest such β is Q T⁻ᵀ times it, with the factors of (1, beside)ᵀ.
    Q, T = qr(np.vstack([np.eye(len(beside)), beside.T]), mode="economic")
    beta = solve_triangular(T, Q.T).T / unit[kept[slopes]]
    expand = np.zeros((size, len(kept)))
    order = np.concatenate([kept[slopes], left])
    expand[np.ix_(order, np.flatnonzero(slopes))] = beta * unit[order, None]
    expand[kept[~slopes]] = -C[~slopes] @ expand[left]
    expand[kept[~slopes], np.flatnonzero(~slopes)] = 1.0
    determined = np.zeros(size, dtype=bool)
    determined[kept] = ~C.any(axis=1)
    return ShortestCoefficients(C, kept, left, expand, determined)


def _combinations(R: Array, kept: Array, left: Array) -> Array:
    """C (m, l) with R_left = R_kept C to rounding; entries that are nothing but rounding are 0, if that will do too.

    A copy of one column involves no other, however large the other's coefficient is.
    """
    if not len(kept):
        return np.zeros((0, len(left)))
    eps = np.finfo(float).eps
    lengths = np.linalg.norm(R, axis=0)
    scaled = R / np.where(lengths > 0, lengths, 1.0)
    Q, T = qr(scaled[:, kept], mode="economic")
    C = solve_triangular(T, Q.T @ scaled[:, left])
    values = np.linalg.svd(T, compute_uv=False)
    noise = 64 * len(R) * eps * values[0] / values[-1]
    used = np.abs(C) > noise * np.maximum(1.0, np.abs(C).max(axis=0, initial=0.0))
    for j in np.flatnonzero(~used.all(axis=0)):
        few = np.zeros(len(kept))
        few[used[:, j]] = np.linalg.lstsq(scaled[:, kept[used[:, j]]], scaled[:, left[j]])[0]
        if np.linalg.norm(scaled[:, left[j]] - scaled[:, kept] @ few) <= 64 * max(R.shape) * eps:
            C[:, j] = few
    return C * np.where(lengths > 0, lengths, 1.0)[left] / lengths[kept, None]


__all__ = ["ShortestCoefficients", "shortest_coefficients"]
