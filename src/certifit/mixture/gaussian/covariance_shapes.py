"""Shapes of covariances of Gaussian components: full, tied, diagonal, spherical.

A new shape is one more subclass of `CovarianceShape` and one more line in the table `SHAPES` at the end; the checker
has its own table, `COVARIANCE_TYPES` in `checkers/mixture/gaussian.py`. Nothing else knows the shapes.

A shape says in which quadratic features q(z) of a row its log-density is linear, zᵀPz = Σ_a c_a q_a(z), and which
covariances maximise the likelihood given sums of these features. Symmetric matrices are packed as lower triangles,
row after row.

| shape     | q(z)              | width         | C and P inside (private) | public     |
|-----------|-------------------|---------------|--------------------------|------------|
| full      | z_i z_j, i >= j   | d (d + 1) / 2 | (k, d, d)                | (k, d, d)  |
| tied      | z_i z_j, i >= j   | d (d + 1) / 2 | (1, d, d)                | (d, d)     |
| diag      | z_j²              | d             | (k, d)                   | (k, d)     |
| spherical | Σ_j z_j²          | 1             | (k, 1)                   | (k,)       |
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from scipy.linalg.lapack import dtrtri

from certifit.mixture.gaussian.gaussian_loops import pair_products
from certifit.numerics.packed import pack, unpack
from certifit.rows import Array


def pair_coefficients(P: Array) -> Array:
    """Return zᵀPz as coefficients of the products z_i z_j, i >= j: off the diagonal each stands for two."""
    twice = 2.0 * P
    i = np.arange(P.shape[-1])
    twice[..., i, i] /= 2.0
    return pack(twice)


class CovarianceShape(ABC):
    """What EM needs to know of a shape of covariances."""

    @abstractmethod
    def width(self, d: int) -> int:
        """Return the number of features q."""

    @abstractmethod
    def free(self, k: int, d: int) -> int:
        """Return the number of free parameters of the covariances."""

    @abstractmethod
    def size(self, k: int, d: int) -> tuple[int, ...]:
        """Return the shape of the public array of covariances, which is scikit-learn's."""

    @abstractmethod
    def features(self, Z: Array, out: Array) -> None:
        """Write q of rows Z (d, n) into out (width, n)."""

    def squares(self, P: Array, Z: Array) -> Array:
        """Return zᵀPz (n,) of rows Z (d, n), P of one component."""
        return self.coefficients(P) @ self._new_features(Z)

    def moments(self, Z: Array, r: Array) -> Array:
        """Return Σ r q(z) (width,) over rows Z (d, n)."""
        return self._new_features(Z) @ r

    def _new_features(self, Z: Array) -> Array:
        q = np.empty((self.width(len(Z)), Z.shape[1]))
        self.features(Z, q)
        return q

    @abstractmethod
    def reduce(self, pairs: Array, d: int) -> Array:
        """Return sums of q (k, width), given sums of all products of pairs (k, d (d + 1) / 2)."""

    @abstractmethod
    def covariances(self, n: Array, mu: Array, second: Array, floor: Array) -> Array:
        """M step: return C, given n (k,) > 0, means mu (k, d) and sums of q (k, width), both about the same anchors.

        `floor` (k, d) is added to the diagonals.
        """

    @abstractmethod
    def invert(self, C: Array) -> Array:
        """Return P, given C; or C, given P."""

    @abstractmethod
    def cholesky(self, C: Array) -> Array:
        """Return U with P = U Uᵀ: upper triangular, or square roots."""

    @abstractmethod
    def log_det(self, C: Array, d: int) -> Array:
        """Return log |C| (k,), or (1,) where all share C."""

    @abstractmethod
    def apply(self, P: Array, m: Array) -> Array:
        """Return P m (k, d) for m (k, d)."""

    @abstractmethod
    def coefficients(self, P: Array) -> Array:
        """Return the coefficients of zᵀPz in q (k, width), or (1, width) where all share P."""

    @abstractmethod
    def diagonal(self, P: Array, d: int) -> Array:
        """Return the diagonals (k, d), or (1, d) where all share P."""

    @abstractmethod
    def matrices(self, C: Array, k: int, d: int) -> Array:
        """Return matrices (k, d, d)."""

    def public(self, C: Array) -> Array:
        """Return the covariances in scikit-learn's form."""
        return C

    def private(self, C: Array) -> Array:
        """Undo `public`."""
        return C

    def keep(self, C: Array, old: Array, empty: Array) -> Array:
        """Return C, but the old covariances of components that are `empty` (k,)."""
        return np.where(empty.reshape(-1, *[1] * (C.ndim - 1)), old, C)


