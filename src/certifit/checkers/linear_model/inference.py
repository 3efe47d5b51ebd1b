"""Deviances, dispersion, likelihood and covariance of a linear model's fit, computed again from the data.

classical   φ I⁻¹,  I the expected Fisher information, φ the dispersion
sandwich    I⁻¹ (Σ w u² z zᵀ) I⁻¹, u the derivative of half a row's deviance
clustered   the same with u z summed over clusters first, times G/(G-1) · (n-1)/(n-m)

Plain NumPy at the fitted coefficients; `linear_model.inference` is the same thing for the solver. A covariance is
compared entry by entry, relative to the two standard errors.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from certifit.checkers.linear_model.collinear import LeftOutColumns, are_undetermined, same_scores
from certifit.checkers.linear_model.coordinates import ScaledCoordinates
from certifit.checkers.linear_model.glm_sums import GlmMeasure, GlmPoint, GlmQuadratic, RowTerms, row_terms
from certifit.checkers.linear_model.newton_bound import conditioned_inverse, triangle_of
from certifit.checkers.plain.dual_points import EPS, summation_error
from certifit.checkers.plain.response_columns import response_columns
from certifit.checkers.plain.response_likelihoods import (
    constant_score,
    expected_curvature,
    has_expected_curvature,
    has_free_dispersion,
    log_likelihood,
    saturated_part,
)
from certifit.checkers.plain.response_losses import GlmClaim, loss, mean_and_slope, variance_of
from certifit.core import Check
from certifit.exceptions import DataError
from certifit.rows import Array, Block, Rows, Sums


@dataclass(frozen=True)
class InferenceTuning:
    """How far two computations of the same number may be apart."""

    close: float = 1e-6  # relative
    exact: float = 32 * EPS  # residuals up to this share of what is summed in them are rounding
    covariance_parameters: int = 4000  # of a logistic fit, beyond which it has no covariance
    null_steps: int = 50  # of Newton's method for the constant model beside an offset
    collinear: float = 1e-7  # smallest eigenvalue of a scaled information below which columns are made orthogonal


class InferencePoint(NamedTuple):
    """Where the sums are taken."""

    at: GlmPoint
    coordinates: ScaledCoordinates
    null: float | None  # score of the constant model; None where its deviance is known or not asked for
    kind: str | None  # of the covariance; None: none is computed
    information: bool  # whether the information is summed; where it is the Hessian, it is known


@dataclass(frozen=True)
class CheckedClusterScores:
    """Scores summed over the rows of each cluster; `+` joins the clusters of two runs of rows."""

    totals: Mapping[float, Array]  # cluster -> (m,)

    def __add__(self, other: CheckedClusterScores) -> CheckedClusterScores:
        both = dict(self.totals)
        for label, total in other.totals.items():
            both[label] = both[label] + total if label in both else total
        return CheckedClusterScores(both)


@dataclass(frozen=True)
class CheckedInferenceSums(Sums):
    """Sums over the rows at the fitted coefficients."""

    null: float  # half deviance of the constant model
    pearson: float  # Σ w (y - μ)² / V(μ)
    saturated: float
    rows: float  # Σ w, without trials
    information: Array  # (m, m), or 0-d
    products: Array  # (m, m) Σ w u² z zᵀ, or 0-d
    clusters: CheckedClusterScores
    moved: Array  # (m,) Σ w φ" s |z| with the rounding s of a row's score, or 0-d
    rounding: float  # half deviance of residuals that are nothing but rounding


def _sums(point: InferencePoint, block: Block) -> CheckedInferenceSums:
    claim = point.at.claim
    terms = row_terms(point.at, block)
    y, w, eta, u, times = terms.y, terms.w, terms.eta, terms.at.u, terms.times
    trials = w / times
    nothing = np.zeros(())
    information, products, clusters, moved = nothing, nothing, CheckedClusterScores({}), nothing
    with np.errstate(all="ignore"):
        free = has_free_dispersion(claim)
        curvature = expected_curvature(claim, eta) if free or point.information else nothing
        if point.information or point.kind in ("sandwich", "clustered"):
            Z = point.coordinates.scaled(terms.Z)
            sizes = np.abs(terms.Z) @ np.abs(point.at.beta) + np.abs(eta) + np.abs(terms.offset) + np.abs(y)
            slack = EPS * ((len(point.at.beta) + 4) * (sizes + 2 * abs(point.at.y0)))
            moved = (w * np.abs(terms.at.h) * slack) @ np.abs(Z)
        if point.information:
            information = (Z * (w * curvature)[:, None]).T @ Z
        if point.kind == "sandwich":
            products = (Z * (times * (trials * u) ** 2)[:, None]).T @ Z
        if point.kind == "clustered":
            used = response_columns(claim.layout, block)[2] > 0
            clusters = _by_cluster(Z * (w * u)[:, None], claim, block, used)
        return CheckedInferenceSums(
            0.0 if point.null is None else float(w @ loss(claim, point.null + terms.offset, y).phi),
            _pearson(claim, terms),
            float(times @ saturated_part(claim, y, trials)),
            float(times.sum()),
            information,
            products,
            clusters,
            moved,
            _rounding(point.at, terms, curvature) if free else 0.0,
        )


def _pearson(claim: GlmClaim, terms: RowTerms) -> float:
    """Σ w (y - μ)² / V(μ)."""
    if (claim.family, claim.link) == ("gaussian", "identity"):
        return float(terms.w @ terms.at.u**2)
    mu = mean_and_slope(claim.link, terms.eta)[0]
    return float(terms.w @ np.where(terms.y == mu, 0.0, (terms.y - mu) ** 2 / variance_of(claim, mu)))


def _rounding(at: GlmPoint, terms: RowTerms, curvature: Array, tuning: InferenceTuning = InferenceTuning()) -> float:
    """Half the deviance of rows whose residuals are nothing but rounding of what is summed in them."""
    squares = (at.claim.family, at.claim.link) == ("gaussian", "identity")
    intercept = abs(at.b + at.y0 - float(at.beta @ at.m))
    size = np.abs(terms.eta + at.y0) + np.abs(terms.offset) + intercept
    size = size + (np.abs(terms.y + at.y0) if squares else 1.0)
    return 0.5 * float(terms.w @ (curvature * (tuning.exact * size) ** 2))


def _by_cluster(scores: Array, claim: GlmClaim, block: Block, used: Array) -> CheckedClusterScores:
    place = claim.layout.clusters
    if place is None:
        raise DataError(
            got="a fit with covariance='clustered', and no clusters",
            wanted="the clusters it was fitted with",
            fix="audit(model, X, y, clusters=…)",
        )
    labels = np.asarray(block.y, dtype=np.float64)[used, place]
    return CheckedClusterScores({float(c): scores[labels == c].sum(axis=0) for c in np.unique(labels)})


def inference_checks(
    here: GlmMeasure,
    attributes: Mapping[str, Any],
    rows: Rows,
    covariance: str | None = None,
    left_out: LeftOutColumns = LeftOutColumns(np.zeros(0, int)),
    tuning: InferenceTuning = InferenceTuning(),
) -> tuple[Check, ...]:
    """Compare fitted attributes with what the data say at the coefficients; those that are absent are skipped.

    `attributes` may hold deviance_, null_deviance_, dispersion_, df_resid_, loglikelihood_, covariance_ (with the
    intercept first); `covariance` is how covariance_ was computed, None where there is to be none, and `left_out` are
    the columns that are said to be combinations of others.
    """
    coordinates, at, s = here.without(left_out.numbers)
    claim = at.claim
    if not np.isfinite(s.loss):
        return ()
    if covariance is None and attributes.keys() <= {"deviance_", "covariance_"}:
        deviance, off = 2 * max(0.0, s.loss), _off(at, s, rows.n_rows)
        stated = [float(attributes["deviance_"])] if "deviance_" in attributes else []
        return tuple(_agreement("deviance_", d, deviance, tuning.close * deviance + 2 * off) for d in stated)
    m = rows.n_features + claim.intercept - len(left_out.numbers)
    # Beside an intercept, or for squares, the deviance of the constant model is summed up already.
    beside = claim.layout.offset is not None or claim.layout.exposure is not None
    other = beside or not (claim.intercept or (claim.family, claim.link) == ("gaussian", "identity"))
    null = _null_score(at, s, rows, tuning) if other and "null_deviance_" in attributes else None
    known = s.H.ndim > 0 and has_expected_curvature(claim)
    point = InferencePoint(at, coordinates, null, covariance, covariance is not None and not known)
    e = rows.sum(partial(_sums, point))
    e = replace(e, information=s.H) if known else e
    e = replace(e, null=s.null) if null is None else e
    off = _off(at, s, rows.n_rows)
    mean_off = off if null is not None else min(off, _null_off(s, rows.n_rows))
    mean_off += 4 * s.curvature * (EPS * at.y0) ** 2  # a mean of the targets is stored to eps
    found = _scalar_checks(attributes, claim, s, e, m, (off, mean_off, tuning.close))
    if covariance is None:
        return found
    moved = np.zeros(rows.n_features + 1, dtype=bool)
    if left_out.shortest and len(left_out.numbers):
        moved = _stated_unknown(attributes.get("covariance_"), len(moved), claim.intercept)
        if not are_undetermined(moved, same_scores(left_out.numbers, here.coordinates, rows)):
            check = Check("standard errors where others give the same scores, or none where not (1: yes)", 1.0, 0.0)
            return (*found, check)
    return (*found, _covariance_check(attributes, point, e, rows, moved, tuning))


def _stated_unknown(covariance: Any, size: int, intercept: bool) -> Array:
    """Which parameters, the intercept as the last (size,), have no standard error."""
    unknown = np.zeros(size, dtype=bool)
    if covariance is not None and np.shape(covariance) == (size - 1 + intercept,) * 2:
        nan = np.isnan(np.diag(np.asarray(covariance, dtype=np.float64)))
        unknown[: len(nan)] = np.roll(nan, -1) if intercept else nan
    return unknown


def _off(at: GlmPoint, s: GlmQuadratic, n_rows: int) -> float:
    """How far half the deviance may be off: rounding, and that of a penalty it was computed beside."""
    total = at.claim.alpha * (s.weight if at.claim.per_row else 1.0)
    paid = 0.0
    if total > 0:
        ratio = at.claim.l1_ratio
        paid = total * float(ratio * np.abs(at.beta).sum() + 0.5 * (1 - ratio) * (at.beta**2).sum())
    share = summation_error(n_rows)
    far = 2 * EPS * abs(at.y0) * s.g_size.total  # residuals of targets that are not centred first
    return 16 * (share * (s.loss_size + paid) + EPS * s.terms + s.loss_slack + s.slack) + EPS * at.b_slack + far


def _null_off(s: GlmQuadratic, n_rows: int) -> float:
    """How far half the deviance of the constant model may be off: it is far below that of a model that fits badly."""
    far = 4 * EPS * abs(s.y) / s.weight * np.sqrt(2 * s.weight * max(0.0, s.null))  # Σ |y - mean| eps |mean|
    return 64 * (summation_error(n_rows) * max(s.null_size, s.null) + EPS * s.terms) + float(far)


def _scalar_checks(
    attributes: Mapping[str, Any],
    claim: GlmClaim,
    s: GlmQuadratic,
    e: CheckedInferenceSums,
    m: int,
    allowed: tuple[float, float, float],
) -> tuple[Check, ...]:
    off, mean_off, close = allowed
    deviance, df = 2 * max(0.0, s.loss), e.rows - m
    stated = float(attributes.get("deviance_", deviance))
    # Whether the fit is exact is told by the stated deviance too; at the edge either answer is right.
    edge = 1 + close if np.isposinf(float(attributes.get("loglikelihood_", 0.0))) else 1 - close
    spread = 0.0 if has_free_dispersion(claim) and stated <= 2 * edge * e.rounding else max(stated, 0.0)
    expected = {
        "deviance_": (deviance, 2 * off),
        "null_deviance_": (2 * max(0.0, e.null), 2 * mean_off),
        "pearson_chi2_": (e.pearson, 4 * off),
        "df_resid_": (df, 0.0),
        # At the stated deviance, which is checked itself: its logarithm would magnify what rounding leaves of it.
        "loglikelihood_": (log_likelihood(claim, e.saturated, spread, e.rows), 16 * EPS * e.rows),
        "dispersion_": (1.0, 0.0),
    }
    if has_free_dispersion(claim):
        expected["dispersion_"] = (e.pearson / df, 4 * off / df) if df > 0 else (np.nan, 0.0)
    return tuple(
        _agreement(name, float(attributes[name]), value, close * abs(value) + spare)
        for name, (value, spare) in expected.items()
        if name in attributes
    )


def _agreement(name: str, stated: float, value: float, limit: float) -> Check:
    """How far a stated number is from the value; NaN agrees with NaN and infinity with infinity.

    Deviances and the like are sums of what is never negative: below 0 nothing is excused as rounding.
    """
    if (np.isnan(stated) and np.isnan(value)) or stated == value:
        return Check(f"{name} is off by", 0.0, 0.0)
    below = stated < 0 <= value and name != "loglikelihood_"
    return Check(f"{name} is off by", abs(stated - value), 0.0 if below else limit)


def _null_score(at: GlmPoint, s: GlmQuadratic, rows: Rows, tuning: InferenceTuning) -> float:
    """The score of the constant model, beside the offset, for the targets as they are centred."""
    claim = at.claim
    score = constant_score(claim, s.y / s.weight, s.weight) - s.offset / s.weight
    if claim.layout.offset is None and claim.layout.exposure is None:
        return score
    for _ in range(tuning.null_steps):
        slope, curvature = rows.sum(partial(_null_pass, at, score))
        if not curvature > 0:
            break
        step = float(np.clip(slope / curvature, -5, 5))
        score -= step
        if abs(step) < 1e-12 * max(1.0, abs(score)):
            break
    return score


def _null_pass(at: GlmPoint, score: float, block: Block) -> Array:
    y, offset, w = response_columns(at.claim.layout, block)
    used = w > 0
    terms = loss(at.claim, score + offset[used], y[used] - at.y0)
    return np.array([w[used] @ terms.u, w[used] @ terms.h])


# The covariance. -----------------------------------------------------------------------------------------------


def _covariance_check(
    attributes: Mapping[str, Any],
    point: InferencePoint,
    e: CheckedInferenceSums,
    rows: Rows,
    unknown: Array,
    tuning: InferenceTuning,
) -> Check:
    """How far the stated covariance is from that of the data; `unknown` (d + 1,) are not determined."""
    found = conditioned_inverse(e.information)
    if found is None or found.smallest < tuning.collinear:
        R = rows.sum(partial(triangle_of, point.coordinates)).R
        if R.shape[0] == R.shape[1] and (np.abs(np.diag(R)) > 0).all():
            point = point._replace(coordinates=point.coordinates._replace(triangle=R), information=True)
            e = rows.sum(partial(_sums, point))
            found = conditioned_inverse(e.information)
    if found is None:
        return Check("covariance_ is of coefficients that the data do not determine (1: yes)", 1.0, 0.0)
    C = _covariance(point.kind, found.inverse, e, float(attributes.get("dispersion_", 1.0)))
    with np.errstate(all="ignore"):
        J = point.coordinates.to_columns
        if point.coordinates.intercept:
            J = np.roll(J, 1, axis=0)
        full = J @ C @ J.T
        unknown = np.roll(unknown, 1) if point.coordinates.intercept else unknown[:-1]
        unknown = unknown | ~J.any(axis=1)
        full[unknown] = full[:, unknown] = np.nan
        # Residuals that are nothing but rounding are other ones to others.
        spare = 4 * np.abs(J) @ np.abs(found.inverse) @ e.moved if point.kind != "classical" else np.zeros(len(J))
    # The inverse of an information with so small an eigenvalue keeps no more digits, here and in any fit.
    limit = tuning.close + 100 * point.coordinates.row_error + 16 * len(C) * EPS / found.smallest
    return covariance_agreement(attributes.get("covariance_"), full, limit, spare)


def _covariance(kind: str | None, inverse: Array, e: CheckedInferenceSums, dispersion: float) -> Array:
    if kind == "classical":
        return dispersion * inverse
    products = e.products
    if kind == "clustered":
        totals, m = np.array(list(e.clusters.totals.values())), len(inverse)
        groups = len(totals)
        factor = groups / max(1, groups - 1) * (e.rows - 1) / max(1.0, e.rows - m)
        products = factor * totals.T @ totals
    return inverse @ products @ inverse


def covariance_agreement(stated: Any, expected: Array, limit: float, spare: Array | None = None) -> Check:
    """How far a stated covariance (m, m) is from this one, relative to the standard errors.

    `spare` is how far rounding may have moved each standard error (m,), which is not counted.
    NaN stands in the rows of columns that were left out. What overflows need not be stated.
    """
    name = "covariance_ is off by, relative to the standard errors"
    if stated is None:
        return Check("covariance_ is missing (1: yes)", float(not np.isinf(expected).any()), 0.0)
    stated = np.asarray(stated, dtype=np.float64)
    if stated.shape != expected.shape:
        raise DataError(got=f"covariance_ of shape {stated.shape}", wanted=f"{expected.shape}")
    used = ~np.isnan(np.diag(expected))
    if not np.isnan(stated[~used]).all() or not np.isnan(stated[:, ~used]).all():
        return Check("covariance_ of columns that were left out (1: yes)", 1.0, 0.0)
    size = np.maximum(np.sqrt(np.diag(expected)[used]), 1e-145)  # what underflows is 0 to both
    with np.errstate(all="ignore"):
        apart = np.abs(stated[np.ix_(used, used)] - expected[np.ix_(used, used)])
        if spare is not None:
            s = spare[used]
            apart = np.maximum(apart - s * size[:, None] - size * s[:, None] - s * s[:, None], 0.0)
        apart = apart / size / size[:, None]
    return Check(name, float(apart.max(initial=0.0)) if not np.isnan(apart).any() else np.inf, limit)
