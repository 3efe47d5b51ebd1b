"""Generalised linear models re-checked from the data: a dual point or the Hessian proves the distance to the optimum.

    P(β, b) = Σ wᵢ φᵢ(sᵢ) + λ₁ |β|₁ + λ₂/2 |β|²,    s = β·x + b,   φᵢ half the deviance at the score s + offset

| proof | when | how |
|---|---|---|
| Hessian | |φ"'| <= R φ"; the only one without a penalty | the bound of `newton_bound` |
| dual point | the loss is convex and there is a penalty | see below |
| none: `stationary` | the loss is not convex, or no penalty and no R | half the squared Newton decrement is small |

Dual point. Re-optimise b, so that uᵢ = φᵢ'(sᵢ) has Σ wᵢ uᵢ = 0, scale the heavier side down by what is left, and let
v = Σ wᵢ uᵢ xᵢ. Then (Fenchel)  P >= Σ wᵢ gᵢ(uᵢ) - Σⱼ (|vⱼ| - λ₁)₊² / 2λ₂  with g = -φ* of `response_conjugates`; with
λ₂ = 0 the dual point is τu, τ = min(1, λ₁ / max |vⱼ|). No deviance is negative, so P >= 0 besides.

Coefficients of at least 0 (`positive`). With δ = β* - β, g·δ is at least p·δ, where p is g without the positive
slopes of coefficients that are 0, since those can only rise: every bound by the Hessian holds with p in the place of
g. Squares of collinear columns have a singular Hessian. Let N be columns of coefficients that are 0, with slopes of
at least ν |zⱼ|, ν the decrement of the others alone without any constraint: the step that is best for those leaves no
slope of N below 0, so that ν²/2 is all there is to gain. In the dual point only negative vⱼ count: min over βⱼ >= 0
of vⱼ βⱼ + λ₁ βⱼ + λ₂/2 βⱼ² is 0 for the others.

Both give away what rounding may have added. The Hessian also bounds how far each coefficient is from the
minimiser's, and so does a ridge penalty: |β - β*|² <= 2 gap / λ₂.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.linalg import qr, solve_triangular

from certifit.checkers.linear_model.claims import LinearModelClaims
from certifit.checkers.linear_model.collinear import (
    LeftOutColumns,
    SameScores,
    left_out_checks,
    loose_check,
    same_scores,
    shortest_errors,
)
from certifit.checkers.linear_model.coordinates import ScaledCoordinates, zero_column_checks
from certifit.checkers.linear_model.glm_sums import (
    GlmDualSums,
    GlmMeasure,
    GlmPoint,
    GlmQuadratic,
    LongGradient,
    balanced_candidate,
    dual_sums,
    explicit_dual_sums,
    long_gradient,
    measured,
    quadratic,
    reach,
    row_terms,
)
from certifit.checkers.linear_model.newton_bound import (
    ConditionedInverse,
    NewtonBoundTuning,
    conditioned_inverse,
    independent,
    self_concordant_distance,
    self_concordant_gap,
    triangle_of,
)
from certifit.checkers.plain.blocks import dense
from certifit.checkers.plain.dual_points import EPS, DualPenalty, lower_bound, summation_error
from certifit.checkers.plain.response_losses import GlmClaim, concordance, is_convex
from certifit.core import Certificate, Check
from certifit.rows import Array, Block, Rows


@dataclass(frozen=True)
class GlmCheckTuning(NewtonBoundTuning):
    """When a Hessian is formed, how far rounding may excuse a gap, and which coefficients are absurd."""

    most_rounding: float = 1e-3  # of the objective
    exact: float = 1e-12  # of the constant model's objective: a fit that explains all but this is exact
    constant: float = 1e3  # the same for constant targets, times what rounding makes of their objective
    dual_rows: int = 2000  # rows up to which a dual point is solved for
    held_rounds: int = 8  # times that columns with too small a slope are no longer held at 0
    score_steps: float = 10.0  # times the root of the tolerance: what a Newton step may change a score by
    most_score_step: float = 0.1  # and no more than this, whatever the tolerance


class Proof(NamedTuple):
    """A lower bound on the minimum, and how much of the gap is rounding alone."""

    bound: float = 0.0  # no deviance is negative
    rounding: float = 0.0
    exists: bool = False  # whether it proves that there is a minimum


class NewtonFindings(NamedTuple):
    """What gradient and Hessian say of a point; the decrement is infinite where the Hessian is singular."""

    coordinates: ScaledCoordinates
    decrement: float = np.inf  # ν, as computed
    rounding: float = 0.0  # how much larger it may be
    reach: float = np.inf  # c
    inverse: Array | None = None  # (m, m) H⁻¹, rounded up
    checks: tuple[Check, ...] = ()
    step: float = np.inf  # at least the largest change of a score by one more Newton step
    step_rounding: float = 0.0  # how much of it may be rounding
    same: SameScores | None = None  # where the shortest of several minimisers was taken

    @property
    def farthest(self) -> float:
        return self.decrement + self.rounding


def certify(
    coef: Array,
    intercept: float,
    claim: GlmClaim,
    tol: float,
    rows: Rows,
    left_out: LeftOutColumns | None = None,
    tuning: GlmCheckTuning = GlmCheckTuning(),
) -> Certificate:
    """Check a fitted model's coefficients (d,) and intercept.

    `left_out` are the columns that the fit says are combinations of others; None where it says nothing, so that any
    of the minimisers will do.
    """
    here = measured(coef, intercept, claim, rows, tuning.hessian_parameters)
    return certify_measured(here, intercept, tol, rows, left_out, tuning)


def certify_measured(
    here: GlmMeasure,
    intercept: float,
    tol: float,
    rows: Rows,
    left_out: LeftOutColumns | None = None,
    tuning: GlmCheckTuning = GlmCheckTuning(),
) -> Certificate:
    """The same from what the rows sum up to."""
    at, s, claim = here.at, here.sums, here.at.claim
    total = claim.alpha * (s.weight if claim.per_row else 1.0)
    penalty = DualPenalty(total * claim.l1_ratio, total * (1 - claim.l1_ratio), 0.0 if claim.intercept else None)
    with np.errstate(over="ignore"):
        paid = float((penalty.lam1 * np.abs(at.beta)).sum()) + 0.5 * float(
            ((np.sqrt(penalty.lam2) * at.beta) ** 2).sum()
        )
    objective = max(s.loss, 0.0) + paid  # a deviance below 0 is rounding; NaN stays
    checks = _plain_checks(at, s, intercept)
    if claim.alpha > 0:
        checks = (*checks, *zero_column_checks(at.beta[None], here.coordinates))
    provable = is_convex(claim) and (claim.alpha > 0 or concordance(claim) is not None)
    words = LinearModelClaims.of_deviance(claim.alpha > 0, claim.positive)
    if not (np.isfinite(objective) and all(check.passed for check in checks)):
        if provable:
            return Certificate("optimal", words, objective, 0.0, tol, tol * objective, checks)
        return Certificate("stationary", LinearModelClaims.stationary, objective, tol=tol, checks=checks)
    newton = _newton(here, penalty, rows, left_out, tuning)
    checks = (*checks, *newton.checks)
    scale, most, stored = _scales(at, s, objective, intercept, rows.n_rows, tuning)
    asked = tol * objective
    if not provable:
        limit = asked + min(2 * newton.rounding**2 + stored, most)
        check = Check("half the squared Newton decrement", 0.5 * newton.decrement**2, limit)
        checks = (check, *_score_step_checks(claim, newton, tol, tuning), *checks)
        return Certificate("stationary", LinearModelClaims.stationary, objective, tol=tol, checks=checks)
    proof = _newton_proof(newton, objective, _rounding(at, s, paid, rows.n_rows), tuning)
    if proof.exists:  # deviances are made from larger terms, whose rounding is all that is left of an exact fit
        asked = tol * max(objective, min(16 * EPS * s.terms, tuning.exact * s.null))
    if claim.alpha > 0 and objective - proof.bound > asked + min(proof.rounding + stored, most):
        proof = max(proof, _dual_proof(at, penalty, rows), key=lambda found: found.bound)
        if objective - proof.bound > asked and rows.n_rows <= tuning.dual_rows:
            solved = _corrected_dual_proof if penalty.lam1 > 0 else _solved_dual_proof
            proof = max(proof, solved(at, penalty, rows), key=lambda found: found.bound)
        if objective - proof.bound > asked and paid <= asked and not claim.positive:
            proof = max(proof, _unpenalised_proof(here, rows, tuning), key=lambda found: found.bound)
    if claim.positive and not proof.bound > 0:  # rows that are fitted perfectly: what is left is rounding
        proof = Proof(0.0, 2 * _rounding(at, s, paid, rows.n_rows))
    limit = asked + min(proof.rounding + stored, most)
    errors = _parameter_error(newton, penalty, objective - proof.bound, at.beta, left_out is not None, tuning)
    if claim.alpha == 0 and not claim.positive and concordance(claim) and not proof.exists:
        # A deviance that comes down to rounding may fall for ever: 0 is a bound of it and no minimum.
        checks = (*checks, Check("minimum that is not proved to exist (1: yes)", 1.0, 0.0))
    return Certificate(
        "optimal", words, objective, proof.bound, tol, limit, checks, scale=scale, parameter_error=errors
    )


def _score_step_checks(
    claim: GlmClaim, newton: NewtonFindings, tol: float, tuning: GlmCheckTuning
) -> tuple[Check, ...]:
    """That one more Newton step changes no mean by a large factor, where the deviance alone would not tell.

    Where the variance grows faster than the squared mean, half the deviance of a mean that is far too large tends to
    a constant, 1/(2y) for the inverse Gaussian: beside a target next to 0, which has nearly all of the deviance, any
    mean of the others would do. A Newton step out there is about 1 all the same. Near a minimum the objective is a
    square, so that scores may be off by about the root of what the objective may.
    """
    power = {"inverse_gaussian": 3.0, "tweedie": claim.power}.get(claim.family, 0.0)
    if not (power > 2 and claim.link == "log"):
        return ()
    limit = min(tuning.score_steps * np.sqrt(tol) + newton.step_rounding, tuning.most_score_step)
    return (Check("change of a logarithm of a mean by one more Newton step", newton.step, float(limit)),)


def _scales(
    at: GlmPoint, s: GlmQuadratic, objective: float, intercept: float, n_rows: int, tuning: GlmCheckTuning
) -> tuple[float, float, float]:
    """The scale of the objective, the most that rounding may excuse, and what storing the intercept costs.

    The scale is the constant model's objective: a model must explain more than rounding does. The minimiser's
    intercept, and so each score, is stored to a few eps of itself: no fit can do better, though an intercept that
    is larger than the constant model's excuses no more than other rounding does. That is a small share of the
    objective or, where the fit is exact, next to nothing of the constant model's. Where the targets are constant
    there is nothing to explain, and all is rounding.
    """
    unit = 0.0 if s.null_size == s.null else 1.0  # scores of a loss that is not a square are logarithms and the like
    stored, needed = (2 * s.curvature * (EPS * (abs(float(b)) + unit)) ** 2 for b in (intercept, at.y0 + at.null))
    rounded = stored + summation_error(n_rows) * s.null_size
    if not np.isfinite(s.null):
        return objective, tuning.most_rounding * objective, stored
    if s.null <= max(tuning.most_rounding * stored, rounded - stored if unit else 0.0):
        return max(objective, tuning.constant * rounded), tuning.constant * rounded, stored
    share = tuning.most_rounding
    most = max(share * objective, tuning.exact * s.null, min(needed, share * s.null))
    return max(objective, s.null), most, stored


def _plain_checks(at: GlmPoint, s: GlmQuadratic, intercept: float) -> tuple[Check, ...]:
    """What needs no proof."""
    none = () if at.claim.intercept else (Check("intercept, which must be 0", abs(float(intercept)), 0.0),)
    if at.claim.positive:
        below = float(np.maximum(-at.beta, 0.0).max(initial=0.0))
        none = (*none, Check("largest coefficient below 0, of which there must be none", below, 0.0))
    if not s.outside:
        return none
    return (*none, Check("rows whose score belongs to no mean", float(s.outside), 0.0))


# The Hessian. --------------------------------------------------------------------------------------------------


def _newton(
    here: GlmMeasure, penalty: DualPenalty, rows: Rows, left_out: LeftOutColumns | None, tuning: GlmCheckTuning
) -> NewtonFindings:
    """ν = sqrt(g·H⁻¹g) with g the smallest subgradient, and c, R times the largest row in the norm of H⁻¹."""
    coordinates, at, s = here
    if s.H.ndim == 0 or not np.isfinite(s.g).all():
        return NewtonFindings(coordinates)
    penalised = at.claim.alpha > 0 or at.claim.positive
    checks: tuple[Check, ...] = ()
    same: SameScores | None = None
    if not penalised and left_out is not None and len(left_out.numbers):
        same = same_scores(left_out.numbers, coordinates, rows)
        checks = left_out_checks(left_out, at.beta, same, len(s.g))
        if not all(check.passed for check in checks):  # the others' minimum is not that of all columns
            return NewtonFindings(coordinates, checks=checks)
        coordinates, at, s = here.without(left_out.numbers)
        same = same if left_out.shortest else None
    H, g, off = _with_penalty(at, penalty, s, coordinates, rows.n_rows)
    found = conditioned_inverse(H)
    if found is None and not penalised:  # collinear columns, nearly or exactly, or rows that are fitted perfectly
        R = rows.sum(partial(triangle_of, coordinates)).R
        if left_out is None:
            kept = independent(R)
            if len(kept) < R.shape[1]:
                checks = (loose_check(at.beta[None], np.array([at.b]), coordinates, R),)
            coordinates = coordinates.without(kept)
            R = qr(R[:, kept], mode="r")[0][: len(kept)]
        if R.shape[0] == R.shape[1] and (np.abs(np.diag(R)) > 0).all():
            long = rows.sum(partial(long_gradient, at, coordinates))
            coordinates = coordinates._replace(triangle=R)
            s = rows.sum(partial(quadratic, at, coordinates, True))
            g, off = _orthogonal_gradient(long, s, R, rows.n_rows)
            found = conditioned_inverse(s.H)
    constrained = found is None and at.claim.positive and at.claim.alpha == 0 and concordance(at.claim) == 0.0
    if found is None and penalised:
        # The columns and their ridge together: nearly collinear columns that a weak penalty alone tells apart, or
        # rows of which one outweighs the others.
        coordinates, H, (g, off), slack = _orthogonal_penalised(at, penalty, coordinates, rows)
        found, s = conditioned_inverse(H), replace(s, slack=slack)
    findings = NewtonFindings(coordinates, checks=checks)
    if found is not None:
        findings = _decrement(at.claim, found, s.slack, (g, off), coordinates, rows, tuning)
        findings = findings._replace(checks=checks, same=same)
    if constrained:
        findings = min(findings, _newton_without_zeros(here, rows, tuning), key=lambda known: known.farthest)
    return findings


def _newton_without_zeros(here: GlmMeasure, rows: Rows, tuning: GlmCheckTuning) -> NewtonFindings:
    """The findings of squares whose coefficients are at least 0, by the columns that are not held at 0 alone.

    Where several coefficients would do, nothing is said of how far each is from the minimiser's.
    """
    at, s, d = here.at, here.sums, len(here.at.beta)
    free = here._replace(at=at._replace(claim=at.claim._replace(positive=False)))
    slopes = (s.g - summation_error(rows.n_rows) * s.g_size.bound(here.coordinates))[:d]
    size = np.sqrt(np.diag(s.H)[:d])
    held = (at.beta == 0) & (slopes > 0)
    for _ in range(tuning.held_rounds):
        found = _newton(free.without(np.flatnonzero(held)), DualPenalty(0.0, 0.0, 0.0), rows, None, tuning)
        still = held & (slopes >= (1 + 1e-9) * found.farthest * size)
        if (still == held).all():
            return found._replace(inverse=None)
        held = still
    return NewtonFindings(here.coordinates)


def _orthogonal_penalised(
    at: GlmPoint, penalty: DualPenalty, coordinates: ScaledCoordinates, rows: Rows
) -> tuple[ScaledCoordinates, Array, tuple[Array, Array], float]:
    """Coordinates in which rows and ridge penalty are orthonormal; Hessian, gradient and its rounding, and slack.

    The smallest subgradient is taken in the given coordinates, where the penalty and the constraint act on single
    columns, and then turned: p·H⁻¹p is the same in any coordinates.
    """
    d, m, lam2 = len(at.beta), len(at.beta) + coordinates.intercept, penalty.lam2
    ridge, nothing = np.zeros((d, m)), (coordinates, np.full((m, m), np.nan), (np.zeros(m), np.zeros(m)), 0.0)
    with np.errstate(over="ignore"):
        ridge[np.arange(d), np.arange(d)] = np.sqrt(lam2) / coordinates.scale
    if not (ridge < 1e100).all():  # columns next to denormal numbers: squares would overflow
        return nothing
    stacked = np.vstack([rows.sum(partial(triangle_of, coordinates)).R, ridge])
    if not np.isfinite(stacked).all():
        return nothing
    R = qr(stacked, mode="r")[0][:m]
    if len(R) < m or not (np.abs(np.diag(R)) > 0).all():
        return nothing
    long = rows.sum(partial(long_gradient, at, coordinates))
    gradient = LongGradient(*_smallest_subgradient(at, penalty, coordinates.scale, long.g, long.size))
    coordinates = coordinates._replace(triangle=R)
    s = rows.sum(partial(quadratic, at, coordinates, True))
    turned = solve_triangular(R, ridge.T, trans="T")
    return coordinates, s.H + turned @ turned.T, _orthogonal_gradient(gradient, s, R, rows.n_rows), s.slack


def _smallest_subgradient(
    at: GlmPoint, penalty: DualPenalty, scale: Array, g: Array, size: Array
) -> tuple[Array, Array]:
    """The gradient g (m,) of the data with the penalty's part that makes it least, and the sizes of its terms."""
    (lam1, lam2, _), beta, d, g, size = penalty, at.beta, len(at.beta), g.copy(), size.copy()
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        smooth, box = g[:d] + lam2 * beta.astype(g.dtype) / scale, lam1 / scale.astype(g.dtype)
        at_zero = np.sign(smooth) * np.maximum(np.abs(smooth) - box, 0.0)
        if at.claim.positive:
            at_zero = np.minimum(smooth + box, 0.0)
        g[:d] = np.where(beta == 0, at_zero, smooth + box * np.sign(beta))
        size[:d] += np.abs(lam2 * beta / scale) + box
    return g, size


