"""The checker of probabilistic PCA.

Claim for complete rows: no model of k components is likelier by more than the gap. With λ the eigenvalues of the
rows' covariance, descending, and s the mean of all but the k largest, no model of k components has a mean negative
log-likelihood below
    ½ (d log 2π + Σ_{j <= k} log λ_j + (d - k) log s + d)      (Tipping & Bishop 1999).
Claim for rows with missing entries: one more EM step gains at most the tolerance. The likelihood of the observed
entries is computed before and after one textbook EM step, with a matrix for every row.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from certifit.checkers.decomposition.pca import centred_rows
from certifit.checkers.linalg.eigenvalue_bounds import EPS
from certifit.checkers.plain.blocks import dense
from certifit.core import Certificate, Check
from certifit.rows import Array, Block, Rows, Sums

LOG_2PI = float(np.log(2 * np.pi))


class PPCAModel(NamedTuple):
    """The fitted attributes of a probabilistic PCA."""

    components: Array  # (k, d)
    explained_variance: Array  # (k,)
    mean: Array  # (d,)
    noise: float  # σ²

    @property
    def W(self) -> Array:
        """The loadings (d, k)."""
        B = np.asarray(self.components, np.float64)
        return B.T * np.sqrt(np.maximum(np.asarray(self.explained_variance, np.float64) - self.noise, 0.0))


@dataclass(frozen=True)
class _FirstPass(Sums):
    weight: float  # Σ w
    missing: int  # missing entries
    x: Array  # (d,) Σ w (x - origin); NaN where entries are missing, and then not used


def _first_pass(origin: Array, block: Block) -> _FirstPass:
    X, w = dense(block.X), block.w
    some = w > 0
    return _FirstPass(float(w.sum()), int(np.isnan(X).sum()), w[some] @ (X[some] - origin))


def certify(model: PPCAModel, tol: float, rows: Rows, ard: bool = False) -> Certificate:
    """Check a model on these rows; `ard` where it was fitted by automatic relevance determination."""
    first = rows.sum(partial(_first_pass, model.mean))
    if (first.missing or ard) and not (model.noise > 0 and (not ard or (model.W != 0).any(axis=0).all())):
        # The model has no density, or the penalty is not finite.
        return stationary(model, np.inf, np.inf, tol, ard)
    if first.missing or ard:
        before = rows.sum(partial(_expect, model.mean, model.W, model.noise))
        after = _maximise(model, before, ard)
        lower = rows.sum(partial(_likelihood, *after)) / first.weight
        objective = -before.log_likelihood / first.weight
        if ard:
            objective += _penalty(model.W) / first.weight
            lower -= _penalty(after[1]) / first.weight
        return stationary(model, objective, objective + lower, tol, ard)
    m = model.mean + first.x / first.weight
    if rows.n_rows >= rows.n_features:
        return from_covariance(model, tol, rows.sum(partial(_scatter, m)) / first.weight, m)
    return _from_rows(model, tol, rows.map(partial(centred_rows, m)) / np.sqrt(first.weight), m)


# ------------------------------------------------------------------------------------------ complete rows
def _scatter(m: Array, block: Block) -> Array:
    some = block.w > 0
    Z = dense(block.X)[some] - m
    return (Z * block.w[some][:, None]).T @ Z


def from_covariance(model: PPCAModel, tol: float, S: Array, m: Array) -> Certificate:
    """Check a model from the covariance S (d, d) of complete rows about their mean m."""
    W = model.W
    return _optimal(model, tol, np.linalg.eigvalsh(S), float(np.trace(S)), W.T @ S @ W, m)


def _from_rows(model: PPCAModel, tol: float, Z: Array, m: Array) -> Certificate:
    """Check a model from centred rows Z (n, d) with ZᵀZ the covariance, n < d."""
    values = np.append(np.linalg.eigvalsh(Z @ Z.T), np.zeros(Z.shape[1] - len(Z)))
    ZW = Z @ model.W
    return _optimal(model, tol, np.sort(values), float((Z**2).sum()), ZW.T @ ZW, m)


def _optimal(model: PPCAModel, tol: float, values: Array, trace: float, inner: Array, m: Array) -> Certificate:
    """Write the certificate; `values` are the covariance's eigenvalues, ascending, and `inner` is Wᵀ S W."""
    d, k = len(m), len(model.components)
    objective = _objective(model, trace, inner, m - model.mean) if model.noise > 0 else np.inf
    kept, rest = np.maximum(values[d - k :], 0.0), float(np.maximum(values[: d - k], 0.0).mean())
    with np.errstate(divide="ignore", invalid="ignore"):
        best = 0.5 * (d * (LOG_2PI + 1) + float(np.log(kept).sum()) + (d - k) * np.log(rest))
        # Eigenvalues are right to a few d eps of the largest.
        rounding = 2 * d * EPS * values[-1] * (float((1 / kept).sum()) + (d - k) / rest) + 16 * d * EPS
    mean_rounding = 0.5 * float(((EPS * m) ** 2).sum()) / rest if rest > 0 else 0.0
    # Rounding is allowed for up to 1e-3 nats a row; beyond that the check fails.
    limit = tol + min(2 * rounding, 1e-3) + 16 * mean_rounding
    claim = "mean negative log-likelihood (nats a row) within gap of the smallest that this many components can reach"
    return Certificate("optimal", claim, float(objective), float(best - rounding), tol, limit, _checks(model))


