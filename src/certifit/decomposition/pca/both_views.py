"""The two textbook definitions of PCA side by side: directions of most variance, and projection of least error.

    maximum variance   b_j = argmax of the variance of bᵀx over unit b, after b_1 … b_{j-1} are projected out;
                       V_j is that variance
    projection         encoder z = B (x - m), decoder x̃ = Bᵀ z + m with the first M directions as rows of B;
                       J_M = mean |x - x̃|²

They agree: V_j = λ_j, the j-th eigenvalue of the covariance, and J_M = λ_{M+1} + … + λ_d. Each is computed in its own
way: V by Lanczos on one deflated covariance after another, J from each row's reconstruction, λ by LAPACK.
Reference: Bishop, Pattern Recognition and Machine Learning (2006), sections 12.1.1 and 12.1.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from numbers import Integral
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import eigsh

from certifit.core.text_table import html_table, text_table
from certifit.decomposition.pca.linear_codes import encode
from certifit.exceptions import DataError
from certifit.numerics.moments import MeanAndScatter, scatter
from certifit.rows import Array, Block, Rows, as_rows


@dataclass(frozen=True, repr=False)
class TwoViews:
    """Both definitions on the same rows, printed as a table. Variances and errors are divided by Σ w."""

    mean: Array  # (d,) m
    directions: Array  # (k, d) B: unit vectors, each of most variance after the earlier ones are projected out
    variances: Array  # (k,) V: the variance along each of them
    eigenvalues: Array  # (d,) λ: of the covariance, descending
    errors: Array  # (k + 1,) J: mean squared error of codes of M = 0 … k numbers, summed row by row
    limit: float  # the largest difference that rounding explains

    @property
    def discarded(self) -> Array:
        """The sums of all eigenvalues but the first M = 0 … k, which `errors` should equal (k + 1,)."""
        # The smallest are added first.
        tails = np.cumsum(np.append(0.0, self.eigenvalues[::-1]))[::-1]
        return tails[: len(self.errors)]

    @property
    def holds(self) -> bool:
        """Whether V_j = λ_j and J_M = the sum of discarded eigenvalues, up to rounding."""
        variance = np.abs(self.variances - self.eigenvalues[: len(self.variances)])
        error = np.abs(self.errors - self.discarded)
        return bool((variance <= self.limit).all() and (error <= self.limit).all())

    def encode(self, X: Any, M: int | None = None) -> Array:
        """Return the codes z = B (x - m) of the rows of X (n, M), with M = k by default."""
        rows = as_rows(X, sparse=True)
        if rows.n_features != len(self.mean):
            raise DataError(got=f"rows of {rows.n_features} columns", wanted=f"{len(self.mean)}, as in two_views")
        return rows.map(partial(encode, self.mean, self._basis(M)))

    def decode(self, Z: Any) -> Array:
        """Return the rows x̃ = Bᵀ z + m (n, d) of codes (n, M)."""
        Z = np.atleast_2d(np.asarray(Z, dtype=np.float64))
        return Z @ self._basis(Z.shape[1]) + self.mean

    def _basis(self, M: int | None) -> Array:
        if M is not None and not 0 <= M <= len(self.directions):
            raise DataError(
                got=f"codes of {M} numbers",
                wanted=f"at most {len(self.directions)}, one for each direction found",
                fix="Ask two_views for more components.",
            )
        return self.directions[:M]

    def table(self) -> list[tuple[str, ...]]:
        """Return the headings, then a line for each M with the share of the variance that is kept."""
        total = float(self.eigenvalues.sum()) or 1.0
        kept = [f"{100 * max(1 - left / total, 0.0):.2f} %" for left in self.discarded]
        V, values = (["", *self._numbers(a[: len(self.variances)])] for a in (self.variances, self.eigenvalues))
        M = map(str, range(len(self.errors)))
        columns = zip(M, V, values, self._numbers(self.errors), self._numbers(self.discarded), kept, strict=True)
        return [("M", "variance V", "eigenvalue λ", "error J", "discarded λ", "share kept"), *columns]

    def _numbers(self, values: Array) -> list[str]:
        return [f"{v:.8g}" if abs(v) > self.limit else "0" for v in values]

    def _verdict(self) -> str:
        return f"V = λ and J = discarded λ, to {self.limit:.2g}: {'yes' if self.holds else 'NO'}"

    def __str__(self) -> str:
        return text_table(self.table(), "r") + "\n" + self._verdict()

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return html_table(self.table(), "r") + f"<p>{self._verdict()}</p>"


def two_views(X: Any, n_components: int | None = None, sample_weight: Any = None) -> TwoViews:
    """Compute principal directions as those of most variance, and compare them with the code of least error.

    Parameters
    ----------
    X : any table that `fit` takes; its covariance (d, d) must fit in memory
    n_components : how many directions; None for as many as columns. Each adds O(n d) operations
    sample_weight : array of non-negative row weights, or the name of a column in X

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> views = two_views(load_iris().data)
    >>> print(views)
    M   variance V  eigenvalue λ      error J  discarded λ  share kept
    0                               4.5424707    4.5424707      0.00 %
    1    4.2000534     4.2000534   0.34241724   0.34241724     92.46 %
    2   0.24105294    0.24105294    0.1013643    0.1013643     97.77 %
    3  0.077688103   0.077688103  0.023676192  0.023676192     99.48 %
    4  0.023676192   0.023676192            0            0    100.00 %
    V = λ and J = discarded λ, to ...: yes
    >>> views.decode(views.encode([[5.0, 3.5, 1.4, 0.2]], M=2)).round(2)
    array([[5.03, 3.47, 1.38, 0.21]])
    """
    rows = as_rows(X, sample_weight=sample_weight, sparse=True)
    d = rows.n_features
    k = d if n_components is None else n_components
    if not (isinstance(k, Integral) and 1 <= k <= d):
        raise DataError(got=f"n_components={k!r}", wanted=f"a whole number from 1 to the {d} columns, or None")
    s = scatter(rows)
    return compare_views(rows, s, *deflate(s.S / s.weight, int(k)))


def compare_views(rows: Rows, s: MeanAndScatter, directions: Array, variances: Array) -> TwoViews:
    """Compare directions (k, d) and their variances (k,) with the eigenvalues and the rows' errors."""
    d, S = rows.n_features, s.S / s.weight
    total = float(np.trace(S))
    errors = rows.sum(partial(_error_sums, s.mean, directions)) / s.weight
    eps = float(np.finfo(float).eps)
    limit = (64 * float(np.finfo(rows.dtype).eps) + 4 * d * eps) * total + float(((eps * s.mean) ** 2).sum())
    eigenvalues = np.maximum(np.linalg.eigvalsh(S)[::-1], 0.0)
    return TwoViews(s.mean, directions, variances, eigenvalues, errors, limit)


