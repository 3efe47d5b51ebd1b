"""The checker of probabilistic PCA.

Claim for complete rows: no model of k components is likelier by more than the gap. With λ the eigenvalues of the
rows' covariance, descending, and s the mean of all but the k largest, no model of k components has a mean negative
log-likelihood below
    ½ (d log 2π + Σ_{j <= k} log λ_j + (d - k) log s + d)      (Tipping & Bishop 1999).
Claim for rows with missing entries: one more EM step gains at most the tolerance. The likelihood of the observed
entries is computed before and after one textbook EM step, with a matrix for every row; and along the directions in
which the residuals are largest, its second derivative is not positive (`saddle`), as it would be where EM has stopped
at a saddle.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np

from certifit.checkers.decomposition.code_posteriors import LOG_2PI, pieces, row_posteriors
from certifit.checkers.decomposition.pca import centred_rows
from certifit.checkers.decomposition.saddle import WayUp, curvatures, random_columns, upward_direction
from certifit.checkers.decomposition.scaled_covariance import ScaledCovariance
from certifit.checkers.linalg.eigenvalue_bounds import EPS
from certifit.checkers.plain.blocks import dense
from certifit.checkers.plain.dual_points import summation_error
from certifit.core import Certificate, Check
from certifit.rows import Array, Block, Rows, Sums


class PPCAModel(NamedTuple):
    """The fitted attributes of a probabilistic PCA, and what its setting `n_components` asks for."""

    components: Array  # (k, d)
    explained_variance: Array  # (k,)
    mean: Array  # (d,)
    noise: float  # σ²
    n_components: Any = "any"  # a whole number, None for all but one, 'bic' or 'ard'; 'any' is not looked at
    log_likelihood: float | None = None  # of all observed entries, checked where given

    @property
    def ard(self) -> bool:
        """Whether it was fitted by automatic relevance determination."""
        return isinstance(self.n_components, str) and self.n_components == "ard"

    @property
    def W(self) -> Array:
        """The loadings (d, k)."""
        B = np.asarray(self.components, np.float64)
        return B.T * np.sqrt(np.maximum(np.asarray(self.explained_variance, np.float64) - self.noise, 0.0))


@dataclass(frozen=True)
class _FirstPass(Sums):
    weight: float  # Σ w
    seen: int  # rows with w > 0 and an observed entry
    missing: int  # missing entries
    x: Array  # (d,) Σ w (x - origin); NaN where entries are missing, and then not used
    squares: Array  # (d,) Σ w (x - origin)², the same

    @property
    def far(self) -> bool:
        """Whether the origin is so far from the mean, for the rows' spread, that the mean has lost digits."""
        with np.errstate(all="ignore"):
            step = self.x / self.weight
            return not bool((step**2 <= 0.1 * self.squares / self.weight).all())


def _first_pass(origin: Array, block: Block) -> _FirstPass:
    X, w = dense(block.X), block.w
    some, here = w > 0, ~np.isnan(X)
    seen = int((some & here.any(axis=1)).sum())
    Z = X[some] - origin
    return _FirstPass(float(w.sum()), seen, int((~here).sum()), w[some] @ Z, w[some] @ Z**2)


def certify(model: PPCAModel, tol: float, rows: Rows) -> Certificate:
    """Check a model on these rows, complete or with missing entries."""
    first = rows.sum(partial(_first_pass, model.mean))
    if first.missing or model.ard:
        return _certify_observed(model, tol, rows, first)
    m = model.mean + first.x / first.weight
    if first.far:  # about a wrong mean the scatter would be too large, and so would the bound
        first = rows.sum(partial(_first_pass, m))
        m = m + first.x / first.weight
    if rows.n_rows >= rows.n_features:
        S = rows.sum(partial(_scatter, m)) / first.weight
        values, bound = np.linalg.eigvalsh(S), _bound_from_covariance(model, tol, S, m, rows.n_rows)
    else:
        Z = rows.map(partial(centred_rows, m)) / np.sqrt(first.weight)
        values = np.sort(np.append(np.linalg.eigvalsh(Z @ Z.T), np.zeros(Z.shape[1] - len(Z))))
        ZW = Z @ model.W
        bound = _bound(model, values, float((Z**2).sum()), ZW.T @ ZW, m)
    found = _optimal(model, tol, bound, m)
    log_likelihood = -found.objective * first.weight
    checks = (
        *found.checks,
        *_check_log_likelihood(model, log_likelihood, first.weight * (found.scale + bound.terms)),
        *_check_components(model, np.maximum(values[::-1], 0.0), first.weight),
    )
    return replace(found, checks=checks)


