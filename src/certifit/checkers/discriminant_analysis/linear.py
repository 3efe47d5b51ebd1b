"""The checker of linear discriminant analysis.

Priors, means and covariances are compared with those of the rows. Whitened by a matrix A with AᵀWA = I, the
coefficients must be A Aᵀ (m_c - m̄), and the directions S must satisfy SᵀWS = I, SᵀBS = diag(λ) in falling order, and
leave nothing of B out: Σ λ = tr AᵀBA. The checker whitens by itself. Which directions a rank tolerance leaves out
may hang on rounding; then each possible number is tried.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import eigh

from certifit.checkers.discriminant_analysis.class_covariances import column_deviations
from certifit.core import Certificate, Check, rounding_within
from certifit.rows import Array


@dataclass(frozen=True)
class DiscriminantCheckTuning:
    """Numbers that the checker of discriminant analysis shares with nobody."""

    exact: float = 1e-8  # the tolerance that our own fits are held to
    least_eigenvalue: float = 1e-10  # of correlations; below it, eigenvalues are rounding
    unsure: float = 1e-6  # relative distance to the rank tolerance at which rounding may decide


@dataclass(frozen=True)
class LinearDiscriminantClaim:
    """The fitted attributes of a linear discriminant analysis, and the settings that they hang on."""

    coef: Array  # (k, d), or (1, d) for two classes
    intercept: Array  # (k,), or (1,)
    priors: Array  # (k,)
    means: Array  # (k, d)
    scalings: Array | None  # (d, r)
    ratios: Array | None  # shares of the first directions
    xbar: Array | None  # (d,)
    covariance: Array | None  # (d, d)
    solver: str
    rank_tol: float
    components: int
    origin: Array | None = None  # (d,) from which means are measured; None for Σ π_c m_c
    signed: bool = True  # whether the largest entry of each direction is positive, as our fits have it
    eps: float = float(np.finfo(np.float64).eps)  # of the precision that the fit worked in

    @classmethod
    def of(cls, fitted: Mapping[str, Any], settings: Mapping[str, Any], **more: Any) -> LinearDiscriminantClaim:
        """Read attributes and settings by scikit-learn's names."""
        k, d = np.shape(fitted["means_"])
        asked = settings["n_components"]
        return cls(
            fitted["coef_"],
            fitted["intercept_"],
            fitted["priors_"],
            fitted["means_"],
            scalings=fitted.get("scalings_"),
            ratios=fitted.get("explained_variance_ratio_"),
            xbar=fitted.get("xbar_"),
            covariance=fitted.get("covariance_"),
            solver=settings["solver"],
            rank_tol=float(settings["tol"]),
            components=min(k - 1, d) if asked is None else int(asked),
            **more,
        )


class DiscriminantMeasured(NamedTuple):
    """What the rows say."""

    means: Array  # (k, d)
    within: Array  # (d, d) the covariance that is whitened
    pooled: Array  # (d, d) the covariance that is published
    between: Array  # (d, d)


class PlainWhitening(NamedTuple):
    """A with AᵀWA = I on the directions that are kept."""

    A: Array  # (d, r)
    deviation: Array  # (d,) standard deviations within classes
    condition: float  # largest over smallest eigenvalue that is kept, of the correlations


class _Equations(NamedTuple):
    """What every check of one whitening needs."""

    claim: LinearDiscriminantClaim
    found: DiscriminantMeasured
    space: PlainWhitening
    priors: Array  # (k,)
    tol: float

    @property
    def rounding(self) -> float:
        """How far rounding may move numbers of size 1 in whitened coordinates."""
        return rounding_within(32 * len(self.found.within) * self.claim.eps * self.space.condition, 1.0, 0.01)

    @property
    def centre(self) -> Array:
        return self.priors @ self.found.means


def certify(claim: LinearDiscriminantClaim, found: DiscriminantMeasured, priors: Array, tol: float) -> Certificate:
    """Check a fit against what the rows say, with the priors that the settings ask for."""
    spaces = [space for space in _whitenings(claim, found) if space.A.size]
    if not spaces:
        none = Check("directions that vary within classes: none (1: yes)", 1.0, 0.0)
        return Certificate("exact", _claim_words(), tol=tol, checks=(none,))
    certificates = [_certify_in(_Equations(claim, found, space, priors, tol)) for space in spaces]
    return next((c for c in certificates if c.holds), certificates[-1])


