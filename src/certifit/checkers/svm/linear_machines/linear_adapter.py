"""Adapter: fitted linear support vector machines, ours or scikit-learn's, as the problem they claim to have solved.

Models are recognised by their class names and attributes; losses by their names, in `checkers.plain.hinges`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from certifit.checkers.fitted import exact_shape, fitted_rows, numbers, row_counts, setting
from certifit.checkers.linear_model.logistic import dual_point as logistic
from certifit.checkers.plain.hinges import PLAIN_HINGES, PLAIN_MULTICLASS_HINGES
from certifit.checkers.problem import Problem, unshared_problem
from certifit.checkers.svm import joint_linear
from certifit.checkers.svm.joint import ClaimedJointSvm
from certifit.checkers.svm.linear_machines import l1, linear
from certifit.checkers.svm.linear_machines.claimed import ClaimedLinearSvm
from certifit.core import Certificate, Estimator, Setting
from certifit.exceptions import DataError
from certifit.rows import Array, apply_class_weight, encode_labels
from certifit.rows.labels import Labels, class_weight_vector

_POSITIVE = Setting(float, above=0, below=np.inf)
CertifyMachine = Callable[..., Certificate]  # of one machine's (1, d) and (1,), and of rows with y in 0, 1


def audit_linear_svc(model: Any, X: Any, y: Any, sample_weight: Any, tol: float) -> Certificate:
    """A LinearSVC, an SVC with a linear kernel and two classes, or an SGDClassifier with a hinge or log_loss."""
    if "SGDClassifier" in _names(model):
        return _audit_sgd(model, X, y, sample_weight, tol)
    coef = numbers(model, "coef_")
    intercept = exact_shape(model, "intercept_", (len(coef),))
    if getattr(model, "penalty", "l2") == "l1":
        return _audit_l1(model, coef, intercept, _labels(model, coef, X, y, sample_weight), tol)
    scheme = _scheme(model)
    claimed, labels = claimed_linear_svm(model), _labels(model, coef, X, y, sample_weight)
    class_weight, intercept = getattr(model, "class_weight", None), _broadcast_intercept(intercept, len(coef))
    rows = apply_class_weight(labels, class_weight)
    if scheme in PLAIN_MULTICLASS_HINGES:
        joint = ClaimedJointSvm(PLAIN_MULTICLASS_HINGES[scheme], claimed.C, claimed.rho)
        return joint_linear.certify(coef, intercept, joint, tol, rows, _stored_dual(model))
    if isinstance(model, Estimator) or len(coef) == 1 or class_weight is None:
        return linear.certify(coef, intercept, claimed, tol, rows, _stored_dual(model))
    certify = partial(linear.certify, claimed=claimed, tol=tol)
    return _certify_each_against_rest(certify, coef, intercept, labels, class_weight)


def _audit_l1(model: Any, coef: Array, intercept: Array, labels: Labels, tol: float) -> Certificate:
    """A LinearSVC with an L1 penalty; its intercept is penalised by its size, as in LIBLINEAR, unless it is free."""
    _check_loss(model, ("squared_hinge",))
    rho, class_weight = _intercept_weight(model), getattr(model, "class_weight", None)
    claimed = l1.ClaimedL1Svm(float(setting(model, "C", _POSITIVE)), None if rho is None else rho**0.5)
    intercept = _broadcast_intercept(intercept, len(coef))
    if isinstance(model, Estimator) or len(coef) == 1 or class_weight is None:
        return l1.certify(coef, intercept, claimed, tol, apply_class_weight(labels, class_weight))
    certify = partial(l1.certify, claimed=claimed, tol=tol)
    return _certify_each_against_rest(certify, coef, intercept, labels, class_weight)


def _labels(model: Any, coef: Array, X: Any, y: Any, sample_weight: Any) -> Labels:
    rows = fitted_rows(model, coef.shape[1], X, y, sample_weight, "classes")
    labels = encode_labels(rows, np.asarray(model.classes_))
    k = len(labels.classes)
    exact_shape(model, "coef_", (k if k > 2 else 1, rows.n_features))
    if len(coef) != (k if k > 2 else 1) or (k > 2 and hasattr(model, "kernel")):
        raise DataError(
            got=f"a {type(model).__name__} with {len(coef)} machines for {k} classes",
            wanted="one machine for each class against the rest, or one for two classes",
        )
    return labels


def _audit_sgd(model: Any, X: Any, y: Any, sample_weight: Any, tol: float) -> Certificate:
    """It minimises Σ w loss / n + alpha/2 |β|²; n counts rows without weights, as does its balance of classes."""
    _ridge_only(model)
    _check_loss(model, ("hinge", "squared_hinge", "log_loss"))
    coef = numbers(model, "coef_")
    labels = _labels(model, coef, X, y, sample_weight)
    labels = replace(labels, weight=row_counts(labels.rows, [len(labels.classes)])[0])
    intercept = _broadcast_intercept(numbers(model, "intercept_"), len(coef))
    lam = float(setting(model, "alpha", _POSITIVE)) * labels.rows.n_rows
    if model.loss == "log_loss":
        claim = logistic.LogisticClaim(lam=lam, intercept=bool(model.fit_intercept))
        certify: CertifyMachine = partial(logistic.certify, claim=claim, tol=tol)
    else:
        claimed = ClaimedLinearSvm(*PLAIN_HINGES[model.loss], 1 / lam, 0.0 if model.fit_intercept else None)
        certify = partial(linear.certify, claimed=claimed, tol=tol)
    return _certify_each_against_rest(certify, coef, intercept, labels, model.class_weight)


def _certify_each_against_rest(
    certify: CertifyMachine, coef: Array, intercept: Array, labels: Labels, class_weight: Any
) -> Certificate:
    """Certify the machines of each class against the rest and add the certificates up.

    With more than two classes, scikit-learn and LIBLINEAR give a machine's own class its weight and all others the
    weight 1.
    """
    factor = class_weight_vector(labels.classes, labels.weight, class_weight)
    if len(coef) == 1:
        return certify(coef, intercept, rows=labels.rows.relabel(partial(_one_against_rest, 1, factor)))
    factors = np.where(np.eye(len(coef)), factor, 1.0)
    found = [
        certify(beta[None], b[None], rows=labels.rows.relabel(partial(_one_against_rest, code, factors[code])))
        for code, (beta, b) in enumerate(zip(coef, intercept, strict=True))
    ]
    sums = {name: sum(getattr(c, name) for c in found) for name in ("objective", "bound", "limit", "scale")}
    checks = tuple(check for c in found for check in c.checks)
    errors = [c.parameter_error for c in found]
    return replace(found[0], **sums, checks=checks, parameter_error=sum(errors, ()) if all(errors) else ())


def _one_against_rest(code: int, factor: Array, y: Array | None, w: Array) -> tuple[Array, Array]:
    """y is 1 for this class and 0 for all others."""
    return np.asarray(y == code, np.int32), w * factor[y]


def audit_linear_svr(model: Any, X: Any, y: Any, sample_weight: Any, tol: float) -> Certificate:
    """A LinearSVR, or an SVR with a linear kernel."""
    coef, intercept = np.atleast_2d(numbers(model, "coef_")), exact_shape(model, "intercept_", (1,))
    rows = fitted_rows(model, coef.shape[1], X, y, sample_weight, "numbers")
    exact_shape(model, "coef_", (rows.n_features,))
    epsilon = float(setting(model, "epsilon", Setting(float, least=0, below=np.inf)))
    claimed = claimed_linear_svm(model)._replace(epsilon=epsilon)
    return linear.certify(coef, _broadcast_intercept(intercept, 1), claimed, tol, rows, _stored_dual(model))


def linear_machine_problem(model: Any) -> Problem:
    """What a fitted linear machine minimises, in words by which models can be compared."""
    if "SGDClassifier" in _names(model):  # whose penalty depends on how many rows there are
        return unshared_problem(model)
    scheme = _scheme(model)
    claimed = ClaimedLinearSvm(*PLAIN_HINGES["hinge"], float(model.C), _intercept_weight(model))
    if getattr(model, "penalty", "l2") == "l2":
        claimed = claimed_linear_svm(model)
    joint = scheme in PLAIN_MULTICLASS_HINGES
    several = np.ndim(model.coef_) == 2 and len(model.coef_) > 1
    loss = f"{scheme} hinge" if joint else f"{getattr(model, 'loss', 'hinge')} loss".replace("_", " ")
    if several and not joint:
        loss += ", each class against the rest"
    weights = getattr(model, "class_weight", None)
    own = ", of a machine's own class only" if several and not joint and not isinstance(model, Estimator) else ""
    held = "coefficients" if not claimed.rho else f"coefficients and intercept (times {claimed.rho:g})"
    epsilon = f"epsilon={float(model.epsilon)!r}" if hasattr(model, "epsilon") else ""
    return Problem(
        loss,
        f"{getattr(model, 'penalty', 'l2')}, C={claimed.C!r}",
        "no intercept" if claimed.rho is None else held,
        weights="none" if weights is None else f"class_weight={weights!r}{own}",
        further=epsilon,
    )


def _scheme(model: Any) -> str:
    return str(getattr(model, "multi_class", "ovr")).replace("_", "-")  # scikit-learn says crammer_singer


def claimed_linear_svm(model: Any) -> ClaimedLinearSvm:
    """The problem that a fitted linear support vector machine says it has minimised, without its epsilon."""
    C = float(setting(model, "C", _POSITIVE))
    if type(model).__module__.partition(".")[0] == "skglm":  # which solves the hinge's dual, without an intercept
        return ClaimedLinearSvm(*PLAIN_HINGES["hinge"], C, None)
    if _names(model) & {"SVC", "SVR"} and not isinstance(model, Estimator):
        if model.kernel != "linear":
            raise DataError(got=f"an {type(model).__name__} with kernel={model.kernel!r}", wanted="kernel='linear'")
        return ClaimedLinearSvm(*PLAIN_HINGES["hinge"], C, 0.0)
    _ridge_only(model)
    _check_loss(model, PLAIN_HINGES)
    return ClaimedLinearSvm(
        *PLAIN_HINGES[model.loss], C, _intercept_weight(model), settled=isinstance(model, Estimator)
    )


def _intercept_weight(model: Any) -> float | None:
    """The weight ρ of b²/2 in the objective; LIBLINEAR always penalises the intercept, ours only if told to."""
    if not model.fit_intercept:
        return None
    penalised = getattr(model, "penalize_intercept", True)
    return float(setting(model, "intercept_scaling", _POSITIVE)) ** -2 if penalised else 0.0


def _names(model: Any) -> set[str]:
    return {base.__name__ for base in type(model).__mro__}


def _check_loss(model: Any, known: Collection[str]) -> None:
    loss = getattr(model, "loss", None)
    if not isinstance(loss, str) or loss not in known:
        wanted = f"one of {', '.join(map(repr, known))}"
        raise DataError(got=f"a {type(model).__name__} with loss={loss!r}", wanted=wanted)


def _ridge_only(model: Any) -> None:
    if getattr(model, "penalty", "l2") != "l2":
        raise DataError(got=f"{model!r}", wanted="penalty='l2'")


def _stored_dual(model: Any) -> Any:
    """Dual variables of our own machines; libsvm's are those of support vectors only."""
    own = isinstance(model, Estimator) and hasattr(model, "dual_coef_")
    return numbers(model, "dual_coef_") if own else None


def _broadcast_intercept(intercept: Any, k: int) -> Any:
    return np.broadcast_to(np.ravel(intercept), k)
