"""The checker of PCA: principal axes in their order, their variances, and how much better any basis could be.

Claim: the mean squared reconstruction error, tr S - tr BSBᵀ, is within the gap of the smallest that any k directions
reach. With θ the eigenvalues of BSBᵀ, and E and C as in `captured_variance`, no k directions capture more than
    tr BSBᵀ + k (λmax(E) - θ_k)₊ + |C|_*            (Ky Fan's inequality), and where θ_k > λmax(E) no more than
    tr BSBᵀ + |C|²_F / (θ_k - λmax(E)).
Everything is recomputed from the rows: the mean, S (or the centred rows, or products with S), the variance that B
captures, and the reconstruction error row by row, which must equal the discarded variance. The checker uses no code
of the solver. With zero in place of the mean, the same inequalities prove the low-rank approximation of a table by
its leading singular vectors (Eckart & Young, 1936).
Reference: Fan, "On a theorem of Weyl concerning eigenvalues of linear transformations I" (1949).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from certifit.checkers.decomposition.captured_variance import (
    CapturedVariance,
    PCACheckTuning,
    measure_centred_rows,
    measure_covariance,
    measure_operator,
)
from certifit.checkers.plain.blocks import dense
from certifit.core import Certificate, Check
from certifit.exceptions import DataError
from certifit.rows import Array, Block, Rows, Sums


class PCAClaim(NamedTuple):
    """The fitted attributes of a PCA. The last two repeat the variances and are checked where given."""

    components: Array  # (k, d) B
    mean: Array  # (d,)
    explained_variance: Array  # (k,) divided by Σ w - 1
    explained_variance_ratio: Array | None = None  # (k,)
    singular_values: Array | None = None  # (k,)


class PCAMeasured(NamedTuple):
    """The same quantities, as the checker computes them from the rows."""

    mean: Array  # (d,)
    weight: float  # Σ w
    variance: CapturedVariance
    error: float | None = None  # mean squared reconstruction error, or None where it was not summed row by row


def certify(claim: PCAClaim, tol: float, rows: Rows, *, tuning: PCACheckTuning = PCACheckTuning()) -> Certificate:
    """Check the axes, the mean and the variances of a PCA on these rows."""
    claim = claim._replace(components=np.asarray(claim.components, dtype=np.float64))
    m, n = _mean(rows)
    if not n > 1:
        raise DataError(got=f"a total weight of {n:g}", wanted="more than 1: a variance needs two rows")
    measured = _measure(rows, m, n, claim.components, tuning)
    found = certify_measured(claim, measured, tol, rows.dtype, tuning=tuning)
    variance, allowed = measured.variance, _allowed(tol, rows.dtype)
    checks = list(found.checks)
    if claim.explained_variance_ratio is not None and variance.total > 0:
        off = np.abs(np.asarray(claim.explained_variance_ratio, np.float64) - variance.captured / variance.total)
        checks.append(Check("shares of the variance off by", float(off.max(initial=0.0)), allowed))
    if claim.singular_values is not None:
        sigma = np.asarray(claim.singular_values, np.float64)
        off = np.abs(np.abs(sigma) * sigma - n * variance.captured)
        limit = allowed * n * float(variance.captured.max(initial=0.0))
        checks.append(Check("squared singular values off by", float(off.max(initial=0.0)), limit))
    return replace(found, checks=tuple(checks))


def certify_svd(
    components: Array, singular_values: Array, tol: float, rows: Rows, *, tuning: PCACheckTuning = PCACheckTuning()
) -> Certificate:
    """Check right singular vectors (k, d) and singular values (k,), as a PCA with zero in place of the mean."""
    B = np.asarray(components, dtype=np.float64)
    n, zero = _mean(rows)[1], np.zeros(rows.n_features)
    measured = _measure(rows, zero, n, B, tuning)
    unbiased = n / (n - 1) if n > 1 else 1.0
    sigma = np.asarray(singular_values, np.float64)
    # With |σ| σ a negative singular value fails, where σ² would pass.
    claim = PCAClaim(B, zero, unbiased * np.abs(sigma) * sigma / n)
    return certify_measured(claim, measured, tol, rows.dtype, tuning=tuning)


def certify_measured(
    claim: PCAClaim, measured: PCAMeasured, tol: float, dtype: Any, *, tuning: PCACheckTuning = PCACheckTuning()
) -> Certificate:
    """Write the certificate from what was measured on rows of this type."""
    B, s, m, n = claim.components, measured.variance, measured.mean, measured.weight
    k, eps, allowed = len(B), float(np.finfo(dtype).eps), _allowed(tol, dtype)
    unbiased = n / (n - 1) if n > 1 else 1.0
    mean_limit = allowed * s.deviations + 8 * eps * np.abs(m) + np.finfo(float).tiny
    mean_off = np.abs(np.asarray(claim.mean, np.float64) - m) / mean_limit
    variance_off = np.abs(np.asarray(claim.explained_variance, np.float64) - unbiased * s.captured)
    largest = float(s.captured.max(initial=0.0))
    # This is 0 only for the principal axes in their order.
    turned = float(np.abs(s.captured - s.ritz).max(initial=0.0))
    checks = [
        Check("basis orthonormal to", float(np.abs(B @ B.T - np.eye(k)).max(initial=0.0)), max(1e-10, 64 * eps)),
        Check("mean off, as a share of the tolerance", float(mean_off.max(initial=0.0)), 1.0),
        Check("variances off by", float(variance_off.max(initial=0.0)), allowed * unbiased * largest),
        Check("axes turned within the plane, or out of order: variances off by", turned, allowed * largest),
    ]
    if measured.error is not None:
        mismatch = abs(measured.error - (s.total - float(s.captured.sum())))
        checks.append(Check("error minus discarded variance", mismatch, max(1e-9, 64 * eps) * s.total))
    objective = s.discarded if measured.error is None else measured.error
    rounding = 4 * (len(s.deviations) + 2) * np.finfo(float).eps * s.total
    bound = max(0.0, s.discarded - _most_to_gain(s, k) - rounding)
    claimed = "mean squared reconstruction error within gap of the smallest that any basis of this size can reach"
    if not s.failure:
        return Certificate("optimal", claimed, objective, bound, tol, allowed * s.total, tuple(checks))
    checks += [
        Check("residual of the eigenvectors", s.leak, np.sqrt(allowed) * largest + rounding),
        Check("largest variance left out, at least", s.rest_seen, s.smallest + s.leak + allowed * largest + rounding),
        Check("largest variance left out, at most", s.rest, tuning.variance_left_out * s.smallest + rounding),
    ]
    facts = {"given away at most": f"{max(0.0, objective - bound) / (s.total or 1.0):.2g} of the total variance"}
    claimed += f", except with probability {s.failure:.0e} (over the checker's random start)"
    return Certificate("statistical", claimed, objective, bound, tol, allowed * s.total, tuple(checks), facts)


def _most_to_gain(s: CapturedVariance, k: int) -> float:
    """Return how much more variance than the basis any k directions can capture, by Ky Fan's inequality."""
    more = k * max(0.0, s.rest - s.smallest) + s.leak_nuclear
    return min(more, s.leak * (s.leak / (s.smallest - s.rest))) if s.smallest > s.rest else more


