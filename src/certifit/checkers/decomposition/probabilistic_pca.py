"""Probabilistic PCA re-checked from the data.

Complete rows: with λ the eigenvalues of the rows' covariance, descending, and s the mean of all but the k largest, no
model of k components has a mean negative log-likelihood below
    ½ (d log 2π + Σ_{j <= k} log λ_j + (d - k) log s + d)      (Tipping & Bishop 1999).
Rows with holes: the likelihood of the observed entries, before and after one plain EM step.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from certifit.checkers.plain.blocks import dense
from certifit.core import Certificate, Check
from certifit.rows import Array, Block, Rows, Sums

OPTIMAL = "mean negative log-likelihood (nats a row) within gap of the smallest that this many components can reach"
STATIONARY = (
    "one more EM step lowers the mean negative log-likelihood of the observed entries by at most tol (nats a row); "
    "nothing is said about other maxima"
)
RELEVANT = (
    "one more EM step lowers the penalised negative log-likelihood of the observed entries by at most tol (nats a "
    "row); nothing is said about other maxima"
)
EPS = float(np.finfo(float).eps)
LOG_2PI = float(np.log(2 * np.pi))
WORK = 2**22  # numbers held at a time
UNDECIDED = 1e-3  # nats a row that rounding may hide; where it may hide more, nothing is proved


class Model(NamedTuple):
    """The fitted attributes."""

    components: Array  # (k, d)
    explained_variance: Array  # (k,)
    mean: Array  # (d,)
    noise: float

    @property
    def W(self) -> Array:
        """(d, k)"""
        B = np.asarray(self.components, np.float64)
        return B.T * np.sqrt(np.maximum(np.asarray(self.explained_variance, np.float64) - self.noise, 0.0))


@dataclass(frozen=True)
class _First(Sums):
    weight: float
    missing: int
    x: Array  # Σ w (x - origin); NaN with holes, and then not used


def _first(origin: Array, block: Block) -> _First:
    X, w = dense(block.X), block.w
    some = w > 0
    return _First(float(w.sum()), int(np.isnan(X).sum()), w[some] @ (X[some] - origin))


def certify(model: Model, tol: float, rows: Rows, ard: bool = False) -> Certificate:
    """Check a model on these rows; `ard` says that its columns were penalised by their own size."""
    first = rows.sum(partial(_first, model.mean))
    if (first.missing or ard) and not (model.noise > 0 and (not ard or (model.W != 0).any(axis=0).all())):
        return stationary(model, np.inf, np.inf, tol, ard)  # no density, or no penalty
    if first.missing or ard:
        before = rows.sum(partial(_expect, model.mean, model.W, model.noise))
        after = _step(model, before, ard)
        lower = rows.sum(partial(_likelihood, *after)) / first.weight
        objective = -before.log_likelihood / first.weight
        if ard:
            objective += _penalty(model.W) / first.weight
            lower -= _penalty(after[1]) / first.weight
        return stationary(model, objective, objective + lower, tol, ard)
    m = model.mean + first.x / first.weight
    if rows.n_rows >= rows.n_features:
        return from_covariance(model, tol, rows.sum(partial(_second, m)) / first.weight, m)
    return _from_rows(model, tol, rows.map(partial(_centred, m)) / np.sqrt(first.weight), m)


# ------------------------------------------------------------------------------------------ complete rows
def _second(m: Array, block: Block) -> Array:
    some = block.w > 0
    Z = dense(block.X)[some] - m
    return (Z * block.w[some][:, None]).T @ Z


def _centred(m: Array, block: Block) -> Array:
    return (dense(block.X) - m) * np.sqrt(block.w)[:, None]


def from_covariance(model: Model, tol: float, S: Array, m: Array) -> Certificate:
    """From the covariance S (d, d) about the mean m."""
    W = model.W
    return _optimal(model, tol, np.linalg.eigvalsh(S), float(np.trace(S)), W.T @ S @ W, m)


def _from_rows(model: Model, tol: float, Z: Array, m: Array) -> Certificate:
    """From centred rows Z (n, d) with ZᵀZ the covariance, n < d."""
    values = np.append(np.linalg.eigvalsh(Z @ Z.T), np.zeros(Z.shape[1] - len(Z)))
    ZW = Z @ model.W
    return _optimal(model, tol, np.sort(values), float((Z**2).sum()), ZW.T @ ZW, m)


def _optimal(model: Model, tol: float, values: Array, trace: float, inner: Array, m: Array) -> Certificate:
    """`values` are the covariance's eigenvalues, ascending; `inner` is Wᵀ S W."""
    d, k = len(m), len(model.components)
    objective = _objective(model, trace, inner, m - model.mean) if model.noise > 0 else np.inf
    kept, rest = np.maximum(values[d - k :], 0.0), float(np.maximum(values[: d - k], 0.0).mean())
    with np.errstate(divide="ignore", invalid="ignore"):
        best = 0.5 * (d * (LOG_2PI + 1) + float(np.log(kept).sum()) + (d - k) * np.log(rest))
        # eigenvalues are right to a few d eps of the largest
        rounding = 2 * d * EPS * values[-1] * (float((1 / kept).sum()) + (d - k) / rest) + 16 * d * EPS
    last_digits = 0.5 * float(((EPS * m) ** 2).sum()) / rest if rest > 0 else 0.0  # of the mean
    limit = tol + min(2 * rounding, UNDECIDED) + 16 * last_digits
    return Certificate("optimal", OPTIMAL, float(objective), float(best - rounding), tol, limit, _checks(model))


