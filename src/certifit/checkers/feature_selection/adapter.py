"""Fitted selectors of columns, ours or scikit-learn's, as the choice they claim to have made."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv

from certifit.checkers.feature_selection import greedy, screening
from certifit.checkers.feature_selection import univariate as checker
from certifit.checkers.fitted import fitted_rows, numbers
from certifit.core import Certificate, Estimator
from certifit.exceptions import DataError
from certifit.feature_selection.scores import SCORES
from certifit.feature_selection.subset_search import importances
from certifit.rows import Array, encode_labels

# scikit-learn's score functions, and ours used there
_FUNCTIONS = {
    "f_classif": "anova",
    "f_regression": "correlation",
    "anova_f": "anova",
    "correlation_f": "correlation",
    "mutual_information": "information",
    "jeffreys": "jeffreys",
    "chi2": "chi2",
}


def audit_filter(model: Any, X: Any, y: Any, sample_weight: Any, tol: float) -> Certificate:
    """SelectFeatures, or scikit-learn's SelectKBest and relatives with a score function that is known here."""
    own = isinstance(model, Estimator)
    name = model.score_func if own else _FUNCTIONS.get(getattr(model.score_func, "__name__", ""))
    if name is None:
        raise DataError(
            got=f"a {type(model).__name__} with score_func={model.score_func!r}",
            wanted=f"a score function among {', '.join(_FUNCTIONS)}",
        )
    # scikit-learn says NaN of a column that does not vary, and then takes it for the worst: no score, and no evidence
    scores = np.nan_to_num(np.asarray(model.scores_, dtype=np.float64), nan=0.0, posinf=np.inf)
    p = None if model.pvalues_ is None else np.nan_to_num(np.asarray(model.pvalues_, dtype=np.float64), nan=1.0)
    rows = fitted_rows(model, len(scores), X, y, sample_weight, SCORES[name].target)
    k = 1
    if SCORES[name].target == "classes":
        labels = encode_labels(rows)
        rows, k = labels.rows, len(labels.classes)
    wanted = model.wanted_columns(scores) if own else None
    return checker.certify(checker.Claim(name, scores, p, model.get_support(), wanted), k, tol, rows)


def audit_sequential(model: Any, X: Any, y: Any, sample_weight: Any, tol: float) -> Certificate:
    """SequentialSelector: every choice, and a sample of steps scored again."""
    path = model.greedy_path(vars(model))
    return greedy.certify_greedy(path, tol, greedy.rescore(path, _scorer(model, X, y, sample_weight)))


def audit_elimination(model: Any, X: Any, y: Any, sample_weight: Any, tol: float) -> Certificate:
    """RecursiveElimination: every step, and a sample of them fitted again."""
    found, fit = model.elimination(vars(model)), _fitter(model, X, y, sample_weight)

    def weigh(columns: Array) -> Array:
        return importances(fit(columns, slice(None))[0], model.importance_getter)

    objective = -_scorer(model, X, y, sample_weight)(model.support_)
    return greedy.certify_elimination(found, objective, tol, greedy.refit(found, weigh))


def _fitter(model: Any, X: Any, y: Any, sample_weight: Any) -> Callable[..., tuple[Any, float]]:
    """(columns, training rows, test rows) -> the estimator fitted to the first rows, and its score on the second."""
    data = model._rows(X, y, sample_weight, target=model.target).load()
    weighted = bool((data.w != 1).any())
    scorer = check_scoring(model.estimator, scoring=model.scoring)

    def part(columns: Array, rows: Any) -> tuple[tuple[Any, ...], dict[str, Array]]:
        rows = np.arange(len(data.w))[rows]
        rows = rows[data.w[rows] > 0]
        X = data.X[rows][:, columns]
        return (X,) if data.y is None else (X, data.y[rows]), {"sample_weight": data.w[rows]} if weighted else {}

    def fit(columns: Array, train: Any, test: Any = slice(None)) -> tuple[Any, float]:
        here, there = part(columns, train), part(columns, test)
        fitted = clone(model.estimator).fit(*here[0], **here[1])
        return fitted, float(scorer(fitted, *there[0], **there[1]))

    return fit


def _scorer(model: Any, X: Any, y: Any, sample_weight: Any) -> Callable[[Array], float]:
    """Mean score over the folds, plainly: new folds and a new estimator for each set of columns."""
    data, fit = model._rows(X, y, sample_weight, target=model.target).load(), _fitter(model, X, y, sample_weight)

    def mean(columns: Array) -> float:
        if model.cv is None:
            return fit(columns, slice(None))[1]
        cv = check_cv(model.cv, data.y, classifier=is_classifier(model.estimator))
        return float(np.mean([fit(columns, train, test)[1] for train, test in cv.split(data.X, data.y)]))

    return mean


def audit_l1(model: Any, X: Any, y: Any, sample_weight: Any, tol: float) -> Certificate:
    """L1Selector: the gap at every strength, and the columns proved 0 at the one chosen."""
    rows = model.labelled(X, y, sample_weight)
    chosen = int(np.flatnonzero(model.path_["alpha"] == model.alpha_)[0])
    coef, intercept = numbers(model, "coef_path_").copy(), numbers(model, "intercept_path_").copy()
    coef[chosen], intercept[chosen] = numbers(model, "coef_"), numbers(model, "intercept_")
    p = screening.problem(model.loss, bool(model.fit_intercept), rows)
    screened = tuple(
        screening.screen(p.at(float(alpha), float(model.l1_ratio)), beta, b, rows)
        for alpha, beta, b in zip(model.path_["alpha"], coef, intercept, strict=True)
    )
    names = getattr(model, "feature_names_in_", np.array([f"x{j}" for j in range(rows.n_features)], object))
    return model.certify(vars(model), screened, np.isin(names, model.proved_zero_), tol)
