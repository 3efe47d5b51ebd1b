"""Kernel values of rows, centred in feature space: φ(x) is measured from the mean of the fitted rows' φ.

With m the mean of every column of the Gram matrix K and g the mean of m, the centred value of x and a fitted row z is
k(x, z) - m(z) - mean of k(x, ·) + g.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy import sparse

from certifit.exceptions import DataError
from certifit.rows import Array, Matrix
from certifit.svm.kernel.kernels import RBF, Kernel, dense_pair, products, squared_lengths


@dataclass(frozen=True)
class Cosine(Kernel):
    """x·z / (|x| |z|), 0 where a row is 0."""

    def values(self, A: Matrix, B: Matrix) -> Array:
        return products(_unit_rows(A), _unit_rows(B))

    @property
    def valid(self) -> bool:
        return True


def _unit_rows(A: Matrix) -> Matrix:
    length = np.sqrt(squared_lengths(A))
    inverse = np.divide(1.0, length, out=np.zeros_like(length), where=length > 0)
    return sparse.diags_array(inverse) @ A if sparse.issparse(A) else A * inverse[:, None]


@dataclass(frozen=True)
class DenseRBF(RBF):
    """exp(-gamma |x - z|²) of dense rows, or of sparse ones that are made dense, about their mean.

    Where rows lie far from their mean, or sparse ones far from 0, their products lose digits, which count once a Gram
    matrix is centred: an outlier of 100 deviations would cost four.
    """

    far: ClassVar[float] = 32.0

    def values(self, A: Matrix, B: Matrix) -> Array:
        return super().values(*dense_pair(A, B))


@dataclass(frozen=True)
class PairFunction(Kernel):
    """A user's function of two rows, as scikit-learn's KernelPCA calls it."""

    function: Callable[..., float]
    params: dict[str, Any] = field(default_factory=dict)

    def values(self, A: Matrix, B: Matrix) -> Array:
        if sparse.issparse(A) or sparse.issparse(B):
            A, B = A.toarray(), B.toarray()
        return np.array([[float(self.function(x, z, **self.params)) for z in B] for x in A]).reshape(len(A), len(B))

    @property
    def valid(self) -> bool:
        return False


class CentredGram(NamedTuple):
    """A centred Gram matrix, and what was subtracted."""

    K: Array  # (n, n)
    means: Array  # (n,) of the columns before
    size: float  # the largest kernel value before


def centre_gram(K: Array) -> CentredGram:
    """Centre a Gram matrix, which is symmetric then; K is overwritten."""
    size = float(np.abs(K).max(initial=0.0))
    means = K.mean(axis=0)
    K -= means
    K -= K.mean(axis=1)[:, None]
    if np.abs(K - K.T).max(initial=0.0) > 1e-5 * size:
        raise DataError(
            got="kernel values with k(x, z) and k(z, x) that differ",
            wanted="a symmetric kernel",
            fix="A Gram matrix has a row and a column for each fitted row, in the same order.",
        )
    K += K.T.copy()
    K /= 2
    return CentredGram(K, means, size)


def centre_values(values: Array, means: Array) -> Array:
    """Centre kernel values (m, n) of new rows with the fitted ones; they are overwritten."""
    values -= means
    values -= values.mean(axis=1)[:, None]
    return values


def own_values(kernel: Kernel, A: Matrix, step: int = 64) -> Array:
    """k(x, x) of every row (a,), from the diagonals of small Gram matrices."""
    parts = [A[i : i + step] for i in range(0, A.shape[0], step)]
    return np.concatenate([np.diag(kernel(part, part)) for part in parts])
