"""Gaussian mixtures checked from the data: one plain EM step, what it gains, and Jensen's inequality for it.

The checker uses no code of the solver: it inverts covariances, solves for missing entries pattern by pattern and
takes the M step as the textbook has it (Bishop, Pattern Recognition and Machine Learning, 2006, section 9.2).
The objective is the mean negative log-likelihood of what is observed plus (1/2k) Σ_k Σ_j floor_j (C_k⁻¹)_jj (shared
covariances: ½ Σ_j floor_j (C⁻¹)_jj). By Hadamard's inequality no mixture's is below
    Σ_j o_j/2 (1 + log(2π floor_j / (o_j k))),   o_j the share of rows that have an entry in column j.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.special import logsumexp, xlogy

from certifit.checkers.mixture.em import (
    EPS,
    EMStepResult,
    NextStepSums,
    ReportedFit,
    compare_joints,
    refused_certificate,
    reported_checks,
    stationary_certificate,
)
from certifit.checkers.mixture.saddles import (
    ComponentSlices,
    PartedMixture,
    best_parting,
    equal_components,
    least_gain,
    saddle_check,
    saddle_sample,
)
from certifit.checkers.plain.blocks import dense
from certifit.core import Certificate, Check
from certifit.rows import Array, Block, Rows, Sums

LOG_2PI = float(np.log(2 * np.pi))


# ------------------------------------------------------------------------------------------ the penalty
def least_objective(floor: Array, k: int, observed: Array) -> float:
    """Return a number below all objectives of k components; `observed` (d,) is each column's share of entries."""
    return float((xlogy(observed, 2 * np.pi * math.e * floor / k) - xlogy(observed, observed)).sum() / 2)


# ------------------------------------------------------------------------------------------ one plain EM step
class FittedGaussianMixture(NamedTuple):
    """The fitted attributes."""

    weights: Array  # (k,)
    means: Array  # (k, d)
    covariances: Array  # (k, d, d); (d, d) if tied, (k, d) if diagonal, (k,) if spherical
    covariance_type: str


def _full_matrices(C: Array, _k: int, _d: int) -> Array:
    return C


def _tied_matrices(C: Array, k: int, d: int) -> Array:
    return np.broadcast_to(C, (k, d, d))


def _diagonal_matrices(C: Array, _k: int, d: int) -> Array:
    return C[:, :, None] * np.eye(d)


def _spherical_matrices(C: Array, _k: int, d: int) -> Array:
    return C[:, None, None] * np.eye(d)


def _pooled(n: Array, S: Array) -> Array:
    return np.broadcast_to((n[:, None, None] * S).sum(axis=0) / n.sum(), S.shape)


def _diagonals(_n: Array, S: Array) -> Array:
    return np.diagonal(S, axis1=1, axis2=2)[:, :, None] * np.eye(S.shape[1])


def _mean_variances(_n: Array, S: Array) -> Array:
    return np.trace(S, axis1=1, axis2=2)[:, None, None] / S.shape[1] * np.eye(S.shape[1])


def _own_scatters(_n: Array, S: Array) -> Array:
    return S


class CovarianceType(NamedTuple):
    """What a `covariance_type` means."""

    expand: Callable[[Array, int, int], Array]  # stored covariances, k, d -> matrices (k, d, d)
    likeliest: Callable[[Array, Array], Array]  # n (k,) rows and their scatters S (k, d, d) -> matrices (k, d, d)
    shared: bool = False  # whether all components have one covariance


COVARIANCE_TYPES: dict[str, CovarianceType] = {
    "full": CovarianceType(_full_matrices, _own_scatters),
    "tied": CovarianceType(_tied_matrices, _pooled, shared=True),
    "diag": CovarianceType(_diagonal_matrices, _diagonals),
    "spherical": CovarianceType(_spherical_matrices, _mean_variances),
}


class GaussianMixturePoint(NamedTuple):
    """A mixture, its covariances as matrices.

    Means are kept less a shift amid the rows: far from 0 a step would be rounded away.
    """

    weights: Array  # (k,)
    means: Array  # (k, d), less the shift
    C: Array  # (k, d, d)
    shift: Array  # (d,)


@dataclass(frozen=True)
class GaussianExpectations(Sums):
    """What one E step expects."""

    loglik: float  # Σ w log p(x)
    weight: float  # Σ w
    n: Array  # Σ r (k,)
    first: Array  # Σ r (x - mean) (k, d)
    second: Array  # Σ r (x - mean)(x - mean)ᵀ (k, d, d); missing entries by their expectations
    observed: Array  # Σ w over rows with an entry in each column (d,)