def _orthogonal_gradient(long: LongGradient, s: GlmQuadratic, R: Array, n_rows: int) -> tuple[Array, Array]:
    """The gradient in the coordinates R⁻ᵀz, and what rounding leaves open of it.

    Solving with R is backward stable: that is a relative change of the norm, which `_decrement` budgets.
    """
    g = long.g.astype(np.float64)
    lost = float(np.finfo(np.longdouble).eps) * (min(n_rows, 32_768) + 64) * long.size.astype(np.float64)
    spread = np.abs(solve_triangular(R, np.eye(len(R)), trans="T"))
    off = spread @ (lost + 2 * EPS * np.abs(g)) + 16 * EPS * s.g_size.direct
    return solve_triangular(R, g, trans="T"), off


def _with_penalty(
    at: GlmPoint, penalty: DualPenalty, s: GlmQuadratic, coordinates: ScaledCoordinates, n_rows: int
) -> tuple[Array, Array, Array]:
    """Hessian and smallest subgradient of data and penalty together, and what rounding leaves open of the latter."""
    share = summation_error(n_rows)
    if at.claim.alpha == 0 and not at.claim.positive:
        return s.H, s.g, share * s.g_size.bound(coordinates)
    d, H = len(at.beta), s.H.copy()
    with np.errstate(over="ignore", divide="ignore"):
        H[np.arange(d), np.arange(d)] += penalty.lam2 / coordinates.scale / coordinates.scale
    g, size = _smallest_subgradient(at, penalty, coordinates.scale, s.g, s.g_size.bound(coordinates))
    return H, g, share * size


