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
    ErrorBeside,
    PCACheckTuning,
    digits_of_own_fit,
    error_beside,
    measure_centred_rows,
    measure_covariance,
    measure_operator,
    orthonormal_rows,
    upper_bound,
)
from certifit.checkers.linalg.eigenvalue_bounds import EPS, worst_entry
from certifit.checkers.plain.blocks import dense
from certifit.core import Certificate, Check
from certifit.exceptions import DataError
from certifit.rows import Array, Block, Rows, Sums, transpose


class PCAClaim(NamedTuple):
    """The fitted attributes of a PCA. All after the third repeat the variances and are checked where given."""

    components: Array  # (k, d) B
    mean: Array  # (d,)
    explained_variance: Array  # (k,) divided by Σ w - 1
    explained_variance_ratio: Array | None = None  # (k,)
    singular_values: Array | None = None  # (k,)
    noise_variance: float | None = None  # the mean of the variances left out


class PCAMeasured(NamedTuple):
    """The same quantities, as the checker computes them from the rows."""

    mean: Array  # (d,)
    weight: float  # Σ w
    variance: CapturedVariance
    n_used: int  # rows with w > 0
    error: float | None = None  # mean squared reconstruction error, or None where it was not summed row by row
    beside: ErrorBeside | None = None  # where rounding of the total is more than that error

    @property
    def unbiased(self) -> float:
        """The factor that turns variances divided by Σ w into variances divided by Σ w - 1."""
        return self.weight / (self.weight - 1) if self.weight > 1 else 1.0

    @property
    def directions(self) -> int:
        """The number of directions that can have variance: columns, or rows, where a weight of 2 makes two rows."""
        return min(len(self.mean), max(int(self.weight), self.n_used))


def certify(
    claim: PCAClaim, tol: float, rows: Rows, solver: str = "", *, tuning: PCACheckTuning = PCACheckTuning()
) -> Certificate:
    """Check the axes, the mean and the variances of a PCA on these rows, by our own `solver` where it is named."""
    measured = measure(claim.components, rows, tuning)
    digits = digits_of_own_fit(rows, measured.variance, solver, tuning) if solver else rows.dtype
    return certify_measured(claim, measured, tol, digits, tuning=tuning)


def measure(components: Array, rows: Rows, tuning: PCACheckTuning = PCACheckTuning()) -> PCAMeasured:
    """Measure what the basis B (k, d) captures of these rows about their mean."""
    sums = _mean(rows)
    if not sums.weight > 1:
        raise DataError(got=f"a total weight of {sums.weight:g}", wanted="more than 1: a variance needs two rows")
    return _measure(rows, sums, np.asarray(components, np.float64), tuning)


class SVDClaim(NamedTuple):
    """The fitted attributes of a truncated SVD. The last two are checked where given."""

    components: Array  # (k, d)
    singular_values: Array  # (k,)
    explained_variance: Array | None = None  # (k,) of the codes, divided by Σ w
    explained_variance_ratio: Array | None = None  # (k,)


def certify_svd(
    claim: SVDClaim, tol: float, rows: Rows, solver: str = "", *, tuning: PCACheckTuning = PCACheckTuning()
) -> Certificate:
    """Check right singular vectors (k, d) and singular values (k,), as a PCA with zero in place of the mean."""
    B = np.asarray(claim.components, dtype=np.float64)
    sums = _mean(rows)
    n, m = sums.weight, sums.x
    measured = _measure(rows, sums.about(np.zeros(rows.n_features)), B, tuning)
    sigma = np.asarray(claim.singular_values, np.float64)
    # With |σ| σ a negative singular value fails, where σ² would pass.
    about_zero = PCAClaim(B, np.zeros(rows.n_features), measured.unbiased * np.abs(sigma) * sigma / n)
    digits = digits_of_own_fit(rows, measured.variance, solver, tuning) if solver else rows.dtype
    found = certify_measured(about_zero, measured, tol, digits, tuning=tuning)
    if claim.explained_variance is None and claim.explained_variance_ratio is None:
        return found
    variances, total = rows.sum(partial(_code_squares, B, m)) / n, float(rows.sum(partial(_squares, m)).sum()) / n
    eps, rounding = float(np.finfo(digits).eps), measured.variance.rounding(np.float64)
    limit = (tol + 128 * eps) * variances + 32 * eps * total + rounding
    return replace(found, checks=(*found.checks, *_check_shares(claim, variances, total, limit)))


def _check_shares(claim: SVDClaim, variances: Array, total: float, limit: Array) -> list[Check]:
    """Check the variances of codes and their shares in the variance of the columns."""
    checks = []
    if claim.explained_variance is not None:
        checks.append(worst("variances of the codes off by", claim.explained_variance - variances, limit))
    if claim.explained_variance_ratio is not None:
        off, size = np.asarray(claim.explained_variance_ratio) - variances / (total or 1.0), total or 1.0
        checks.append(worst("shares of the variance off by", off, limit / size))
    return checks


