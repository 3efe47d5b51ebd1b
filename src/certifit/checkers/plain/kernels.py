"""Kernels in plain NumPy, of tables (dense or CSR) of any float type, each with a bound on its own rounding.

This is the checker's second opinion on every kernel of `svm/kernel/kernels.py`: a new kernel needs a class here and a
line in `PLAIN_KERNELS`. The values of a class come from its formula alone. Its `reach` bounds rounding: a computed
k(x, z) is off by at most

    eps · reach(x) · reach(z),      eps that of the tables' type.

A sum of d products is taken to lose as many eps as it has terms, which is more than it does; so x·z is off by at
most (d + 4) eps |x| |z|, and reach(x) = √(d + 4) |x| for a linear kernel. Other kernels say below how they follow
from x·z.
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


class PlainKernel(ABC):
    """k(x, z) for the rows of two tables (a, d) and (b, d)."""

    gains_by_longer: ClassVar[bool] = True  # whether tables of a longer float type have more accurate values

    @abstractmethod
    def __call__(self, A: Any, B: Any) -> Array: ...

    @abstractmethod
    def reach(self, A: Any) -> Array:
        """(a,) the bound on rounding above; also no smaller than √(5 k(x, x))."""

    @property
    def valid(self) -> bool:
        """Whether it is positive semidefinite whatever the rows."""
        return False


@dataclass(frozen=True, eq=False)
class PlainLinear(PlainKernel):
    """(x - origin)·(z - origin), which loses no digits where rows lie far from zero.

    For coefficients of sum 0 it gives the same machine as x·z, but for its intercept.
    """

    origin: Array | float = 0.0  # (d,)

    def __call__(self, A: Any, B: Any) -> Array:
        return _products(A - self.origin, B - self.origin)

    def reach(self, A: Any) -> Array:
        return np.sqrt((A.shape[1] + 4) * _squares(A - self.origin).astype(np.float64))

    @property
    def valid(self) -> bool:
        return True


@dataclass(frozen=True)
class PlainPolynomial(PlainKernel):
    """(γ x·z + c)^degree, whose base is no larger than γ |x| |z| + |c|, and off by d + 2 roundings of that."""

    degree: float
    gamma: float
    coef0: float

    def __call__(self, A: Any, B: Any) -> Array:
        return np.power(self.gamma * _products(A, B) + self.coef0, self.degree)

    def reach(self, A: Any) -> Array:
        base = abs(self.gamma) * _squares(A).astype(np.float64) + abs(self.coef0)
        return np.sqrt(self.degree * (A.shape[1] + 2) + 5) * base ** (self.degree / 2)

    @property
    def valid(self) -> bool:
        return min(self.gamma, self.coef0) >= 0 and self.degree == int(self.degree)


@dataclass(frozen=True)
class PlainSigmoid(PlainKernel):
    """tanh(γ x·z + c), which is nowhere steeper than 1, so that it is off by no more than its argument."""

    gamma: float
    coef0: float

    def __call__(self, A: Any, B: Any) -> Array:
        return np.tanh(self.gamma * _products(A, B) + self.coef0)

    def reach(self, A: Any) -> Array:
        base = abs(self.gamma) * _squares(A).astype(np.float64) + abs(self.coef0)
        return np.sqrt((A.shape[1] + 4) * (base + 1.0))


@dataclass(frozen=True)
class PlainRadial(PlainKernel):
    """exp(-γ |x - z|²), by one product of matrices about the mean of B (about zero for CSR rows).

    |x|² + |z|² - 2 x·z loses digits where both rows are long and near each other. A value that would be off by more
    than `most_roundings` eps for each of d + 4 terms is computed again, from the difference of the two rows.
    """

    most_roundings: ClassVar[float] = 8.0
    held_entries: ClassVar[int] = 1_000_000  # entries of differences of rows held at a time

    gamma: float

    def __call__(self, A: Any, B: Any) -> Array:
        given = A, B
        if not sparse.issparse(B):
            centre = B.mean(axis=0)
            A, B = A - centre, B - centre
        with np.errstate(over="ignore", invalid="ignore"):
            sizes = self.gamma * _squares(A)[:, None] + self.gamma * _squares(B)
        if not np.isfinite(sizes).all():  # squares beyond the largest number, whose differences say nothing
            return self._by_differences(*given)
        powers = _products(A, B)
        powers *= -2.0 * self.gamma
        powers += sizes
        self._compute_again(powers, sizes, *given)
        np.maximum(powers, 0.0, out=powers)
        np.negative(powers, out=powers)
        return np.exp(powers, out=powers)

    def _compute_again(self, powers: Array, sizes: Array, A: Any, B: Any) -> None:
        """Replace, in place, those of the powers γ |x - z|² whose rounding the exponential would show.

        A power is off by up to (d + 4) eps times its entry of `sizes`, and exp(-power) by that times itself. A and B
        are the rows as given: about a mean that an outlier has moved, rows next to each other have lost digits.
        """
        largest = float(sizes.max(initial=0.0))
        if largest <= self.most_roundings:
            return
        blur = (A.shape[1] + 4) * np.finfo(A.dtype).eps
        near = np.flatnonzero(powers - blur * sizes < np.log(largest / self.most_roundings))
        size, least = sizes.flat[near], np.maximum(powers.flat[near] - blur * sizes.flat[near], 0.0)
        near = near[size * np.exp(-least) > self.most_roundings]
        step = max(1, self.held_entries // A.shape[1])
        for part in (near[i : i + step] for i in range(0, len(near), step)):
            i, j = np.unravel_index(part, powers.shape)
            powers[i, j] = self.gamma * _squares(A[i] - B[j])

    def _by_differences(self, A: Any, B: Any) -> Array:
        root = np.sqrt(self.gamma)
        A, B = root * dense(A), root * dense(B)
        with np.errstate(over="ignore"):
            return np.column_stack([np.exp(-_squares(A - row)) for row in B])

    def reach(self, A: Any) -> Array:
        return np.full(A.shape[0], np.sqrt(self.most_roundings * (A.shape[1] + 4)))

    @property
    def valid(self) -> bool:
        return self.gamma >= 0


@dataclass(frozen=True, eq=False)
class GivenKernel(PlainKernel):
    """A kernel matrix that is there already, for tables of row numbers; its values count as exact but for 8 eps."""

    G: Array  # (n, n)

    def __call__(self, A: Any, B: Any) -> Array:
        values = self.G[np.ix_(A[:, 0].astype(np.int64), B[:, 0].astype(np.int64))]
        return values.astype(np.result_type(A.dtype, np.float64), copy=False)

    def reach(self, A: Any) -> Array:
        return np.sqrt(8 * np.maximum(self.G.diagonal()[A[:, 0].astype(np.int64)].astype(np.float64), 0.0))


@dataclass(frozen=True)
class ForeignKernel(PlainKernel):
    """A user's function, which is taken to compute what it is meant to up to a few roundings for each column."""

    gains_by_longer: ClassVar[bool] = False

    function: Callable[[Any, Any], Any]

    def __call__(self, A: Any, B: Any) -> Array:
        return dense(self.function(A.astype(np.float64), B.astype(np.float64)))

    def reach(self, A: Any) -> Array:
        return np.sqrt((A.shape[1] + 8) * np.maximum(np.diag(self(A, A)), 0.0))

    @property
    def valid(self) -> bool:
        """As the function says of itself: a claim of the user's, or of certifit's kernel algebra."""
        return bool(getattr(self.function, "valid", False))


