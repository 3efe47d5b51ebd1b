"""Fitted logistic regressions, ours or another library's, as the problem they claim to have solved.

| whose | what is read |
|---|---|
| ours | its settings; also the evidence (covariance, likelihood) that a fit without penalty leaves |
| scikit-learn's | C and l1_ratio, or `penalty`; of LogisticRegressionCV what it chose |
| the same with solver='liblinear' | its intercept is the coefficient of a column of `intercept_scaling`s |
| celer's | C, beside L1 |
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from certifit.checkers.fitted import chosen_or_set, exact_shape, fitted_rows, numbers, setting
from certifit.checkers.linear_model.inference import InferenceTuning
from certifit.checkers.linear_model.logistic import firth, likelihood, proof
from certifit.checkers.linear_model.logistic.dual_point import LogisticClaim
from certifit.checkers.linear_model.logistic.inference import LogisticEvidence, logistic_inference_checks
from certifit.checkers.problem import Problem
from certifit.core import Certificate, Check, Estimator, Setting
from certifit.exceptions import DataError
from certifit.rows import Array, ArrayRows, Rows, apply_class_weight, encode_labels


class LogisticSettings(NamedTuple):
    """What a logistic regression says it has minimised."""

    firth: bool
    claim: LogisticClaim  # the intercept is not free where it is penalised
    class_weight: Any
    bias: float | None = None  # what stands in the column whose coefficient is the penalised intercept, if it is one

    @property
    def intercept(self) -> str:
        """What becomes of the intercept, in words."""
        if self.bias is not None:
            return f"intercept of a column of {self.bias:g}s"
        return "free intercept" if self.claim.intercept else "no intercept"


def logistic_settings(model: Any) -> LogisticSettings:
    """Read the settings of a fitted model, by attributes that ours and other libraries' have."""
    free, class_weight = bool(getattr(model, "fit_intercept", True)), getattr(model, "class_weight", None)
    penalty = getattr(model, "penalty", "deprecated")  # scikit-learn's word for: see C and l1_ratio
    _refuse_other_problems(model)
    if penalty in ("firth", None):
        return LogisticSettings(penalty == "firth", LogisticClaim(intercept=free), class_weight)
    strength, share = _strength(model), _l1_share(model, penalty)
    claim = LogisticClaim(share / strength, (1 - share) / strength, free)
    if free and getattr(model, "solver", "") == "liblinear" and not isinstance(model, Estimator):
        above_zero = Setting(float, above=0, below=np.inf)
        bias = float(setting(model, "intercept_scaling", above_zero, 1.0))
        return LogisticSettings(False, claim._replace(intercept=False), class_weight, bias)
    return LogisticSettings(False, claim, class_weight)


def _strength(model: Any) -> float:
    """The inverse C of the penalty's strength; of a cross-validated model the one it chose."""
    name = chosen_or_set(model, "C")
    if not hasattr(model, name):
        raise DataError(
            got=f"a {type(model).__name__} that does not say its C", wanted="an attribute C, or penalty=None"
        )
    chosen = np.unique(np.ravel(getattr(model, name)))
    if len(chosen) != 1:
        raise DataError(
            got=f"a {type(model).__name__} with another C for each class: {chosen.tolist()}",
            wanted="one C for all classes",
            fix="Fit LogisticRegression with the C of your choice.",
        )
    strength = chosen[0] if isinstance(chosen[0], str) else chosen[0].item()
    Setting(float, above=0).check(f"{type(model).__name__}.{name}", strength)
    return float(strength)


def _l1_share(model: Any, penalty: Any) -> float:
    """The share of the penalty that is |β|₁."""
    if penalty == "l1":
        return 1.0
    if penalty == "l2" and not isinstance(model, Estimator):  # ours takes l1_ratio as it is
        return 0.0
    name = chosen_or_set(model, "l1_ratio")
    ratios = [0.0 if ratio is None else ratio for ratio in np.ravel(getattr(model, name, 0.0)).tolist()]
    chosen = sorted(set(ratios))
    if len(chosen) != 1:
        raise DataError(
            got=f"a {type(model).__name__} with another l1_ratio for each class: {chosen}",
            wanted="one l1_ratio for all classes",
        )
    Setting(float, least=0, most=1).check(f"{type(model).__name__}.{name}", chosen[0])
    return float(chosen[0])


def _refuse_other_problems(model: Any) -> None:
    """Refuse, in words, models of this name that did not minimise one softmax or logistic objective on all rows."""
    name, several = type(model).__name__, len(np.ravel(model.classes_)) > 2
    if name == "LogisticRegressionCV" and not getattr(model, "refit", True):
        raise DataError(
            got=f"a {name} with refit=False, whose coefficients are means over the folds",
            wanted="coefficients fitted on all rows",
            fix="Set refit=True.",
        )
    module = type(model).__module__.partition(".")[0]
    separate = getattr(model, "multi_class", "auto") == "ovr" or getattr(model, "solver", "") == "liblinear"
    if several and (separate or module == "celer") and not isinstance(model, Estimator):
        raise DataError(
            got=f"a {name} of {module} that fits one model for each of {len(model.classes_)} classes",
            wanted="two classes, or one softmax model for all",
            fix="Audit each class by itself: LogisticRegression on y == label.",
        )


