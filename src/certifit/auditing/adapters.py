"""From a fitted object to the checker that knows its problem: what it claims to have minimised, and its parameters.

A model is recognised by the name of its class or of a base class, so that look-alikes (another library's
`LogisticRegression`, a subclass of `KMeans`) work without being imported here, and else by its fitted attributes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from certifit.certificates import kmeans, likelihood, logistic, pca
from certifit.core import Array, Certificate, DataError, Estimator, Rows, apply_class_weight, as_rows, encode_labels

FOREIGN_TOL = 1e-4  # relative gap asked of other libraries' models, whose own `tol` means something else

Auditor = Callable[[Any, Any, Any, Any, float], Certificate]


def audit(model: Any, X: Any, y: Any = None, sample_weight: Any = None, *, tol: float | None = None) -> Certificate:
    """Recompute a fitted model's certificate from the data, sharing no code with the fit.

    Parameters
    ----------
    model : fitted certifit or scikit-learn PCA, KMeans or LogisticRegression, anything with the same fitted
        attributes, a Pipeline that ends in one, or a TableClassifier
    X, y, sample_weight : the data it was fitted on, in any form that `fit` takes
    tol : relative gap to ask for; by default the model's own for certifit models, 1e-4 for others

    Returns
    -------
    Certificate : what is proved; `holds` says whether it is enough
    """
    if isinstance(model, Pipeline):
        check_is_fitted(model)
        for _, step in model.steps[:-1]:
            X = X if step in (None, "passthrough") else step.transform(X)
        return audit(model.steps[-1][1], X, y, sample_weight, tol=tol)
    if hasattr(model, "encode_labelled"):
        data = model.encode_labelled(X, y, sample_weight)
        return audit(model.model_, data.X, data.y, data.w, tol=tol)
    auditor = _auditor(model)
    if tol is None:
        tol = float(getattr(model, "tol", FOREIGN_TOL)) if isinstance(model, Estimator) else FOREIGN_TOL
    return auditor(model, X, y, sample_weight, tol)


def _auditor(model: Any) -> Auditor:
    names = {base.__name__ for base in type(model).__mro__}
    for name, (auditor, attributes) in _AUDITORS.items():
        has = [a for a in attributes if hasattr(model, a)]
        if name in names and len(has) < len(attributes):
            missing = ", ".join(sorted(set(attributes) - set(has)))
            raise DataError(
                got=f"a {type(model).__name__} without {missing}", wanted="a fitted model", fix="Call fit first."
            )
        if name in names:
            return auditor
    for name, (auditor, attributes) in _AUDITORS.items():
        if name in _BY_ATTRIBUTES and all(hasattr(model, a) for a in attributes):
            return auditor
    raise DataError(
        got=f"a {type(model).__name__}",
        wanted=f"a fitted {', '.join(_AUDITORS)} or something with the same fitted attributes",
    )


def _numbers(model: Any, name: str) -> Array:
    """A fitted attribute as float64, finite."""
    values = np.asarray(getattr(model, name), dtype=np.float64)
    if not np.isfinite(values).all():
        raise DataError(
            got=f"{name} with NaN or infinity in a fitted {type(model).__name__}",
            wanted="finite numbers",
            fix="The fit failed: nothing can be proved about it.",
        )
    return values


def _rows(model: Any, width: int, X: Any, y: Any, sample_weight: Any, target: Any) -> Rows:
    """The rows a model was fitted on, with the columns it knows."""
    estimator = model if hasattr(model, "n_features_in_") else None
    rows = as_rows(X, y, sample_weight, estimator=estimator, target=target, sparse=True, reset=estimator is None)
    if rows.n_features != width:
        raise DataError(
            got=f"rows of {rows.n_features} features",
            wanted=f"the {width} that the {type(model).__name__} was fitted on",
        )
    return rows


def _audit_pca(model: Any, X: Any, _y: Any, sample_weight: Any, tol: float) -> Certificate:
    B = _numbers(model, "components_")
    rows = _rows(model, B.shape[1], X, None, sample_weight, "none")
    return pca.certify(B, _numbers(model, "mean_"), _numbers(model, "explained_variance_"), tol, rows)


def _audit_kmeans(model: Any, X: Any, _y: Any, sample_weight: Any, tol: float) -> Certificate:
    centers = _numbers(model, "cluster_centers_")
    rows = _rows(model, centers.shape[1], X, None, sample_weight, "none")
    return kmeans.certify(centers, getattr(model, "labels_", None), tol, rows)


def _audit_logistic(model: Any, X: Any, y: Any, sample_weight: Any, tol: float) -> Certificate:
    lam, free, class_weight = _logistic_settings(model)
    coef, intercept = _numbers(model, "coef_"), _numbers(model, "intercept_")
    rows = _rows(model, coef.shape[1], X, y, sample_weight, "classes")
    labels = encode_labels(rows, np.asarray(model.classes_))
    rows = apply_class_weight(labels, class_weight)
    if lam == 0:
        return likelihood.certify(coef, intercept, free, tol, rows)
    by_dual = logistic.certify(coef, intercept, lam, free, tol, rows)
    if by_dual.holds:
        return by_dual
    by_hessian = likelihood.certify(coef, intercept, free, tol, rows, lam)  # tighter where λ is small for the Hessian
    return by_hessian if by_hessian.gap < by_dual.gap else by_dual


def _logistic_settings(model: Any) -> tuple[float, bool, Any]:
    """λ, whether the intercept is free, and the class weights."""
    ratio = np.ravel(getattr(model, "l1_ratio_", getattr(model, "l1_ratio", 0.0)))
    penalty = getattr(model, "penalty", "l2")
    if penalty in ("l1", "elasticnet") or any(r or 0.0 for r in ratio):
        raise DataError(got="an L1 or elastic-net penalty", wanted="an L2 penalty or none")
    C = np.inf if penalty is None else getattr(model, "C_", getattr(model, "C", None))
    if C is None:
        raise DataError(
            got=f"a {type(model).__name__} that does not say its C", wanted="an attribute C, or penalty=None"
        )
    return (
        1 / float(np.ravel(C)[0]),
        bool(getattr(model, "fit_intercept", True)),
        getattr(model, "class_weight", None),
    )


def problem(model: Any) -> tuple[str, ...]:
    """What a model minimises: equal for two models if a bound proved for one on the same data holds for the other."""
    auditor = _auditor(model)
    if auditor is _audit_logistic:
        return "logistic", str(np.shape(model.coef_)), *map(repr, _logistic_settings(model))
    size = model.components_ if auditor is _audit_pca else model.cluster_centers_
    return auditor.__name__, str(np.shape(size))


_AUDITORS: dict[str, tuple[Auditor, tuple[str, ...]]] = {
    "PCA": (_audit_pca, ("components_", "mean_", "explained_variance_")),
    "KMeans": (_audit_kmeans, ("cluster_centers_",)),
    "LogisticRegression": (_audit_logistic, ("coef_", "intercept_", "classes_")),
}
_BY_ATTRIBUTES = ("PCA", "KMeans")  # coef_ alone does not tell which loss was minimised
