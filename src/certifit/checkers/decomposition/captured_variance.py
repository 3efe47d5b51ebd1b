"""How much variance a basis captures, and an upper bound on the variance of any direction outside of it.

With S the covariance of the rows, B (k, d) an orthonormal basis and P = BᵀB its projector, let
    E = (I - P) S (I - P)   the covariance outside the basis,
    C = (I - P) S Bᵀ        the covariance between inside and outside (the leak), 0 if eigenvectors of S span B.
The PCA checker needs an upper bound on λmax(E), in one of three ways:

| what fits in memory | how λmax(E) is bounded |
|---|---|
| S (d, d): as many rows as columns | a Cholesky factor of τ I - E exists, so that no eigenvalue of E exceeds τ |
| the Gram matrix (n, n): fewer rows | the same, with the Gram matrix of the rows outside the basis in place of E |
| neither | Lanczos steps from a random start, each a pass over the rows; fails with a stated probability |
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import LinearOperator

from certifit.checkers.linalg.eigenvalue_bounds import computed_largest, has_cholesky_factor
from certifit.checkers.plain.largest_eigenvalue import largest_eigenvalue
from certifit.rows import Array, Block, Rows, Sums, transpose


@dataclass(frozen=True)
class PCACheckTuning:
    """Numbers that steer how a PCA is checked."""

    largest_order: int = 4096  # rows and columns beyond which neither S nor the Gram matrix is formed
    lanczos_steps: int = 120  # at most, where neither is formed; each is a pass over the rows
    failure: float = 1e-9  # probability with which the bound by Lanczos steps may be too small
    double_columns: int = 128  # columns up to which our own fits of float32 rows sum squares in float64
    single_share: float = 1e-2  # of all variance, below which they do so for any number of columns

    def lanczos_excess(self, d: int) -> float:
        """Return by how much, relative to it, the bound on λmax(E) after all steps can exceed λmax(E) at most.

        The polynomial T(2x/λ - 1), T of Chebyshev and of degree steps - 1, is at most 1 on the eigenvalues. No bound
        is beyond the x where it is 1/δ, δ the part that a random start has along the eigenvector but with
        probability `failure` (`checkers/plain/largest_eigenvalue.py`).
        """
        one_over_delta = math.sqrt(2 * d / math.pi) / self.failure
        return (math.cosh(math.acosh(one_over_delta) / max(1, self.lanczos_steps - 1)) - 1) / 2


@dataclass(frozen=True)
class CapturedVariance:
    """What the checker measures of S and B; all fields but `captured` are of an orthonormal basis of B's span."""

    total: float  # tr S
    captured: Array  # (k,) diag B S Bᵀ of B as it is
    discarded: float  # tr S - tr BSBᵀ
    ritz: Array  # (k,) θ, the eigenvalues of BSBᵀ: variances along the span's own principal axes, descending
    rest: float  # an upper bound on λmax(E)
    leak: float  # |C|_F
    leak_nuclear: float  # |C|_*, the sum of the singular values of C
    leak_loss: float  # Σ |Cv|² / θ over the principal axes v of the span: about what the leak gives away
    deviations: Array  # (d,) standard deviations of the columns
    failure: float = 0.0  # probability with which `rest` may be too small
    rest_seen: float = 0.0  # a lower bound on λmax(E), where `rest` is not proved
    mean_rounding: float = 0.0  # how far variances are off because the mean is rounded
    merged: Array | None = None  # (d,) how far the means of batches may be off, where rows came in batches
    S: Array | None = None  # (d, d) the covariance, where it was formed

    @property
    def smallest(self) -> float:
        """θ_k, the smallest variance along the span's principal axes."""
        return float(self.ritz.min(initial=np.inf))

    def rounding(self, dtype: Any) -> float:
        """Return how far variances computed from rows of this type can be off, in their own units."""
        eps, data_eps = np.finfo(np.float64).eps, float(np.finfo(dtype).eps)
        share = 8 * (len(self.deviations) + 16) * eps + (32 * data_eps if data_eps > eps else 0.0)
        return float(share) * self.total + self.mean_rounding

    def rounding_along(self, B: Array, dtype: Any) -> Array:
        """The same for the variance along each axis of B (k, d), with what means of batches far from zero cost it."""
        merged = np.zeros(B.shape[1]) if self.merged is None else self.merged
        return np.asarray(self.rounding(dtype) + (np.abs(B) @ merged) * (np.abs(B) @ self.deviations))

    def rounding_outside(self, B: Array, dtype: Any) -> float:
        """The same for all variance outside the span of B."""
        if self.merged is None:
            return self.rounding(dtype)
        outside = np.abs(np.eye(B.shape[1]) - B.T @ B)
        # Entries that are nothing but rounding themselves cost nothing.
        outside[outside < 64 * np.finfo(float).eps * B.shape[1]] = 0.0
        return self.rounding(dtype) + float(self.merged @ outside @ self.deviations)


