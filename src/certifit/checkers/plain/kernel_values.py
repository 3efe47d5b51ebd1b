"""Values of kernel machines in plain NumPy, of any float type, and how far off rounding may have left them.

Roundings in a sum of s terms add up like √s: each of them is as likely to go up as down.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from certifit.checkers.plain.blocks import dense
from certifit.checkers.plain.kernels import Linear, Plain
from certifit.rows import Array
from certifit.rows.threads import parallel_map

SEVERAL = 64  # rows whose own kernel values are computed at a time
BLOCK = 4_000_000  # entries of rows held at a time
VALUE = 100  # entries that a sparse row is taken to have
VALUES = 250_000  # kernel values held at a time


class Values(NamedTuple):
    """Σ coef k(·, x) at some rows, and how well that is known."""

    f: Array  # (m, q)
    error: Array  # (m,) of any column
    fuzz: float  # of the slopes, if there are any
    slopes: Array | None  # (q, d) Σ coef (x - origin), of a linear kernel

    @classmethod
    def of(cls, kernel: Plain, X: Any, at: Array, rows: Array, coef: Array, dtype: Any) -> Values:
        """At rows `at` of X, dense or CSR, given the coefficients (r, q) of `rows`."""
        rows, coef = rows[coef.any(axis=1)], coef[coef.any(axis=1)].astype(dtype)
        thin = sparse.issparse(X) and kernel.longer
        wide = max(1, BLOCK // (VALUE if thin else X.shape[1]))
        f, slopes, total = np.zeros((len(at), coef.shape[1]), dtype), None, 0.0
        for j in range(0, len(rows), wide):
            centres, beta = _table(thin, X, rows[j : j + wide], dtype), coef[j : j + wide]
            total += float(np.abs(beta).sum(axis=1) @ _reach(kernel, centres))
            if isinstance(kernel, Linear):
                slopes = beta.T @ (centres - kernel.origin) + (0.0 if slopes is None else slopes)
                continue
            step = min(wide, max(1, VALUES // len(beta)))
            part = partial(_part, kernel, thin, X, centres, beta)
            blocks = [at[i : i + step] for i in range(0, len(at), step)]
            # somebody else's function may not be safe on several threads
            f += np.concatenate(parallel_map(part, blocks) if kernel.longer else [part(block) for block in blocks])
        if isinstance(kernel, Linear) and slopes is not None:
            parts = [_table(thin, X, at[i : i + wide], dtype) for i in range(0, len(at), wide)]
            f = np.concatenate([(part - kernel.origin) @ slopes.T for part in parts])
        own = [_reach(kernel, _table(thin, X, at[i : i + wide], np.float64)) for i in range(0, len(at), wide)]
        fuzz = float(np.finfo(dtype).eps) * (3 + np.sqrt(len(rows)) / 5) * total
        return cls(f, fuzz * np.concatenate(own), fuzz, slopes)

    def intercept(self, kernel: Plain, b: Any) -> tuple[Array, Array]:
        """Intercepts of the first columns, from where rows are measured, and the error (m,) of values with them."""
        b = np.atleast_1d(np.asarray(b, self.f.dtype))
        error = self.error + 8 * np.finfo(self.f.dtype).eps * float(np.abs(b).max())
        if self.slopes is None or not isinstance(kernel, Linear):
            return b, error
        level = (self.slopes[: len(b)] * kernel.origin).sum(axis=1)
        return b + level, error + self.fuzz * float(np.linalg.norm(kernel.origin))


def _part(kernel: Plain, thin: bool, X: Any, centres: Any, beta: Array, at: Array) -> Array:
    return np.asarray(kernel(_table(thin, X, at, centres.dtype), centres) @ beta)


def _table(thin: bool, X: Any, rows: Array, dtype: Any) -> Any:
    """These rows, as CSR if they are `thin`."""
    return X[rows].astype(dtype) if thin else dense(X[rows]).astype(dtype, copy=False)


def _reach(kernel: Plain, A: Any) -> Array:
    return np.concatenate([kernel.reach(A[i : i + SEVERAL]) for i in range(0, A.shape[0], SEVERAL)])