def _decrement(
    claim: GlmClaim,
    found: ConditionedInverse,
    slack: float,
    gradient: tuple[Array, Array],
    coordinates: ScaledCoordinates,
    rows: Rows,
    tuning: GlmCheckTuning,
) -> NewtonFindings:
    """Decrement and reach, and what rounding leaves open of them; `gradient` is (g, by how much it may be off)."""
    (g, off), (inverse, _) = gradient, found
    larger = found.inflation(summation_error(rows.n_rows) + 4 * coordinates.row_error)
    with np.errstate(all="ignore"):
        nu = larger * float(np.sqrt(max(0.0, float(g @ inverse @ g))))
        rounding = larger * float(np.sqrt(off @ np.abs(inverse) @ off) + 2 * np.sqrt(slack))
    if not np.isfinite(nu + rounding):
        return NewtonFindings(coordinates)
    R = concordance(claim)
    if not R:
        # Every |z| is at most 1 in plain coordinates, and the rows are orthonormal in others.
        norm = partial(np.linalg.norm, ord=1 if coordinates.triangle is None else 2)
        step, lost = float(norm(inverse @ g)), float(norm(np.abs(inverse) @ off))
        whole = 0.0 if R == 0.0 else np.inf
        return NewtonFindings(coordinates, nu, rounding, whole, larger**2 * inverse, (), step, lost)
    c = R * larger * float(np.sqrt(np.abs(inverse).sum())) * (1 + 1e-9) if coordinates.plain else np.inf
    if not (nu + rounding) * c <= tuning.near:  # what every |z| <= 1 says of the reach is too little
        c = R * larger * float(np.sqrt(rows.sum(partial(reach, inverse, coordinates)).value)) * (1 + 1e-9)
    return NewtonFindings(coordinates, nu, rounding, c, larger**2 * inverse)