def _check_log_likelihood(model: PPCAModel, found: float, size: float) -> list[Check]:
    if model.log_likelihood is None:
        return []
    return [
        Check("log-likelihood off by", abs(float(model.log_likelihood) - found), 1e-9 * abs(found) + 64 * EPS * size)
    ]


def _check_components(model: PPCAModel, values: Array, n: float) -> list[Check]:
    """Check the number of components against the setting; `values` are the variances of complete rows, descending."""
    k, wanted, d = len(model.components), model.n_components, len(values)
    if isinstance(wanted, Integral):
        return [Check("components, more or fewer than n_components asks for", float(abs(k - int(wanted))), 0.0)]
    varies = int((values > 4 * d * EPS * values[0]).sum())
    if wanted is None:
        # A variance that is nearly rounding may be counted or not.
        surely = int((values > 64 * d * EPS * values[0]).sum())
        off = 0 if surely - 1 <= k <= max(0, varies - 1) else abs(varies - 1 - k)
        return [Check("components, more or fewer than all directions but one", float(off), 0.0)]
    if wanted != "bic":
        return []
    scores = [_bic(values, j, n) for j in range(max(1, varies))]
    excess = _bic(values, k, n) - min(scores) if k < varies else np.inf
    return [Check("Bayes' information criterion above that of another number by", excess, 1e-6 * abs(min(scores)))]


