"""Variational inference for Gaussian mixtures: the posterior's parameters, one step of them, and the lower bound.

q(μ, Λ) of a component is Gauss-Wishart, q(π) Dirichlet or a stick-breaking product of betas. A step takes the
responsibilities of all rows under the present posterior (one pass) to the posterior that is best for them. Sums are
taken about the present means, so that nothing cancels. Covariances are E[Λ]⁻¹, as scikit-learn publishes them; its
'tied', 'diag' and 'spherical' are taken as they are there: every component counts the degrees of freedom of all
columns, and a tied one a k-th of all rows.
Reference: Bishop, Pattern Recognition and Machine Learning (2006), section 10.2; Blei & Jordan, Variational inference
for Dirichlet process mixtures (2006).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cholesky, solve_triangular
from scipy.special import betaln, digamma, gammaln, logsumexp

from certifit.exceptions import DataError
from certifit.rows import Array, Block, Rows, Sums


class MixturePrior(NamedTuple):
    """The prior's parameters, and the form of the posterior."""

    covariance_type: str
    process: bool  # a Dirichlet process, else a Dirichlet distribution
    concentration: float
    mean_precision: float
    mean: Array  # (d,)
    degrees: float
    covariance: Array  # (d, d), (d,) or () by its type
    reg: float  # added to every variance of the rows


class MixturePosterior(NamedTuple):
    """The variational posterior's parameters."""

    concentration: Array  # (2, k) of betas, or (1, k) of a Dirichlet distribution
    mean_precision: Array  # (k,)
    means: Array  # (k, d)
    degrees: Array  # (k,), or () where tied
    covariances: Array  # in the public form of its type


@dataclass(frozen=True)
class ResponsibilitySums(Sums):
    """Sums by component about the present means."""

    weight: float  # Σ w
    n: Array  # (k,) Σ w r
    z: Array  # (k, d) Σ w r (x - m)
    zz: Array  # (k, d, d), or (k, d) of squares alone
    entropy: float  # -Σ w r log r


def precision_factors(covariances: Array, covariance_type: str) -> Array:
    """Upper triangular P with PPᵀ = C⁻¹ of each covariance; roots of inverse variances where it is diagonal."""
    if covariance_type in ("diag", "spherical"):
        if not (covariances > 0).all():
            raise _not_positive()
        return 1.0 / np.sqrt(covariances)
    single = covariances[None] if covariance_type == "tied" else covariances
    try:
        eye = np.eye(single.shape[-1])
        factors = np.stack([solve_triangular(cholesky(C, lower=True), eye, lower=True).T for C in single])
    except LinAlgError as error:
        raise _not_positive() from error
    return factors[0] if covariance_type == "tied" else factors


def _not_positive() -> DataError:
    return DataError(
        got="a covariance that is not positive definite to rounding",
        wanted="rows that vary in every direction, or a covariance_prior that does",
        fix="Increase reg_covar, or leave out constant and collinear columns.",
    )


def log_joint(at: MixturePosterior, covariance_type: str, X: Array) -> Array:
    """E log π + E log N(x; μ, Λ⁻¹) of each row and component (rows, k)."""
    d = X.shape[1]
    P = precision_factors(at.covariances, covariance_type)
    log_det = _log_det(P, covariance_type, d)
    lam = d * np.log(2.0) + digamma(0.5 * (at.degrees - np.arange(d)[:, None])).sum(axis=0)
    out = np.empty((len(X), len(at.means)))
    for j, m in enumerate(at.means):
        Z = X - m
        if covariance_type == "full":
            Z = Z @ P[j]
        else:
            Z = Z @ P if covariance_type == "tied" else Z * P[j]
        out[:, j] = -0.5 * np.einsum("ij,ij->i", Z, Z)
    constant = log_det - 0.5 * d * (np.log(2 * np.pi) + np.log(at.degrees)) + 0.5 * (lam - d / at.mean_precision)
    return out + constant + expected_log_weights(at.concentration)


def _log_det(P: Array, covariance_type: str, d: int) -> Array:
    """log det of each precision factor: (k,), or () where tied."""
    if covariance_type in ("full", "tied"):
        return np.log(np.diagonal(P, axis1=-2, axis2=-1)).sum(axis=-1)
    return np.log(P).sum(axis=1) if covariance_type == "diag" else d * np.log(P)


def expected_log_weights(concentration: Array) -> Array:
    """E log π of each component (k,)."""
    if len(concentration) == 1:
        return digamma(concentration[0]) - digamma(concentration[0].sum())
    total = digamma(concentration.sum(axis=0))
    left = np.cumsum(digamma(concentration[1]) - total)
    return digamma(concentration[0]) - total + np.append(0.0, left[:-1])