def certify_measured(
    claim: PCAClaim, measured: PCAMeasured, tol: float, dtype: Any, *, tuning: PCACheckTuning = PCACheckTuning()
) -> Certificate:
    """Write the certificate from what was measured on rows of this type."""
    claim = claim._replace(components=np.asarray(claim.components, dtype=np.float64))
    # Rows far from zero have a mean that is rounded in its last digits, and rows that are all the same a variance.
    far = variance_of_rounding(measured.mean)
    s = replace(measured.variance, mean_rounding=measured.variance.mean_rounding + far)
    measured, B = measured._replace(variance=s), claim.components
    rounding = s.rounding_outside(B, dtype) + _faint(s, tol)
    off = np.asarray(claim.mean, np.float64) - measured.mean
    # Another centre than the mean adds its distance to the plane to the error of every row.
    shifted = float(((off - B.T @ (B @ off)) ** 2).sum())
    objective = (s.discarded if measured.error is None else measured.error) + shifted
    limit = tol * objective + rounding + s.rounding(np.float64)
    scale = s.total + 4 * (s.mean_rounding + rounding - s.rounding(dtype))
    moved = Check("error that the distance of the mean adds", shifted, _shift_limit(s, tol, dtype))
    bound = max(0.0, s.discarded - _most_to_gain(s, len(B)) - s.rounding(np.float64))
    checks = [*_check_axes(claim, measured, tol, dtype), moved, *_check_repeated(claim, measured, tol, dtype)]
    claimed = "mean squared reconstruction error within gap of the smallest that any basis of this size can reach"
    facts: dict[str, float | str] = {}
    hidden = int((s.captured <= s.rounding_along(B, dtype) + _faint(s, tol)).sum())
    if hidden:
        facts["axes of which nothing is proved"] = f"{hidden} of {len(B)}: rounding beside the others hides them"
    if measured.error is not None and _below_digits(s, objective, dtype):
        # Beside large axes the total has no digits left for the error: residual rows have, as far as the axes do.
        scale = objective
        if measured.beside is not None:
            rounding = measured.beside.rounding + s.mean_rounding
            limit, bound = tol * objective + 2 * rounding, max(0.0, measured.beside.least - rounding)
        facts["error below the last digits of the total"] = (
            f"a total variance of {s.total:.3g} is rounded by {s.rounding(np.float64):.2g}; where this proves too "
            "little, scale the columns or leave out rows that are far larger than the others"
        )
    if not s.failure:
        return Certificate("optimal", claimed, objective, bound, tol, limit, tuple(checks), facts, scale=scale)
    # No direction may have more variance than the smallest that is kept, but for what Lanczos steps cannot tell.
    most, excess = (1 + tol) * s.smallest + s.leak, tuning.lanczos_excess(len(measured.mean))
    checks += [
        Check("given away by the residual of the eigenvectors, about", s.leak_loss, limit),
        Check("largest variance left out, at least", s.rest_seen, most + rounding),
        Check("largest variance left out, at most", s.rest, (1 + excess) * most + rounding),
    ]
    facts["given away at most"] = f"{max(0.0, objective - bound) / (s.total or 1.0):.2g} of the total variance"
    claimed += f", except with probability {s.failure:.0e} (over the checker's random start)"
    return Certificate("statistical", claimed, objective, bound, tol, limit, tuple(checks), facts, scale=scale)


def _check_axes(claim: PCAClaim, measured: PCAMeasured, tol: float, dtype: Any) -> list[Check]:
    """Check basis, mean and variances, each variance relative to itself."""
    B, s, m, unbiased = claim.components, measured.variance, measured.mean, measured.unbiased
    data_eps, rounding = float(np.finfo(dtype).eps), s.rounding_along(B, dtype) + _faint(s, tol)
    skew = float(np.abs(B @ B.T - np.eye(len(B))).max(initial=0.0))
    mean_limit = (tol + 128 * EPS) * s.deviations + 16 * EPS * np.abs(m) + np.finfo(float).tiny
    # A mean summed row after row in the digits of the rows is allowed as far as its square stays below the tolerance
    # in units of the column's own variance: beside the total, a column of small values could be off by any number.
    mean_limit += np.minimum(measured.n_used * data_eps * np.abs(m), np.sqrt(tol) * s.deviations)
    off = np.asarray(claim.explained_variance, np.float64) - unbiased * s.captured
    checks = [
        Check("basis orthonormal to", skew, max(1e-10, 64 * data_eps)),
        worst("mean off by", np.asarray(claim.mean, np.float64) - m, mean_limit),
        worst("variances off by", off, unbiased * (tol * np.abs(s.captured) + rounding)),
        # This is 0 only for the principal axes in their order.
        worst(
            "axes turned within the plane, or out of order: variances off by",
            s.captured - s.ritz,
            tol * np.abs(s.ritz) + rounding,
        ),
    ]
    if measured.error is not None:
        captured = float(s.captured.sum())
        mismatch, outside = abs(measured.error - (s.total - captured)), s.rounding_outside(B, dtype) + _faint(s, tol)
        checks.append(Check("error minus discarded variance", mismatch, len(B) * skew * captured + outside))
    return checks


