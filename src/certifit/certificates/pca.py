"""PCA re-checked from the data: an orthonormal basis, its variances, and how much variance the best basis could add.

With S the covariance, B (k, d) the basis, P = BᵀB, E = (I-P) S (I-P), C = (I-P) S Bᵀ and θ the eigenvalues of B S Bᵀ,
no k directions capture more than  tr BSBᵀ + k (λmax(E) - θ_k)₊ + |C|_*  (Ky Fan), and where θ_k > λmax(E) no more
than  tr BSBᵀ + |C|²_F / (θ_k - λmax(E)). The mean squared reconstruction error is tr S - tr BSBᵀ.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cholesky, eigh

from certifit.certificates.plain import dense
from certifit.core import Array, Block, Certificate, Check, DataError, Rows, Sums

CLAIM = "mean squared reconstruction error within gap of the smallest that any basis of this size can reach"


@dataclass(frozen=True)
class _First(Sums):
    weight: float
    x: Array  # Σ w (x - origin)


def _first(origin: Array, block: Block) -> _First:
    return _First(float(block.w.sum()), block.w @ (dense(block.X) - origin))


def _second(m: Array, block: Block) -> Array:
    Z = dense(block.X) - m
    return (Z * block.w[:, None]).T @ Z


def _centred(m: Array, block: Block) -> Array:
    return (dense(block.X) - m) * np.sqrt(block.w)[:, None]


def _error(B: Array, m: Array, block: Block) -> float:
    Z = dense(block.X) - m
    return float(block.w @ ((Z - Z @ B.T @ B) ** 2).sum(axis=1))


def certify(components: Array, mean: Array, explained_variance: Array, tol: float, rows: Rows) -> Certificate:
    """Check B (k, d), the mean and the variances on these rows."""
    B = np.asarray(components, dtype=np.float64)
    origin = dense(next(iter(rows)).X[:1])[0]
    first = rows.sum(partial(_first, origin))
    m, n = origin + first.x / first.weight, first.weight
    if not n > 1:
        raise DataError(got=f"a total weight of {n:g}", wanted="more than 1: a variance needs two rows")
    if rows.n_rows >= rows.n_features:
        spectrum = covariance_spectrum(rows.sum(partial(_second, m)) / n, B)
    else:
        spectrum = gram_spectrum(rows.map(partial(_centred, m)) / np.sqrt(n), B)
    error = rows.sum(partial(_error, B, m)) / n
    return assemble(spectrum, B, mean, explained_variance, m, n, tol, rows.dtype, error)


@dataclass(frozen=True)
class Spectrum:
    """What the bound needs to know of S and B. All but `captured` are of an orthonormal basis of B's span."""

    total: float  # tr S
    captured: Array  # (k,) diag B S Bᵀ of B as it is
    discarded: float  # tr S - tr BSBᵀ
    smallest: float  # θ_k
    rest: float  # an upper bound on λmax(E)
    leak: float  # |C|_F
    leak_nuclear: float  # |C|_*
    spread: Array  # (d,) standard deviations


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
    smallest = float(np.linalg.eigvalsh(inner).min(initial=np.inf))
    size = float(np.abs(C).max(initial=0.0))  # taken out, so that squares neither over- nor underflow
    C = C / (size or 1.0)
    nuclear = size * float(np.sqrt(np.maximum(np.linalg.eigvalsh(C.T @ C), 0.0)).sum())
    discarded = max(0.0, total - float(np.trace(inner)))
    return Spectrum(total, captured, discarded, smallest, rest, size * float(np.linalg.norm(C)), nuclear, spread)


def upper_bound(E: Array, hint: float | None) -> float:
    """A number that λmax(E) does not exceed: τ I - E is proved positive definite by its Cholesky factor."""
    slack = len(E) * np.finfo(float).eps * float(np.abs(np.diag(E)).max(initial=0.0)) + np.finfo(float).tiny
    if hint is not None and _below(E, hint):
        return hint + slack
    tau = max(0.0, _largest(E))
    tau = tau * (1 + 1e-12) + slack
    while not _below(E, tau):
        tau = 2 * tau
    return tau + slack


def _largest(E: Array) -> float:
    last = len(E) - 1
    try:
        return float(eigh(E, eigvals_only=True, subset_by_index=[last, last])[0])
    except LinAlgError:  # LAPACK's selective driver can fail where eigenvalues coincide
        return float(np.linalg.eigvalsh(E)[-1])


def _below(E: Array, tau: float) -> bool:
    try:
        cholesky(tau * np.eye(len(E)) - E, lower=True, overwrite_a=True, check_finite=False)
    except LinAlgError:
        return False
    return True


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
    loose = max(tol, 32 * eps)
    unbiased = n / (n - 1)
    off = np.abs(np.asarray(mean, np.float64) - m) / (loose * s.spread + 8 * eps * np.abs(m) + np.finfo(float).tiny)
    wrong = np.abs(np.asarray(variances, np.float64) - unbiased * s.captured)
    checks = [
        Check("basis orthonormal to", float(np.abs(B @ B.T - np.eye(k)).max(initial=0.0)), max(1e-10, 64 * eps)),
        Check("mean off, as a share of the tolerance", float(off.max(initial=0.0)), 1.0),
        Check(
            "variances off by", float(wrong.max(initial=0.0)), loose * unbiased * float(s.captured.max(initial=0.0))
        ),
    ]
    if error is not None:
        mismatch = abs(error - (s.total - float(s.captured.sum())))
        checks.append(Check("error minus discarded variance", mismatch, max(1e-9, 64 * eps) * s.total))
    objective = s.discarded if error is None else error
    rounding = 4 * (len(s.spread) + 2) * np.finfo(float).eps * s.total
    bound = max(0.0, s.discarded - more - rounding)
    return Certificate("optimal", CLAIM, objective, bound, tol, loose * s.total, tuple(checks))