class FullCovariances(CovarianceShape):
    def width(self, d: int) -> int:
        return d * (d + 1) // 2

    def free(self, k: int, d: int) -> int:
        return k * self.width(d)

    def size(self, k: int, d: int) -> tuple[int, ...]:
        return k, d, d

    def features(self, Z: Array, out: Array) -> None:
        pair_products(Z, out)

    def squares(self, P: Array, Z: Array) -> Array:
        return np.einsum("jn,jn->n", Z, P @ Z)

    def moments(self, Z: Array, r: Array) -> Array:
        return pack((Z * r) @ Z.T)

    def reduce(self, pairs: Array, d: int) -> Array:
        return pairs

    def covariances(self, n: Array, mu: Array, second: Array, floor: Array) -> Array:
        S = unpack(second / n[:, None], mu.shape[1]) - mu[:, :, None] * mu[:, None, :]
        return S + floor[:, :, None] * np.eye(mu.shape[1])

    def invert(self, C: Array) -> Array:
        U = self.cholesky(C)
        return U @ U.swapaxes(-1, -2)

    def cholesky(self, C: Array) -> Array:
        return np.stack([dtrtri(L, lower=1)[0].T for L in _factors(C)])

    def log_det(self, C: Array, d: int) -> Array:
        return 2.0 * np.log(np.diagonal(_factors(C), axis1=1, axis2=2)).sum(axis=1)

    def apply(self, P: Array, m: Array) -> Array:
        return (P @ m[..., None])[..., 0]

    def coefficients(self, P: Array) -> Array:
        return pair_coefficients(P)

    def diagonal(self, P: Array, d: int) -> Array:
        return np.diagonal(P, axis1=1, axis2=2)

    def matrices(self, C: Array, k: int, d: int) -> Array:
        return np.broadcast_to(C, (k, d, d))


def _factors(C: Array) -> Array:
    """Return Cholesky factors, found for unit diagonals, so that the scales of columns do not matter."""
    units = np.sqrt(np.diagonal(C, axis1=1, axis2=2))
    return units[:, :, None] * np.linalg.cholesky(C / (units[:, :, None] * units[:, None, :]))


class TiedCovariances(FullCovariances):
    def free(self, k: int, d: int) -> int:
        return self.width(d)

    def size(self, k: int, d: int) -> tuple[int, ...]:
        return d, d

    def covariances(self, n: Array, mu: Array, second: Array, floor: Array) -> Array:
        S = unpack(second.sum(axis=0), mu.shape[1]) - (mu.T * n) @ mu
        return (S / n.sum() + np.diag(n @ floor / n.sum()))[None]

    def public(self, C: Array) -> Array:
        return C[0]

    def private(self, C: Array) -> Array:
        return C[None]

    def keep(self, C: Array, old: Array, empty: Array) -> Array:
        return C


class DiagonalCovariances(CovarianceShape):
    def width(self, d: int) -> int:
        return d

    def free(self, k: int, d: int) -> int:
        return k * d

    def size(self, k: int, d: int) -> tuple[int, ...]:
        return k, d

    def features(self, Z: Array, out: Array) -> None:
        np.multiply(Z, Z, out=out)

    def reduce(self, pairs: Array, d: int) -> Array:
        i, j = np.tril_indices(d)
        return self.reduce_squares(pairs[:, i == j])

    def reduce_squares(self, squares: Array) -> Array:
        """Return the same, given sums of squares (k, d)."""
        return squares

    def covariances(self, n: Array, mu: Array, second: Array, floor: Array) -> Array:
        return np.maximum(second / n[:, None] - mu**2, 0.0) + floor

    def invert(self, C: Array) -> Array:
        return 1 / C

    def cholesky(self, C: Array) -> Array:
        return 1 / np.sqrt(C)

    def log_det(self, C: Array, d: int) -> Array:
        return np.log(C).sum(axis=1) * (d / C.shape[1])

    def apply(self, P: Array, m: Array) -> Array:
        return P * m

    def coefficients(self, P: Array) -> Array:
        return P

    def diagonal(self, P: Array, d: int) -> Array:
        return np.broadcast_to(P, (len(P), d))

    def matrices(self, C: Array, k: int, d: int) -> Array:
        return self.diagonal(C, d)[:, :, None] * np.eye(d)


class SphericalCovariances(DiagonalCovariances):
    def width(self, d: int) -> int:
        return 1

    def free(self, k: int, d: int) -> int:
        return k

    def size(self, k: int, d: int) -> tuple[int, ...]:
        return (k,)

    def features(self, Z: Array, out: Array) -> None:
        np.einsum("jn,jn->n", Z, Z, out=out[0])

    def reduce_squares(self, squares: Array) -> Array:
        return squares.sum(axis=1, keepdims=True)

    def covariances(self, n: Array, mu: Array, second: Array, floor: Array) -> Array:
        squares = second / n[:, None] - (mu**2).sum(axis=1, keepdims=True)
        return np.maximum(squares, 0.0) / mu.shape[1] + floor.mean(axis=1, keepdims=True)

    def public(self, C: Array) -> Array:
        return C[:, 0]

    def private(self, C: Array) -> Array:
        return C[:, None]


SHAPES: dict[str, CovarianceShape] = {
    "full": FullCovariances(),
    "tied": TiedCovariances(),
    "diag": DiagonalCovariances(),
    "spherical": SphericalCovariances(),
}