def _check_repeated(claim: PCAClaim, measured: PCAMeasured, tol: float, dtype: Any) -> list[Check]:
    """Check the attributes that repeat the variances in other units, where they are given."""
    s, n, k, checks = measured.variance, measured.weight, len(claim.components), []
    along, outside = s.rounding_along(claim.components, dtype), s.rounding_outside(claim.components, dtype)
    allowed = tol * np.abs(s.captured) + along + _faint(s, tol)
    if claim.explained_variance_ratio is not None:
        # Where nothing varies, other libraries write the share 0 / 0.
        share = np.asarray(claim.explained_variance_ratio, np.float64)
        off = share - s.captured / s.total if s.total > 0 else np.nan_to_num(share)
        checks.append(worst("shares of the variance off by", off, allowed / (s.total if s.total > 0 else 1.0)))
    if claim.singular_values is not None:
        sigma = np.asarray(claim.singular_values, np.float64)
        off = np.abs(sigma) * sigma - n * s.captured
        checks.append(worst("squared singular values off by", off, n * allowed))
    if claim.noise_variance is not None:
        rest = s.total - float(s.captured.sum())
        each = measured.unbiased / max(1, measured.directions - k) * (k < measured.directions)
        off = np.atleast_1d(float(claim.noise_variance) - each * max(0.0, rest))
        # It is a difference of two numbers that are rounded beside the total: that total, and the sum of k variances.
        rounding = (k + 1) * s.rounding(dtype) + outside + (k + 2) * _faint(s, tol)
        limit = np.atleast_1d(each * (tol * abs(rest) + rounding))
        checks.append(worst("noise variance off by", off, limit))
    return checks


def _faint(s: CapturedVariance, tol: float) -> float:
    """Return a variance so faint beside the total that nobody asks for its digits at this tolerance.

    Covariances formed without centring, as scikit-learn's `covariance_eigh` does, lose that much and more.
    """
    return 1e-8 * tol * s.total


def _below_digits(s: CapturedVariance, error: float, dtype: Any) -> bool:
    """Whether the rounding of the total hides an error that is summed row by row and is not rounding itself.

    Rows in a plane leave an error too, but a far smaller one: eigenvectors of a covariance that is off by δ turn out
    of the plane by δ/θ along an axis of variance θ, and that adds δ²/θ; and rows have last digits of their own. Sums
    of batches know no more than the total.
    """
    if s.merged is not None:
        return False
    delta = s.rounding(np.float64)
    seen = s.ritz[s.ritz > delta]
    if not len(seen):
        return False
    own = delta * (delta / float(seen.min())) + (4 * float(np.finfo(dtype).eps)) ** 2 * s.total + s.mean_rounding
    return bool(own < error < delta)


def _shift_limit(s: CapturedVariance, tol: float, dtype: Any) -> float:
    """Return how much error a mean that is rounded in the digits of the rows may add.

    It is a square: of the total, only the square of the rows' last digits is rounding, and not those digits.
    """
    last = 64 * float(np.finfo(dtype).eps)
    return tol * s.discarded + last**2 * s.total + s.rounding(np.float64)


def worst(name: str, off: Array, limit: Array) -> Check:
    """Return the check of the entry that is furthest beyond its limit, or nearest to it."""
    off = np.abs(np.asarray(off, np.float64))
    if off.shape != limit.shape:
        raise DataError(
            got=f"{off.shape} numbers where {limit.shape} belong ({name})", wanted="one for each component"
        )
    return worst_entry(name, off, limit)


def variance_of_rounding(m: Array) -> float:
    """Return the variance that rows which are all the same seem to have, because their mean is rounded."""
    return float(((8 * EPS * m) ** 2).sum())


def _most_to_gain(s: CapturedVariance, k: int) -> float:
    """Return how much more variance than the basis any k directions can capture, by Ky Fan's inequality."""
    more = k * max(0.0, s.rest - s.smallest) + s.leak_nuclear
    return min(more, s.leak * (s.leak / (s.smallest - s.rest))) if s.smallest > s.rest else more