def certify(
    model: FittedGaussianMixture,
    floor: Array,
    tol: float,
    rows: Rows,
    reported: ReportedFit | None = None,
    more: tuple[Check, ...] = (),
) -> Certificate:
    """Check a mixture on these rows, whose entries may be missing (NaN), and what the model reports of itself.

    `floor` (d,) is that of the penalty; `more` checks are added to the certificate.
    """
    kind, at, checks = _mixture_of(model)
    if not all(check.passed for check in checks):
        return refused_certificate(tol, *checks, *more)
    k = len(at.weights)
    before = rows.sum(partial(_expect, at))
    after = _maximise(at, before, kind, floor)
    lost = float(sum(not _is_definite(C) for C in after.C))
    if lost:
        return refused_certificate(tol, *checks, *more, Check("covariances not definite after one step", lost, 0.0))
    rest = rows.sum(partial(_compare, at, after))
    W = before.weight
    result = EMStepResult(
        before.loglik / W, _penalty(at, floor), rest.loglik / W, _penalty(after, floor), rest.bound / W, rest.kl / W
    )
    if reported is not None:
        more = (*more, *reported_checks(reported, result, W, stored_rounding(at.C)))
    step, penalty = partial(_maximise, kind=kind, floor=floor), partial(_penalty, floor=floor)
    more = (*checks[:2], *more, _saddle_check(at, step, penalty, tol, rows))
    least = least_objective(floor, k, before.observed / W)
    return stationary_certificate(result, at.weights, least, tol, more, None, stored_rounding(at.C))


def _mixture_of(model: FittedGaussianMixture) -> tuple[CovarianceType, GaussianMixturePoint, tuple[Check, ...]]:
    """Return what the covariance type means, the mixture, and the checks that it is one."""
    kind = COVARIANCE_TYPES[model.covariance_type]
    C, shift = np.array(kind.expand(model.covariances, *model.means.shape)), model.means[model.weights.argmax()]
    at = GaussianMixturePoint(model.weights, model.means - shift, C, shift)
    uneven = float(np.abs(at.C - at.C.swapaxes(1, 2)).max() / np.abs(at.C).max())
    empty = 0.0 if at.weights.sum() > 0 else 1.0
    return (
        kind,
        at,
        (
            Check("covariances' distance from symmetry, relative", uneven, 1e-12),
            Check("covariances that are not positive definite", float(sum(not _is_definite(C) for C in at.C)), 0.0),
            Check("weights below zero, or all of them zero", float((at.weights < 0).sum()) + empty, 0.0),
        ),
    )


# ------------------------------------------------------------------------- the fixed point of scikit-learn's step
FIXED_POINT = (
    "one more of its own EM steps, which adds reg_covar to every variance, moves the mixture by at most tol "
    "(Kullback-Leibler divergence of row and component, nats a row); nothing is said about other fixed points"
)


def certify_fixed_point(
    model: FittedGaussianMixture,
    added: Array,
    tol: float,
    rows: Rows,
    reported: float = np.nan,
    more: tuple[Check, ...] = (),
) -> Certificate:
    """Check a mixture whose M step adds `added` (d,) to the variances of every component, as scikit-learn's does.

    Such a step climbs no function: its fixed point is not the maximum of the likelihood, so what is claimed is the
    fixed point. `reported` is the mean log-likelihood that the model reports, from before its last step.
    """
    kind, at, checks = _mixture_of(model)
    if not all(check.passed for check in checks):
        return refused_certificate(tol, *checks, *more)
    e = rows.sum(partial(_expect, at))
    after = _own_step(at, e, kind, added)
    loglik = e.loglik / e.weight
    rounding = min(1e-11 * (1.0 + abs(loglik)), 0.01)
    checks = (
        Check("divergence of one more of its own EM steps, nats a row", _complete_kl(after, at), tol + rounding),
        Check("weights' distance from adding up to one", abs(float(at.weights.sum()) - 1.0), 1e-9),
        *checks,
        *more,
    )
    if not np.isnan(reported):
        # the model stopped because its last step changed this number by less than its own tolerance
        checks = (*checks, Check("reported lower bound off, nats a row", abs(reported - loglik), 0.01))
    step = partial(_own_step, kind=kind, added=added)
    checks = (*checks, _saddle_check(at, step, None, tol, rows))
    # variances of at least `added` bound densities; where nothing is added there is no bound
    bound = float(np.log(2 * np.pi * added).sum() / 2) if (added > 0).all() else np.nan
    return Certificate("stationary", FIXED_POINT, -loglik, bound, tol, tol, checks)