def _allowed(tol: float, dtype: Any) -> float:
    """Return the tolerance, but no less than the rounding of variances computed from rows of this type."""
    return max(tol, 128 * float(np.finfo(dtype).eps))


# ------------------------------------------------------------------------------------ sums over the rows
def _measure(rows: Rows, m: Array, n: float, B: Array, tuning: PCACheckTuning) -> PCAMeasured:
    """Measure the variance that B captures about m and, unless the table is very large, the error row by row."""
    if min(rows.n_rows, rows.n_features) > tuning.largest_order:
        variances = rows.sum(partial(_squares, m)) / n
        return PCAMeasured(m, n, measure_operator(rows, m, n, variances, B, tuning))
    if rows.n_rows >= rows.n_features:
        variance = measure_covariance(rows.sum(partial(_scatter, m)) / n, B)
    else:
        variance = measure_centred_rows(rows.map(partial(centred_rows, m)) / np.sqrt(n), B)
    return PCAMeasured(m, n, variance, rows.sum(partial(_error, B, m)) / n)


@dataclass(frozen=True)
class _MeanSums(Sums):
    weight: float  # Σ w
    x: Array  # (d,) Σ w (x - origin)


def _mean(rows: Rows) -> tuple[Array, float]:
    """Return the mean (d,) and the total weight."""
    block = next(iter(rows))
    origin = None if sparse.issparse(block.X) else dense(block.X[:1])[0]
    sums = rows.sum(partial(_mean_sums, origin))
    return sums.x / sums.weight + (0.0 if origin is None else origin), sums.weight


def _mean_sums(origin: Array | None, block: Block) -> _MeanSums:
    X = block.X if origin is None else dense(block.X) - origin
    return _MeanSums(float(block.w.sum()), np.asarray(X.T @ block.w, dtype=np.float64))


def _scatter(m: Array, block: Block) -> Array:
    """Return Σ w (x - m)(x - m)ᵀ (d, d)."""
    Z = dense(block.X) - m
    return (Z * block.w[:, None]).T @ Z


def _squares(m: Array, block: Block) -> Array:
    """Return Σ w (x - m)² of each column (d,); entries that a CSR matrix does not store are zeros."""
    X, w = block.X, block.w
    if not sparse.issparse(X):
        return w @ (X - m) ** 2
    each = np.repeat(w, np.diff(X.indptr))
    off = np.bincount(X.indices, each * (X.data - m[X.indices]) ** 2, len(m))
    return off + (w.sum() - np.bincount(X.indices, each, len(m))) * m**2


def centred_rows(m: Array, block: Block) -> Array:
    """Return the rows sqrt(w) (x - m)."""
    return (dense(block.X) - m) * np.sqrt(block.w)[:, None]


def _error(B: Array, m: Array, block: Block) -> float:
    """Return Σ w |x - x̃|², row by row."""
    Z = dense(block.X) - m
    return float(block.w @ ((Z - Z @ B.T @ B) ** 2).sum(axis=1))