def deflate(S: Array, k: int) -> tuple[Array, Array]:
    """Return directions (k, d) and variances (k,), each of most variance after the earlier ones are projected out.

    >>> deflate(np.diag([1.0, 9.0, 4.0]), 2)[1].round(12)
    array([9., 4.])
    """
    d, left = len(S), S
    # A random start is orthogonal to no eigenvector.
    start = np.random.default_rng(0).normal(size=d)
    rounding = d * np.finfo(float).eps * float(np.trace(S))
    B, V = np.empty((0, d)), np.zeros(k)
    while len(B) < min(k, d - 1) and np.trace(left) > rounding:
        b = eigsh(left, k=1, which="LA", v0=start, ncv=min(d, 64))[1][:, 0]
        b -= B.T @ (B @ b)
        b /= np.linalg.norm(b)
        c = left @ b
        V[len(B)] = b @ c
        # S is multiplied by I - bbᵀ from both sides.
        left = left - np.outer(b, c) - np.outer(c, b) + (b @ c) * np.outer(b, b)
        B = np.vstack([B, b])
    # Only one direction is left, or no variance.
    rest = np.linalg.qr(B.T, mode="complete")[0].T[len(B) : k]
    V[len(B) :] = ((rest @ left) * rest).sum(axis=1)
    return np.vstack([B, rest]), V


def _error_sums(mean: Array, B: Array, block: Block) -> Array:
    """Return Σ w |x - x̃|² for codes of 0, 1, … k numbers; each row is reconstructed one direction at a time."""
    X = block.X.toarray() if sparse.issparse(block.X) else block.X
    # x - x̃ (rows, d), and the codes (rows, k)
    residual = X - mean
    Z = residual @ B.T
    sums = [block.w @ (residual**2).sum(axis=1)]
    for z, b in zip(Z.T, B, strict=True):
        residual -= z[:, None] * b
        sums.append(block.w @ (residual**2).sum(axis=1))
    return np.array(sums)
