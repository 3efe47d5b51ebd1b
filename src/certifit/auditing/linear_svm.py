"""Fitted linear support vector machines, ours or others', as the problem they claim to have solved."""

from __future__ import annotations

from typing import Any

import numpy as np

from certifit.auditing.fitted import fitted_rows, numbers
from certifit.certificates import joint_svm, joint_svm_linear
from certifit.certificates import linear_svm as checker
from certifit.certificates.linear_svm import Spec
from certifit.core import Certificate, DataError, Estimator, apply_class_weight, encode_labels
from certifit.models.linear_svm import LOSSES, RESIDUAL_LOSSES

# names of losses: ours, and scikit-learn's for the same ones
_LOSSES = {**LOSSES, **RESIDUAL_LOSSES}
_JOINT = {**joint_svm.LOSSES, "crammer_singer": joint_svm.LOSSES["crammer-singer"]}


def audit_linear_svc(model: Any, X: Any, y: Any, sample_weight: Any, tol: float) -> Certificate:
    """A LinearSVC, an SVC with a linear kernel and two classes, or an SGDClassifier with a hinge."""
    coef, intercept = numbers(model, "coef_"), numbers(model, "intercept_")
    joint = _JOINT.get(getattr(model, "multi_class", "ovr"))
    spec = linear_svm_spec(model)
    rows = fitted_rows(model, coef.shape[1], X, y, sample_weight, "classes")
    labels = encode_labels(rows, np.asarray(model.classes_))
    k = len(labels.classes)
    if len(coef) != (k if k > 2 else 1) or (k > 2 and hasattr(model, "kernel")):
        raise DataError(
            got=f"a {type(model).__name__} with {len(coef)} machines for {k} classes",
            wanted="one machine for each class against the rest, or one for two classes",
        )
    rows = apply_class_weight(labels, getattr(model, "class_weight", None))
    if joint is not None:
        question = joint_svm.Spec(joint, spec.C, spec.rho)
        return joint_svm_linear.certify(coef, _each(intercept, len(coef)), question, tol, rows, _dual(model))
    return checker.certify(coef, _each(intercept, len(coef)), _per_weight(spec, model, rows), tol, rows, _dual(model))


def audit_linear_svr(model: Any, X: Any, y: Any, sample_weight: Any, tol: float) -> Certificate:
    """A LinearSVR, or an SVR with a linear kernel."""
    coef, intercept = np.atleast_2d(numbers(model, "coef_")), numbers(model, "intercept_")
    rows = fitted_rows(model, coef.shape[1], X, y, sample_weight, "numbers")
    spec = linear_svm_spec(model)._replace(epsilon=float(model.epsilon))
    return checker.certify(coef, _each(intercept, 1), spec, tol, rows, _dual(model))


def linear_svm_spec(model: Any) -> Spec:
    """The problem that a fitted linear support vector machine says it has minimised, without its epsilon."""
    names = {base.__name__ for base in type(model).__mro__}
    if isinstance(model, Estimator):
        return Spec(*_LOSSES[model.loss], float(model.C), model.intercept_weight())
    if names & {"SVC", "SVR"}:
        if model.kernel != "linear":
            raise DataError(got=f"an {type(model).__name__} with kernel={model.kernel!r}", wanted="kernel='linear'")
        return Spec(*_LOSSES["hinge"], float(model.C), 0.0)
    if getattr(model, "penalty", "l2") != "l2":
        raise DataError(got=f"{model!r}", wanted="penalty='l2'")
    if model.loss not in _LOSSES:
        raise DataError(got=f"loss={model.loss!r}", wanted=f"one of {', '.join(map(repr, _LOSSES))}")
    free: float | None = 0.0 if model.fit_intercept else None
    if names & {"SGDClassifier"}:
        return Spec(*_LOSSES[model.loss], 1 / float(model.alpha), free)
    rho = float(model.intercept_scaling) ** -2 if model.fit_intercept else None
    return Spec(*_LOSSES[model.loss], float(model.C), rho)


def _per_weight(spec: Spec, model: Any, rows: Any) -> Spec:
    """SGDClassifier minimises the mean loss + alpha/2 |β|²: its C is 1 / (alpha Σ w)."""
    if not hasattr(model, "alpha"):
        return spec
    return spec._replace(C=spec.C / float(rows.sum(_weight)))


def _weight(block: Any) -> float:
    return float(block.w.sum())


def _dual(model: Any) -> Any:
    """Our own; libsvm's speak of support vectors only."""
    own = isinstance(model, Estimator) and hasattr(model, "dual_coef_")
    return numbers(model, "dual_coef_") if own else None


def _each(intercept: Any, k: int) -> Any:
    return np.broadcast_to(np.ravel(intercept), k)
