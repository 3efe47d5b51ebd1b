"""Fitted models as the convex problem that a page's script can recompute, or why it cannot.

Logistic regressions and generalised linear models with a ridge penalty, an L1 penalty or both, and linear machines
with a ridge penalty, ours and scikit-learn's: what they claim to have minimised is read as the checkers' adapters do.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from certifit.checkers.linear_model.adapter import linear_claim
from certifit.checkers.linear_model.logistic.adapter import logistic_settings
from certifit.checkers.registry import find_audited
from certifit.core import Certificate
from certifit.exceptions import DataError
from certifit.report.sealing.proof import LOSSES, ConvexFit, FitSource, page_proof
from certifit.rows import Array
from certifit.rows.labels import class_weight_vector

LINKS = {"gaussian": "identity", "poisson": "log", "gamma": "log", "negative_binomial": "log"}


def model_proof(model: Any, X: Array, source: FitSource, certificate: Certificate) -> dict[str, Any]:
    """What a page about this model carries: its proof from rows X (n, d), or why there is none."""
    try:
        fit, source = convex_fit(model, np.ascontiguousarray(X, dtype=np.float64), source)
    except (DataError, AttributeError, TypeError, ValueError):
        fit = f"a page's script knows no proof for a {type(model).__name__} with these settings"
    return page_proof(fit, source, certificate)


def convex_fit(model: Any, X: Array, source: FitSource) -> tuple[ConvexFit | str, FitSource]:
    name = type(model).__name__
    if not hasattr(model, "coef_") or np.ndim(X) != 2:
        return f"a {name} has no proof that is a sum over rows and short enough for a page", source
    coef = np.atleast_2d(np.asarray(model.coef_, dtype=np.float64))
    intercept = np.array(np.broadcast_to(np.ravel(model.intercept_), len(coef)), dtype=np.float64)
    given = np.ones(len(X)) if source.w is None else source.w
    if hasattr(model, "classes_"):
        if name == "LinearSVC":
            return _squared_hinge(model, (coef, intercept), X, source, given), source
        if "logistic" not in find_audited(model, None).auditor.__name__:
            return f"the script has no proof for a {name}", source
        settings = logistic_settings(model)
        claim = settings.claim
        if settings.firth or settings.bias is not None or not claim.lam + claim.lam1 > 0:
            return "the script knows proofs of penalised models only", source
        classes, code = np.unique(source.y, return_inverse=True)
        if not np.array_equal(classes, model.classes_):
            return "these rows have other classes than the model", source
        factors = class_weight_vector(classes, np.bincount(code, given), settings.class_weight)
        w = given * factors[code]
        source = source._replace(class_weights=None if settings.class_weight is None else tuple(factors.tolist()))
        family = "logistic" if len(coef) == 1 else "softmax"
        return ConvexFit(family, coef, intercept, claim.lam, X, code, w, claim.intercept, lam1=claim.lam1), source
    glm = linear_claim(model, None)
    lam = glm.alpha * (float(given.sum()) if glm.per_row else 1.0)
    known = glm.family in LOSSES and LINKS.get(glm.family) == glm.link and len(coef) == 1
    if not known or glm.positive or not lam > 0:
        return "the script knows proofs of penalised models of some families only", source
    y = np.ascontiguousarray(source.y, dtype=np.float64)
    theta = glm.theta if glm.family == "negative_binomial" else None
    source = source._replace(y=y)
    ridge, lam1 = lam * (1 - glm.l1_ratio), lam * glm.l1_ratio
    return ConvexFit(glm.family, coef, intercept, ridge, X, y, given, glm.intercept, theta, lam1=lam1), source


def _squared_hinge(
    model: Any, fitted: tuple[Array, Array], X: Array, source: FitSource, given: Array
) -> ConvexFit | str:
    """A linear machine, or one for each class against the others; its intercept is penalised unless it says not."""
    plain = (model.loss, model.penalty, model.multi_class, model.class_weight) == ("squared_hinge", "l2", "ovr", None)
    classes, code = np.unique(source.y, return_inverse=True)
    if not plain or not np.array_equal(classes, model.classes_):
        return "the script knows linear machines with a squared hinge and a ridge penalty only"
    free = bool(model.fit_intercept) and not getattr(model, "penalize_intercept", True)
    bias = float(model.intercept_scaling) if model.fit_intercept and not free else 0.0
    C, (coef, intercept) = float(model.C), fitted
    return ConvexFit("squared_hinge", coef, intercept, 1.0, X, code, C * given, free, bias=bias, unit=C)
