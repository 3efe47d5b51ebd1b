"""The adapter of naive Bayes models, ours or scikit-learn's: it reads their attributes for the moment equations.

Every attribute is held against the rows and the settings. Ours also keep the sums that `partial_fit` adds to
(`running_sums`). scikit-learn's GaussianNB takes its ε from the rows of its last call, each counted once; ours from
all rows by their weights.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from certifit.checkers.naive_bayes import moment_equations as equations
from certifit.checkers.naive_bayes import running_sums
from certifit.checkers.naive_bayes.class_statistics import (
    category_counts,
    class_moments,
    class_totals,
    counted_once,
    largest_categories,
    seen_categories,
    threshold_counts,
)
from certifit.checkers.naive_bayes.moment_equations import GaussianRules, MomentEvidence, safe_log
from certifit.checkers.naive_bayes.running_sums import shaped
from certifit.core import Certificate, Estimator
from certifit.exceptions import DataError
from certifit.rows import Array, Rows, as_rows, encode_labels


class ClassRows(NamedTuple):
    """The rows a model was fitted on, with its class numbers as targets."""

    rows: Rows
    weight: Array  # Σ w of each class  (k,)
    k: int
    rounding: float  # relative, of means in the precision that the model works in
    ours: bool  # whether the model is one of ours, which keeps running sums

    @property
    def shape(self) -> tuple[int, int]:
        return self.k, self.rows.n_features


def class_rows(model: Any, X: Any, y: Any, sample_weight: Any) -> ClassRows:
    """Return the rows, with labels replaced by the class numbers of the model."""
    rows = as_rows(X, y, sample_weight, estimator=model, target="classes", sparse=True, missing=True, reset=False)
    labels = encode_labels(rows, np.asarray(model.classes_))
    ours = isinstance(model, Estimator)
    # Ours sum in float64 whatever the rows are in; scikit-learn sums in the rows' own precision.
    precision = np.float64 if ours else rows.dtype
    return ClassRows(labels.rows, labels.weight, len(labels.weight), float(np.finfo(precision).eps), ours)


def _numbers(model: Any, name: str, shape: tuple[int, ...]) -> Array:
    return shaped(getattr(model, name), name, shape)


# ---------------------------------------------------------------------------------------------- Gaussian columns
def audit_gaussian_nb(model: Any, X: Any, y: Any, sample_weight: Any, tol: float) -> Certificate:
    """Check means, variances (with `epsilon_`) and priors of a GaussianNB, and its linear form if there is one."""
    data = class_rows(model, X, y, sample_weight)
    theta, var = (_numbers(model, name, data.shape) for name in ("theta_", "var_"))
    prior = _numbers(model, "class_prior_", (data.k,))
    shared = getattr(model, "variance", "separate") == "shared"
    found = class_moments(data.rows, data.k)
    spread = found if data.ours else class_moments(counted_once(data.rows), 1)
    epsilon = float(model.var_smoothing) * spread.largest_variance()
    rules = GaussianRules(epsilon, shared, data.rounding, data.ours)
    evidence = [
        *class_evidence(model, data, safe_log(prior), model.priors, tol),
        equations.gaussian_evidence(theta, var, rules, found, tol),
        equations.epsilon_evidence(float(model.epsilon_), epsilon, var, tol),
    ]
    if shared:
        coef, intercept = _numbers(model, "coef_", data.shape), _numbers(model, "intercept_", (data.k,))
        evidence.append(equations.linear_form_evidence(coef, intercept, theta, var, prior, tol))
    if data.ours:
        evidence.append(running_sums.moment_sums_evidence(model.sums_, found, epsilon, tol))
    return equations.assemble(evidence, tol)


# ----------------------------------------------------------------------------------------------- counted columns
def audit_bernoulli_nb(model: Any, X: Any, y: Any, sample_weight: Any, tol: float) -> Certificate:
    """Check the probabilities of a BernoulliNB, which are smoothed shares of the values above the threshold."""
    data = class_rows(model, X, y, sample_weight)
    t = 0.5 if model.binarize is None else float(model.binarize)
    mass = threshold_counts(data.rows, data.k, t)
    log_p = equations.both_sides(_numbers(model, "feature_log_prob_", data.shape))
    evidence = [
        *_discrete_class_evidence(model, data, tol),
        _count_attribute(model, "feature_count_", mass[..., 1], tol),
        equations.cell_evidence(log_p, mass + np.asarray(_pseudo_counts(model, data))[..., None], tol),
    ]
    if data.ours:
        sums = {"above": mass[..., 1], "below": mass[..., 0]}
        evidence.append(running_sums.count_sums_evidence(model.sums_, sums, tol))
    return equations.assemble(evidence, tol)


def audit_multinomial_nb(model: Any, X: Any, y: Any, sample_weight: Any, tol: float) -> Certificate:
    """Check the probabilities of a MultinomialNB, which are smoothed shares of the columns in a class's counts."""
    data = class_rows(model, X, y, sample_weight)
    total = class_totals(data.rows, data.k)
    log_p = _numbers(model, "feature_log_prob_", data.shape)
    evidence = [
        *_total_evidence(model, data, total, tol),
        equations.cell_evidence(log_p, total + _pseudo_counts(model, data), tol),
    ]
    return equations.assemble(evidence, tol)