def _own_step(
    at: GaussianMixturePoint, e: GaussianExpectations, kind: CovarianceType, added: Array
) -> GaussianMixturePoint:
    """Return the mixture after an M step that adds to the variances of every component."""
    plain = _maximise(at, e, kind, np.zeros(len(added)))
    return plain._replace(C=plain.C + np.diag(added))


def _complete_kl(new: GaussianMixturePoint, old: GaussianMixturePoint) -> float:
    """Return KL(new || old) of the joint distribution of component and row: what an M step without penalty gains."""
    total = 0.0
    for p, q, m, n, A, B in zip(new.weights, old.weights, new.means, old.means, new.C, old.C, strict=True):
        if p > 0:
            factor = cho_factor(B, lower=True)
            log_det = 2 * np.log(np.diag(factor[0])).sum() - np.linalg.slogdet(A)[1]
            away = float((m - n) @ cho_solve(factor, m - n))
            kl = 0.5 * (float(np.trace(cho_solve(factor, A))) - len(m) + log_det + away)
            total += p * (kl + (np.log(p / q) if q > 0 else np.inf))
    return float(total)


# ------------------------------------------------------------------------------------------ saddles
def _saddle_check(
    at: GaussianMixturePoint, step: Callable[..., Any], penalty: Callable[..., float] | None, tol: float, rows: Rows
) -> Check:
    """Part equal components, and see whether the model's own steps lead above its penalised likelihood.

    Steps without a penalty add to variances, and may lower the likelihood.
    """
    rounding = stored_rounding(at.C)
    nothing = saddle_check(PartedMixture(None, 0.0, None), least_gain(tol, 0.0, rounding))
    if len(at.weights) == 1:
        return nothing
    X, w = saddle_sample(rows)
    X = X - at.shift
    groups = equal_components(_log_densities(at, X), at.weights, X, w)
    if not groups:
        return nothing

    def measured(point: GaussianMixturePoint, slices: ComponentSlices | None = None) -> tuple[float, Any]:
        e = rows.sum(partial(_expect, point, slices=slices))
        return e.loglik / e.weight - (penalty(point) if penalty else 0.0), step(point, e)

    fitted = measured(at)[0]
    limit = least_gain(tol, fitted, rounding)
    climbs = penalty is not None
    return saddle_check(best_parting(groups, fitted, lambda s: measured(at, s)[1], measured, limit, climbs), limit)


def _log_densities(at: GaussianMixturePoint, X: Array) -> Array:
    """Return log f_k (n, k) of rows, less the shift, whose entries may be missing."""
    out = np.zeros((len(X), len(at.weights)))
    one = at._replace(weights=np.ones(len(at.weights)))
    here = ~np.isnan(X)
    for pattern in np.unique(here, axis=0):
        mine, observed = (here == pattern).all(axis=1), np.flatnonzero(pattern)
        out[mine] = _joint(one, observed, X[mine][:, observed])
    return out


def _is_definite(C: Array) -> bool:
    try:
        np.linalg.cholesky(C)
    except LinAlgError:
        return False
    return True


def stored_rounding(matrices: Array) -> float:
    """Return how many nats a row the last digits of covariances (k, d, d) may change.

    In units of the columns' deviations, the squared diagonal of a Cholesky factor holds each column's variance given
    those before it: relative to the smallest, the last digits of a variance of 1 count that much more. Measured
    differences of two ways to the same likelihood reach eps times this sum, and hardly ever twice that.
    """
    most = 0.0
    for C in matrices[:1] if np.array_equal(matrices[0], matrices[-1]) else matrices:
        size = np.sqrt(np.diag(C))
        most = max(most, float((1 / np.diag(np.linalg.cholesky(C / np.outer(size, size))) ** 2).sum()))
    return 4 * EPS * most


def _penalty(at: GaussianMixturePoint, floor: Array) -> float:
    """The mean over the components of ½ Σ floor diag(C⁻¹), by the factors that show C to be definite."""
    half = np.diag(np.sqrt(floor))
    return float(np.mean([(np.linalg.solve(np.linalg.cholesky(C), half) ** 2).sum() for C in at.C]) / 2)


