"""Fitted logistic regressions, ours or scikit-learn's, as the problem they claim to have solved.

| penalty | checker |
|---|---|
| Firth's | `firth`: the modified score equations |
| none | `likelihood`: the Hessian; where that proves nothing, `recession`: no maximum exists |
| L2, L1 or both | `logistic`: a dual point; where that proves too little, `likelihood` or, beside L1, `glm` |
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from certifit.checkers.fitted import fitted_rows, numbers
from certifit.checkers.linear_model import firth, glm, likelihood, logistic, recession
from certifit.checkers.plain.response_losses import GlmClaim
from certifit.checkers.problem import Problem
from certifit.core import Certificate, Estimator
from certifit.exceptions import DataError
from certifit.rows import apply_class_weight, encode_labels


class LogisticSettings(NamedTuple):
    """What a logistic regression says it has minimised."""

    firth: bool
    lam1: float  # of |β|₁
    lam: float  # of |β|²/2
    intercept: bool  # whether there is a free intercept
    class_weight: Any


def logistic_settings(model: Any) -> LogisticSettings:
    """Read the settings of a fitted model, by attributes that ours and scikit-learn's have."""
    intercept, class_weight = bool(getattr(model, "fit_intercept", True)), getattr(model, "class_weight", None)
    penalty = getattr(model, "penalty", "deprecated")  # scikit-learn's word for: see C and l1_ratio
    if penalty in ("firth", None):
        return LogisticSettings(penalty == "firth", 0.0, 0.0, intercept, class_weight)
    C = getattr(model, "C_", getattr(model, "C", None))
    if C is None:
        raise DataError(
            got=f"a {type(model).__name__} that does not say its C", wanted="an attribute C, or penalty=None"
        )
    ratio = getattr(model, "l1_ratio_", getattr(model, "l1_ratio", 0.0))
    if penalty == "l1":
        ratio = 1.0
    elif penalty == "l2" and not isinstance(model, Estimator):  # ours takes l1_ratio as it is
        ratio = 0.0
    share, strength = float(np.ravel(ratio)[0] or 0.0), float(np.ravel(C)[0])
    return LogisticSettings(False, share / strength, (1 - share) / strength, intercept, class_weight)


def logistic_problem(model: Any) -> Problem:
    """The same in words, by which models can be compared."""
    settings = logistic_settings(model)
    penalty = f"λ₁={settings.lam1!r}, λ={settings.lam!r}" if settings.lam1 + settings.lam > 0 else "none"
    return Problem(
        f"logistic loss of {np.shape(model.coef_)[0]} scores",
        "Firth's" if settings.firth else penalty,
        weights=f"class_weight={settings.class_weight!r}",
        further="free intercept" if settings.intercept else "no intercept",
    )


def audit_logistic(model: Any, X: Any, y: Any, sample_weight: Any, tol: float) -> Certificate:
    """Check a fitted logistic or softmax regression by the checker of its penalty."""
    firths, lam1, lam, free, class_weight = logistic_settings(model)
    coef, intercept = numbers(model, "coef_"), numbers(model, "intercept_")
    rows = fitted_rows(model, coef.shape[1], X, y, sample_weight, "classes")
    labels = encode_labels(rows, np.asarray(model.classes_))
    rows = apply_class_weight(labels, class_weight)
    if firths:
        return firth.certify(coef, intercept, free, tol, rows)
    if lam + lam1 == 0:
        found = likelihood.certify(coef, intercept, free, tol, rows)
        separable = None if np.isfinite(found.gap) else recession.separable(rows, len(labels.classes), free)
        return found if separable is None else separable
    by_dual = logistic.certify(coef, intercept, lam, free, tol, rows, lam1)
    if by_dual.holds or (lam1 > 0 and len(coef) > 1):
        return by_dual
    if lam1 > 0:  # the Hessian proves more where the penalty is weak
        claim = GlmClaim("binomial", "logit", lam + lam1, lam1 / (lam + lam1), per_row=False, intercept=free)
        by_hessian = glm.certify(coef, float(intercept.ravel()[0]), claim, tol, rows)
    else:
        by_hessian = likelihood.certify(coef, intercept, free, tol, rows, lam)
    return by_hessian if by_hessian.gap < by_dual.gap else by_dual