def digits_of_own_fit(
    rows: Rows, s: CapturedVariance, solver: str, tuning: PCACheckTuning = PCACheckTuning()
) -> np.dtype[Any]:
    """Return the type whose digits our own fit to these rows has: float32 only where its squares are summed in it.

    That is where the covariance has many columns and none of the variances is faint, or is never formed.
    """
    n, d, double = rows.n_rows, rows.n_features, np.dtype(np.float64)
    if s.failure:
        return np.dtype(rows.dtype)
    from_rows = solver == "full" or (n < d and solver != "covariance_eigh")
    # A share that is nearly the limit may be on either side of it.
    faint = min(s.smallest, s.discarded) < 0.99 * tuning.single_share * s.total
    return double if d <= tuning.double_columns or from_rows or faint else np.dtype(rows.dtype)


def measure_covariance(S: Array, B: Array, hint: float | None = None) -> CapturedVariance:
    """Measure B on S (d, d). `hint` is a guess of λmax(E), which a Cholesky factorisation proves or refutes."""
    Q = orthonormal_rows(B)
    SQ = S @ Q.T
    inner = Q @ SQ
    C = SQ - Q.T @ inner
    rest = 0.0
    if len(Q) < len(S):  # else no direction is left out
        E = S - Q.T @ SQ.T - SQ @ Q + Q.T @ inner @ Q
        rest = upper_bound((E + E.T) / 2, hint)
    captured = ((B @ S) * B).sum(axis=1)
    found = _assemble(float(np.trace(S)), captured, inner, rest, C, np.sqrt(np.maximum(np.diag(S), 0.0)))
    return replace(found, S=S)


def measure_centred_rows(Z: Array, B: Array) -> CapturedVariance:
    """Measure B on centred rows Z (n, d) with ZᵀZ = S, where n < d."""
    Q = orthonormal_rows(B)
    ZQ = Z @ Q.T
    outside = Z - ZQ @ Q
    rest = upper_bound(outside @ outside.T, None)
    captured = ((Z @ B.T) ** 2).sum(axis=0)
    found = _assemble(float((Z**2).sum()), captured, ZQ.T @ ZQ, rest, outside.T @ ZQ, np.sqrt((Z**2).sum(axis=0)))
    # Summed by itself it does not cancel.
    return replace(found, discarded=float((outside**2).sum()))


def measure_operator(
    rows: Rows, m: Array, n: float, variances: Array, B: Array, tuning: PCACheckTuning
) -> CapturedVariance:
    """Measure B by products with S, each a pass over the rows; `variances` are those of the columns about m."""
    SB = _multiply_covariance(rows, m, n, B.T)
    captured = (B * SB.T).sum(axis=1)
    Q, SQ = B.T, SB
    if np.abs(B @ B.T - np.eye(len(B))).max(initial=0.0) > 1e-10:
        Q = orthonormal_rows(B).T
        SQ = _multiply_covariance(rows, m, n, Q)
    inner = Q.T @ SQ
    smallest = float(np.linalg.eigvalsh(inner).min(initial=np.inf))
    S = LinearOperator((len(m), len(m)), matvec=partial(_multiply_covariance, rows, m, n), dtype=np.float64)
    rest = largest_eigenvalue(S, failure=tuning.failure, steps=tuning.lanczos_steps, enough=smallest, apart=Q)
    C = SQ - Q @ inner
    found = _assemble(float(variances.sum()), captured, inner, rest.upper, C, np.sqrt(variances))
    return replace(found, failure=tuning.failure, rest_seen=rest.value)


def orthonormal_rows(B: Array) -> Array:
    """Return an orthonormal basis of the span of B (k, d), as rows."""
    return np.linalg.qr(B.T)[0].T


