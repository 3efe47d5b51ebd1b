"""What is proved about a fitted logistic or softmax regression, by the checker that proves it.

| penalty | checker |
|---|---|
| none | `likelihood`: the Hessian; where that proves nothing, `recession`: no maximum exists |
| L2, L1 or both, few parameters | `likelihood`; where that is too little, `dual_point`, and for two classes `glm` |
| the same, many parameters | `dual_point`; where that proves too little and the Hessian can be formed, `likelihood` |
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from certifit.checkers.linear_model import glm, recession
from certifit.checkers.linear_model.coordinates import zero_column_checks
from certifit.checkers.linear_model.logistic import dual_point, likelihood
from certifit.checkers.linear_model.logistic.dual_point import LogisticClaim
from certifit.checkers.linear_model.logistic.likelihood import LikelihoodMeasure
from certifit.checkers.linear_model.newton_bound import NewtonBoundTuning
from certifit.checkers.plain.response_losses import GlmClaim
from certifit.core import Certificate
from certifit.rows import Array, Rows


@dataclass(frozen=True)
class LogisticProofTuning:
    """Up to how many parameters the Hessian, which also bounds the coefficients' errors, is tried first."""

    hessian_first: int = 256
    newton: NewtonBoundTuning = field(default_factory=NewtonBoundTuning)


def certify(
    coef: Array,
    intercept: Array,
    claim: LogisticClaim,
    tol: float,
    rows: Rows,
    tuning: LogisticProofTuning = LogisticProofTuning(),
    here: LikelihoodMeasure | None = None,
) -> Certificate:
    """Check β (k, d), or (1, d) for two classes; y are class numbers, w include class weights.

    `here` is what `likelihood.measured` says of the same coefficients, where that is known.
    """
    k = max(2, len(coef))
    if claim.lam + claim.lam1 == 0:
        found = likelihood.certify(coef, intercept, claim, tol, rows, tuning.newton, here)
        separable = None if np.isfinite(found.gap) else recession.separable(rows, k, claim.intercept)
        return found if separable is None else separable
    size = (k - 1) * (rows.n_features + claim.intercept)
    if size > tuning.hessian_first:
        found = dual_point.certify(coef, intercept, claim, tol, rows)
        if found.holds or size > tuning.newton.hessian_parameters:
            return found
        return _better(found, likelihood.certify(coef, intercept, claim, tol, rows, tuning.newton))
    here = here or likelihood.measured(coef, intercept, claim.intercept, rows, tuning.newton.hessian_parameters)
    empty = zero_column_checks(coef, here.coordinates)
    found = _of_few_parameters(coef, intercept, claim, tol, rows, here, tuning)
    return replace(found, checks=(*found.checks, *empty))


def _of_few_parameters(
    coef: Array,
    intercept: Array,
    claim: LogisticClaim,
    tol: float,
    rows: Rows,
    here: LikelihoodMeasure,
    tuning: LogisticProofTuning,
) -> Certificate:
    """The proof of a penalised fit of which the Hessian can be formed."""
    found = likelihood.certify(coef, intercept, claim, tol, rows, tuning.newton, here)
    found = found if found.holds else _better(found, dual_point.certify(coef, intercept, claim, tol, rows))
    if found.holds or not np.isfinite(found.objective):
        return found
    if len(coef) == 1:
        found = _with_orthogonal_bound(found, coef, intercept, claim, rows)
    if found.holds:
        return found
    return _with_polished_bound(found, coef, intercept, claim, rows)


def _with_orthogonal_bound(
    found: Certificate, coef: Array, intercept: Array, claim: LogisticClaim, rows: Rows
) -> Certificate:
    """The same with the bound of a binomial GLM, which two classes are, where that is larger.

    Its checker goes over to coordinates in which nearly collinear rows are orthonormal, as columns far from 0 are
    that no intercept centres.
    """
    strength = claim.lam1 + claim.lam
    same = GlmClaim("binomial", "logit", strength, claim.lam1 / strength, False, claim.intercept)
    again = glm.certify(coef[0], float(np.ravel(intercept)[0]), same, found.tol, rows)
    bound = min(again.bound, found.objective)
    if not bound > found.bound:
        return found
    return replace(found, bound=bound, parameter_error=again.parameter_error or found.parameter_error)


def _with_polished_bound(
    found: Certificate, coef: Array, intercept: Array, claim: LogisticClaim, rows: Rows
) -> Certificate:
    """The same with the bound of a dual point nearer to the minimum, where that is larger.

    Whatever point it belongs to, a bound is one of the same minimum. Nearly collinear columns leave the dual point of
    the model itself a larger gap than the model has.
    """
    near = dual_point.polished(coef, intercept, claim, rows)
    if near is None:
        return found
    bound = min(dual_point.certify(*near, claim, found.tol, rows).bound, found.objective)
    if not bound > found.bound:
        return found
    errors = dual_point.ridge_error(coef, found.objective - bound, claim)
    return replace(found, bound=bound, parameter_error=errors or found.parameter_error)


def _better(first: Certificate, second: Certificate) -> Certificate:
    """The one with the smaller gap."""
    return second if second.gap < first.gap or not np.isfinite(first.gap) else first
