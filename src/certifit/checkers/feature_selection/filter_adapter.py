"""The adapter of filters, ours or scikit-learn's: scores of columns, p-values, and the columns that a rule keeps."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from certifit.checkers.feature_selection.fitted_selector import asked_columns, shaped, support_of
from certifit.checkers.feature_selection.scores import plain_variances, target_of
from certifit.checkers.feature_selection.univariate import (
    FilterClaim,
    certify_filter,
    certify_function,
    certify_variances,
)
from certifit.checkers.fitted import fitted_rows
from certifit.core import Certificate, Check, Estimator
from certifit.exceptions import DataError
from certifit.rows import Array, Matrix, encode_labels
from certifit.rows.checks import TableTerms

WITHOUT_PVALUES = ("variance", "jeffreys", "r_regression")  # scores that are no test

# by the name of a score function of ours or scikit-learn's, our name for the score
SCORE_NAMES = {
    "f_classif": "anova",
    "f_regression": "f_regression",
    "r_regression": "r_regression",
    "anova_f": "anova",
    "correlation_f": "correlation",
    "mutual_information": "information",
    "jeffreys": "jeffreys",
    "chi2": "chi2",
}


def audit_filter(model: Any, X: Any, y: Any, sample_weight: Any, tol: float) -> Certificate:
    """Check a SelectFeatures, or a selector of scikit-learn such as SelectKBest with a known score function."""
    if isinstance(model, Estimator) and not isinstance(model.score_func, str):
        return _audit_own_filter(model, X, y, sample_weight, tol)
    own = isinstance(model.score_func, str)
    name = model.score_func if own else _score_name(model)
    if own:
        numbers_of_columns = (int(model.n_features_in_),)
        shaped(model, "scores_", model.scores_, numbers_of_columns)
        if (model.pvalues_ is None) != (name in WITHOUT_PVALUES):
            raise DataError(got=f"pvalues_={model.pvalues_!r} of {name} scores", wanted="those that its fit left")
        if model.pvalues_ is not None:
            shaped(model, "pvalues_", model.pvalues_, numbers_of_columns)
        if np.isnan(model.scores_).any() or (model.pvalues_ is not None and np.isnan(model.pvalues_).any()):
            raise DataError(got="scores or p-values that are NaN", wanted="numbers: our filters leave none")
    # scikit-learn scores a constant column NaN and ranks it last: here its score is 0 and its p-value 1.
    scores = np.nan_to_num(np.asarray(model.scores_, dtype=np.float64), nan=0.0, posinf=np.inf)
    p = None if model.pvalues_ is None else np.nan_to_num(np.asarray(model.pvalues_, dtype=np.float64), nan=1.0)
    target = target_of(name)
    rows, k = fitted_rows(model, len(scores), X, y, sample_weight, target), 1
    if target == "classes":
        labels = encode_labels(rows)
        rows, k = labels.rows, len(labels.classes)
    if own:
        least = -np.inf if model.threshold is None else model.threshold
        wanted = min(asked_columns(model.k, len(scores), "k"), int((scores > least).sum()))
        claim = FilterClaim(name, scores, p, support_of(model), wanted)
    else:
        claim = FilterClaim(name, scores, p, model.get_support(), _count_kept(model, scores, p), False)
    return certify_filter(claim, k, tol, rows)


def _audit_own_filter(model: Any, X: Any, y: Any, sample_weight: Any, tol: float) -> Certificate:
    """Check a filter of ours under scikit-learn's name: scores from the data, and columns from these by its rule."""
    d = int(model.n_features_in_)
    scores = shaped(model, "scores_", model.scores_, (d,))
    p = None if model.pvalues_ is None else shaped(model, "pvalues_", model.pvalues_, (d,))
    kept = kept_by_rule(model, np.where(np.isnan(scores), -np.inf, scores), p)
    rule = Check(
        "columns kept that the rule leaves out, or the reverse", float((kept != model.get_support()).sum()), 0.0
    )
    name = SCORE_NAMES.get(_function_name(model.score_func))
    if name is None:
        certificate = _audit_function(model, scores, p, X, y, tol)
        return replace(certificate, checks=(*certificate.checks, rule))
    if (p is None) != (name in WITHOUT_PVALUES) or np.isnan(scores).any() or (p is not None and np.isnan(p).any()):
        raise DataError(got=f"scores or p-values of {name} that are NaN or missing", wanted="those that its fit left")
    target = target_of(name)
    rows, k = fitted_rows(model, d, X, y, sample_weight, target), 1
    if target == "classes":
        labels = encode_labels(rows)
        rows, k = labels.rows, len(labels.classes)
    claim = FilterClaim(name, scores, p, kept, None, False, False)
    certificate = certify_filter(claim, k, tol, rows)
    return replace(certificate, checks=(*certificate.checks, rule))


def _function_name(function: Any) -> str:
    """The name of a function of ours or scikit-learn's; of any other, none that is known."""
    home = str(getattr(function, "__module__", "")).partition(".")[0]
    return str(getattr(function, "__name__", "")) if home in ("certifit", "sklearn") else ""