def _objective(model: Model, trace: float, inner: Array, off: Array) -> float:
    """Mean negative log-likelihood; by Woodbury's identity only matrices (k, k) are inverted."""
    W, noise = model.W, model.noise
    d, k = W.shape
    M = noise * np.eye(k) + W.T @ W
    explained = float(np.trace(np.linalg.solve(M, inner + np.outer(W.T @ off, W.T @ off))))
    distance = (trace + float(off @ off) - explained) / noise
    return 0.5 * (d * LOG_2PI + (d - k) * np.log(noise) + float(np.linalg.slogdet(M)[1]) + distance)


def _checks(model: Model) -> tuple[Check, ...]:
    B = np.asarray(model.components, np.float64)
    below = np.max(model.noise - np.asarray(model.explained_variance), initial=0.0)
    return (
        Check("axes orthonormal to", float(np.abs(B @ B.T - np.eye(len(B))).max(initial=0.0)), 1e-10),
        Check("variance along an axis below the noise by", float(below), 64 * EPS * abs(model.noise)),
    )


# ------------------------------------------------------------------------------------------ with holes
def stationary(model: Model, objective: float, gain: float, tol: float, ard: bool) -> Certificate:
    """From the objective and what one more EM step gains."""
    rounding = 64 * EPS * (len(model.mean) + (abs(objective) if np.isfinite(objective) else 0.0))
    gains = Check("gain of one more EM step (nats a row)", max(0.0, gain), tol + rounding)
    return Certificate(
        "stationary", RELEVANT if ard else STATIONARY, objective, tol=tol, checks=(gains, *_checks(model))
    )


def _penalty(W: Array) -> float:
    """d/2 log det WᵀW, in nats over all rows."""
    return 0.5 * len(W) * float(np.linalg.slogdet(W.T @ W)[1])


@dataclass(frozen=True)
class _Expected(Sums):
    log_likelihood: float
    entries: float  # Σ w over observed entries
    cross: Array  # (d, k + 1) Σ w (x - μ) E u over the rows that observe a column, u = (z, 1)
    squares: Array  # (d,) Σ w (x - μ)²
    moments: Array  # (d, k + 1, k + 1) Σ w E u uᵀ


class _Rows(NamedTuple):
    """Some rows with holes under a model."""

    here: Array  # (rows, d) 1 where an entry is observed, 0 where not
    Z: Array  # (rows, d) x - μ, 0 where missing
    M: Array  # (rows, k, k) σ² I + Σ_observed w_j w_jᵀ
    z: Array  # (rows, k) M⁻¹ Wᵀ (x - μ)
    log_likelihood: Array  # (rows,)


def _look(mean: Array, W: Array, noise: float, X: Array) -> _Rows:
    """Plainly: every row's own matrix from its observed columns."""
    d, k = W.shape
    here = (~np.isnan(X)).astype(np.float64)
    Z = np.where(here > 0, X - mean, 0.0)
    pairs = (W[:, :, None] * W[:, None, :]).reshape(d, k * k)
    M = (here @ pairs).reshape(len(X), k, k) + noise * np.eye(k)
    b = Z @ W
    z = np.linalg.solve(M, b[..., None])[..., 0]
    n = here.sum(axis=1)
    distance = ((Z**2).sum(axis=1) - (b * z).sum(axis=1)) / noise
    log_det = (n - k) * np.log(noise) + np.linalg.slogdet(M)[1]
    return _Rows(here, Z, M, z, -0.5 * (n * LOG_2PI + log_det + distance))


def _likelihood(mean: Array, W: Array, noise: float, block: Block) -> float:
    """Σ w log p of the observed entries."""
    pieces = _pieces(block, W.shape[1])
    return float(sum(w @ _look(mean, W, noise, X).log_likelihood for X, w in pieces))


def _expect(mean: Array, W: Array, noise: float, block: Block) -> _Expected:
    """Plain E step."""
    d, k = W.shape
    total = _Expected(0.0, 0.0, np.zeros((d, k + 1)), np.zeros(d), np.zeros((d, k + 1, k + 1)))
    for X, w in _pieces(block, k):
        found = _look(mean, W, noise, X)
        u = np.column_stack([found.z, np.ones(len(w))])
        uu = u[:, :, None] * u[:, None, :]
        uu[:, :k, :k] += noise * np.linalg.inv(found.M)
        weighted = found.here * w[:, None]
        total = total + _Expected(
            float(w @ found.log_likelihood),
            float(weighted.sum()),
            (found.Z * w[:, None]).T @ u,
            w @ found.Z**2,
            (weighted.T @ uu.reshape(len(w), -1)).reshape(d, k + 1, k + 1),
        )
    return total


def _pieces(block: Block, k: int) -> list[tuple[Array, Array]]:
    """Rows that count, a few at a time: each needs a matrix of its own."""
    X, w = dense(block.X), block.w
    some = (w > 0) & ~np.isnan(X).all(axis=1)
    X, w = X[some], w[some]
    step = max(1, WORK // ((k + 1) ** 2 + X.shape[1]))
    return [(X[i : i + step], w[i : i + step]) for i in range(0, len(X), step)]


def _step(model: Model, e: _Expected, ard: bool) -> tuple[Array, Array, float]:
    """Plain M step: mean, W and noise."""
    W, noise = model.W, model.noise
    d, k = W.shape
    alpha = d / (W**2).sum(axis=0) if ard else np.zeros(k)
    theta = np.linalg.solve(e.moments + noise * np.diag(np.append(alpha, 0.0)), e.cross[..., None])[..., 0]
    fitted = (theta[:, None, :] @ e.moments @ theta[:, :, None])[:, 0, 0]
    residual = e.squares - 2 * (theta * e.cross).sum(axis=1) + fitted
    return model.mean + theta[:, k], theta[:, :k], float(residual.sum()) / e.entries
