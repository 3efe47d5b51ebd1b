"""The adapter of fitted selectors, ours or scikit-learn's: it reads their attributes and hands them to the checkers.

The number of columns or steps that the settings ask for is worked out here again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral
from operator import attrgetter
from typing import Any

import numpy as np

from certifit.checkers.feature_selection import greedy, l1_choice, screening
from certifit.checkers.feature_selection.scores import target_of
from certifit.checkers.feature_selection.univariate import FilterClaim, certify_filter
from certifit.checkers.fitted import fitted_rows, numbers
from certifit.core import Certificate, Check
from certifit.core.scoring import find_scorer, fit_copy, is_classifier, score_fitted
from certifit.exceptions import DataError
from certifit.rows import Array, Matrix, encode_labels
from certifit.rows.checks import Target
from certifit.rows.folds import make_folds


def _asked_columns(asked: Any, d: int) -> int:
    """Return a number of columns that is given as such or as a share of all d columns, rounded up."""
    return int(asked) if isinstance(asked, Integral) else int(np.ceil(float(asked) * d))


# --------------------------------------------------------------------------------------------------------- filters
def audit_filter(model: Any, X: Any, y: Any, sample_weight: Any, tol: float) -> Certificate:
    """Check a SelectFeatures, or a selector of scikit-learn such as SelectKBest with a known score function."""
    own = isinstance(model.score_func, str)
    name = model.score_func if own else _score_name(model)
    # scikit-learn scores a constant column NaN and ranks it last: here its score is 0 and its p-value 1.
    scores = np.nan_to_num(np.asarray(model.scores_, dtype=np.float64), nan=0.0, posinf=np.inf)
    p = None if model.pvalues_ is None else np.nan_to_num(np.asarray(model.pvalues_, dtype=np.float64), nan=1.0)
    target = target_of(name)
    rows, k = fitted_rows(model, len(scores), X, y, sample_weight, target), 1
    if target == "classes":
        labels = encode_labels(rows)
        rows, k = labels.rows, len(labels.classes)
    wanted = None
    if own:
        least = -np.inf if model.threshold is None else model.threshold
        wanted = min(_asked_columns(model.k, len(scores)), int((scores > least).sum()))
    return certify_filter(FilterClaim(name, scores, p, model.get_support(), wanted), k, tol, rows)


def _score_name(model: Any) -> str:
    """Return our name for the score function of a scikit-learn selector, which may be scikit-learn's or ours."""
    names = {
        "f_classif": "anova",
        "f_regression": "correlation",
        "anova_f": "anova",
        "correlation_f": "correlation",
        "mutual_information": "information",
        "jeffreys": "jeffreys",
        "chi2": "chi2",
    }
    name = names.get(getattr(model.score_func, "__name__", ""))
    if name is None:
        raise DataError(
            got=f"a {type(model).__name__} with score_func={model.score_func!r}",
            wanted=f"a score function among {', '.join(names)}",
        )
    return name


# -------------------------------------------------------------------------------------------------------- searches
def audit_sequential(model: Any, X: Any, y: Any, sample_weight: Any, tol: float) -> Certificate:
    """Check every choice of a SequentialSelector, and score a sample of its steps again."""
    d, forward = len(model.support_), model.direction == "forward"
    automatic = isinstance(model.n_features_to_select, str)  # 'auto': go on while a step gains `tol`
    kept = (d if forward else 1) if automatic else _asked_columns(model.n_features_to_select, d)
    path = greedy.GreedyPath(
        model.candidate_scores_,
        model.path_["column"],
        model.path_["score"],
        model.support_,
        forward,
        kept if forward else d - kept,
        model.start_score_,
        float(model.tol) if automatic else None,
    )
    trial = _Refit.of(model, X, y, sample_weight)
    return greedy.certify_greedy(path, tol, greedy.rescore(path, trial.mean_score))


def audit_elimination(model: Any, X: Any, y: Any, sample_weight: Any, tol: float) -> Certificate:
    """Check every step of a RecursiveElimination, and fit a sample of them again."""
    found = greedy.EliminationSteps(model.importances_, model.ranking_, model.support_, int(model.n_features_wanted_))
    trial = _Refit.of(model, X, y, sample_weight)
    again = greedy.refit(found, trial.importances)
    return greedy.certify_elimination(found, -trial.mean_score(model.support_), tol, again)