def _audit_function(model: Any, scores: Array, p: Array | None, X: Any, y: Any, tol: float) -> Certificate:
    """Call a score function of the user's again, twice: where the two differ it is random, and cannot be compared."""
    data = fitted_rows(model, len(scores), X, None, None).load()
    target = None if y is None else np.asarray(y)
    first, second = (_called(model.score_func, data.X, target) for _ in range(2))
    pairs = zip(first, second, strict=True)
    same = all(a is None or b is None or np.array_equal(a, b, equal_nan=True) for a, b in pairs)
    certificate = certify_function(scores, p, model.get_support(), tol, first if same else None)
    if same:
        return certificate
    claim = f"by the scores recorded, which are random and cannot be computed again, {certificate.claim}"
    return replace(certificate, claim=claim)


def _called(function: Any, X: Matrix, y: Array | None) -> tuple[Array, Array | None]:
    found = function(X, y)
    scores, p = found if isinstance(found, (list, tuple)) else (found, None)
    return np.asarray(scores, float), None if p is None else np.asarray(p, float)


def kept_by_rule(model: Any, scores: Array, p: Array | None) -> Array:
    """The columns that a filter keeps by its rule, column by column."""
    mode, parameter = FILTERS[type(model).__name__]
    mode, d, asked = mode or model.mode, len(scores), getattr(model, parameter)
    if mode in ("k_best", "percentile"):
        last = mode == "k_best"  # of equals the last are kept, else the first
        if last:
            wanted = d if asked == "all" else min(int(asked), d)
        else:
            finite = np.nan_to_num(scores, posinf=np.finfo(float).max, neginf=np.finfo(float).min)
            edge = np.percentile(finite, 100 - float(asked)) if 0 < asked < 100 else 0.0
            above, ties = int((finite > edge).sum()), int((finite == edge).sum())
            share = int(d * float(asked) / 100)
            wanted = min(max(above, share), above + ties) if 0 < asked < 100 else d * (asked == 100)
        order = sorted(range(d), key=lambda j: (-scores[j], -j if last else j))
        return np.isin(np.arange(d), order[:wanted])
    if p is None:
        raise DataError(got=f"a {type(model).__name__} without p-values", wanted="those that its fit left")
    if mode == "fdr":  # Benjamini & Hochberg (1995)
        ranks = [i for i, value in enumerate(sorted(p), 1) if value <= float(asked) / d * i]
        return p <= sorted(p)[ranks[-1] - 1] if ranks else np.zeros(d, bool)
    return np.asarray(p < (asked if mode == "fpr" else asked / d))


def audit_variances(model: Any, X: Any, _y: Any, sample_weight: Any, tol: float) -> Certificate:
    """Check the variances of a VarianceThreshold, ours or scikit-learn's, and the columns that it keeps."""
    stated = np.asarray(model.variances_)
    if stated.ndim != 1 or stated.dtype.kind != "f":
        raise DataError(
            got=f"variances_ of shape {stated.shape} and type {stated.dtype}", wanted="a number per column"
        )
    rows = fitted_rows(model, len(stated), X, None, sample_weight, TableTerms(missing=True))
    variances, rounding = plain_variances(rows, model.threshold == 0)
    return certify_variances(stated, variances, float(model.threshold), tol, rounding)


# scikit-learn's filters: the mode of GenericUnivariateSelect that does the same, and the setting that it has
FILTERS: dict[str, tuple[str, str]] = {
    "SelectKBest": ("k_best", "k"),
    "SelectPercentile": ("percentile", "percentile"),
    "SelectFpr": ("fpr", "alpha"),
    "SelectFdr": ("fdr", "alpha"),
    "SelectFwe": ("fwe", "alpha"),
    "GenericUnivariateSelect": ("", "param"),
}


def _count_kept(model: Any, scores: Array, p: Array | None) -> int | None:
    """Count the columns that a filter of scikit-learn should keep, by its rule; None where equal scores decide."""
    mode, parameter = FILTERS.get(type(model).__name__, ("", ""))
    mode, d = mode or getattr(model, "mode", ""), len(scores)
    asked: Any = getattr(model, parameter, None)
    if mode == "k_best":
        return d if asked == "all" else min(int(asked), d)
    if mode == "percentile" or p is None:
        above = int((scores > np.percentile(scores, 100 - float(asked))).sum()) if np.isfinite(scores).all() else 0
        return above if above == int(d * float(asked) / 100) else None
    if mode == "fpr":
        return int((p < asked).sum())
    if mode == "fwe":
        return int((p < asked / d).sum())
    ordered = np.sort(p)  # Benjamini & Hochberg (1995)
    kept = ordered[ordered <= float(asked) / d * np.arange(1, d + 1)]
    return int((p <= kept.max()).sum()) if len(kept) else 0


def _score_name(model: Any) -> str:
    """Return our name for the score function of a scikit-learn selector, which may be scikit-learn's or ours."""
    name = SCORE_NAMES.get(getattr(model.score_func, "__name__", ""))
    if name is None:
        raise DataError(
            got=f"a {type(model).__name__} with score_func={model.score_func!r}",
            wanted=f"a score function among {', '.join(SCORE_NAMES)}",
        )
    return name