def _assemble(
    total: float, captured: Array, inner: Array, rest: float, C: Array, deviations: Array
) -> CapturedVariance:
    ritz, turn = np.linalg.eigh(inner)
    ritz, turn = ritz[::-1], turn[:, ::-1]
    # C is divided by its largest entry, so that squares neither overflow nor vanish.
    size = float(np.abs(C).max(initial=0.0))
    C = C / (size or 1.0)
    nuclear = size * float(np.sqrt(np.maximum(np.linalg.eigvalsh(C.T @ C), 0.0)).sum())
    discarded = max(total - float(np.trace(inner)), 0.0)
    leak = size * float(np.linalg.norm(C))
    lengths = size * np.linalg.norm(C @ turn, axis=0)
    with np.errstate(over="ignore"):  # beside a variance of 0 the loss is infinite
        loss = float((lengths * (lengths / np.maximum(ritz, np.finfo(float).tiny)))[lengths > 0].sum())
    return CapturedVariance(total, captured, discarded, ritz, rest, leak, nuclear, loss, deviations)


class ErrorBeside(NamedTuple):
    """What any k directions leave of the variance, proved from residual rows beside far larger axes."""

    least: float  # no k directions leave less
    rounding: float  # by which it may be off


def error_beside(inside: Array, leak: Array, error: float, rest: float, total: float) -> ErrorBeside:
    """Bound what k directions leave, given Θ = QSQᵀ, C = (I - P) S Qᵀ, tr E and λmax(E) summed over residual rows.

    S is L diag(Θ, E - CΘ⁻¹Cᵀ) Lᵀ with L = I + CΘ⁻¹ below the diagonal, so that each of its eigenvalues is at least
    (1 - |CΘ⁻¹|)² times that of the diagonal (Ostrowski 1959). Everything here is relative to each axis' own size:
    with D² the diagonal of Θ and H = D⁻¹ΘD⁻¹, large axes take no digits from the small ones.
    """
    k, d = len(inside), len(leak)
    size = np.sqrt(np.maximum(np.diag(inside), 0.0))
    least = float(size.min())
    if not least > 0:
        return ErrorBeside(0.0, 0.0)
    # A residual row is off by its last digits, relative to the row; each column of C D⁻¹ by that and no more.
    delta = 8 * (d + 16) * float(np.finfo(float).eps) * math.sqrt(total)
    off = math.sqrt(k) * delta * (1 + math.sqrt(error) / least)
    H = inside / np.outer(size, size)
    unsteady = 2 * k * delta / least
    steady = float(np.linalg.eigvalsh((H + H.T) / 2).min()) - unsteady
    if steady <= 0:
        return ErrorBeside(0.0, 0.0)
    lengths, tilt = float(np.linalg.norm(leak / size)), float(np.linalg.norm(leak / size / size))
    swapped = k * max(0.0, rest - steady * least**2)
    left = max(0.0, error - lengths * (lengths / steady) - swapped)
    rounding = 2 * math.sqrt(error) * delta + delta * delta + off * (2 * lengths + off) / steady
    rounding += 2 * (off / least / steady) * error + (k * unsteady * least**2 if swapped else 0.0)
    return ErrorBeside(max(0.0, 1 - tilt / steady) ** 2 * left, rounding)


@dataclass(frozen=True)
class _ProductSums(Sums):
    xy: Array  # (d, ...) Σ w x yᵀ, y = Vᵀ (x - m); with x - m in place of x where rows are dense
    y: Array  # (...) Σ w y of sparse rows, zeros of dense ones


def _multiply_covariance(rows: Rows, m: Array, n: float, V: Array) -> Array:
    """Return S V, in one pass over the rows."""
    found = rows.sum(partial(_product_sums, m, V))
    return (found.xy - np.multiply.outer(m, found.y)) / n


def _product_sums(m: Array, V: Array, block: Block) -> _ProductSums:
    w = block.w if V.ndim == 1 else block.w[:, None]
    X = block.X if sparse.issparse(block.X) else block.X - m
    Y = w * (X @ V - m @ V if sparse.issparse(X) else X @ V)
    return _ProductSums(transpose(X) @ Y, Y.sum(axis=0) if sparse.issparse(X) else np.zeros(V.shape[1:]))


def upper_bound(E: Array, hint: float | None) -> float:
    """Return a number τ that λmax(E) does not exceed, because τ I - E has a Cholesky factor."""
    slack = len(E) * np.finfo(float).eps * float(np.abs(np.diag(E)).max(initial=0.0)) + np.finfo(float).tiny
    if hint is not None and has_cholesky_factor(hint * np.eye(len(E)) - E):
        return hint + slack
    tau, more = max(computed_largest(E), 0.0), slack
    while not has_cholesky_factor((tau + more) * np.eye(len(E)) - E):
        more = 2 * more
        if not np.isfinite(tau + more):
            return np.inf
    return tau + more + slack