def _maximise(
    at: GaussianMixturePoint, e: GaussianExpectations, kind: CovarianceType, floor: Array
) -> GaussianMixturePoint:
    """Take the M step; a component without rows stays as it is."""
    k = len(e.n)
    some = e.n > 1e-15 * e.weight
    n = np.where(some, e.n, 1.0)
    step = np.where(some[:, None], e.first / n[:, None], 0.0)
    S = e.second / n[:, None, None] - step[:, :, None] * step[:, None, :]
    least = kind.likeliest(np.ones(k), np.broadcast_to(np.diag(floor), S.shape))
    share = np.ones(k) if kind.shared else e.weight / (k * n)
    C = kind.likeliest(np.where(some, e.n, 0.0), S) + share[:, None, None] * least
    C = np.where(some[:, None, None] | kind.shared, C, at.C)
    return GaussianMixturePoint(e.n / e.weight, at.means + step, C, at.shift)


def _patterns(at: GaussianMixturePoint, block: Block) -> Iterator[tuple[Array, Array, Array]]:
    """Give the rows that miss the same entries: observed columns, entries there less the shift, and weights."""
    X, w = dense(block.X) - at.shift, block.w
    here = ~np.isnan(X)
    some = (w > 0) & here.any(axis=1)
    X, w, here = X[some], w[some], here[some]
    if here.all():
        yield np.arange(X.shape[1]), X, w
        return
    kinds, which = np.unique(here, axis=0, return_inverse=True)
    for i, kind in enumerate(kinds):
        observed = np.flatnonzero(kind)
        mine = which.ravel() == i
        yield observed, X[mine][:, observed], w[mine]


def _joint(at: GaussianMixturePoint, observed: Array, X: Array) -> Array:
    """Return log π_k f_k of the observed entries X (n, columns), less the shift, of one pattern's rows (n, k)."""
    out = np.empty((len(X), len(at.weights)))
    with np.errstate(divide="ignore", over="ignore"):  # -inf: of a component without weight, or immensely far away
        for k, (m, C) in enumerate(zip(at.means, at.C, strict=True)):
            L = np.linalg.cholesky(C[np.ix_(observed, observed)])
            y = np.linalg.solve(L, (X - m[observed]).T)
            out[:, k] = -0.5 * (len(observed) * LOG_2PI + (y**2).sum(axis=0)) - np.log(np.diag(L)).sum()
        return out + np.log(at.weights)


def _expect(at: GaussianMixturePoint, block: Block, slices: ComponentSlices | None = None) -> GaussianExpectations:
    """Take the E step: responsibilities, and given the observed entries the expectations of the missing ones.

    With `slices`, rows of equal components are dealt out among these.
    """
    k, d = at.means.shape
    total = GaussianExpectations(0.0, 0.0, np.zeros(k), np.zeros((k, d)), np.zeros((k, d, d)), np.zeros(d))
    for observed, X, w in _patterns(at, block):
        missing = np.setdiff1d(np.arange(d), observed)
        joint = _joint(at, observed, X)
        log_p = logsumexp(joint, axis=1)
        R = np.exp(joint - log_p[:, None]) * w[:, None]
        if slices is not None:
            whole = np.full((len(X), d), np.nan)
            whole[:, observed] = X
            R = slices.deal(whole, R.T).T
        first, second = np.zeros((k, d)), np.zeros((k, d, d))
        for j in range(k):
            C, Z = at.C[j], np.zeros((len(X), d))
            Z[:, observed] = X - at.means[j][observed]
            if len(missing):
                B = cho_solve(cho_factor(C[np.ix_(observed, observed)], lower=True), C[np.ix_(observed, missing)])
                Z[:, missing] = Z[:, observed] @ B
                rest = C[np.ix_(missing, missing)] - C[np.ix_(missing, observed)] @ B
                second[j][np.ix_(missing, missing)] = R[:, j].sum() * rest
            first[j] = R[:, j] @ Z
            second[j] += (Z * R[:, j, None]).T @ Z
        by_column = np.zeros(d)
        by_column[observed] = w.sum()
        total = total + GaussianExpectations(
            float(w @ log_p), float(w.sum()), R.sum(axis=0), first, second, by_column
        )
    return total


def _compare(at: GaussianMixturePoint, after: GaussianMixturePoint, block: Block) -> NextStepSums:
    total = NextStepSums(0.0, 0.0, 0.0)
    for observed, X, w in _patterns(at, block):
        total = total + compare_joints(_joint(at, observed, X), _joint(after, observed, X), w)
    return total