def _rounding(at: GlmPoint, s: GlmQuadratic, paid: float, n_rows: int) -> float:
    """How far the objective, of which the penalty is `paid`, can be off."""
    # An error of the intercept moves all scores together: of first order that is the gradient along the intercept.
    along = abs(float(s.g[-1])) * at.b_slack if at.claim.intercept else 0.0
    return summation_error(n_rows) * (s.loss_size + paid) + s.loss_slack + along + s.slack


def _newton_proof(newton: NewtonFindings, objective: float, off: float, tuning: GlmCheckTuning) -> Proof:
    """The bound by self-concordance, less what the objective may be off by."""
    nu, c = newton.farthest, newton.reach
    if not nu * c <= tuning.safe or not np.isfinite(c):
        return Proof()
    gap = self_concordant_gap(nu, c)
    off = off + 8 * EPS * (objective + gap)
    return Proof(max(objective - gap - off, 0.0), 2 * off + 4 * newton.rounding**2, exists=True)


def _unpenalised_proof(here: GlmMeasure, rows: Rows, tuning: GlmCheckTuning) -> Proof:
    """The bound without the penalty, which is no larger: of a penalty next to nothing that is all there is to prove.

    An L1 penalty alone has no curvature, so that the Hessian of collinear columns, or columns of zeros, is singular;
    without a penalty some of the columns do for all.
    """
    plain = here._replace(at=here.at._replace(claim=here.at.claim._replace(alpha=0.0)))
    if concordance(plain.at.claim) is None:
        return Proof()
    newton = _newton(plain, DualPenalty(0.0, 0.0, 0.0), rows, None, tuning)
    off = _rounding(plain.at, plain.sums, 0.0, rows.n_rows)
    return _newton_proof(newton, max(plain.sums.loss, 0.0), off, tuning)._replace(exists=False)