def logistic_problem(model: Any) -> Problem:
    """The same in words, by which models can be compared."""
    settings = logistic_settings(model)
    scores = np.shape(model.coef_)[0]
    return Problem(
        "logistic loss" if scores == 1 else f"softmax loss of {scores} classes",
        "Firth's" if settings.firth else _penalty_in_words(settings.claim.lam1, settings.claim.lam),
        "coefficients" if settings.bias is None else "coefficients and intercept",
        weights="none" if settings.class_weight is None else f"class_weight={settings.class_weight!r}",
        further=settings.intercept,
    )


def _penalty_in_words(lam1: float, lam: float) -> str:
    """Such as `l2, C=1.0`."""
    if lam1 + lam == 0:
        return "none"
    mixed = f", l1_ratio={lam1 / (lam1 + lam)!r}" if lam1 * lam > 0 else ""
    name = "elastic net" if mixed else "l1" if lam1 > 0 else "l2"
    return f"{name}, C={1 / (lam1 + lam)!r}{mixed}"


def audit_logistic(model: Any, X: Any, y: Any, sample_weight: Any, tol: float) -> Certificate:
    """Check a fitted logistic or softmax regression by the checker of its penalty."""
    settings = logistic_settings(model)
    coef, intercept = _coefficients(model)
    rows = fitted_rows(model, coef.shape[1], X, y, sample_weight, "classes")
    labels = encode_labels(rows, np.asarray(model.classes_))
    rows = apply_class_weight(labels, settings.class_weight)
    if settings.bias is not None:
        return _certify_with_bias(coef, intercept, settings, tol, rows)
    here, free = None, settings.claim.intercept
    evidence = _evidence(model, settings) if isinstance(model, Estimator) else None
    if evidence is not None and (evidence.attributes or evidence.covariance is not None):
        here = likelihood.measured(coef, intercept, free, rows, InferenceTuning().covariance_parameters)
    if settings.firth:
        found = firth.certify(coef, intercept, free, tol, rows)
    else:
        found = proof.certify(coef, intercept, settings.claim, tol, rows, here=here)
    if evidence is None or not found.holds:
        return found
    further = () if here is None else logistic_inference_checks(here, len(coef), evidence, rows)
    return replace(found, checks=(*found.checks, *further, *_free_means(coef, intercept, settings)))


def _free_means(coef: Array, intercept: Array, settings: LogisticSettings) -> tuple[Check, ...]:
    """Checks that what is free among several classes, a vector common to all, is put as our fits put it: at 0."""
    if len(coef) == 1:
        return ()
    unpenalised = settings.claim.lam + settings.claim.lam1 == 0
    free = [("intercepts", intercept[:, None])] + ([("coefficients", coef)] if unpenalised else [])
    return tuple(
        Check(
            f"mean of the {name} over the classes", float(np.abs(v.mean(axis=0)).max()), 1e-9 * float(np.abs(v).max())
        )
        for name, v in free
    )


def _evidence(model: Any, settings: LogisticSettings) -> LogisticEvidence:
    """What our models say beside their coefficients; penalised and class-weighted fits have no covariance."""
    likelihood = ("deviance_", "n_parameters_", "df_resid_")
    attributes = {
        name: vars(model)[name] for name in (*likelihood, "covariance_") if vars(model).get(name) is not None
    }
    lost = [name for name in likelihood if name not in attributes]
    if len(lost) in (1, 2):  # a fit leaves all of them, or none beside a penalty
        raise DataError(
            got=f"a {type(model).__name__} without {', '.join(lost)}",
            wanted="the fitted attributes as its fit left them",
        )
    unpenalised = settings.firth or settings.claim.lam + settings.claim.lam1 == 0
    size = np.size(model.coef_) + (np.size(model.intercept_) if settings.claim.intercept else 0)
    few = size <= InferenceTuning().covariance_parameters
    valid = unpenalised and settings.class_weight is None and few
    return LogisticEvidence(attributes, getattr(model, "covariance", None) if valid else None)


def _coefficients(model: Any) -> tuple[Array, Array]:
    """Coefficients (k, d), or (1, d) for two classes, and intercepts (k,) or (1,)."""
    coef, intercept, k = numbers(model, "coef_"), numbers(model, "intercept_").ravel(), len(np.ravel(model.classes_))
    scores = k if k > 2 else 1
    exact_shape(model, "intercept_", (scores,))
    if coef.ndim != 2 or len(coef) != scores or len(intercept) not in (scores, 1):
        raise DataError(
            got=f"coef_ of shape {coef.shape} and {len(intercept)} intercepts for {k} classes",
            wanted=f"coefficients of {scores} scores, and as many intercepts",
        )
    return coef, np.broadcast_to(intercept, scores)


def _certify_with_bias(
    coef: Array, intercept: Array, settings: LogisticSettings, tol: float, rows: Rows
) -> Certificate:
    """Check a model whose intercept is the penalised coefficient of one more column, all of one number."""
    assert settings.bias is not None
    data, bias = rows.load(), settings.bias
    column = np.full((data.n_rows, 1), bias)
    X = sparse.hstack([data.X, column], format="csr") if sparse.issparse(data.X) else np.hstack([data.X, column])
    wide = ArrayRows(X, data.y, data.w)
    beta = np.column_stack([coef, intercept / bias])
    found = proof.certify(beta, np.zeros(len(coef)), settings.claim, tol, wide)
    error = tuple((*row[:-2], bias * row[-2]) for row in found.parameter_error)
    facts = {**found.facts, "penalised": "coefficients and intercept"}
    return replace(found, facts=facts, parameter_error=error)
