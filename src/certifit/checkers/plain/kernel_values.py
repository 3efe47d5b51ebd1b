"""Values Σ coef k(·, x) of kernel machines in plain NumPy, of any float type, and how far rounding may move them.

By the bound of `checkers.plain.kernels`, every term is off by at most eps |coef| reach(x) reach(z). Roundings in a
sum of s terms add up like √s, since each is as likely to go up as down: all in all a value at z is off by at most

    eps (3 + √s / 5) Σ |coef| reach(x) · reach(z).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from certifit.checkers.plain.blocks import dense
from certifit.checkers.plain.kernels import PlainKernel, PlainLinear
from certifit.rows import Array
from certifit.rows.threads import parallel_map


@dataclass(frozen=True)
class PlainValueTuning:
    """How much the checker holds in memory at a time."""

    block_entries: int = 4_000_000  # entries of rows
    sparse_row_entries: int = 100  # entries that a CSR row is taken to have
    held_values: int = 250_000  # kernel values of a thread
    reach_rows: int = 64  # rows whose bound on rounding is computed at a time


class MachineValues(NamedTuple):
    """Values Σ coef k(·, x) of q machines at m rows, and how well they are known."""

    f: Array  # (m, q)
    error: Array  # (m,) how far any column of f may be off
    fuzz: float  # how far the slopes may be off, for rows of length 1
    slopes: Array | None  # (q, d) Σ coef (x - origin), for a linear kernel
    longest: float  # at least √k(x, x) of any of the m rows

    @classmethod
    def of(
        cls,
        kernel: PlainKernel,
        X: Any,
        at: Array,
        rows: Array,
        coef: Array,
        dtype: Any,
        tuning: PlainValueTuning = PlainValueTuning(),
    ) -> MachineValues:
        """The values at rows `at` of X, dense or CSR, of machines with coefficients (r, q) at rows `rows` of X."""
        rows, coef = rows[coef.any(axis=1)], coef[coef.any(axis=1)].astype(dtype)
        table = _PlainRows(X, sparse.issparse(X) and kernel.gains_by_longer, tuning)
        step = table.block_rows
        f, slopes, total = np.zeros((len(at), coef.shape[1]), dtype), None, 0.0
        for j in range(0, len(rows), step):
            centres, beta = table.take(rows[j : j + step], dtype), coef[j : j + step]
            total += float(np.abs(beta).sum(axis=1) @ table.reach(kernel, centres))
            if isinstance(kernel, PlainLinear):
                slopes = beta.T @ (centres - kernel.origin) + (0.0 if slopes is None else slopes)
                continue
            few = min(step, max(1, tuning.held_values // len(beta)))
            part = partial(_part, kernel, table, centres, beta)
            blocks = [at[i : i + few] for i in range(0, len(at), few)]
            # a user's function may not be safe on several threads
            threads = kernel.gains_by_longer
            f += np.concatenate(parallel_map(part, blocks) if threads else [part(block) for block in blocks])
        parts = [at[i : i + step] for i in range(0, len(at), step)]
        if isinstance(kernel, PlainLinear) and slopes is not None:
            f = np.concatenate([(table.take(part, dtype) - kernel.origin) @ slopes.T for part in parts])
        own = [table.reach(kernel, table.take(part, np.float64)) for part in parts]
        fuzz = float(np.finfo(dtype).eps) * (3 + np.sqrt(len(rows)) / 5) * total
        reach = np.concatenate(own)
        return cls(f, fuzz * reach, fuzz, slopes, float(reach.max(initial=0.0)))

    def intercept(self, kernel: PlainKernel, b: Any) -> tuple[Array, Array]:
        """Intercepts that go with values about a linear kernel's origin, and the error (m,) of values with them."""
        b = np.atleast_1d(np.asarray(b, self.f.dtype))
        error = self.error + 8 * np.finfo(self.f.dtype).eps * float(np.abs(b).max())
        if self.slopes is None or not isinstance(kernel, PlainLinear):
            return b, error
        level = (self.slopes[: len(b)] * kernel.origin).sum(axis=1)
        return b + level, error + self.fuzz * float(np.linalg.norm(kernel.origin))


class _PlainRows(NamedTuple):
    """Rows of which some are looked at, as float arrays or, where that saves work, as CSR."""

    X: Any  # (n, d)
    as_csr: bool
    tuning: PlainValueTuning

    @property
    def block_rows(self) -> int:
        entries = self.tuning.sparse_row_entries if self.as_csr else self.X.shape[1]
        return max(1, self.tuning.block_entries // entries)

    def take(self, rows: Array, dtype: Any) -> Any:
        """These rows, in this type."""
        return self.X[rows].astype(dtype) if self.as_csr else dense(self.X[rows]).astype(dtype, copy=False)

    def reach(self, kernel: PlainKernel, A: Any) -> Array:
        step = self.tuning.reach_rows
        return np.concatenate([kernel.reach(A[i : i + step]) for i in range(0, A.shape[0], step)])


def _part(kernel: PlainKernel, table: _PlainRows, centres: Any, beta: Array, at: Array) -> Array:
    return np.asarray(kernel(table.take(at, centres.dtype), centres) @ beta)
