"""Fitted linear support vector machines, ours or others', as the problem they claim to have solved."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from certifit.checkers.fitted import fitted_rows, numbers
from certifit.checkers.linear_model import logistic
from certifit.checkers.svm import joint as joint_svm
from certifit.checkers.svm import joint_linear as joint_svm_linear
from certifit.checkers.svm import linear as checker
from certifit.checkers.svm.linear import Spec
from certifit.core import Certificate, Estimator
from certifit.core.settings import check_choices
from certifit.exceptions import DataError
from certifit.rows import Array, Block, apply_class_weight, encode_labels
from certifit.rows.labels import Labels, class_weight_vector
from certifit.svm.linear.linear_svm import LOSSES, RESIDUAL_LOSSES

SGD = ("hinge", "squared_hinge", "log_loss")
Certify = Callable[..., Certificate]  # of one machine's (1, d) and (1,), and of rows with y in 0, 1
# names of losses: ours, and scikit-learn's for the same ones
_LOSSES = {**LOSSES, **RESIDUAL_LOSSES}
_JOINT = {**joint_svm.LOSSES, "crammer_singer": joint_svm.LOSSES["crammer-singer"]}


def audit_linear_svc(model: Any, X: Any, y: Any, sample_weight: Any, tol: float) -> Certificate:
    """A LinearSVC, an SVC with a linear kernel and two classes, or an SGDClassifier with a hinge or log_loss."""
    if "SGDClassifier" in _names(model):
        return _audit_sgd(model, X, y, sample_weight, tol)
    coef, intercept = numbers(model, "coef_"), numbers(model, "intercept_")
    joint = _JOINT.get(getattr(model, "multi_class", "ovr"))
    spec, labels = linear_svm_spec(model), _labels(model, coef, X, y, sample_weight)
    class_weight, intercept = getattr(model, "class_weight", None), _each(intercept, len(coef))
    if joint is not None:
        question, rows = joint_svm.Spec(joint, spec.C, spec.rho), apply_class_weight(labels, class_weight)
        return joint_svm_linear.certify(coef, intercept, question, tol, rows, _dual(model))
    if isinstance(model, Estimator) or len(coef) == 1 or class_weight is None:
        return checker.certify(coef, intercept, spec, tol, apply_class_weight(labels, class_weight), _dual(model))
    certify = partial(checker.certify, spec=spec, tol=tol)
    return _against_the_rest(certify, coef, intercept, labels, class_weight)


def _labels(model: Any, coef: Array, X: Any, y: Any, sample_weight: Any) -> Labels:
    rows = fitted_rows(model, coef.shape[1], X, y, sample_weight, "classes")
    labels = encode_labels(rows, np.asarray(model.classes_))
    k = len(labels.classes)
    if len(coef) != (k if k > 2 else 1) or (k > 2 and hasattr(model, "kernel")):
        raise DataError(
            got=f"a {type(model).__name__} with {len(coef)} machines for {k} classes",
            wanted="one machine for each class against the rest, or one for two classes",
        )
    return labels


def _audit_sgd(model: Any, X: Any, y: Any, sample_weight: Any, tol: float) -> Certificate:
    """It minimises Σ w loss / n + alpha/2 |β|²; n counts rows without weights, as does its balance of classes."""
    _ridge_only(model)
    check_choices(model, loss=SGD)
    coef = numbers(model, "coef_")
    labels = _labels(model, coef, X, y, sample_weight)
    labels = replace(labels, weight=labels.rows.sum(partial(_counts, len(labels.classes))))
    intercept, lam = _each(numbers(model, "intercept_"), len(coef)), float(model.alpha) * labels.rows.n_rows
    if model.loss == "log_loss":
        certify: Certify = partial(logistic.certify, lam=lam, fit_intercept=bool(model.fit_intercept), tol=tol)
    else:
        spec = Spec(*LOSSES[model.loss], 1 / lam, 0.0 if model.fit_intercept else None)
        certify = partial(checker.certify, spec=spec, tol=tol)
    return _against_the_rest(certify, coef, intercept, labels, model.class_weight)


def _counts(k: int, block: Block) -> Array:
    assert block.y is not None
    return np.bincount(block.y, minlength=k)


def _against_the_rest(
    certify: Certify, coef: Array, intercept: Array, labels: Labels, class_weight: Any
) -> Certificate:
    """Machines of each class against the rest, added up. With more than two of them, scikit-learn and LIBLINEAR give
    a machine's own class its weight and all others the weight 1."""
    factor = class_weight_vector(labels.classes, labels.weight, class_weight)
    if len(coef) == 1:
        return certify(coef, intercept, rows=labels.rows.relabel(partial(_is, 1, factor)))
    factors = np.where(np.eye(len(coef)), factor, 1.0)
    found = [
        certify(beta[None], b[None], rows=labels.rows.relabel(partial(_is, code, factors[code])))
        for code, (beta, b) in enumerate(zip(coef, intercept, strict=True))
    ]
    objective, bound, limit = (sum(getattr(c, name) for c in found) for name in ("objective", "bound", "limit"))
    checks = tuple(check for c in found for check in c.checks)
    return replace(found[0], objective=objective, bound=bound, limit=limit, checks=checks)


def _is(code: int, factor: Array, y: Array | None, w: Array) -> tuple[Array, Array]:
    return np.asarray(y == code, np.int32), w * factor[y]


def audit_linear_svr(model: Any, X: Any, y: Any, sample_weight: Any, tol: float) -> Certificate:
    """A LinearSVR, or an SVR with a linear kernel."""
    coef, intercept = np.atleast_2d(numbers(model, "coef_")), numbers(model, "intercept_")
    rows = fitted_rows(model, coef.shape[1], X, y, sample_weight, "numbers")
    spec = linear_svm_spec(model)._replace(epsilon=float(model.epsilon))
    return checker.certify(coef, _each(intercept, 1), spec, tol, rows, _dual(model))


def linear_svm_spec(model: Any) -> Spec:
    """The problem that a fitted linear support vector machine says it has minimised, without its epsilon."""
    if isinstance(model, Estimator):
        return Spec(*_LOSSES[model.loss], float(model.C), model.intercept_weight())
    if _names(model) & {"SVC", "SVR"}:
        if model.kernel != "linear":
            raise DataError(got=f"an {type(model).__name__} with kernel={model.kernel!r}", wanted="kernel='linear'")
        return Spec(*_LOSSES["hinge"], float(model.C), 0.0)
    _ridge_only(model)
    check_choices(model, loss=_LOSSES)
    rho = float(model.intercept_scaling) ** -2 if model.fit_intercept else None
    return Spec(*_LOSSES[model.loss], float(model.C), rho)


def _names(model: Any) -> set[str]:
    return {base.__name__ for base in type(model).__mro__}


def _ridge_only(model: Any) -> None:
    if getattr(model, "penalty", "l2") != "l2":
        raise DataError(got=f"{model!r}", wanted="penalty='l2'")


def _dual(model: Any) -> Any:
    """Our own; libsvm's speak of support vectors only."""
    own = isinstance(model, Estimator) and hasattr(model, "dual_coef_")
    return numbers(model, "dual_coef_") if own else None


def _each(intercept: Any, k: int) -> Any:
    return np.broadcast_to(np.ravel(intercept), k)
