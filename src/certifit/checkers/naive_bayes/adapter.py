"""The adapter of naive Bayes models, ours or scikit-learn's: it reads their attributes for the moment equations."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from certifit.checkers.naive_bayes import moment_equations as equations
from certifit.checkers.naive_bayes.class_statistics import (
    category_counts,
    class_moments,
    class_totals,
    threshold_counts,
)
from certifit.checkers.naive_bayes.moment_equations import MomentEvidence, safe_log
from certifit.core import Certificate
from certifit.rows import Array, Rows, as_rows, encode_labels


class ClassRows(NamedTuple):
    """The rows a model was fitted on, with its class numbers as targets."""

    rows: Rows
    weight: Array  # Σ w of each class  (k,)
    k: int


def class_rows(model: Any, X: Any, y: Any, sample_weight: Any) -> ClassRows:
    """Return the rows, with labels replaced by the class numbers of the model."""
    rows = as_rows(X, y, sample_weight, estimator=model, target="classes", sparse=True, missing=True, reset=False)
    labels = encode_labels(rows, np.asarray(model.classes_))
    return ClassRows(labels.rows, labels.weight, len(labels.weight))


def _attribute(model: Any, name: str) -> Array:
    """Return a fitted attribute as floating point, in its own precision."""
    values = np.asarray(getattr(model, name))
    return values if values.dtype.kind == "f" else values.astype(np.float64)


def audit_gaussian_nb(model: Any, X: Any, y: Any, sample_weight: Any, tol: float) -> Certificate:
    """Check means, variances (with `epsilon_`) and priors of a GaussianNB, and its linear form if there is one."""
    data = class_rows(model, X, y, sample_weight)
    theta, var, prior = (_attribute(model, name) for name in ("theta_", "var_", "class_prior_"))
    shared = getattr(model, "variance", "separate") == "shared"
    found = class_moments(data.rows, data.k)
    evidence = [
        *class_evidence(model, data, safe_log(prior), model.priors, tol),
        equations.gaussian_evidence(theta, var, float(model.epsilon_), shared, found, tol),
    ]
    if shared:
        evidence.append(equations.linear_form_evidence(model.coef_, model.intercept_, theta, var, prior, tol))
    return equations.assemble(evidence, tol)


def audit_bernoulli_nb(model: Any, X: Any, y: Any, sample_weight: Any, tol: float) -> Certificate:
    """Check the probabilities of a BernoulliNB, which are smoothed shares of the values above the threshold."""
    data = class_rows(model, X, y, sample_weight)
    t = 0.5 if model.binarize is None else float(model.binarize)
    mass = threshold_counts(data.rows, data.k, t)
    log_p = equations.both_sides(_attribute(model, "feature_log_prob_"))
    evidence = [
        *_discrete_class_evidence(model, data, tol),
        equations.count_evidence("feature counts", model.feature_count_, mass[..., 1], tol),
        equations.cell_evidence(log_p, mass + np.asarray(_pseudo_counts(model))[..., None], tol),
    ]
    return equations.assemble(evidence, tol)


def audit_multinomial_nb(model: Any, X: Any, y: Any, sample_weight: Any, tol: float) -> Certificate:
    """Check the probabilities of a MultinomialNB, which are smoothed shares of the columns in a class's counts."""
    data = class_rows(model, X, y, sample_weight)
    total = class_totals(data.rows, data.k)
    evidence = [
        *_discrete_class_evidence(model, data, tol),
        equations.count_evidence("feature counts", model.feature_count_, total, tol),
        equations.cell_evidence(_attribute(model, "feature_log_prob_"), total + _pseudo_counts(model), tol),
    ]
    return equations.assemble(evidence, tol)


def audit_complement_nb(model: Any, X: Any, y: Any, sample_weight: Any, tol: float) -> Certificate:
    """Check the weights of a ComplementNB, which are smoothed shares in the counts of all other classes."""
    data = class_rows(model, X, y, sample_weight)
    total = class_totals(data.rows, data.k)
    others = np.stack([np.delete(total, c, axis=0).sum(axis=0) for c in range(data.k)])
    weights = _attribute(model, "feature_log_prob_")
    evidence = [
        *_discrete_class_evidence(model, data, tol),
        equations.count_evidence("feature counts", model.feature_count_, total, tol),
        *equations.complement_evidence(weights, others + _pseudo_counts(model), bool(model.norm), tol),
    ]
    return equations.assemble(evidence, tol)


def audit_categorical_nb(model: Any, X: Any, y: Any, sample_weight: Any, tol: float) -> Certificate:
    """Check the probabilities of a CategoricalNB, which are smoothed shares of the categories of each column."""
    data = class_rows(model, X, y, sample_weight)
    tables = [np.asarray(table, dtype=np.float64) for table in model.feature_log_prob_]
    mass = category_counts(data.rows, data.k, np.array([t.shape[1] for t in tables]))
    stored = (
        equations.count_evidence("category counts", n, m[:, :-1], tol)
        for n, m in zip(model.category_count_, mass, strict=True)
    )
    evidence = [
        *_discrete_class_evidence(model, data, tol),
        equations.worst_of_columns(stored),
        *category_evidence(tables, mass, _pseudo_counts(model), tol),
    ]
    return equations.assemble(evidence, tol)


def category_evidence(tables: list[Array], mass: list[Array], alpha: Any, tol: float) -> list[MomentEvidence]:
    """Compare log-probabilities (k, categories) with counts (k, categories + 1), whose last cell must be empty."""
    unknown = (equations.count_evidence("unknown categories", m[:, -1], np.zeros(len(m)), 0.0) for m in mass)
    known = (equations.cell_evidence(t, m[:, :-1] + alpha, tol) for t, m in zip(tables, mass, strict=True))
    return [equations.worst_of_columns(unknown), equations.worst_of_columns(known)]


def class_evidence(model: Any, data: ClassRows, log_prior: Array, given: Any, tol: float) -> list[MomentEvidence]:
    """Check the priors, given or learnt, and the stored weights of the classes."""
    given = None if given is None else np.asarray(given, dtype=np.float64)
    return [
        equations.prior_evidence(log_prior, data.weight, given, tol),
        equations.count_evidence("class counts", np.asarray(model.class_count_), data.weight, tol),
    ]


def _discrete_class_evidence(model: Any, data: ClassRows, tol: float) -> list[MomentEvidence]:
    given = model.class_prior
    if given is None and not model.fit_prior:
        given = np.full(data.k, 1.0 / data.k)
    return class_evidence(model, data, _attribute(model, "class_log_prior_"), given, tol)


def _pseudo_counts(model: Any) -> Any:
    """Return α as a number or (d,); scikit-learn raises it to 1e-10 unless `force_alpha`."""
    alpha = np.asarray(model.alpha, dtype=np.float64)
    return alpha if model.force_alpha else np.maximum(alpha, 1e-10)
