"""Kernels in plain NumPy, of tables (dense or CSR) of any float type, each with a bound on what rounding does to it.

A computed k(x, z) is off by at most eps reach(x) reach(z), where eps is that of the tables' type. Sums of products
are taken to lose as many eps as they have terms, which is more than they do.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from certifit.checkers.plain.blocks import dense
from certifit.rows import Array

NEAR = 8.0  # times eps times the columns: rounding in an RBF's value, beyond which it is computed again
PAIRS = 1_000_000  # entries of differences of rows held at a time


class Plain(ABC):
    """k(x, z) for the rows of two tables (a, d) and (b, d)."""

    longer: ClassVar[bool] = True  # whether tables of a longer type have better values

    @abstractmethod
    def __call__(self, A: Any, B: Any) -> Array: ...

    @abstractmethod
    def reach(self, A: Any) -> Array:
        """(a,) see above; also no smaller than √(5 k(x, x))."""


@dataclass(frozen=True, eq=False)
class Linear(Plain):
    """(x - origin)·(z - origin): as good as x·z for coefficients of sum 0, and nothing cancels far from zero."""

    origin: Array | float = 0.0  # (d,)

    def __call__(self, A: Any, B: Any) -> Array:
        return _products(A - self.origin, B - self.origin)

    def reach(self, A: Any) -> Array:
        return np.sqrt((A.shape[1] + 4) * _squares(A - self.origin).astype(np.float64))


@dataclass(frozen=True)
class Polynomial(Plain):
    """(γ x·z + c)^degree, whose base is no larger than γ |x| |z| + |c|, and off by d + 2 roundings of that."""

    degree: float
    gamma: float
    coef0: float

    def __call__(self, A: Any, B: Any) -> Array:
        return np.power(self.gamma * _products(A, B) + self.coef0, self.degree)

    def reach(self, A: Any) -> Array:
        base = abs(self.gamma) * _squares(A).astype(np.float64) + abs(self.coef0)
        return np.sqrt(self.degree * (A.shape[1] + 2) + 5) * base ** (self.degree / 2)


@dataclass(frozen=True)
class Sigmoid(Plain):
    """tanh(γ x·z + c), which is nowhere steeper than 1."""

    gamma: float
    coef0: float

    def __call__(self, A: Any, B: Any) -> Array:
        return np.tanh(self.gamma * _products(A, B) + self.coef0)

    def reach(self, A: Any) -> Array:
        base = abs(self.gamma) * _squares(A).astype(np.float64) + abs(self.coef0)
        return np.sqrt((A.shape[1] + 4) * (base + 1.0))


@dataclass(frozen=True)
class Radial(Plain):
    """exp(-γ |x - z|²), by one product of matrices about the mean of B (where its zeros are stored).

    Where |x|² + |z|² - 2 x·z may have lost digits that the exponential shows, differences are squared one by one.
    """

    gamma: float

    def __call__(self, A: Any, B: Any) -> Array:
        if not sparse.issparse(B):
            centre = B.mean(axis=0)
            A, B = A - centre, B - centre
        sizes = self.gamma * _squares(A)[:, None] + self.gamma * _squares(B)
        powers = _products(A, B)
        powers *= -2.0 * self.gamma
        powers += sizes
        blur = (A.shape[1] + 4) * np.finfo(A.dtype).eps  # rounding in powers, times sizes
        largest = float(sizes.max(initial=0.0))
        if largest > NEAR:
            near = np.flatnonzero(powers - blur * sizes < np.log(largest / NEAR))
            size, least = sizes.flat[near], np.maximum(powers.flat[near] - blur * sizes.flat[near], 0.0)
            near = near[size * np.exp(-least) > NEAR]
            step = max(1, PAIRS // A.shape[1])
            for part in (near[i : i + step] for i in range(0, len(near), step)):
                i, j = np.unravel_index(part, powers.shape)
                powers[i, j] = self.gamma * _squares(A[i] - B[j])
        np.maximum(powers, 0.0, out=powers)
        np.negative(powers, out=powers)
        return np.exp(powers, out=powers)

    def reach(self, A: Any) -> Array:
        return np.full(A.shape[0], np.sqrt(NEAR * (A.shape[1] + 4)))


@dataclass(frozen=True, eq=False)
class Given(Plain):
    """A kernel matrix that is there already, for tables of row numbers."""

    G: Array  # (n, n)

    def __call__(self, A: Any, B: Any) -> Array:
        values = self.G[np.ix_(A[:, 0].astype(np.int64), B[:, 0].astype(np.int64))]
        return values.astype(np.result_type(A.dtype, np.float64), copy=False)

    def reach(self, A: Any) -> Array:
        return np.sqrt(8 * np.maximum(self.G.diagonal()[A[:, 0].astype(np.int64)].astype(np.float64), 0.0))


@dataclass(frozen=True)
class Foreign(Plain):
    """Anybody's function, which is taken to compute what it is meant to up to a few roundings a column."""

    longer: ClassVar[bool] = False

    function: Callable[[Any, Any], Any]

    def __call__(self, A: Any, B: Any) -> Array:
        return dense(self.function(A.astype(np.float64), B.astype(np.float64)))

    def reach(self, A: Any) -> Array:
        return np.sqrt((A.shape[1] + 8) * np.maximum(np.diag(self(A, A)), 0.0))


def plain(kernel: Callable[[Any, Any], Any]) -> Plain:
    return kernel if isinstance(kernel, Plain) else Foreign(kernel)


def _products(A: Any, B: Any) -> Array:
    P = A @ B.T
    return np.asarray(P.toarray() if sparse.issparse(P) else P)


def _squares(A: Any) -> Array:
    """|x|² of each row."""
    return np.asarray(A.multiply(A).sum(axis=1)).ravel() if sparse.issparse(A) else np.square(A).sum(axis=1)