def _parameter_error(
    newton: NewtonFindings, penalty: DualPenalty, gap: float, beta: Array, chosen: bool, tuning: GlmCheckTuning
) -> tuple[tuple[float, ...], ...]:
    """How far each coefficient, and the intercept as the last, can be from the minimiser's; () where nobody knows.

    `chosen` says whether the fit says which one of several minimisers it takes.
    """
    d, intercept = len(newton.coordinates.scale), newton.coordinates.intercept
    unique = penalty.lam2 > 0 or (penalty.lam1 == 0 and (chosen or newton.coordinates.kept is None))
    errors = np.full(d + intercept, np.inf)
    if unique and newton.inverse is not None and newton.farthest * newton.reach <= tuning.safe:
        distance = self_concordant_distance(newton.farthest, newton.reach)
        errors = newton.coordinates.parameter_error(newton.inverse, distance) * (1 + 1e-9)
        if newton.same is not None:
            J = newton.coordinates.to_columns
            errors = shortest_errors(newton.same, J, newton.inverse, distance, beta) * (1 + 1e-9)
    if penalty.lam2 > 0 and gap >= 0:
        errors[:d] = np.minimum(errors[:d], np.sqrt(2 * gap / penalty.lam2) * (1 + 1e-9))
    if not np.isfinite(errors).any():
        return ()
    return (tuple(map(float, errors if intercept else np.append(errors, 0.0))),)


