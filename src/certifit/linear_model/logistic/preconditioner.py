"""Approximate inverse Hessians of the softmax loss, from a subsample: the preconditioners of L-BFGS.

The first is the same for every class and costs one factorisation. Once the fit is near, each class has a block of its
own, from the few rows whose class is still in doubt. With very many columns only the diagonal is used.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy import sparse

from certifit.linear_model.linear_rows import shift_rows
from certifit.linear_model.logistic.tuning import LogisticTuning
from certifit.losses.softmax import class_probabilities
from certifit.numerics.factor import Factor, factor
from certifit.numerics.products import gram, scale_rows
from certifit.rows import Array, ArrayRows, Matrix
from certifit.rows.threads import parallel_map


@dataclass(frozen=True)
class SampleCurvature:
    """Curvature of the objective in θ (k, d1), estimated on `sample` and scaled up to `n_rows`."""

    sample: ArrayRows
    n_rows: int
    lam: float  # of the penalty λ/2 |β|²
    intercept: bool
    shift: Array | None  # (d,)
    shape: tuple[int, int]  # (k, d1)
    tuning: LogisticTuning

    def average(self) -> Callable[[Array], Array]:
        """Invert c XᵀWX + λ for every class, c = (1 - 1/k)/k: the curvature where all classes are equally likely."""
        k, d1 = self.shape
        classes = max(2, k)
        w = self.sample.w * ((1 - 1 / classes) / classes)
        Z = shift_rows(self.sample.X, self.shift)
        if d1 > self.tuning.factored_columns:
            return partial(_divide, *self._diagonal(Z, w), self.shape)
        return partial(_solve, (factor(self._matrix(Z, w, 1.0)),) * k)

    def by_class(self, x: Array) -> Callable[[Array], Array]:
        """Invert each class's own block of the Hessian at θ."""
        Z = shift_rows(self.sample.X, self.shift)
        theta = x.reshape(self.shape)
        eta = Z @ theta[:, : Z.shape[1]].T
        if self.intercept:
            eta += theta[:, -1]
        P = class_probabilities(eta)
        H = self.sample.w[:, None] * P * (1 - P)
        return partial(_solve, tuple(parallel_map(partial(self._class_factor, Z), H.T)))

    def _class_factor(self, Z: Matrix, h: Array) -> Factor:
        """Factor a class's block, from the fewest rows that carry most of its curvature h (rows,)."""
        order = np.argsort(-h, kind="stable")
        mass = np.cumsum(h[order])
        rows = np.sort(order[: int(np.searchsorted(mass, self.tuning.curvature_share * mass[-1])) + 1])
        return factor(self._matrix(Z[rows], h[rows], float(mass[-1] / h[rows].sum())))

    def _matrix(self, Z: Matrix, h: Array, scale: float) -> Array:
        """(Z, 1)ᵀ diag(h) (Z, 1), scaled up, plus the penalty."""
        d = Z.shape[1]
        scale *= self.n_rows / self.sample.n_rows
        A = np.zeros((self.shape[1], self.shape[1]))
        A[:d, :d] = scale * gram(scale_rows(Z, np.sqrt(h)))
        A.flat[: d * (len(A) + 1) : len(A) + 1] += self.lam
        if self.intercept:
            A[:d, d] = A[d, :d] = scale * (h @ Z)
            A[d, d] = scale * h.sum()
        return A

    def _diagonal(self, Z: Matrix, h: Array) -> tuple[Array, Array]:
        """Diagonal (d1,) in the columns less their means (d,): a free intercept couples them all by their means.

        Where subtracting the mean leaves nothing but rounding of a column's squares, they stay as they are.
        """
        scale, d = self.n_rows / self.sample.n_rows, Z.shape[1]
        total = float(h.sum())
        mean = (h @ Z) / total if self.intercept and total > 0 else np.zeros(d)
        square = h @ (Z.multiply(Z) if sparse.issparse(Z) else Z**2)
        spread = square - total * mean**2
        diagonal = np.full(self.shape[1], scale * total)
        diagonal[:d] = scale * np.where(spread > 1e-10 * square, spread, square) + self.lam
        return np.where(diagonal > 0, diagonal, 1.0), mean


def _divide(diagonal: Array, mean: Array, shape: tuple[int, int], q: Array) -> Array:
    """Apply the inverse of a curvature that is `diagonal` (d1,) in (x - mean, 1) to q (k d1,)."""
    Q, d = q.reshape(shape), len(mean)
    out = Q / diagonal
    if shape[1] > d:
        out[:, :d] -= np.outer(Q[:, d], mean / diagonal[:d])
        out[:, d] -= out[:, :d] @ mean
    return out.ravel()


def _solve(factors: tuple[Factor, ...], q: Array) -> Array:
    """Apply the inverse of a block-diagonal curvature, a factor for each class, to q (k d1,)."""
    return np.concatenate([f.solve(part) for f, part in zip(factors, q.reshape(len(factors), -1), strict=True)])
