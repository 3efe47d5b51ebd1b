"""The checker of variational Gaussian mixtures: one more step, taken plainly, changes nothing.

From the posterior's parameters the responsibilities of all rows are computed again, and from these the posterior that
is best for them: the parameters must be those, up to what the tolerance leaves open, and the lower bound on the
evidence must be the one stated, and rise by next to nothing in the next step. That numbers of rows behind the
parameters agree with each other is checked to rounding.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.special import digamma, gammaln, logsumexp

from certifit.checkers.plain.blocks import dense_rows
from certifit.core import Certificate, Check
from certifit.rows import Array, Block, Rows, Sums


class PlainPrior(NamedTuple):
    """The prior's parameters and the form of the mixture."""

    covariance_type: str
    process: bool  # stick-breaking, else a Dirichlet distribution
    concentration: float
    mean_precision: float
    mean: Array  # (d,)
    degrees: float
    covariance: Array  # in the form of its type
    reg: float


class PlainPosterior(NamedTuple):
    """The posterior's parameters; one covariance matrix (d, d) for every component, whatever the type."""

    concentration: Array  # (2, k), or (1, k)
    mean_precision: Array  # (k,)
    means: Array  # (k, d)
    degrees: Array  # (k,)
    covariances: Array  # (k, d, d)


@dataclass(frozen=True)
class _ComponentSums(Sums):
    weight: float
    n: Array  # (k,)
    z: Array  # (k, d)
    zz: Array  # (k, d, d)
    entropy: float


class VariationalStep(NamedTuple):
    """The best posterior for the responsibilities under another, and the lower bound there."""

    posterior: PlainPosterior
    bound: float
    weight: float  # Σ w


def as_matrices(C: Array, covariance_type: str, k: int, d: int) -> Array:
    """Covariances of any type as matrices (k, d, d)."""
    if covariance_type == "full":
        return C
    if covariance_type == "tied":
        return np.broadcast_to(C, (k, d, d))
    variances = C if covariance_type == "diag" else np.repeat(C[:, None], d, axis=1)
    return np.stack([np.diag(v) for v in variances])


def _log_weights(concentration: Array) -> Array:
    if len(concentration) == 1:
        return digamma(concentration[0]) - digamma(concentration[0].sum())
    a, b = concentration
    log_share, log_left = digamma(a) - digamma(a + b), digamma(b) - digamma(a + b)
    return np.array([log_share[j] + log_left[:j].sum() for j in range(len(a))])


def plain_log_joint(at: PlainPosterior, X: Array) -> Array:
    """E log π + E log N of each row and component (rows, k)."""
    d, out = X.shape[1], []
    for j, C in enumerate(at.covariances):
        Z, nu = X - at.means[j], at.degrees[j]
        distance = (Z * np.linalg.solve(C, Z.T).T).sum(axis=1)
        log_lambda = sum(digamma((nu - i) / 2) for i in range(d)) + d * np.log(2) - np.linalg.slogdet(nu * C)[1]
        out.append(0.5 * (log_lambda - d * np.log(2 * np.pi) - d / at.mean_precision[j] - distance))
    return np.column_stack(out) + _log_weights(at.concentration)


def _component_sums(at: PlainPosterior, block: Block) -> _ComponentSums:
    used = block.w > 0
    X, w = dense_rows(block.X, used), block.w[used]
    joint = plain_log_joint(at, X)
    log_r = joint - logsumexp(joint, axis=1)[:, None]
    r = np.exp(log_r)
    z, zz = np.zeros(at.means.shape), np.zeros(at.covariances.shape)
    for j, m in enumerate(at.means):
        Z, v = X - m, w * r[:, j]
        z[j], zz[j] = v @ Z, (Z.T * v) @ Z
    entropy = -float((w[:, None] * r * np.where(r > 0, log_r, 0.0)).sum())
    return _ComponentSums(float(w.sum()), w @ r, z, zz, entropy)


