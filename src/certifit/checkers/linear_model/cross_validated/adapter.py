"""Fitted linear models whose penalty was chosen by cross-validation: the fit to all rows, and the choice.

Ours keep every fit of every fold, and all of it is checked. Those of other libraries do not: of them the fit to all
rows is checked, and a fact says that the choice is not.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from certifit.checkers.fitted import fitted_rows
from certifit.checkers.linear_model.adapter import audit_linear
from certifit.checkers.linear_model.cross_validated.elastic_net import (
    ElasticNetChoice,
    ElasticNetSearch,
    SearchTuning,
    elastic_net_checks,
    strengths_of,
)
from certifit.checkers.linear_model.cross_validated.folds import stated_folds
from certifit.checkers.linear_model.cross_validated.logistic import (
    LogisticChoice,
    LogisticSearch,
    ScoredRows,
    logistic_checks,
    mean_certificate,
    unproved_fits,
)
from certifit.checkers.linear_model.cross_validated.ridge import RidgeChoice, RidgeSearch, RidgeTargets, ridge_checks
from certifit.checkers.linear_model.logistic.adapter import audit_logistic
from certifit.checkers.linear_model.ridge_classifier import audit_ridge_classifier, label_signs, sign_problems
from certifit.checkers.linear_model.several_targets import only_column, target_columns
from certifit.core import Certificate, Check, Estimator
from certifit.exceptions import DataError
from certifit.rows import Array, ArrayRows, Rows, apply_class_weight, encode_labels
from certifit.rows.checks import TableTerms

CHOICE_NOT_LOOKED_AT = {"choice": "of the penalty, by fits that the model does not keep: not looked at"}


def _with(found: Certificate, checks: tuple[Check, ...]) -> Certificate:
    return replace(found, checks=(*found.checks, *checks))


def _foreign(found: Certificate) -> Certificate:
    return replace(found, facts={**found.facts, **CHOICE_NOT_LOOKED_AT})


def audit_elastic_net_cv(model: Any, X: Any, y: Any, sample_weight: Any, tol: float, solved: str) -> Certificate:
    """Check a LassoCV or ElasticNetCV."""
    found = audit_linear(model, X, y, sample_weight, tol, solved)
    if not isinstance(model, Estimator):
        return _foreign(found)
    y = only_column(y) if target_columns(y) == 1 else y
    data = fitted_rows(model, len(model.coef_), X, y, sample_weight, "numbers").load()
    search: ElasticNetSearch = model._search()
    shares, d = len(search.l1_ratios), data.n_features
    alphas = np.atleast_2d(np.asarray(model.alphas_, dtype=np.float64))
    shape = strengths_of(search, data).shape
    alphas = np.broadcast_to(alphas, shape) if len(alphas) == 1 and alphas.shape[1] == shape[1] else alphas
    if alphas.shape != shape:
        raise DataError(got=f"alphas_ of shape {alphas.shape}", wanted=f"{shape}", fix="Fit it again.")
    folds = stated_folds(model, data.n_rows, (shares, alphas.shape[1], d))
    errors = np.asarray(model.mse_path_, dtype=np.float64)
    stated = (*shape, len(folds.roles))
    if errors.shape != np.squeeze(np.empty(stated)).shape:
        raise DataError(got=f"mse_path_ of shape {errors.shape}", wanted=f"the numbers of {stated}")
    ratio = float(getattr(model, "l1_ratio_", search.l1_ratios[0]))
    choice = ElasticNetChoice(alphas, errors.reshape(stated), float(model.alpha_), ratio, folds)
    return _with(found, elastic_net_checks(search, choice, tol, data))


# ------------------------------------------------------------------------------------------------------------ ridge
def regressor_targets(data: ArrayRows) -> RidgeTargets:
    """Targets of a regressor, as they are regressed on and as they are scored."""
    assert data.y is not None
    y = np.asarray(data.y, dtype=np.float64)
    return RidgeTargets(y.reshape(len(y), -1), y, None, _uneven(data.w))


def classifier_targets(data: ArrayRows, classes: Array) -> RidgeTargets:
    """Labels of ±1 of rows with class numbers, and the labels that are scored."""
    assert data.y is not None
    signs = [label_signs(k, data.y, data.w)[0] for k in sign_problems(len(classes))]
    return RidgeTargets(np.column_stack(signs), classes[data.y], classes, _uneven(data.w))


def _uneven(w: Array) -> Array | None:
    """The weights, where they are not all 1."""
    return None if (w == 1).all() else w


def audit_ridge_cv(model: Any, X: Any, y: Any, sample_weight: Any, tol: float) -> Certificate:
    """Check a RidgeCV."""
    found = audit_linear(model, X, y, sample_weight, tol, "RidgeCV")
    if not isinstance(model, Estimator):
        return _foreign(found)
    columns = target_columns(y)
    y = only_column(y) if columns == 1 else y
    several = columns if columns is not None and columns > 1 else 1
    width = np.shape(model.coef_)[-1]
    rows = fitted_rows(model, width, X, y, sample_weight, TableTerms("numbers", several))
    return _with(found, _ridge_choice(model, regressor_targets(rows.load()), tol, rows))


def audit_ridge_classifier_cv(model: Any, X: Any, y: Any, sample_weight: Any, tol: float) -> Certificate:
    """Check a RidgeClassifierCV."""
    found = audit_ridge_classifier(model, X, y, sample_weight, tol)
    if not isinstance(model, Estimator):
        return _foreign(found)
    classes = np.asarray(model.classes_)
    rows = fitted_rows(model, model.coef_.shape[-1], X, y, sample_weight, "classes")
    rows = apply_class_weight(encode_labels(rows, classes), model.class_weight)
    return _with(found, _ridge_choice(model, classifier_targets(rows.load(), classes), tol, rows))


def _ridge_choice(model: Any, targets: RidgeTargets, tol: float, rows: Rows) -> tuple[Check, ...]:
    data, t = rows.load(), targets.Y.shape[1]
    search: RidgeSearch = model._search(t)
    folds = None
    if search.cv is not None:
        folds = stated_folds(model, data.n_rows, (len(search.alphas), t, data.n_features))
    for name in ("alpha_", "best_score_"):
        if np.shape(getattr(model, name)) != ((t,) if search.per_target else ()):
            raise DataError(got=f"{name} of shape {np.shape(getattr(model, name))}", wanted="one for each choice")
    table = None
    if model.store_cv_results and search.cv is None:
        table = np.asarray(model.cv_results_, dtype=np.float64)
        flat = targets.classes is None and targets.scored.ndim == 1
        shape = (data.n_rows, len(search.alphas)) if flat else (data.n_rows, t, len(search.alphas))
        if table.shape != shape:
            raise DataError(got=f"cv_results_ of shape {table.shape}", wanted=f"{shape}")
    elif hasattr(model, "cv_results_"):
        raise DataError(got="cv_results_ without store_cv_results=True", wanted="none")
    return ridge_checks(search, RidgeChoice(model.alpha_, model.best_score_, table, folds), targets, tol, data)


# --------------------------------------------------------------------------------------------------------- logistic
def audit_logistic_cv(model: Any, X: Any, y: Any, sample_weight: Any, tol: float) -> Certificate:
    """Check a LogisticRegressionCV."""
    if not isinstance(model, Estimator):
        return _foreign(audit_logistic(model, X, y, sample_weight, tol))
    given: Any = model
    classes, (k, d) = np.asarray(given.classes_), np.shape(given.coef_)
    labels = encode_labels(fitted_rows(given, d, X, y, sample_weight, "classes"), classes)
    data = apply_class_weight(labels, given.class_weight).load()
    rows = ScoredRows(data, classes, _uneven(labels.rows.load().w))
    search: LogisticSearch = given._search()
    folds = stated_folds(given, data.n_rows, (len(search.l1_ratios), len(search.Cs), k, d))
    choice = LogisticChoice(
        given._score_table(), given._chosen("C_"), given._chosen("l1_ratio_"), folds, given.coef_, given.intercept_
    )
    unproved = unproved_fits(search, folds, SearchTuning().fold_tol * tol, data)
    checks = logistic_checks(search, choice, rows, unproved)
    if not search.refit:
        return mean_certificate(search, choice, checks)
    return _with(audit_logistic(given, X, y, sample_weight, tol), checks)
