"""PCA re-checked from the data: principal axes in order, their variances, and how much the best basis could add.

With θ the eigenvalues of B S Bᵀ, and E and C as in `pca_spectrum`, no k directions capture more than
tr BSBᵀ + k (λmax(E) - θ_k)₊ + |C|_*  (Ky Fan), and where θ_k > λmax(E) no more than
tr BSBᵀ + |C|²_F / (θ_k - λmax(E)). The mean squared reconstruction error is tr S - tr BSBᵀ. About zero instead of the
mean, the same is the low-rank approximation of the table by its leading singular vectors (Eckart & Young).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from certifit.checkers.decomposition.captured_variance import (
    Spectrum,
    covariance_spectrum,
    gram_spectrum,
    operator_spectrum,
)
from certifit.checkers.plain.blocks import dense
from certifit.core import Certificate, Check
from certifit.exceptions import DataError
from certifit.rows import Array, Block, Rows, Sums

CLAIM = "mean squared reconstruction error within gap of the smallest that any basis of this size can reach"
WIDE = 4096  # rows and columns beyond which neither S nor the Gram matrix is formed
NEARLY = 1.1  # beyond `WIDE`: how much more variance than the smallest kept a direction left out may have


@dataclass(frozen=True)
class _First(Sums):
    weight: float
    x: Array  # Σ w (x - origin)


def _first(origin: Array | None, block: Block) -> _First:
    X = block.X if origin is None else dense(block.X) - origin
    return _First(float(block.w.sum()), np.asarray(X.T @ block.w, dtype=np.float64))


def _second(m: Array, block: Block) -> Array:
    Z = dense(block.X) - m
    return (Z * block.w[:, None]).T @ Z


def _squares(m: Array, block: Block) -> Array:
    """Σ w (x - m)² by column; entries that are not stored are zeros."""
    X, w = block.X, block.w
    if not sparse.issparse(X):
        return w @ (X - m) ** 2
    each = np.repeat(w, np.diff(X.indptr))
    off = np.bincount(X.indices, each * (X.data - m[X.indices]) ** 2, len(m))
    return off + (w.sum() - np.bincount(X.indices, each, len(m))) * m**2


def _centred(m: Array, block: Block) -> Array:
    return (dense(block.X) - m) * np.sqrt(block.w)[:, None]


def _error(B: Array, m: Array, block: Block) -> float:
    Z = dense(block.X) - m
    return float(block.w @ ((Z - Z @ B.T @ B) ** 2).sum(axis=1))


def certify(
    components: Array,
    mean: Array,
    explained_variance: Array,
    tol: float,
    rows: Rows,
    ratio: Array | None = None,
    singular_values: Array | None = None,
) -> Certificate:
    """Check B (k, d), the mean and the variances (divided by Σ w - 1) on these rows.

    Shares of the total variance (k,) and singular values (k,) say the same again; they are checked where given.
    """
    B = np.asarray(components, dtype=np.float64)
    m, n = _mean(rows)
    if not n > 1:
        raise DataError(got=f"a total weight of {n:g}", wanted="more than 1: a variance needs two rows")
    spectrum, error = _measure(rows, m, n, B)
    found = assemble(spectrum, B, mean, explained_variance, m, n, tol, rows.dtype, error)
    loose = _loose(tol, rows.dtype)
    checks = list(found.checks)
    if ratio is not None and spectrum.total > 0:
        off = np.abs(np.asarray(ratio, np.float64) - spectrum.captured / spectrum.total)
        checks.append(Check("shares of the variance off by", float(off.max(initial=0.0)), loose))
    if singular_values is not None:
        sigma = np.asarray(singular_values, np.float64)
        off = np.abs(np.abs(sigma) * sigma - n * spectrum.captured)
        limit = loose * n * float(spectrum.captured.max(initial=0.0))
        checks.append(Check("squared singular values off by", float(off.max(initial=0.0)), limit))
    return replace(found, checks=tuple(checks))


def _loose(tol: float, dtype: Any) -> float:
    """The tolerance, or what is left of a variance where rows of this type are squared three deviations off zero."""
    return max(tol, 128 * float(np.finfo(dtype).eps))


def certify_svd(components: Array, singular_values: Array, tol: float, rows: Rows) -> Certificate:
    """Check right singular vectors (k, d) and their singular values: PCA about zero."""
    B = np.asarray(components, dtype=np.float64)
    n, zero = _mean(rows)[1], np.zeros(rows.n_features)
    spectrum, error = _measure(rows, zero, n, B)
    unbiased = n / (n - 1) if n > 1 else 1.0
    sigma = np.asarray(singular_values, np.float64)
    variances = unbiased * np.abs(sigma) * sigma / n  # a negative one does not pass for its square
    return assemble(spectrum, B, zero, variances, zero, n, tol, rows.dtype, error)


def _mean(rows: Rows) -> tuple[Array, float]:
    block = next(iter(rows))
    origin = None if sparse.issparse(block.X) else dense(block.X[:1])[0]
    first = rows.sum(partial(_first, origin))
    return first.x / first.weight + (0.0 if origin is None else origin), first.weight


def _measure(rows: Rows, m: Array, n: float, B: Array) -> tuple[Spectrum, float | None]:
    """What B captures about m, and the mean squared error row by row (not where each pass is dear)."""
    if min(rows.n_rows, rows.n_features) > WIDE:
        return operator_spectrum(rows, m, n, rows.sum(partial(_squares, m)) / n, B), None
    if rows.n_rows >= rows.n_features:
        spectrum = covariance_spectrum(rows.sum(partial(_second, m)) / n, B)
    else:
        spectrum = gram_spectrum(rows.map(partial(_centred, m)) / np.sqrt(n), B)
    return spectrum, rows.sum(partial(_error, B, m)) / n


def assemble(
    s: Spectrum,
    B: Array,
    mean: Array,
    variances: Array,
    m: Array,
    n: float,
    tol: float,
    dtype: Any,
    error: float | None = None,
) -> Certificate:
    """From the spectrum, the true mean m, the total weight n and, if it was summed, the row-by-row error."""
    k, eps = len(B), float(np.finfo(dtype).eps)
    more = k * max(0.0, s.rest - s.smallest) + s.leak_nuclear
    if s.smallest > s.rest:
        more = min(more, s.leak * (s.leak / (s.smallest - s.rest)))
    loose = _loose(tol, dtype)
    unbiased = n / (n - 1) if n > 1 else 1.0
    off = np.abs(np.asarray(mean, np.float64) - m) / (loose * s.spread + 8 * eps * np.abs(m) + np.finfo(float).tiny)
    wrong = np.abs(np.asarray(variances, np.float64) - unbiased * s.captured)
    largest = float(s.captured.max(initial=0.0))
    turned = float(np.abs(s.captured - s.ritz).max(initial=0.0))  # 0 for the principal axes, in their order, alone
    checks = [
        Check("basis orthonormal to", float(np.abs(B @ B.T - np.eye(k)).max(initial=0.0)), max(1e-10, 64 * eps)),
        Check("mean off, as a share of the tolerance", float(off.max(initial=0.0)), 1.0),
        Check("variances off by", float(wrong.max(initial=0.0)), loose * unbiased * largest),
        Check("axes turned within the plane, or out of order: variances off by", turned, loose * largest),
    ]
    if error is not None:
        mismatch = abs(error - (s.total - float(s.captured.sum())))
        checks.append(Check("error minus discarded variance", mismatch, max(1e-9, 64 * eps) * s.total))
    objective = s.discarded if error is None else error
    rounding = 4 * (len(s.spread) + 2) * np.finfo(float).eps * s.total
    bound = max(0.0, s.discarded - more - rounding)
    if not s.failure:
        return Certificate("optimal", CLAIM, objective, bound, tol, loose * s.total, tuple(checks))
    checks += [
        Check("residual of the eigenvectors", s.leak, np.sqrt(loose) * largest + rounding),
        Check("largest variance left out, at least", s.seen, s.smallest + s.leak + loose * largest + rounding),
        Check("largest variance left out, at most", s.rest, NEARLY * s.smallest + rounding),
    ]
    facts = {"given away at most": f"{max(0.0, objective - bound) / (s.total or 1.0):.2g} of the total variance"}
    claim = f"{CLAIM}, except with probability {s.failure:.0e} (over the checker's random start)"
    return Certificate("statistical", claim, objective, bound, tol, loose * s.total, tuple(checks), facts)
