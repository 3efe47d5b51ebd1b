"""Kernels: functions k(x, z) that are inner products in some space, and the algebra that makes new ones of old ones.

Sums, products and exponentials of kernels are kernels, as are positive multiples (Schölkopf & Smola, Learning with
Kernels, 2002, section 13.1): `valid` says that a kernel is proved to be one in this way. Any other function is tried
on a sample of rows: see `is_psd`.

To add a kernel:

| step | where |
|---|---|
| its values, and when it is valid | a class in this file |
| its name for `SVC(kernel=...)` | `KERNELS` at the end of this file |
| its values again, with their rounding, for the checker | a class and a name in `checkers/plain/kernels.py` |
| which of the checker's classes it is | `PLAIN_TWINS` in `svm/kernel/recheck.py` |
| its name in model files | `records` in `store/vocabulary.py` |

>>> k = RBF(0.5) * Linear() + 2.0 * Polynomial(2, coef0=1.0)
>>> k([[1.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]]).tolist(), k.valid
([[9.0, 2.0]], True)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
from scipy import sparse
from scipy.linalg import eigh
from scipy.spatial.distance import cdist

from certifit.exceptions import DataError
from certifit.linalg import positive_definite
from certifit.linalg.definite import Definite
from certifit.optimise.working_sets import over_blocks
from certifit.rows import Array
from certifit.rows.block import Matrix


class Kernel(ABC):
    """A function of two tables (a, d) and (b, d), dense or CSR, that gives the table (a, b) of k(x, z)."""

    def __call__(self, A: Any, B: Any) -> Array:
        return self.values(_table(A), _table(B))

    @abstractmethod
    def values(self, A: Matrix, B: Matrix) -> Array:
        """k(x, z) for the rows of A and B."""

    @property
    @abstractmethod
    def valid(self) -> bool:
        """Whether every Gram matrix is proved positive semidefinite."""

    def __add__(self, other: Kernel | float) -> Kernel:
        return KernelSum(self, _as_kernel(other))

    def __mul__(self, other: Kernel | float) -> Kernel:
        return KernelProduct(self, _as_kernel(other))

    __radd__ = __add__
    __rmul__ = __mul__

    def exp(self) -> Kernel:
        """exp k(x, z)."""
        return ExponentialKernel(self)


# ------------------------------------------------------------------------------------------- kernels with a name
@dataclass(frozen=True)
class Linear(Kernel):
    """x·z

    >>> Linear()([[1.0, 2.0]], [[3.0, 4.0]]).tolist()
    [[11.0]]
    """

    def values(self, A: Matrix, B: Matrix) -> Array:
        return products(A, B)

    @property
    def valid(self) -> bool:
        return True


@dataclass(frozen=True, eq=False)
class CentredLinear(Linear):
    """(x - origin)·(z - origin), which loses no digits where rows lie far from zero.

    For coefficients of sum 0 it gives the same machine as x·z, but for its intercept.
    """

    origin: Array  # (d,)

    def values(self, A: Matrix, B: Matrix) -> Array:
        return products(A - self.origin, B - self.origin)


@dataclass(frozen=True)
class RBF(Kernel):
    """exp(-gamma |x - z|²)

    >>> RBF(gamma=0.5)([[1.0], [3.0]], [[1.0]]).round(3).tolist()
    [[1.0], [0.135]]
    """

    far: ClassVar[float] = 1e6  # gamma |x - mean|² beyond which distances are computed from differences

    gamma: float = 1.0

    def by_product(self, X: Matrix) -> bool:
        """Whether |x|² + |z|² - 2 x·z keeps the digits that the exponential shows, about the mean of dense rows."""
        return self._keeps_digits(squared_lengths(X if sparse.issparse(X) else X - X.mean(axis=0)))

    def _keeps_digits(self, squares: Array) -> bool:
        return self.gamma * float(squares.max(initial=0.0)) <= self.far

    def values(self, A: Matrix, B: Matrix) -> Array:
        # about the mean of dense rows: distances do not change, and do not cancel far from the origin
        centre = 0.0 if sparse.issparse(B) else B.mean(axis=0)
        Z = B if sparse.issparse(B) else B - centre
        squares = squared_lengths(Z)
        if not self._keeps_digits(squares):
            return np.exp(-self.gamma * cdist(*dense_pair(A, B), "sqeuclidean"))
        A = A if sparse.issparse(B) else A - centre
        powers = products(A, Z)  # changed in place from here, so that one table of values is enough
        powers *= 2
        powers -= squared_lengths(A)[:, None]
        powers -= squares
        np.minimum(powers, 0.0, out=powers)
        powers *= self.gamma
        return np.exp(powers, out=powers)

    @property
    def valid(self) -> bool:
        return self.gamma >= 0


@dataclass(frozen=True)
class Polynomial(Kernel):
    """(gamma x·z + coef0)^degree

    >>> Polynomial(degree=2, coef0=1.0)([[1.0, 2.0]], [[3.0, 4.0]]).tolist()
    [[144.0]]
    """

    degree: int = 3
    gamma: float = 1.0
    coef0: float = 0.0

    def values(self, A: Matrix, B: Matrix) -> Array:
        return (self.gamma * products(A, B) + self.coef0) ** self.degree

    @property
    def valid(self) -> bool:
        return self.gamma >= 0 and self.coef0 >= 0 and self.degree == int(self.degree) >= 0


@dataclass(frozen=True)
class Sigmoid(Kernel):
    """tanh(gamma x·z + coef0): not positive semidefinite on every table.

    >>> Sigmoid(gamma=0.1)([[1.0, 2.0]], [[3.0, 4.0]]).round(3).tolist()
    [[0.8]]
    """

    gamma: float = 1.0
    coef0: float = 0.0

    def values(self, A: Matrix, B: Matrix) -> Array:
        return np.tanh(self.gamma * products(A, B) + self.coef0)

    @property
    def valid(self) -> bool:
        return False


# -------------------------------------------------------------------------------------- kernels made of kernels
@dataclass(frozen=True)
class ConstantKernel(Kernel):
    """The same value for every two rows: what a number beside a kernel means."""

    value: float = 1.0

    def values(self, A: Matrix, B: Matrix) -> Array:
        return np.full((A.shape[0], B.shape[0]), self.value)

    @property
    def valid(self) -> bool:
        return self.value >= 0


@dataclass(frozen=True)
class KernelSum(Kernel):
    """k(x, z) + l(x, z)"""

    left: Kernel
    right: Kernel

    def values(self, A: Matrix, B: Matrix) -> Array:
        return self.left.values(A, B) + self.right.values(A, B)

    @property
    def valid(self) -> bool:
        return self.left.valid and self.right.valid


@dataclass(frozen=True)
class KernelProduct(Kernel):
    """k(x, z) l(x, z)"""

    left: Kernel
    right: Kernel

    def values(self, A: Matrix, B: Matrix) -> Array:
        return self.left.values(A, B) * self.right.values(A, B)

    @property
    def valid(self) -> bool:
        return self.left.valid and self.right.valid


@dataclass(frozen=True)
class ExponentialKernel(Kernel):
    """exp k(x, z)"""

    inner: Kernel

    def values(self, A: Matrix, B: Matrix) -> Array:
        return np.exp(self.inner.values(A, B))

    @property
    def valid(self) -> bool:
        return self.inner.valid


# ------------------------------------------------------------------------------ functions that may be no kernels
def is_psd(G: Any) -> Definite:
    """Is this Gram matrix positive semidefinite up to rounding? Where not, `witness` is a v with vᵀGv < 0.

    Parameters
    ----------
    G : array (n, n), symmetric

    >>> G = np.array([[1.0, 2.0], [2.0, 1.0]])
    >>> answer = is_psd(G)
    >>> bool(answer), bool(answer.witness @ G @ answer.witness < 0)
    (False, True)
    """
    return positive_definite(G, strict=False)


def project(G: Any) -> Array:
    """The positive semidefinite matrix nearest to a symmetric one: its negative eigenvalues become 0.

    >>> project([[1.0, 2.0], [2.0, 1.0]]).round(12).tolist()
    [[1.5, 1.5], [1.5, 1.5]]
    """
    return projected_gram(G).gram


class ProjectedGram(NamedTuple):
    """A symmetric matrix G = U diag(λ) Uᵀ without its negative part.

    In the space where G is an indefinite inner product, rows are projected onto the part where it is positive. A new
    row's values g with the n rows become g U 1{λ > 0} Uᵀ, which for the n rows themselves gives the matrix below.
    """

    gram: Array  # (n, n) U diag(max(λ, 0)) Uᵀ
    onto: Array  # (n, n) U 1{λ > 0} Uᵀ
    words: str  # what was done, for the certificate
    X: Matrix  # (n, d) the rows that G was made of, if any


def projected_gram(G: Any, X: Matrix = None) -> ProjectedGram:
    """Leave out the eigenvalues of a symmetric G (n, n) that are negative, or too small to tell."""
    G = np.asarray(G, dtype=np.float64)
    values, vectors = eigh((G + G.T) / 2)
    # next to the largest eigenvalue, those below 1e-8 of it have vectors that rounding decides: they count as 0
    kept = values > 1e-8 * float(np.abs(values).max())
    U, positive = vectors[:, kept], values[kept]
    P = (U * positive) @ U.T
    words = f"projected: its eigenvalues were {values[0]:.3g} to {values[-1]:.3g}, those below 0 became 0"
    return ProjectedGram((P + P.T) / 2, U @ U.T, words, X)


# ------------------------------------------------------------------------------------------- arithmetic of tables
def products(A: Matrix, B: Matrix) -> Array:
    """x·z for every row of A and of B, as an array."""
    P = A @ B.T
    return P.toarray() if sparse.issparse(P) else P


def dense_pair(A: Matrix, B: Matrix) -> tuple[Array, Array]:
    """Both tables as arrays; where both are sparse, without the columns in which neither has an entry."""
    if sparse.issparse(A) and sparse.issparse(B):
        used = np.union1d(A.indices, B.indices)
        A, B = A[:, used], B[:, used]
    A, B = (M.toarray() if sparse.issparse(M) else M for M in (A, B))
    return A, B


def squared_lengths(A: Matrix) -> Array:
    """|x|² of every row of A."""
    return np.asarray(A.multiply(A).sum(axis=1)).ravel() if sparse.issparse(A) else np.einsum("ij,ij->i", A, A)


def check_squares(X: Matrix) -> None:
    """Refuse a table with values so large that the squared distance of two rows may overflow."""
    values = X.data if sparse.issparse(X) else X
    largest = max(float(values.max(initial=0.0)), -float(values.min(initial=0.0)))
    if largest > np.sqrt(np.finfo(np.float64).max / (4 * max(X.shape[1], 1))):
        raise DataError(
            got="values so large that their squares overflow",
            wanted="rows whose squared distances are finite numbers",
            fix="Rescale the columns, for instance to unit variance.",
        )


def variance_of_entries(X: Matrix, w: Array, block_rows: int = 2048) -> float:
    """The variance of all entries of a table as one sample, rows counted by their weights w.

    `block_rows` is how many rows are copied at a time.

    >>> variance_of_entries(np.array([[0.0, 2.0], [4.0, 4.0]]), np.array([1.0, 0.5]))
    2.6666666666666665
    """
    d, total = X.shape[1], X.shape[1] * w.sum()
    mean = np.float64(w @ np.asarray(X.sum(axis=1, dtype=np.float64)).ravel() / total)  # float32 rows become float64
    if sparse.issparse(X):
        stored = np.diff(X.indptr)  # entries of each row; the others are 0
        each, z, rest = np.repeat(w, stored), X.data - mean, w @ (d - stored)
        sums, squares = each @ z - rest * mean, each @ z**2 + rest * mean**2
    else:
        parts = [slice(i, i + block_rows) for i in range(0, len(w), block_rows)]

        def moments(part: slice) -> Array:
            Z = X[part] - mean
            return np.array([w[part] @ Z.sum(axis=1), w[part] @ squared_lengths(Z)])

        sums, squares = np.sum(over_blocks(moments, parts), axis=0)
    # The mean is rounded: where entries hardly differ, what is left of it would count.
    variance = float(squares / total - (sums / total) ** 2)
    # Entries that are all the same differ from their mean by rounding alone.
    return 0.0 if max(variance, 0.0) ** 0.5 <= 16 * float(np.finfo(X.dtype).eps) * abs(float(mean)) else variance


def _table(A: Any) -> Matrix:
    return A.astype(np.float64) if sparse.issparse(A) else np.asarray(A, dtype=np.float64)


def _as_kernel(other: Kernel | float) -> Kernel:
    if isinstance(other, Kernel):
        return other
    if not isinstance(other, Real):
        raise DataError(got=f"a kernel with {other!r}", wanted="a kernel or a number beside it")
    return ConstantKernel(float(other))


# ------------------------------------------------------------------------------------------------- kernels by name
class KernelSettings(Protocol):
    """An estimator's parameters of its kernel, besides gamma."""

    degree: Any
    coef0: Any


KERNELS: dict[str, Callable[[KernelSettings, float], Kernel]] = {
    "linear": lambda model, gamma: Linear(),
    "poly": lambda model, gamma: Polynomial(model.degree, gamma, float(model.coef0)),
    "rbf": lambda model, gamma: RBF(gamma),
    "sigmoid": lambda model, gamma: Sigmoid(gamma, float(model.coef0)),
}
