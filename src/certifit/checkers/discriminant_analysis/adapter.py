"""The adapter of linear discriminant analysis, ours or scikit-learn's: it reads attributes and measures the rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from certifit.checkers.discriminant_analysis.class_covariances import (
    PlainClass,
    class_moments,
    estimated,
    ledoit_wolf,
    shrunk,
)
from certifit.checkers.discriminant_analysis.linear import (
    DiscriminantCheckTuning,
    DiscriminantMeasured,
    LinearDiscriminantClaim,
    certify,
)
from certifit.checkers.fitted import exact_shape, fitted_rows, numbers, setting
from certifit.core import Certificate, Estimator, Setting
from certifit.exceptions import DataError
from certifit.rows import Array, Rows, encode_labels


def audit_linear_discriminants(model: Any, X: Any, y: Any, sample_weight: Any, tol: float) -> Certificate:
    """Check every attribute of a linear discriminant analysis against the rows and its settings."""
    solver = setting(model, "solver", Setting(choices=("svd", "lsqr", "eigen")))
    means = numbers(model, "means_")
    if means.ndim != 2:
        raise DataError(got=f"means_ of shape {means.shape}", wanted="a mean for each class and column")
    k, d = means.shape
    rows = fitted_rows(model, d, X, y, sample_weight, "classes")
    labels = encode_labels(rows, np.asarray(model.classes_))
    if len(labels.weight) != k or not labels.weight.all():
        raise DataError(got=f"{len(labels.weight)} classes_ and {k} means_", wanted="rows of every class")
    ours = isinstance(model, Estimator)
    prior = wanted_prior(model, labels.weight)
    found = _measure(model, labels.rows, labels.weight, prior)
    origin = np.zeros(d) if solver != "svd" and not ours else None
    # Our fits sum in float64 whatever the rows are in; scikit-learn's work in the rows' own precision.
    eps = float(np.finfo(np.float64 if ours else rows.dtype).eps)
    claim = LinearDiscriminantClaim.of(_attributes(model, k, d), vars(model), origin=origin, signed=ours, eps=eps)
    return certify(claim, found, prior, min(tol, DiscriminantCheckTuning().exact) if ours else tol)


def _attributes(model: Any, k: int, d: int) -> dict[str, Array]:
    """The fitted attributes in the shapes that a fit leaves them in."""
    machines = 1 if k == 2 else k
    shapes: dict[str, tuple[int, ...]] = {
        "coef_": (machines, d),
        "intercept_": (machines,),
        "priors_": (k,),
        "means_": (k, d),
    }
    ours = isinstance(model, Estimator)
    if model.solver == "svd" or (ours and model.solver == "lsqr"):
        shapes["xbar_"] = (d,)
    if model.solver != "svd" or model.store_covariance:
        shapes["covariance_"] = (d, d)
    out = {name: exact_shape(model, name, shape) for name, shape in shapes.items()}
    if ours or model.solver != "lsqr":
        out["scalings_"] = numbers(model, "scalings_")
        out["explained_variance_ratio_"] = numbers(model, "explained_variance_ratio_")
        if out["scalings_"].ndim != 2 or len(out["scalings_"]) != d:
            raise DataError(got=f"scalings_ of shape {out['scalings_'].shape}", wanted=f"{d} rows")
    strange = [name for name in ("xbar_", "covariance_", "scalings_") if hasattr(model, name) and name not in out]
    if strange and ours:
        raise DataError(
            got=f"{strange[0]} with solver={model.solver!r}", wanted="the settings that it was fitted with"
        )
    return out


def wanted_prior(model: Any, weight: Array) -> Array:
    if model.priors is None:
        return weight / weight.sum()
    prior = np.asarray(model.priors, dtype=np.float64)
    if prior.shape != weight.shape or not (prior > 0).all():
        raise DataError(got=f"priors={prior}", wanted=f"{len(weight)} positive numbers")
    return prior / prior.sum() if abs(prior.sum() - 1.0) > 1e-5 else prior


def _measure(model: Any, rows: Rows, weight: Array, prior: Array) -> DiscriminantMeasured:
    """What the settings make of the rows."""
    classes = [class_moments(rows, c) for c in range(len(weight))]
    means = np.stack([one.mean for one in classes])
    away = means - prior @ means
    between = (away.T * prior) @ away
    if model.solver == "svd":
        share = weight / weight.sum()
        within, pooled = (sum(p * one.covariance for p, one in zip(q, classes, strict=True)) for q in (share, prior))
        return DiscriminantMeasured(means, within, pooled, between)
    pooled = sum(prior[c] * _covariance(model, rows, c, one) for c, one in enumerate(classes))
    if model.solver == "lsqr":
        return DiscriminantMeasured(means, pooled, pooled, between)
    total = _covariance(model, rows, None, class_moments(rows, None))
    return DiscriminantMeasured(means, pooled, pooled, total - pooled)


def _covariance(model: Any, rows: Rows, c: int | None, found: PlainClass) -> Array:
    """The covariance of a class, or of all rows, as the settings estimate it."""
    if getattr(model, "covariance_estimator", None) is not None:
        return estimated(rows, c, model.covariance_estimator)
    if isinstance(model.shrinkage, str):
        return ledoit_wolf(rows, c, found)
    return shrunk(found.covariance, float(model.shrinkage or 0.0))