def _objective(model: PPCAModel, trace: float, inner: Array, off: Array) -> float:
    """Return the mean negative log-likelihood; by Woodbury's identity, all inverses are of (k, k) matrices."""
    W, noise = model.W, model.noise
    d, k = W.shape
    M = noise * np.eye(k) + W.T @ W
    explained = float(np.trace(np.linalg.solve(M, inner + np.outer(W.T @ off, W.T @ off))))
    distance = (trace + float(off @ off) - explained) / noise
    return 0.5 * (d * LOG_2PI + (d - k) * np.log(noise) + float(np.linalg.slogdet(M)[1]) + distance)


def _checks(model: PPCAModel) -> tuple[Check, ...]:
    B = np.asarray(model.components, np.float64)
    below = np.max(model.noise - np.asarray(model.explained_variance), initial=0.0)
    return (
        Check("axes orthonormal to", float(np.abs(B @ B.T - np.eye(len(B))).max(initial=0.0)), 1e-10),
        Check("variance along an axis below the noise by", float(below), 64 * EPS * abs(model.noise)),
    )


# ------------------------------------------------------------------------------------------ missing entries
def stationary(model: PPCAModel, objective: float, gain: float, tol: float, ard: bool) -> Certificate:
    """Write the certificate from the objective and the gain of one more EM step."""
    rounding = 64 * EPS * (len(model.mean) + (abs(objective) if np.isfinite(objective) else 0.0))
    gains = Check("gain of one more EM step (nats a row)", max(0.0, gain), tol + rounding)
    claim = (
        f"one more EM step lowers the {'penalised' if ard else 'mean'} negative log-likelihood of the observed "
        "entries by at most tol (nats a row); nothing is said about other maxima"
    )
    return Certificate("stationary", claim, objective, tol=tol, checks=(gains, *_checks(model)))


def _penalty(W: Array) -> float:
    """Return d/2 log det WᵀW, in nats over all rows."""
    return 0.5 * len(W) * float(np.linalg.slogdet(W.T @ W)[1])


@dataclass(frozen=True)
class _ExpectedSums(Sums):
    log_likelihood: float  # Σ w log p of the observed entries
    entries: float  # Σ w over observed entries
    cross: Array  # (d, k + 1) Σ w (x - μ) E u over the rows that observe a column, u = (z, 1)
    squares: Array  # (d,) Σ w (x - μ)²
    moments: Array  # (d, k + 1, k + 1) Σ w E u uᵀ


class _RowPosteriors(NamedTuple):
    """The posterior of the codes of some rows, and their likelihood."""

    here: Array  # (rows, d) 1 where an entry is observed, 0 where not
    Z: Array  # (rows, d) x - μ, 0 where missing
    M: Array  # (rows, k, k) σ² I + Σ_observed w_j w_jᵀ
    z: Array  # (rows, k) M⁻¹ Wᵀ (x - μ)
    log_likelihood: Array  # (rows,)


def _row_posteriors(mean: Array, W: Array, noise: float, X: Array) -> _RowPosteriors:
    """Return the posteriors of rows by the textbook formula, with a matrix M for every row."""
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
    return _RowPosteriors(here, Z, M, z, -0.5 * (n * LOG_2PI + log_det + distance))


def _likelihood(mean: Array, W: Array, noise: float, block: Block) -> float:
    """Return Σ w log p of the observed entries."""
    pieces = _pieces(block, W.shape[1])
    return float(sum(w @ _row_posteriors(mean, W, noise, X).log_likelihood for X, w in pieces))


def _expect(mean: Array, W: Array, noise: float, block: Block) -> _ExpectedSums:
    """Take a textbook E step."""
    d, k = W.shape
    total = _ExpectedSums(0.0, 0.0, np.zeros((d, k + 1)), np.zeros(d), np.zeros((d, k + 1, k + 1)))
    for X, w in _pieces(block, k):
        found = _row_posteriors(mean, W, noise, X)
        u = np.column_stack([found.z, np.ones(len(w))])
        uu = u[:, :, None] * u[:, None, :]
        uu[:, :k, :k] += noise * np.linalg.inv(found.M)
        weighted = found.here * w[:, None]
        total = total + _ExpectedSums(
            float(w @ found.log_likelihood),
            float(weighted.sum()),
            (found.Z * w[:, None]).T @ u,
            w @ found.Z**2,
            (weighted.T @ uu.reshape(len(w), -1)).reshape(d, k + 1, k + 1),
        )
    return total


def _pieces(block: Block, k: int) -> list[tuple[Array, Array]]:
    """Return rows of positive weight with an observed entry, so few at a time that matrices fill 2**22 numbers."""
    X, w = dense(block.X), block.w
    some = (w > 0) & ~np.isnan(X).all(axis=1)
    X, w = X[some], w[some]
    step = max(1, 2**22 // ((k + 1) ** 2 + X.shape[1]))
    return [(X[i : i + step], w[i : i + step]) for i in range(0, len(X), step)]


def _maximise(model: PPCAModel, e: _ExpectedSums, ard: bool) -> tuple[Array, Array, float]:
    """Take a textbook M step, and return mean, W and noise."""
    W, noise = model.W, model.noise
    d, k = W.shape
    alpha = d / (W**2).sum(axis=0) if ard else np.zeros(k)
    theta = np.linalg.solve(e.moments + noise * np.diag(np.append(alpha, 0.0)), e.cross[..., None])[..., 0]
    fitted = (theta[:, None, :] @ e.moments @ theta[:, :, None])[:, 0, 0]
    residual = e.squares - 2 * (theta * e.cross).sum(axis=1) + fitted
    return model.mean + theta[:, k], theta[:, :k], float(residual.sum()) / e.entries