def plain_step(prior: PlainPrior, at: PlainPosterior, rows: Rows) -> VariationalStep:
    """Take one variational step from a posterior."""
    found = rows.sum(partial(_component_sums, at))
    (k, d), kind = at.means.shape, prior.covariance_type
    n = found.n + 10 * np.finfo(np.float64).eps
    beta, b0 = prior.mean_precision + n, prior.mean_precision
    own = at.means + found.z / n[:, None]
    means = prior.mean + n[:, None] * (own - prior.mean) / beta[:, None]
    scatters = np.empty((k, d, d))
    for j in range(k):
        step, off = found.z[j] / n[j], own[j] - prior.mean
        spread = found.zz[j] - n[j] * np.outer(step, step) + n[j] * prior.reg * np.eye(d)
        scatters[j] = spread + b0 * n[j] / beta[j] * np.outer(off, off)
    if kind in ("diag", "spherical"):
        scatters = np.stack([np.diag(np.diag(S)) for S in scatters])
    if kind == "spherical":
        scatters = np.stack([np.trace(S) / d * np.eye(d) for S in scatters])
    degrees = prior.degrees + n
    if kind == "tied":
        degrees = np.full(k, prior.degrees + n.sum() / k)
        scatters = np.broadcast_to(scatters.sum(axis=0) / k, (k, d, d))
    first = prior.covariance[None] if kind in ("full", "tied") else None
    first = as_matrices(np.broadcast_to(prior.covariance, (k, d)), "diag", k, d) if first is None else first
    covariances = (first + scatters) / degrees[:, None, None]
    after = np.array([n[j + 1 :].sum() for j in range(k)])
    concentration = (
        np.array([1 + n, prior.concentration + after]) if prior.process else (prior.concentration + n)[None]
    )
    best = PlainPosterior(concentration, beta, means, degrees, covariances)
    return VariationalStep(best, _lower_bound(best, found.entropy), found.weight)


def _lower_bound(best: PlainPosterior, entropy: float) -> float:
    d = best.means.shape[1]
    total = entropy - 0.5 * d * float(np.log(best.mean_precision).sum())
    for nu, C in zip(best.degrees, best.covariances, strict=True):
        # log-normaliser of the Wishart distribution, of which E[Λ]⁻¹ = C
        total += 0.5 * nu * (d * np.log(2) - np.linalg.slogdet(nu * C)[1]) + sum(
            gammaln((nu - i) / 2) for i in range(d)
        )
    c = best.concentration
    if len(c) == 2:
        return float(total + (gammaln(c[0]) + gammaln(c[1]) - gammaln(c[0] + c[1])).sum())
    return float(total + gammaln(c[0]).sum() - gammaln(c[0].sum()))


def posterior_change(before: PlainPosterior, after: PlainPosterior, weight: float) -> float:
    """The largest change of means, covariances and numbers of rows, in deviations.

    Deviations are those of whitened rows: along a direction in which rows hardly vary, a small change of the
    covariance is a large one of the precision. What components of few rows do counts by the root of their share, as
    it counts in the bound.
    """
    share = np.sqrt(np.minimum(after.mean_precision / weight, 1.0))
    worst = [np.abs(after.mean_precision - before.mean_precision).max() / weight]
    for j, (new, old) in enumerate(zip(after.covariances, before.covariances, strict=True)):
        size = np.sqrt(np.diag(new))
        try:
            root = np.linalg.cholesky(new / np.outer(size, size))
        except np.linalg.LinAlgError:
            return np.inf
        moved = np.linalg.solve(root, (after.means[j] - before.means[j]) / size)
        grown = np.linalg.solve(root, np.linalg.solve(root, (new - old) / np.outer(size, size)).T)
        worst.append(share[j] * max(np.abs(moved).max(), np.abs(grown).max()))
    return float(max(worst)) if np.isfinite(worst).all() else np.inf


def rounding_of_posterior(after: PlainPosterior) -> float:
    """How much of such a change may be rounding: eps, over the smallest eigenvalue of the correlations."""
    size = np.sqrt(np.diagonal(after.covariances, axis1=1, axis2=2))
    least = float(np.linalg.eigvalsh(after.covariances / (size[:, :, None] * size[:, None])).min())
    return min(64 * float(np.finfo(np.float64).eps) / max(least, 1e-300), 0.1)


class VariationalClaim(NamedTuple):
    """A fitted posterior, and the lower bounds that its fit states."""

    posterior: PlainPosterior
    bound: float
    trace: Array  # lower bounds of every step, the last at the end; empty where not known