# Dual points. --------------------------------------------------------------------------------------------------


def _dual_proof(at: GlmPoint, penalty: DualPenalty, rows: Rows) -> Proof:
    """The bound of the dual point φ' at (β, best b)."""
    candidate = balanced_candidate(at, rows)
    if candidate is None:
        return Proof()
    return _proof_of(rows.sum(partial(dual_sums, candidate)), penalty, rows.n_rows, at.claim.positive)


def _proof_of(s: GlmDualSums, penalty: DualPenalty, n_rows: int, positive: bool) -> Proof:
    bound = lower_bound(s.rounded, penalty, n_rows, positive)
    if not bound > 0:
        return Proof()
    return Proof(bound, 2 * (lower_bound(s.unrounded, penalty, n_rows, positive) - bound))


def _solved_dual_proof(at: GlmPoint, penalty: DualPenalty, rows: Rows) -> Proof:
    """Ridge regression with fewer rows than columns: where residuals have lost their digits the dual is solved.

    With a = -w u:  (Z Zᵀ/λ₂ + 1/w) a + b = y - offset,  Σ a = 0.
    """
    squares = (at.claim.family, at.claim.link) == ("gaussian", "identity")
    if not squares or penalty.lam1 > 0 or not penalty.lam2 > 0 or rows.n_rows > rows.n_features:
        return Proof()
    data = rows.load()
    terms = row_terms(at, Block(data.X, data.y, data.w, 0))
    Z = terms.Z / np.sqrt(penalty.lam2)
    K, target = Z @ Z.T + np.diag(1 / terms.w), terms.y - terms.offset
    try:
        solved = np.linalg.solve(K, np.column_stack([target, np.ones(len(K))]))
    except np.linalg.LinAlgError:
        return Proof()
    a, one = solved.T
    if at.claim.intercept:
        a = a - a.sum() / one.sum() * one
        a = a - a.mean()
    return _proof_of(explicit_dual_sums(at.claim, -a / terms.w, terms), penalty, rows.n_rows, at.claim.positive)