def mean_weights(concentration: Array) -> Array:
    """The weights (k,) that a posterior stands for."""
    with np.errstate(invalid="ignore", divide="ignore"):
        if len(concentration) == 1:
            return concentration[0] / concentration[0].sum()
        share = concentration[0] / concentration.sum(axis=0)
        left = np.append(1.0, np.cumprod(1 - share)[:-1])
        return share * left / (share * left).sum()


def dense_block(block: Block) -> Array:
    """The rows of a block as float64."""
    return np.asarray(block.X, dtype=np.float64)


def _measure_block(at: MixturePosterior, covariance_type: str, block: Block) -> ResponsibilitySums:
    used = block.w > 0
    X, w = dense_block(block)[used], block.w[used]
    joint = log_joint(at, covariance_type, X)
    log_r = joint - logsumexp(joint, axis=1, keepdims=True)
    return weighted_sums(at.means, covariance_type, X, w, log_r)


def weighted_sums(means: Array, covariance_type: str, X: Array, w: Array, log_r: Array) -> ResponsibilitySums:
    """Sums about these means, with log-responsibilities (rows, k)."""
    r = np.exp(log_r)
    (k, d), wide = means.shape, covariance_type in ("full", "tied")
    z, zz = np.empty((k, d)), np.empty((k, d, d) if wide else (k, d))
    for j in range(k):
        v, Z = w * r[:, j], X - means[j]
        z[j] = v @ Z
        zz[j] = (Z.T * v) @ Z if wide else v @ Z**2
    entropy = -float((w[:, None] * r * np.where(r > 0, log_r, 0.0)).sum())
    return ResponsibilitySums(float(w.sum()), w @ r, z, zz, entropy)


def measure(rows: Rows, covariance_type: str, at: MixturePosterior) -> ResponsibilitySums:
    """Responsibilities of all rows under a posterior, summed: one pass."""
    return rows.sum(partial(_measure_block, at, covariance_type))


def best_posterior(prior: MixturePrior, means: Array, found: ResponsibilitySums) -> MixturePosterior:
    """The posterior that is best for these responsibilities, whose sums are about these means (k, d)."""
    k = len(means)
    n = found.n + 10 * np.finfo(np.float64).eps
    step = found.z / n[:, None]
    off = (means - prior.mean) + step  # of each component's own mean from the prior's
    beta = prior.mean_precision + n
    pull = prior.mean_precision * n / beta
    if prior.process:
        concentration = np.stack([1.0 + n, prior.concentration + np.append(np.cumsum(n[:0:-1])[::-1], 0.0)])
    else:
        concentration = (prior.concentration + n)[None]
    if prior.covariance_type in ("full", "tied"):
        own = found.zz - n[:, None, None] * step[:, :, None] * step[:, None]
        own = own + pull[:, None, None] * off[:, :, None] * off[:, None]
        own = own + n[:, None, None] * prior.reg * np.eye(means.shape[1])
    else:
        own = found.zz - n[:, None] * step**2 + n[:, None] * prior.reg + pull[:, None] * off**2
    if prior.covariance_type == "spherical":
        own = own.mean(axis=1)
    degrees = prior.degrees + n
    if prior.covariance_type == "tied":
        degrees = np.asarray(prior.degrees + n.sum() / k)
        own = own.sum(axis=0) / k
    total = prior.covariance + own
    covariances = total / degrees.reshape(degrees.shape + (1,) * (total.ndim - degrees.ndim))
    return MixturePosterior(concentration, beta, prior.mean + n[:, None] * off / beta[:, None], degrees, covariances)


def lower_bound(prior: MixturePrior, best: MixturePosterior, entropy: float) -> float:
    """The lower bound on the evidence, up to a constant, at the best posterior for these responsibilities."""
    k, d = best.means.shape
    log_det = _log_det(precision_factors(best.covariances, prior.covariance_type), prior.covariance_type, d)
    log_det = log_det - 0.5 * d * np.log(best.degrees)
    gammas = gammaln(0.5 * (best.degrees - np.arange(d)[:, None])).sum(axis=0)
    wishart = -float((best.degrees * (log_det + 0.5 * d * np.log(2.0)) + gammas).sum())
    if prior.covariance_type == "tied":
        wishart *= k
    c = best.concentration
    weights = -betaln(c[0], c[1]).sum() if prior.process else gammaln(c[0].sum()) - gammaln(c[0]).sum()
    return float(entropy - wishart - weights - 0.5 * d * np.log(best.mean_precision).sum())
