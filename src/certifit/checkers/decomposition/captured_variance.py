"""What a basis captures of a covariance, and the most that any direction outside it could add.

With S the covariance, B (k, d) the basis, P = BᵀB, E = (I-P) S (I-P), C = (I-P) S Bᵀ: λmax(E) is bounded by a
Cholesky factorisation of S or of the Gram matrix of the rows where one of them can be held, else by Lanczos steps
from a random start, each a pass over the rows; that bound fails with a probability that is stated.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from scipy import sparse
from scipy.linalg import LinAlgError, cholesky
from scipy.sparse.linalg import LinearOperator

from certifit.checkers.linalg.eigenpairs import top_eigenvalue
from certifit.checkers.plain.largest_eigenvalue import largest_eigenvalue
from certifit.rows import Array, Block, Rows, Sums

FAILURE = 1e-9  # probability with which the bound by Lanczos steps may be too small
STEPS = 120  # of Lanczos, at most


@dataclass(frozen=True)
class Spectrum:
    """What the bound needs to know of S and B. All but `captured` are of an orthonormal basis of B's span."""

    total: float  # tr S
    captured: Array  # (k,) diag B S Bᵀ of B as it is
    discarded: float  # tr S - tr BSBᵀ
    ritz: Array  # (k,) θ, the variances along the span's own principal axes, descending
    rest: float  # an upper bound on λmax(E)
    leak: float  # |C|_F
    leak_nuclear: float  # |C|_*
    spread: Array  # (d,) standard deviations
    failure: float = 0.0  # probability with which `rest` may be too small
    seen: float = 0.0  # a lower bound on λmax(E), where `rest` is not proved

    @property
    def smallest(self) -> float:
        """θ_k"""
        return float(self.ritz.min(initial=np.inf))


def covariance_spectrum(S: Array, B: Array, hint: float | None = None) -> Spectrum:
    """From S (d, d). `hint` is a guess of λmax(E), which a Cholesky factorisation then proves or refutes."""
    Q = _orthonormal(B)
    SQ = S @ Q.T
    inner = Q @ SQ
    C = SQ - Q.T @ inner
    E = S - Q.T @ SQ.T - SQ @ Q + Q.T @ inner @ Q
    rest = upper_bound((E + E.T) / 2, hint)
    captured = ((B @ S) * B).sum(axis=1)
    return _spectrum(float(np.trace(S)), captured, inner, rest, C, np.sqrt(np.maximum(np.diag(S), 0.0)))


def gram_spectrum(Z: Array, B: Array) -> Spectrum:
    """From the centred rows Z (n, d) with ZᵀZ = S, where n < d."""
    Q = _orthonormal(B)
    ZQ = Z @ Q.T
    rest = Z - ZQ @ Q
    largest = upper_bound(rest @ rest.T, None)
    captured = ((Z @ B.T) ** 2).sum(axis=0)
    return _spectrum(float((Z**2).sum()), captured, ZQ.T @ ZQ, largest, rest.T @ ZQ, np.sqrt((Z**2).sum(axis=0)))


def _orthonormal(B: Array) -> Array:
    return np.linalg.qr(B.T)[0].T


def _spectrum(total: float, captured: Array, inner: Array, rest: float, C: Array, spread: Array) -> Spectrum:
    ritz = np.linalg.eigvalsh(inner)[::-1]
    size = float(np.abs(C).max(initial=0.0))  # taken out, so that squares neither over- nor underflow
    C = C / (size or 1.0)
    nuclear = size * float(np.sqrt(np.maximum(np.linalg.eigvalsh(C.T @ C), 0.0)).sum())
    discarded = max(0.0, total - float(np.trace(inner)))
    return Spectrum(total, captured, discarded, ritz, rest, size * float(np.linalg.norm(C)), nuclear, spread)


def operator_spectrum(rows: Rows, m: Array, n: float, variances: Array, B: Array) -> Spectrum:
    """From products with S alone, each a pass over the rows; `variances` are those of the columns about m."""
    SB = _times(rows, m, n, B.T)
    captured = (B * SB.T).sum(axis=1)
    Q, SQ = B.T, SB
    if np.abs(B @ B.T - np.eye(len(B))).max(initial=0.0) > 1e-10:
        Q = _orthonormal(B).T
        SQ = _times(rows, m, n, Q)
    inner = Q.T @ SQ
    smallest = float(np.linalg.eigvalsh(inner).min(initial=np.inf))
    S = LinearOperator((len(m), len(m)), matvec=partial(_times, rows, m, n), dtype=np.float64)
    rest = largest_eigenvalue(S, failure=FAILURE, steps=STEPS, enough=smallest, apart=Q)
    C = SQ - Q @ inner
    found = _spectrum(float(variances.sum()), captured, inner, rest.upper, C, np.sqrt(variances))
    return replace(found, failure=FAILURE, seen=rest.value)


def _times(rows: Rows, m: Array, n: float, V: Array) -> Array:
    """S V."""
    found = rows.sum(partial(_products, m, V))
    return (found.xy - np.multiply.outer(m, found.y)) / n


@dataclass(frozen=True)
class _Products(Sums):
    xy: Array  # Σ w x yᵀ, y = Vᵀ (x - m)
    y: Array  # Σ w y


def _products(m: Array, V: Array, block: Block) -> _Products:
    w = block.w if V.ndim == 1 else block.w[:, None]
    X = block.X if sparse.issparse(block.X) else block.X - m
    Y = w * (X @ V - m @ V if sparse.issparse(X) else X @ V)
    return _Products(X.T @ Y, Y.sum(axis=0) if sparse.issparse(X) else np.zeros(V.shape[1:]))


def upper_bound(E: Array, hint: float | None) -> float:
    """A number that λmax(E) does not exceed: τ I - E is proved positive definite by its Cholesky factor."""
    slack = len(E) * np.finfo(float).eps * float(np.abs(np.diag(E)).max(initial=0.0)) + np.finfo(float).tiny
    if hint is not None and _below(E, hint):
        return hint + slack
    tau = max(0.0, top_eigenvalue(E))
    tau = tau * (1 + 1e-12) + slack
    while not _below(E, tau):
        tau = 2 * tau
    return tau + slack


def _below(E: Array, tau: float) -> bool:
    try:
        cholesky(tau * np.eye(len(E)) - E, lower=True, overwrite_a=True, check_finite=False)
    except LinAlgError:
        return False
    return True