def audit_complement_nb(model: Any, X: Any, y: Any, sample_weight: Any, tol: float) -> Certificate:
    """Check the weights of a ComplementNB, which are smoothed shares in the counts of all other classes."""
    data = class_rows(model, X, y, sample_weight)
    total = class_totals(data.rows, data.k)
    others = np.stack([np.delete(total, c, axis=0).sum(axis=0) for c in range(data.k)])
    weights = _numbers(model, "feature_log_prob_", data.shape)
    evidence = [
        *_total_evidence(model, data, total, tol),
        _count_attribute(model, "feature_all_", total.sum(axis=0), tol),
        *equations.complement_evidence(weights, others + _pseudo_counts(model, data), bool(model.norm), tol),
    ]
    return equations.assemble(evidence, tol)


def _total_evidence(model: Any, data: ClassRows, total: Array, tol: float) -> list[MomentEvidence]:
    """Check classes and stored sums of a model of counts."""
    evidence = [*_discrete_class_evidence(model, data, tol), _count_attribute(model, "feature_count_", total, tol)]
    if data.ours:
        evidence.append(running_sums.count_sums_evidence(model.sums_, {"total": total}, tol))
    return evidence


def audit_categorical_nb(model: Any, X: Any, y: Any, sample_weight: Any, tol: float) -> Certificate:
    """Check the probabilities of a CategoricalNB, which are smoothed shares of the categories of each column."""
    data = class_rows(model, X, y, sample_weight)
    d = data.rows.n_features
    tables = [np.asarray(table, dtype=np.float64) for table in model.feature_log_prob_]
    if len(tables) != d or any(t.ndim != 2 or len(t) != data.k for t in tables):
        raise DataError(got=f"feature_log_prob_ of {len(tables)} tables", wanted=f"{d}, each of {data.k} rows")
    mass = category_counts(data.rows, data.k, np.array([t.shape[1] for t in tables]))
    stored = (
        equations.count_evidence("category counts", shaped(n, "category_count_", t.shape), m[:, :-1], tol)
        for n, t, m in zip(model.category_count_, tables, mass, strict=True)
    )
    evidence = [
        *_discrete_class_evidence(model, data, tol),
        equations.worst_of_columns(stored),
        *category_evidence(tables, mass, _pseudo_counts(model, data), tol),
        _size_evidence(model, data, mass),
    ]
    if data.ours:
        evidence.append(running_sums.category_sums_evidence(model.sums_, mass, tol))
    return equations.assemble(evidence, tol)


def _size_evidence(model: Any, data: ClassRows, mass: list[Array]) -> MomentEvidence:
    """Compare `n_categories_` and the tables' sizes with the categories seen and `min_categories`."""
    # scikit-learn also counts the categories of rows without weight.
    seen = seen_categories(mass) if data.ours else largest_categories(data.rows)
    least = np.asarray(0 if model.min_categories is None else model.min_categories)
    wanted = np.maximum(np.maximum(seen, least), 1).astype(np.float64)
    tables = np.array([m.shape[1] - 1.0 for m in mass])
    sizes = np.stack([_numbers(model, "n_categories_", (len(mass),)), tables])
    return equations.count_evidence("numbers of categories", sizes, np.stack([wanted, wanted]), 0.0)


def category_evidence(tables: list[Array], mass: list[Array], alpha: Any, tol: float) -> list[MomentEvidence]:
    """Compare log-probabilities (k, categories) with counts (k, categories + 1), whose last cell must be empty."""
    unknown = (equations.count_evidence("unknown categories", m[:, -1], np.zeros(len(m)), 0.0) for m in mass)
    known = (equations.cell_evidence(t, m[:, :-1] + alpha, tol) for t, m in zip(tables, mass, strict=True))
    return [equations.worst_of_columns(unknown), equations.worst_of_columns(known)]


# ------------------------------------------------------------------------------------------ classes and settings
def _count_attribute(model: Any, name: str, expected: Array, tol: float) -> MomentEvidence:
    words = name.rstrip("_").replace("_", " ") + "s"
    return equations.count_evidence(words, _numbers(model, name, expected.shape), expected, tol)


def class_evidence(model: Any, data: ClassRows, log_prior: Array, given: Any, tol: float) -> list[MomentEvidence]:
    """Check the priors, given or learnt, and the stored weights of the classes."""
    given = None if given is None else shaped(given, "the setting of the class priors", (data.k,))
    return [
        equations.prior_evidence(log_prior, data.weight, given, tol),
        _count_attribute(model, "class_count_", data.weight, tol),
    ]


def _discrete_class_evidence(model: Any, data: ClassRows, tol: float) -> list[MomentEvidence]:
    given = model.class_prior
    if given is None and not model.fit_prior:
        given = np.full(data.k, 1.0 / data.k)
    return class_evidence(model, data, _numbers(model, "class_log_prior_", (data.k,)), given, tol)


def _pseudo_counts(model: Any, data: ClassRows) -> Any:
    """Return α as a number or (d,); scikit-learn raises it to 1e-10 unless `force_alpha`."""
    alpha = np.asarray(model.alpha, dtype=np.float64)
    alpha = shaped(alpha, "alpha", (data.rows.n_features,)) if alpha.ndim else alpha
    return alpha if getattr(model, "force_alpha", True) else np.maximum(alpha, 1e-10)