def _corrected_dual_proof(at: GlmPoint, penalty: DualPenalty, rows: Rows) -> Proof:
    """Squares with an L1 penalty: residuals moved by as little as makes each slope in use what its penalty asks.

    Where columns lie far from 0, the last digit of a coefficient moves slopes by more than any tolerance allows. With
    z = sqrt(w) u and A = sqrt(w) [Z, 1] of the columns in use, Aᵀz = -(λ₁ sign β + λ₂ β) is solved by the nearest z.
    """
    if (at.claim.family, at.claim.link) != ("gaussian", "identity"):
        return Proof()
    data, used = rows.load(), at.beta != 0
    terms = row_terms(at, Block(data.X, data.y, data.w, 0))
    root = np.sqrt(terms.w)
    A, wanted = (
        root[:, None] * dense(terms.Z[:, used]),
        -(penalty.lam1 * np.sign(at.beta) + penalty.lam2 * at.beta)[used],
    )
    if at.claim.intercept:
        A, wanted = np.column_stack([A, root]), np.append(wanted, 0.0)
    size = np.linalg.norm(A, axis=0)
    if A.shape[1] > len(A) or not ((size > 0) & np.isfinite(size)).all():
        return Proof()
    Q, R = qr(A / size, mode="economic")
    if not (np.abs(np.diag(R)) > EPS * len(R)).all():  # collinear: there may be no such z
        return Proof()
    z = root * terms.at.u
    for _ in range(2):  # the second time for what rounding left
        z = z + Q @ solve_triangular(R, wanted / size - (A / size).T @ z, trans="T")
    u = np.divide(z, root, out=np.zeros_like(z), where=root > 0)
    return _proof_of(explicit_dual_sums(at.claim, u, terms), penalty, rows.n_rows, at.claim.positive)