def _whitenings(
    claim: LinearDiscriminantClaim,
    found: DiscriminantMeasured,
    tuning: DiscriminantCheckTuning = DiscriminantCheckTuning(),
) -> list[PlainWhitening]:
    """Return the whitening on the directions above the rank tolerance, for every rank that rounding allows."""
    size = np.abs(found.means).max(axis=0)
    variances = np.diag(found.within)
    deviation = column_deviations(variances, size)
    R = found.within / np.outer(deviation, deviation)
    constant = np.sqrt(np.maximum(variances, 0.0)) <= 8 * np.finfo(np.float64).eps * size
    R[constant], R[:, constant] = 0.0, 0.0
    values, vectors = eigh(R)
    least = max(claim.rank_tol**2 if claim.solver == "svd" else 0.0, tuning.least_eigenvalue)
    unsure = tuning.unsure * least + 32 * len(R) * claim.eps
    ranks = range(int((values > least + unsure).sum()), int((values > least - unsure).sum()) + 1)
    out = []
    for rank in ranks:
        kept, V = values[len(values) - rank :], vectors[:, len(values) - rank :]
        condition = float(values[-1] / kept[0]) if rank and kept[0] > 0 else np.inf
        out.append(PlainWhitening(V / np.sqrt(np.abs(kept)) / deviation[:, None], deviation, condition))
    return out


def _certify_in(e: _Equations) -> Certificate:
    beta, aims, share = _quadratic(e)
    u, t = beta @ e.found.within @ e.space.A, aims @ e.space.A
    objective = float(share @ (0.5 * (u**2).sum(axis=1) - (u * t).sum(axis=1)))
    least = -0.5 * float(share @ (t**2).sum(axis=1))
    # Whitening loses as many digits as the covariance has condition.
    lost = max(1e-10, min(e.rounding, 1e-3)) * abs(least)
    bound = least - lost - 32 * len(t.T) * np.finfo(np.float64).eps * (1 + abs(least))
    limit = e.tol * abs(objective) + lost
    checks = [*_moment_checks(e), *_score_checks(e)]
    if e.claim.scalings is not None:
        checks += _direction_checks(e, e.claim.scalings)
    rank, d = e.space.A.shape[1], len(e.found.within)
    facts: dict[str, float | str] = {"directions that vary within classes": f"{rank} of {d}"}
    return Certificate("exact", _claim_words(), objective, bound, e.tol, limit, tuple(checks), facts)


def _claim_words() -> str:
    return "means, priors and covariance are those of the rows, and coefficients and directions solve their equations"


def _quadratic(e: _Equations) -> tuple[Array, Array, Array]:
    """Return coefficients, what W times them must be, and their shares, free of a vector common to all classes."""
    means, coef = e.found.means, e.claim.coef
    if len(coef) == 1:
        return coef, means[1:] - means[:1], np.ones(1)
    return coef - e.priors @ coef, means - e.centre, e.priors


def _largest(residuals: Array) -> float:
    """The largest residual; infinite where one is not a number."""
    a = np.abs(residuals)
    return float(a.max(initial=0.0)) if np.isfinite(a).all() else np.inf