# ------------------------------------------------------------------------------------ sums over the rows
def _measure(rows: Rows, about: _MeanSums, B: Array, tuning: PCACheckTuning) -> PCAMeasured:
    """Measure the variance that B captures about a centre and, unless the table is very large, the error by rows."""
    m, n, count = about.x, about.weight, about.count
    if min(rows.n_rows, rows.n_features) > tuning.largest_order:
        variances = rows.sum(partial(_squares, m)) / n
        return PCAMeasured(m, n, measure_operator(rows, m, n, variances, B, tuning), count)
    if rows.n_rows >= rows.n_features:
        variance = measure_covariance(rows.sum(partial(_scatter, m)) / n, B)
    else:
        variance = measure_centred_rows(rows.map(partial(centred_rows, m)) / np.sqrt(n), B)
    if not variance.deviations.all():
        # Squares of very small numbers vanish, and their sizes do not.
        sizes = rows.sum(partial(_distances, m)) / n
        variance = replace(variance, deviations=np.maximum(variance.deviations, sizes))
    found = PCAMeasured(m, n, variance, count, rows.sum(partial(_error, B, m)) / n)
    if found.error is None or not 0 < found.error < variance.rounding(np.float64) or len(B) >= len(m):
        return found
    return found._replace(beside=_error_beside(rows, found, orthonormal_rows(B)))


@dataclass(frozen=True)
class _ResidualSums(Sums):
    inside: Array  # (k, k) Σ w y yᵀ, y = Q (x - m)
    leak: Array  # (d, k) Σ w r yᵀ, r = x - m - Qᵀy
    outside: Array  # (d, d) Σ w r rᵀ, or of many columns the sum (1, 1) of its diagonal


def _residual_sums(Q: Array, m: Array, wide: bool, block: Block) -> _ResidualSums:
    Z = centred_rows(m, block)
    Y = Z @ Q.T
    R = Z - Y @ Q
    return _ResidualSums(Y.T @ Y, R.T @ Y, np.array([[(R**2).sum()]]) if wide else R.T @ R)


def _error_beside(rows: Rows, measured: PCAMeasured, Q: Array) -> ErrorBeside:
    """Measure by residual rows what the orthonormal Q (k, d) leaves."""
    wide, n = rows.n_rows < rows.n_features, measured.weight
    sums = rows.sum(partial(_residual_sums, Q, measured.mean, wide))
    E = sums.outside / n
    rest = measured.variance.rest if wide else upper_bound(E, None)
    return error_beside(sums.inside / n, sums.leak / n, float(np.trace(E)), rest, measured.variance.total)


@dataclass(frozen=True)
class _MeanSums(Sums):
    weight: float  # Σ w
    count: int  # rows with w > 0
    x: Array  # (d,) Σ w (x - origin), or the mean once all rows are summed

    def about(self, m: Array) -> _MeanSums:
        """The same rows about another centre."""
        return _MeanSums(self.weight, self.count, m)


def _mean(rows: Rows) -> _MeanSums:
    """Return the total weight, the number of rows that have one, and the mean (d,)."""
    block = next(iter(rows))
    origin = None if sparse.issparse(block.X) else dense(block.X[:1])[0]
    sums = rows.sum(partial(_mean_sums, origin))
    return sums.about(sums.x / sums.weight + (0.0 if origin is None else origin))


def _mean_sums(origin: Array | None, block: Block) -> _MeanSums:
    X, w = block.X if origin is None else dense(block.X) - origin, block.w
    return _MeanSums(float(w.sum()), int((w > 0).sum()), np.asarray(transpose(X) @ w, dtype=np.float64))


def _code_squares(B: Array, m: Array, block: Block) -> Array:
    """Return Σ w (b·(x - m))² of each axis b (k,)."""
    Z = block.X @ B.T - m @ B.T if sparse.issparse(block.X) else (dense(block.X) - m) @ B.T
    return block.w @ Z**2


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


def _distances(m: Array, block: Block) -> Array:
    """Return Σ w |x - m| of each column (d,)."""
    return block.w @ np.abs(dense(block.X) - m)


def covariance(rows: Rows) -> Array:
    """Return the covariance (d, d) of the rows, divided by Σ w, in two passes."""
    sums = _mean(rows)
    return rows.sum(partial(_scatter, sums.x)) / sums.weight


def centred_rows(m: Array, block: Block) -> Array:
    """Return the rows sqrt(w) (x - m)."""
    return (dense(block.X) - m) * np.sqrt(block.w)[:, None]


def _error(B: Array, m: Array, block: Block) -> float:
    """Return Σ w |x - x̃|², row by row."""
    Z = dense(block.X) - m
    return float(block.w @ ((Z - Z @ B.T @ B) ** 2).sum(axis=1))
