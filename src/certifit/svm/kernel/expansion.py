"""Values of a kernel between two tables, and of the machines Σ βⱼ k(x, zⱼ) made of it, some rows at a time.

| kernel and rows | how values are computed |
|---|---|
| RBF, dense rows that are not extremely far apart | `RadialTable`: one matrix product, then exponentials in place |
| the same, where float32 is accurate enough | the same in float32, with compiled exponentials |
| any other kernel or function | `evaluate`: the function itself, its answer checked |
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from certifit.exceptions import DataError
from certifit.optimise.working_sets import over_blocks
from certifit.rows import Array
from certifit.rows.block import Matrix
from certifit.svm.kernel.exponential_loops import exp_single
from certifit.svm.kernel.kernels import RBF, squared_lengths


@dataclass(frozen=True)
class KernelValueTuning:
    """How many kernel values are computed and kept at a time, and when they may be float32."""

    block_columns: int = 1024  # columns of a kernel row that a thread computes at a time,
    block_rows: int = 256  # for so many rows, if they are not kept
    diagonal_rows: int = 64  # rows whose k(x, x) are computed at a time
    kept_rows: int = 512  # most rows of a working set whose kernel rows are kept
    kept_columns: int = 4096  # columns of kept kernel rows that a thread adds up at a time
    narrow_columns: int = 64  # of a table: so few make float32 values of an RBF as fast to compute again as to keep
    held_values: int = 500_000  # kernel values that a thread holds at a time to evaluate machines
    single_exponent: float = 16.0  # γ |x - mean|² up to which an RBF in float32 has an error of about 1e-6
    single_norm: float = 100.0  # |β| up to which errors of that size do not matter in a machine's values
    longer_work: int = 10_000_000  # entries of support vectors times machines whose slopes get the longest type


def evaluate(kernel: Callable[[Any, Any], Any], A: Matrix, B: Matrix) -> Array:
    """kernel(A, B), refused unless it is an array (rows of A, rows of B) of finite numbers."""
    with np.errstate(over="ignore", invalid="ignore"):  # refused below
        K = kernel(A, B)
    K = K.toarray() if sparse.issparse(K) else np.asarray(K)
    wanted = (A.shape[0], B.shape[0])
    if K.shape != wanted:
        raise DataError(
            got=f"a kernel that gives an array of shape {K.shape}",
            wanted=f"shape {wanted} for tables of {wanted[0]} and {wanted[1]} rows",
            fix="kernel(A, B) must give k(x, z) for every row x of A and z of B.",
        )
    if K.dtype.kind not in "biuf":
        raise DataError(got=f"a kernel that gives values of type {K.dtype}", wanted="real numbers")
    K = K.astype(np.float64, copy=False)
    if not np.isfinite(K).all():
        raise DataError(
            got="a kernel with values that are not finite numbers",
            wanted="finite values for every pair of rows",
            fix="Rescale the columns, for instance to unit variance.",
        )
    return K


class RadialTable:
    """Dense rows arranged so that one matrix product gives the exponents of exp(-γ |x - z|²).

    With u = √(2γ) (x - centre) and v the same of z,  -γ |x - z|² = u·v - |u|²/2 - |v|²/2:  the product of a row
    [u, 1, -|u|²/2] of the left factor with a row [v, -|v|²/2, 1] of the right one, which is this table.
    """

    def __init__(self, X: Array, gamma: float, single: bool, tuning: KernelValueTuning) -> None:
        """`single` allows float32, which is used if no row is too far from the mean."""
        n, d = X.shape
        self.gamma, self.centre = gamma, X.mean(axis=0, dtype=np.float64)
        parts = [slice(a, a + tuning.block_columns) for a in range(0, n, tuning.block_columns)]
        half = gamma * np.concatenate(over_blocks(lambda part: squared_lengths(X[part] - self.centre), parts))
        self.dtype = np.dtype(np.float32 if single and half.max() <= tuning.single_exponent else np.float64)
        self.right = np.empty((n, d + 2), self.dtype)

        def fill(part: slice) -> None:
            self._scale(X[part], self.right[part])

        over_blocks(fill, parts)
        self.right[:, d], self.right[:, d + 1] = -half, 1.0

    def _scale(self, X: Array, out: Array) -> None:
        np.multiply(X - self.centre, np.sqrt(2 * self.gamma), out=out[:, :-2], casting="same_kind")

    def left(self, X: Array) -> Array:
        """Other rows (m, d) as a left factor (m, d + 2)."""
        out = np.empty((len(X), X.shape[1] + 2), self.dtype)
        self._scale(X, out)
        out[:, -2], out[:, -1] = 1.0, -self.gamma * squared_lengths(X - self.centre)
        return out

    def left_of_own(self, rows: Array) -> Array:
        """Some of the table's own rows, by number, as a left factor."""
        out = self.right[rows]
        out[:, [-2, -1]] = out[:, [-1, -2]]
        return out


def radial_values(left: Array, right: Array) -> Array:
    """exp(-γ |x - z|²) of a left and a right factor, computed in place: one table of values is enough."""
    out = left @ right.T
    if out.dtype == np.float32:
        exp_single(out)
        return out
    np.minimum(out, 0, out=out)
    return np.exp(out, out=out)


class Expansion:
    """The function x -> Σ βⱼ k(x, zⱼ) of tables of x, evaluated some rows at a time."""

    def __init__(
        self, kernel: Callable[[Any, Any], Any], centres: Matrix, beta: Array, tuning: KernelValueTuning
    ) -> None:
        self.kernel, self.centres, self.beta = kernel, centres, beta  # centres (s, d), beta (s, machines)
        self.tuning = tuning

    def __call__(self, X: Matrix) -> Array:
        if not len(self.beta):
            return np.zeros((X.shape[0], self.beta.shape[1]))
        step = max(1, self.tuning.held_values // len(self.beta))
        return np.concatenate([self._part(X[i : i + step]) for i in range(0, X.shape[0], step)])

    def _part(self, X: Matrix) -> Array:
        return evaluate(self.kernel, X, self.centres) @ self.beta


class RadialExpansion(Expansion):
    """An expansion in an RBF at dense centres; in float32 where rows are and it is accurate enough."""

    def __init__(self, kernel: RBF, centres: Array, beta: Array, float64: bool, tuning: KernelValueTuning) -> None:
        super().__init__(kernel, centres, beta, tuning)
        steepest = float(np.square(beta).sum(axis=0).max())
        single = not float64 and centres.dtype == np.float32 and steepest <= tuning.single_norm**2
        self.table = RadialTable(centres, kernel.gamma, single, tuning)

    def _part(self, X: Matrix) -> Array:
        X = X.toarray() if sparse.issparse(X) else X
        return radial_values(self.table.left(X), self.table.right) @ self.beta.astype(self.table.dtype)


def expansion(
    kernel: Callable[[Any, Any], Any],
    centres: Matrix,
    beta: Array,
    *,
    float64: bool = False,
    tuning: KernelValueTuning = KernelValueTuning(),
) -> Expansion:
    """The machines with coefficients beta (s, machines) at centres (s, d); `float64` whatever the rows are."""
    if isinstance(kernel, RBF) and len(beta) and not sparse.issparse(centres) and kernel.by_product(centres):
        return RadialExpansion(kernel, centres, beta, float64, tuning)
    return Expansion(kernel, centres, beta, tuning)