# -------------------------------------------------------------------------------------------------------- moments
def _moment_checks(e: _Equations) -> list[Check]:
    claim, found, deviation = e.claim, e.found, e.space.deviation
    # Stored means are rounded.
    stored = rounding_within(16 * claim.eps * np.abs(found.means).max(axis=0) / deviation, 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        checks = [
            Check("log-priors of the classes", _largest(np.log(claim.priors / e.priors)), e.tol + 64 * claim.eps)
        ]
    off = np.maximum(np.abs(claim.means - found.means) / deviation - stored, 0.0)
    checks.append(Check("class means, in standard deviations", _largest(off), e.tol))
    if claim.xbar is not None:
        off = np.maximum(np.abs(claim.xbar - e.centre) / deviation - stored, 0.0)
        checks.append(Check("overall mean, in standard deviations", _largest(off), e.tol))
    if claim.covariance is not None:
        scale = np.sqrt(np.maximum(np.diag(found.pooled), 0.0))
        scale = np.where(scale > 0, scale, 1.0)
        off = (claim.covariance - found.pooled) / np.outer(scale, scale)
        limit = e.tol + rounding_within(64 * len(off) * (claim.eps + float((stored**2).max())), 1.0, 0.1)
        checks.append(Check("covariance, in standard deviations", _largest(off), limit))
    return checks


# --------------------------------------------------------------------------------------------------------- scores
def _score_checks(e: _Equations) -> list[Check]:
    """Compare coefficients and intercepts with the solution; differences are measured as the scores' deviations."""
    claim, A = e.claim, e.space.A
    origin = e.centre if claim.origin is None else claim.origin
    white = (e.found.means - origin) @ A
    coef, level = white @ A.T, np.log(e.priors) - 0.5 * (white**2).sum(axis=1)
    levels = np.abs(level) + (white**2).sum(axis=1)
    if len(claim.coef) == 1:
        coef, level, levels = coef[1:] - coef[:1], level[1:] - level[:1], levels[1:] + levels[:1]
    off, deviation = claim.coef - coef, e.space.deviation
    size = float(np.sqrt((coef @ e.found.within * coef).sum(axis=1)).max())
    spread = np.sqrt(np.maximum((off @ e.found.within * off).sum(axis=1), 0.0))
    limit = (e.tol + e.rounding) * size + e.rounding + _left_out(e)
    outside = off * deviation - (off @ e.found.within @ A) @ (A.T * deviation)
    length = float(np.linalg.norm(coef * deviation, axis=1).max())
    far = np.abs(claim.coef) @ np.abs(origin) + np.abs(coef) @ np.abs(origin)  # what the products below sum up
    shift = claim.intercept + claim.coef @ origin - level
    summed = rounding_within(64 * claim.eps * float(far.max()), float(levels.max() + 1))
    allowed = (e.tol + e.rounding) * float(levels.max() + 1) + summed + size * _left_out(e)
    return [
        Check("coefficients, as deviations of scores", _largest(spread), limit),
        Check(
            "coefficients along directions without variance",
            _largest(outside),
            (e.tol + e.rounding) * length + e.rounding * float((1 / np.sqrt(len(A))) + 1) + _left_out(e) * length,
        ),
        Check("intercepts, as scores at the overall mean", _largest(shift), allowed),
    ]


def _left_out(e: _Equations) -> float:
    """What directions below the rank tolerance add to scores, which scikit-learn's 'svd' leaves out."""
    if e.claim.signed or e.claim.solver != "svd":
        return 0.0
    ratios = np.linalg.svd((np.sqrt(e.priors)[:, None] * (e.found.means - e.centre)) @ e.space.A, compute_uv=False)
    small = ratios[ratios <= 2 * e.claim.rank_tol * ratios[0]]
    return float(np.linalg.norm(small) / np.sqrt(e.priors.min()))


# ----------------------------------------------------------------------------------------------------- directions
def _direction_checks(e: _Equations, S: Array) -> list[Check]:
    claim, A = e.claim, e.space.A
    U = A.T @ e.found.within @ S  # directions in whitened coordinates (r, m)
    B = A.T @ e.found.between @ A
    M = U.T @ B @ U
    ratios = np.diag(M)
    top = max(float(ratios.max(initial=0.0)), 0.0)
    allowed = e.tol * top + e.rounding * (1 + top)
    unit = e.tol + e.rounding
    outside = (S - A @ U) * e.space.deviation[:, None]
    length = float(np.linalg.norm(S * e.space.deviation[:, None], axis=0).max(initial=0.0))
    missing = float(np.trace(B) - ratios.sum())
    dropped = 0.0 if claim.solver == "eigen" else (len(claim.means) * (2 * claim.rank_tol) ** 2) * top
    total, most = float(np.trace(B)), claim.components
    checks = [
        Check("directions, their variance within classes minus 1", _largest(U.T @ U - np.eye(S.shape[1])), unit),
        Check("directions without variance in them", _largest(outside), unit * length),
        Check("directions, their covariance between classes", _largest(M - np.diag(ratios)), allowed),
        Check("directions out of order, ratios", max(0.0, _largest(np.maximum(np.diff(ratios), 0.0))), allowed),
        Check("ratios of directions left out", abs(missing), allowed * len(B) + dropped),
        Check("directions missing", float(_wanted_count(e, B, ratios) != S.shape[1]), 0.0),
    ]
    if claim.signed:
        largest = S[np.abs(S).argmax(axis=0), np.arange(S.shape[1])]
        checks.append(Check("directions whose largest entry is negative", float((largest < 0).sum()), 0.0))
    if claim.ratios is not None:
        wanted = np.zeros(min(most, len(claim.ratios) if claim.ratios.ndim else 0))
        wanted[: min(len(wanted), len(ratios))] = ratios[: len(wanted)]
        short = len(claim.ratios) != min(most, len(claim.means), len(e.space.A.T))
        off = np.inf if short else _largest(claim.ratios * total - wanted)
        checks.append(Check("shares of the directions, times the sum of ratios", off, allowed * len(B) + dropped))
    return checks


def _wanted_count(e: _Equations, B: Array, ratios: Array) -> int:
    """Return how many directions there must be; the model's own number where rounding decides."""
    if e.claim.solver == "eigen":
        return len(e.found.within)
    values = np.sort(np.linalg.eigvalsh((B + B.T) / 2))[::-1][: min(len(e.claim.means), len(B))]
    top = max(float(values[0]), 0.0)
    slack = e.rounding * (1 + top)
    sure = int((values > e.claim.rank_tol**2 * top * (1 + 1e-6) + slack).sum())
    possible = int((values > e.claim.rank_tol**2 * top * (1 - 1e-6) - slack).sum())
    return min(max(len(ratios), sure), possible)