def certify(claim: VariationalClaim, prior: PlainPrior, rows: Rows, tol: float) -> Certificate:
    """Check that one more step changes nothing."""
    words = "one more variational step changes parameters and lower bound by next to nothing"
    if not _is_posterior(claim.posterior):
        weight = rows.sum(_block_weight)
        check = Check("parameters that no posterior has (1: yes)", 1.0, 0.0)
        bound = least_objective(prior, len(claim.posterior.means), weight)
        return Certificate("stationary", words, np.nan, bound, tol, checks=(check,))
    first = plain_step(prior, claim.posterior, rows)
    second = plain_step(prior, first.posterior, rows)
    n = first.weight
    size = abs(first.bound) + n
    # Never more than a hundredth of a nat a row, as in `stationary_certificate`.
    rounding = min(1e-10 * size, 0.01 * n)
    change, unknown = posterior_change(claim.posterior, first.posterior, n), rounding_of_posterior(first.posterior)
    checks = [
        Check(
            "lower bound gained by one more step, nats a row", abs(second.bound - first.bound) / n, tol + rounding / n
        ),
        Check("parameters changed by one more step, in deviations", change, 2 * np.sqrt(tol) + 1e-7 + unknown),
        Check("lower bound stated, off by, nats a row", abs(claim.bound - first.bound) / n, 2 * tol + rounding / n),
        *_row_checks(claim.posterior, prior, n),
    ]
    if len(claim.trace):
        falls = np.maximum(-np.diff(claim.trace), 0.0).max(initial=0.0) if prior.covariance_type == "full" else 0.0
        checks.append(Check("lower bound lost by any step, nats a row", float(falls) / n, tol + rounding / n))
        last = abs(float(claim.trace[-1]) - claim.bound)
        checks.append(Check("last of the lower bounds, off by", last / n, rounding / n))
    facts: dict[str, float | str] = {"lower bound on the evidence, up to a constant": first.bound}
    bound = least_objective(prior, len(claim.posterior.means), n)
    return Certificate("stationary", words, -first.bound / n, bound, tol, checks=tuple(checks), facts=facts)


def _block_weight(block: Block) -> float:
    return float(block.w.sum())


def _is_posterior(at: PlainPosterior) -> bool:
    """Whether covariances are positive definite, and all numbers that must be positive are."""
    d = at.means.shape[1]
    positive = min(float(a.min()) for a in (at.mean_precision, at.degrees - (d - 1), at.concentration)) > 0
    symmetric = bool(np.allclose(at.covariances, at.covariances.swapaxes(1, 2), rtol=1e-8, atol=0.0))
    return positive and symmetric and bool((np.linalg.eigvalsh(at.covariances) > 0).all())


def least_objective(prior: PlainPrior, k: int, weight: float) -> float:
    """A number, nats a row, below which minus the lower bound cannot be; NaN where the prior is singular.

    The entropy is at most Σ w log k. νC is no less than the prior's covariance, and the other terms are convex in the
    numbers of rows: they are largest where one component has all.
    """
    d, total = len(prior.mean), weight * (1 + 1e-9) + 1e-9
    C = prior.covariance
    with np.errstate(divide="ignore"):
        log_det = float(np.linalg.slogdet(C)[1]) if C.ndim == 2 else float(np.log(np.broadcast_to(C, (d,))).sum())
    if not np.isfinite(log_det):
        return np.nan

    def wishart(nu: float) -> float:
        return 0.5 * nu * (d * np.log(2) - log_det) + sum(float(gammaln((nu - i) / 2)) for i in range(d))

    a = prior.concentration
    if prior.process:
        weights = -k * np.log(a)
    else:
        weights = float(gammaln(a + total) + (k - 1) * gammaln(a) - gammaln(k * a + total))
    shapes = wishart(prior.degrees + total) + (k - 1) * wishart(prior.degrees)
    if prior.covariance_type == "tied":
        shapes = k * max(wishart(prior.degrees + total / k), wishart(prior.degrees))
    most = total * np.log(k) + shapes + weights - 0.5 * d * k * np.log(prior.mean_precision)
    return -float(most + 1e-9 * abs(most)) / weight


def _row_checks(at: PlainPosterior, prior: PlainPrior, weight: float) -> list[Check]:
    """Check that all parameters speak of the same numbers of rows in each component."""
    n, k = at.mean_precision - prior.mean_precision, len(at.means)
    degrees = prior.degrees + (np.full(k, n.sum() / k) if prior.covariance_type == "tied" else n)
    after = np.array([n[j + 1 :].sum() for j in range(k)])
    wanted = np.array([1 + n, prior.concentration + after]) if prior.process else (prior.concentration + n)[None]
    off = np.inf if wanted.shape != at.concentration.shape else float(np.abs(at.concentration - wanted).max())
    return [
        Check("rows of all components, off by, relative", abs(float(n.sum()) - weight) / weight, 1e-9),
        Check("degrees of freedom, off by, relative", float(np.abs(at.degrees / degrees - 1).max()), 1e-9),
        Check("concentrations of the weights, off by, relative", off / weight, 1e-9),
    ]
