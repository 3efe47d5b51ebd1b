"""Fitted naive Bayes models, ours or scikit-learn's, and the moment equations they claim to solve."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from certifit.checkers.naive_bayes import moments as checker
from certifit.core import Certificate
from certifit.rows import Array, Rows, as_rows, encode_labels


class Data:
    """The rows a model was fitted on, with its class numbers as targets, and the weight of each class."""

    def __init__(self, model: Any, X: Any, y: Any, sample_weight: Any) -> None:
        check_is_fitted(model)
        rows = as_rows(X, y, sample_weight, estimator=model, target="classes", sparse=True, missing=True, reset=False)
        labels = encode_labels(rows, np.asarray(model.classes_))
        self.rows: Rows = labels.rows
        self.count: Array = labels.weight
        self.k = len(self.count)


def _attribute(model: Any, name: str) -> Array:
    values = np.asarray(getattr(model, name))
    return values if values.dtype.kind == "f" else values.astype(np.float64)


def audit_gaussian_nb(model: Any, X: Any, y: Any, sample_weight: Any, tol: float) -> Certificate:
    """GaussianNB: means, variances (with `epsilon_`), priors and, where there is one, the linear form."""
    data = Data(model, X, y, sample_weight)
    theta, var, prior = (_attribute(model, name) for name in ("theta_", "var_", "class_prior_"))
    shared = getattr(model, "variance", "separate") == "shared"
    found = checker.moments(data.rows, data.k)
    evidence = [
        *class_evidence(model, data, log(prior), model.priors, tol),
        checker.gaussian(theta, var, float(model.epsilon_), shared, found, tol),
    ]
    if shared:
        evidence.append(checker.linear_form(model.coef_, model.intercept_, theta, var, prior, tol))
    return checker.assemble(evidence, tol)


def audit_bernoulli_nb(model: Any, X: Any, y: Any, sample_weight: Any, tol: float) -> Certificate:
    """BernoulliNB: smoothed shares of the values above the threshold."""
    data = Data(model, X, y, sample_weight)
    t = 0.5 if model.binarize is None else float(model.binarize)
    mass = checker.threshold_counts(data.rows, data.k, t)
    log_p = checker.both_sides(_attribute(model, "feature_log_prob_"))
    evidence = [
        *_discrete(model, data, tol),
        checker.counts("feature counts", model.feature_count_, mass[..., 1], tol),
        checker.cells(log_p, mass + np.asarray(_alpha(model))[..., None], tol),
    ]
    return checker.assemble(evidence, tol)


def audit_multinomial_nb(model: Any, X: Any, y: Any, sample_weight: Any, tol: float) -> Certificate:
    """MultinomialNB: smoothed shares of the columns in the counts of a class."""
    data = Data(model, X, y, sample_weight)
    total = checker.sums(data.rows, data.k)
    evidence = [
        *_discrete(model, data, tol),
        checker.counts("feature counts", model.feature_count_, total, tol),
        checker.cells(_attribute(model, "feature_log_prob_"), total + _alpha(model), tol),
    ]
    return checker.assemble(evidence, tol)


def audit_complement_nb(model: Any, X: Any, y: Any, sample_weight: Any, tol: float) -> Certificate:
    """ComplementNB: smoothed shares of the columns in the counts of all other classes."""
    data = Data(model, X, y, sample_weight)
    total = checker.sums(data.rows, data.k)
    others = np.stack([np.delete(total, c, axis=0).sum(axis=0) for c in range(data.k)])
    weights = _attribute(model, "feature_log_prob_")
    evidence = [
        *_discrete(model, data, tol),
        checker.counts("feature counts", model.feature_count_, total, tol),
        *checker.complement(weights, others + _alpha(model), bool(model.norm), tol),
    ]
    return checker.assemble(evidence, tol)


def audit_categorical_nb(model: Any, X: Any, y: Any, sample_weight: Any, tol: float) -> Certificate:
    """CategoricalNB: smoothed shares of the categories, column by column."""
    data = Data(model, X, y, sample_weight)
    tables = [np.asarray(table, dtype=np.float64) for table in model.feature_log_prob_]
    mass = checker.category_counts(data.rows, data.k, np.array([t.shape[1] for t in tables]))
    pairs = list(zip(tables, model.category_count_, mass, strict=True))
    evidence = [
        *_discrete(model, data, tol),
        checker.columns(checker.counts("category counts", n, m[:, :-1], tol) for _, n, m in pairs),
        checker.columns(checker.counts("unknown categories", m[:, -1], np.zeros(data.k), 0.0) for _, _, m in pairs),
        checker.columns(checker.cells(t, m[:, :-1] + _alpha(model), tol) for t, _, m in pairs),
    ]
    return checker.assemble(evidence, tol)


def class_evidence(model: Any, data: Data, log_prior: Array, given: Any, tol: float) -> list[checker.Evidence]:
    given = None if given is None else np.asarray(given, dtype=np.float64)
    return [
        checker.priors(log_prior, data.count, given, tol),
        checker.counts("class counts", np.asarray(model.class_count_), data.count, tol),
    ]


def _discrete(model: Any, data: Data, tol: float) -> list[checker.Evidence]:
    given = model.class_prior
    if given is None and not model.fit_prior:
        given = np.full(data.k, 1.0 / data.k)
    return class_evidence(model, data, _attribute(model, "class_log_prior_"), given, tol)


def _alpha(model: Any) -> Any:
    alpha = np.asarray(model.alpha, dtype=np.float64)
    return alpha if model.force_alpha else np.maximum(alpha, 1e-10)


def log(p: Array) -> Array:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.log(p)