@dataclass(frozen=True)
class _Refit:
    """The rows and the estimator of a search, to fit sets of columns again, each with new folds and new fits."""

    X: Matrix  # (n, d)
    y: Array | None  # (n,)
    w: Array  # (n,)
    model: Any
    scorer: Callable[..., float]

    @classmethod
    def of(cls, model: Any, X: Any, y: Any, sample_weight: Any) -> _Refit:
        data = model._rows(X, y, sample_weight, target=model.target).load()
        return cls(data.X, data.y, data.w, model, find_scorer(model.estimator, model.scoring))

    def _cut(self, columns: Array, rows: Any) -> tuple[Matrix, Array | None, Array | None]:
        """Return these columns (a mask) of these rows with a positive weight, with targets and weights."""
        rows = np.arange(len(self.w))[rows]
        rows = rows[self.w[rows] > 0]
        weights = self.w[rows] if (self.w != 1).any() else None
        return self.X[rows][:, columns], None if self.y is None else self.y[rows], weights

    def _fit(self, columns: Array, rows: Any) -> Any:
        return fit_copy(self.model.estimator, *self._cut(columns, rows))

    def mean_score(self, columns: Array) -> float:
        """Return the mean score over the folds; cv=None fits and scores on all rows."""
        cv, every = self.model.cv, slice(None)
        if cv is None:
            return score_fitted(self.scorer, self._fit(columns, every), *self._cut(columns, every))
        folds = make_folds(cv, self.X, self.y, classes=is_classifier(self.model.estimator))
        scores = [
            score_fitted(self.scorer, self._fit(columns, train), *self._cut(columns, test)) for train, test in folds
        ]
        return float(np.mean(scores))

    def importances(self, columns: Array) -> Array:
        """Return how much each of these columns matters to a fit on all rows: the sum of its squared coefficients."""
        fitted, getter = self._fit(columns, slice(None)), self.model.importance_getter
        if callable(getter):
            found = getter(fitted)
        elif getter != "auto":
            found = attrgetter(getter)(fitted)
        else:
            found = fitted.coef_ if getattr(fitted, "coef_", None) is not None else fitted.feature_importances_
        found = np.asarray(found.toarray() if hasattr(found, "toarray") else found, dtype=np.float64)
        return np.asarray((found.reshape(-1, found.shape[-1]) ** 2).sum(axis=0))


# -------------------------------------------------------------------------------------------------------- L1 paths
def audit_l1(model: Any, X: Any, y: Any, sample_weight: Any, tol: float) -> Certificate:
    """Check the gap at every strength of an L1Selector, and the columns that it calls 0 there."""
    target: Target = "numbers" if model.loss == "squared" else "classes"
    rows = fitted_rows(model, len(model.support_), X, y, sample_weight, target)
    if target == "classes":
        rows = encode_labels(rows, model.classes_).rows
    k = len(model.classes_) if target == "classes" and len(model.classes_) > 2 else 1
    coef, intercept = numbers(model, "coef_path_"), numbers(model, "intercept_path_")
    columns = {name: np.asarray(values, dtype=np.float64) for name, values in model.path_.items()}
    m, d = len(coef), rows.n_features
    if coef.shape != (m, k, d) or intercept.shape != (m, k) or np.shape(model.proved_path_) != (m, d):
        raise DataError(
            got=f"a path of {coef.shape} coefficients and {intercept.shape} intercepts for {k} scores of {d} columns",
            wanted="as many fits of as many scores in every part of the path",
        )
    if any(np.shape(values) != (m,) for values in columns.values()):
        raise DataError(got="a path_ whose columns have unequal lengths", wanted=f"{m} numbers in each")
    problem = screening.screening_problem(model.loss, bool(model.fit_intercept), rows)
    alphas = l1_choice.strengths_again(model, problem, k, rows)
    screened = tuple(
        screening.screen(problem.at(float(alpha), float(model.l1_ratio)), beta, b, rows)
        for alpha, beta, b in zip(alphas, coef, intercept, strict=False)
    )
    if len(screened) < m:
        raise DataError(got=f"{m} fits for {len(alphas)} strengths", wanted="at most one fit for each strength")
    path = l1_choice.StatedPath(columns, coef, np.asarray(model.proved_path_, dtype=bool), screened)
    if model.criterion == "cv":  # the fits on the folds are made anew
        criterion, error = model.held_out(rows, alphas[:m])
    else:
        criterion, error = l1_choice.information_again(model, path, problem.weight), np.zeros(m)
    chosen = l1_choice.chosen_strength(path)
    used = path.nonzero[chosen]
    claim = screening.PathClaim(chosen, path.proved, np.asarray(model.support_), used, len(alphas) - m)
    checks = (*l1_choice.path_checks(path, alphas, criterion, error), *_chosen_fit(model, path, chosen))
    return screening.certify_path(screened, claim, tol, rows.n_rows, checks)


def _chosen_fit(model: Any, path: l1_choice.StatedPath, chosen: int) -> tuple[Check, ...]:
    """Checks that what a selector says of its chosen fit is what the path says of it."""
    d = path.coef.shape[2]
    names = getattr(model, "feature_names_in_", np.array([f"x{j}" for j in range(d)], object))
    proved, zero = path.proved[chosen], ~path.nonzero[chosen]
    parts = {
        "coef_": np.array_equal(np.asarray(model.coef_), path.coef[chosen]),
        "intercept_": np.array_equal(np.asarray(model.intercept_), numbers(model, "intercept_path_")[chosen]),
        "proved_zero_": list(model.proved_zero_) == list(names[proved]),
        "undecided_": list(model.undecided_) == list(names[zero & ~proved]),
    }
    off = abs(float(model.alpha_) - float(path.columns["alpha"][chosen]))
    return (
        Check("alpha_ is off the strength that the criterion chooses by", off, 0.0),
        *(
            Check(f"{name} is not that of the chosen fit (1: yes)", float(not same), 0.0)
            for name, same in parts.items()
        ),
    )