@dataclass(frozen=True)
class TableFunction:
    """A user's function of two tables or, where it gives no table for these, of two rows, as scikit-learn has it."""

    function: Callable[..., Any]
    params: tuple[tuple[str, Any], ...] = ()  # further arguments, by name

    def __call__(self, A: Any, B: Any) -> Array:
        wanted, more = (A.shape[0], B.shape[0]), dict(self.params)
        try:
            K = self.function(A, B, **more)
            K = K.toarray() if sparse.issparse(K) else np.asarray(K)
        except Exception:  # whatever a function of rows does with tables: the rows below are the judge
            K = np.empty(0)
        if K.shape == wanted:
            return K
        left, right = dense(A), dense(B)
        if np.size(self.function(left[0], right[0], **more)) != 1:  # neither of tables nor of rows: refused later
            return K
        return np.array([[self.function(x, z, **more) for z in right] for x in left], np.float64).reshape(wanted)

    @property
    def valid(self) -> bool:
        """As the function says of itself."""
        return bool(getattr(self.function, "valid", False))


def table_function(function: Callable[..., Any], params: Any = None) -> Callable[[Any, Any], Any]:
    """A kernel of certifit's as it is, which knows tables, or another function as one of tables."""
    if hasattr(function, "valid") and not params:
        return function
    return TableFunction(function, tuple((params or {}).items()))


# kernels that models name, of gamma, degree and coef0
PLAIN_KERNELS: dict[str, Callable[[float, Any, float], PlainKernel]] = {
    "linear": lambda gamma, degree, coef0: PlainLinear(),
    "rbf": lambda gamma, degree, coef0: PlainRadial(gamma),
    "poly": lambda gamma, degree, coef0: PlainPolynomial(degree, gamma, coef0),
    "polynomial": lambda gamma, degree, coef0: PlainPolynomial(degree, gamma, coef0),
    "sigmoid": lambda gamma, degree, coef0: PlainSigmoid(gamma, coef0),
}


def as_plain_kernel(kernel: Callable[[Any, Any], Any]) -> PlainKernel:
    """A plain kernel as it is, or any other function as a foreign one."""
    return kernel if isinstance(kernel, PlainKernel) else ForeignKernel(kernel)


def _products(A: Any, B: Any) -> Array:
    """x·z for every row of A and of B."""
    P = A @ B.T
    return np.asarray(P.toarray() if sparse.issparse(P) else P)


def _squares(A: Any) -> Array:
    """|x|² of each row."""
    return np.asarray(A.multiply(A).sum(axis=1)).ravel() if sparse.issparse(A) else np.square(A).sum(axis=1)