def _bic(values: Array, k: int, n: float) -> float:
    """Return Bayes' information criterion of the best model of k components on n complete rows."""
    d = len(values)
    rest = (d - k) * float(np.log(values[k:].mean()))
    log_likelihood = -0.5 * n * (d * (LOG_2PI + 1) + float(np.log(values[:k]).sum()) + rest)
    return (d * k - k * (k - 1) // 2 + 1 + d) * float(np.log(n)) - 2 * log_likelihood


# ------------------------------------------------------------------------------------------ complete rows
def _scatter(m: Array, block: Block) -> Array:
    some = block.w > 0
    Z = dense(block.X)[some] - m
    return (Z * block.w[some][:, None]).T @ Z


class LikelihoodBound(NamedTuple):
    """Mean negative log-likelihoods in nats a row, of the model and the least of all, and the rounding of both."""

    objective: float
    best: float
    rounding: float
    scale: float  # sizes of the terms of `best` added up
    terms: float  # the same of the distances, what the rounding of the objective is a few eps of
    least: float  # the variance that is noise in the best model


def from_covariance(model: PPCAModel, tol: float, S: Array, m: Array, n_rows: int) -> Certificate:
    """Check a model from the covariance S (d, d) of so many complete rows about their mean m."""
    return _optimal(model, tol, _bound_from_covariance(model, tol, S, m, n_rows), m)


def _bound_from_covariance(model: PPCAModel, tol: float, S: Array, m: Array, n_rows: int) -> LikelihoodBound:
    W = model.W
    found = _bound(model, np.linalg.eigvalsh(S), float(np.trace(S)), W.T @ S @ W, m)
    if found.rounding <= 0.1 * tol or not model.noise > 0:
        return found
    return min(found, _bound_of_scaled(model, S, m, n_rows) or found, key=lambda bound: bound.rounding)


def _bound_of_scaled(model: PPCAModel, S: Array, m: Array, n_rows: int) -> LikelihoodBound | None:
    """The same where variances lie many decades apart, as those of columns in different units do."""
    with np.errstate(divide="ignore", invalid="ignore"):
        far = float(np.max(EPS * np.abs(m) / np.sqrt(np.diag(S)), initial=0.0))
    rows = ScaledCovariance.of(S, summation_error(n_rows) + 2 * far)
    own = ScaledCovariance.of(model.W @ model.W.T + model.noise * np.eye(len(m)), (len(model.components) + 4) * EPS)
    if rows is None or own is None:
        return None
    d, off = len(m), m - model.mean
    distance = own.trace_of_inverse_times(S + np.outer(off, off))
    values = rows.values
    if not np.isfinite(values).all():
        return None
    best, scale, least = _least(values, len(model.components))
    rounding = 0.5 * (d * rows.share + distance * rows.share + (d + distance) * own.share) * (1 + rows.share)
    objective = 0.5 * (d * LOG_2PI + own.log_determinant + distance)
    return LikelihoodBound(objective, best, rounding + 16 * d * EPS, scale, rounding / (32 * EPS), least)


def _bound(model: PPCAModel, values: Array, trace: float, inner: Array, m: Array) -> LikelihoodBound:
    """The bound by the covariance's eigenvalues, ascending; `inner` is Wᵀ S W."""
    d, k = len(m), len(model.components)
    objective = _objective(model, trace, inner, m - model.mean) if model.noise > 0 else np.inf
    best, scale, least = _least(values, k)
    with np.errstate(divide="ignore", invalid="ignore"):
        # Eigenvalues are right to a few d eps of the largest.
        kept = np.maximum(values[d - k :], 0.0)
        rounding = 2 * d * EPS * values[-1] * (float((1 / kept).sum()) + (d - k) / least) + 16 * d * EPS
    terms = float(np.maximum(values, 0.0).sum()) / max(model.noise, 1e-300)
    return LikelihoodBound(objective, best, rounding, scale, terms, least)


def _least(values: Array, k: int) -> tuple[float, float, float]:
    """The least mean negative log-likelihood of k components, the sizes of its terms, and its noise."""
    d = len(values)
    kept, rest = np.maximum(values[d - k :], 0.0), np.maximum(values[: d - k], 0.0).mean()
    with np.errstate(divide="ignore", invalid="ignore"):
        best = 0.5 * (d * (LOG_2PI + 1) + float(np.log(kept).sum()) + (d - k) * np.log(rest))
        scale = 0.5 * (d * (LOG_2PI + 1) + float(np.abs(np.log(kept)).sum() + (d - k) * abs(np.log(rest))))
    return float(best), float(scale), float(rest)


def _optimal(model: PPCAModel, tol: float, bound: LikelihoodBound, m: Array) -> Certificate:
    mean_rounding = 0.5 * float(((EPS * m) ** 2).sum()) / bound.least if bound.least > 0 else 0.0
    # Rounding is allowed for up to 1e-3 nats a row; beyond that the check fails.
    limit = tol + min(2 * bound.rounding, 1e-3) + min(16 * mean_rounding, 1e-3)
    claim = "mean negative log-likelihood (nats a row) within gap of the smallest that this many components can reach"
    lower, checks = bound.best - bound.rounding, _checks(model)
    return Certificate("optimal", claim, float(bound.objective), lower, tol, limit, checks, scale=bound.scale)


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
def _certify_observed(model: PPCAModel, tol: float, rows: Rows, first: _FirstPass) -> Certificate:
    """Check that one more EM step gains next to nothing, and that the point it would stay at is no saddle."""
    ard = model.ard
    if not (model.noise > 0 and (not ard or (model.W != 0).any(axis=0).all())):
        # The model has no density, or the penalty is not finite.
        return _stationary(model, np.inf, tol, (Check("gain of one more EM step (nats a row)", np.inf, tol),))
    before = rows.sum(partial(_expect, model.mean, model.W, model.noise))
    after = _maximise(model, before)
    lower = rows.sum(partial(_likelihood, *after)) / first.weight
    objective = -before.log_likelihood / first.weight
    log_likelihood, size = before.log_likelihood, first.weight * (abs(objective) + len(model.mean))
    if ard:
        objective += _penalty(model.W) / first.weight
        lower -= _penalty(after[1]) / first.weight
    rounding = min(64 * EPS * (len(model.mean) + abs(objective)), 0.01)
    checks = [
        Check("gain of one more EM step (nats a row)", max(objective + lower, 0.0), tol + rounding),
        *_check_log_likelihood(model, log_likelihood, size),
        *_check_observed_components(model, first.seen),
    ]
    if not ard and len(model.components):
        way = _steepest(model, rows, before, first.weight)
        checks.append(Check("gain along a way up from a saddle, about (nats a row)", way.gain, 1e-3 + 100 * tol))
    return _stationary(model, objective, tol, tuple(checks))


def find_way_up(model: PPCAModel, rows: Rows) -> WayUp:
    """Return the direction along which the likelihood of the observed entries curves up most."""
    before = rows.sum(partial(_expect, model.mean, model.W, model.noise))
    return _steepest(model, rows, before, float(rows.sum(_weight)))


def _steepest(model: PPCAModel, rows: Rows, before: _ExpectedSums, weight: float) -> WayUp:
    curves = partial(_curves, model, rows, weight)
    return upward_direction(model.W, model.noise, before.residuals / weight, curves)


def _weight(block: Block) -> float:
    return float(block.w.sum())


def _curves(model: PPCAModel, rows: Rows, weight: float, U: Array) -> Array:
    return rows.sum(partial(curvatures, model.mean, model.W, model.noise, U)) / weight


def _check_observed_components(model: PPCAModel, seen: int) -> list[Check]:
    k, wanted, d = len(model.components), model.n_components, len(model.mean)
    expected = int(wanted) if isinstance(wanted, Integral) else max(0, min(d, seen - 1) - 1) if wanted is None else k
    return [Check("components, more or fewer than n_components asks for", float(abs(k - expected)), 0.0)]


def _stationary(model: PPCAModel, objective: float, tol: float, checks: tuple[Check, ...]) -> Certificate:
    claim = (
        f"one more EM step lowers the {'penalised' if model.ard else 'mean'} negative log-likelihood of the observed "
        "entries by at most tol (nats a row); nothing is said about other maxima"
    )
    return Certificate("stationary", claim, objective, tol=tol, checks=(*checks, *_checks(model)))


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
    residuals: Array  # (d, m) Σ w a aᵀ Ω, a the residuals of a row over σ², Ω the same random columns for all rows


def _likelihood(mean: Array, W: Array, noise: float, block: Block) -> float:
    """Return Σ w log p of the observed entries."""
    parts = pieces(block, W.shape[1])
    return float(sum(w @ row_posteriors(mean, W, noise, X).log_likelihood for X, w in parts))


def _expect(mean: Array, W: Array, noise: float, block: Block) -> _ExpectedSums:
    """Take a textbook E step."""
    d, k = W.shape
    sketch = random_columns(d)
    zeros = np.zeros((d, k + 1)), np.zeros(d), np.zeros((d, k + 1, k + 1)), np.zeros(sketch.shape)
    total = _ExpectedSums(0.0, 0.0, *zeros)
    for X, w in pieces(block, k):
        found = row_posteriors(mean, W, noise, X)
        u = np.column_stack([found.z, np.ones(len(w))])
        uu = u[:, :, None] * u[:, None, :]
        uu[:, :k, :k] += noise * np.linalg.inv(found.M)
        weighted = found.here * w[:, None]
        a = (found.Z - found.here * (found.z @ W.T)) / noise
        total = total + _ExpectedSums(
            float(w @ found.log_likelihood),
            float(weighted.sum()),
            (found.Z * w[:, None]).T @ u,
            w @ found.Z**2,
            (weighted.T @ uu.reshape(len(w), -1)).reshape(d, k + 1, k + 1),
            (a * w[:, None]).T @ (a @ sketch),
        )
    return total


def _maximise(model: PPCAModel, e: _ExpectedSums) -> tuple[Array, Array, float]:
    """Take a textbook M step, and return mean, W and noise."""
    W, noise = model.W, model.noise
    d, k = W.shape
    alpha = d / (W**2).sum(axis=0) if model.ard else np.zeros(k)
    theta = np.linalg.solve(e.moments + noise * np.diag(np.append(alpha, 0.0)), e.cross[..., None])[..., 0]
    fitted = (theta[:, None, :] @ e.moments @ theta[:, :, None])[:, 0, 0]
    residual = e.squares - 2 * (theta * e.cross).sum(axis=1) + fitted
    return model.mean + theta[:, k], theta[:, :k], float(residual.sum()) / e.entries
