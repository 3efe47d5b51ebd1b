"""Sets of columns fitted and scored again, each with new folds and new fits, as a search must have done."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from certifit.checkers.feature_selection import greedy
from certifit.checkers.fitted import fitted_rows
from certifit.core.scoring import find_scorer, fit_copy, is_classifier, score_fitted
from certifit.exceptions import DataError
from certifit.rows import Array, Matrix
from certifit.rows.checks import TableTerms
from certifit.rows.folds import make_folds


def counts_like_sklearn(model: Any) -> bool:
    """Whether a search counts and stops by scikit-learn's rules, under its name."""
    return type(model).__name__ in ("RFE", "RFECV", "SequentialFeatureSelector")


class EliminatedFolds(NamedTuple):
    """Eliminations on the training rows of every fold, made again, for each of m numbers of columns."""

    n_features: Array  # (m,)
    mean: Array  # (m,) score
    error: Array  # (m,) its standard error
    folds: Array  # (folds, m) scores
    kept: Array  # (folds, m, d) bool


@dataclass(frozen=True)
class SearchRefit:
    """The rows and the estimator of a search, to fit sets of columns again, each with new folds and new fits."""

    X: Matrix  # (n, d)
    y: Array | None  # (n,)
    w: Array  # (n,)
    model: Any
    scorer: Callable[..., float]

    @classmethod
    def of(cls, model: Any, X: Any, y: Any, sample_weight: Any) -> SearchRefit:
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

    def folds(self) -> list[tuple[Any, Any]]:
        """Return rows to fit and rows to score for each fold; cv=None fits and scores on all rows."""
        cv = getattr(self.model, "cv", None)
        if cv is None and type(self.model).__name__ in ("RFECV", "SequentialFeatureSelector"):
            cv = 5
        if cv is None:
            return [(slice(None), slice(None))]
        return [*make_folds(cv, self.X, self.y, classes=is_classifier(self.model.estimator))]

    def scores(self, columns: Array) -> Array:
        """Return the score of each fold with these columns."""
        return np.array([self._score(self._fit(columns, train), columns, test) for train, test in self.folds()])

    def _score(self, fitted: Any, columns: Array, rows: Any) -> float:
        return score_fitted(self.scorer, fitted, *self._cut(columns, rows))

    def loss(self, columns: Array) -> float:
        """Return minus the mean score with these columns, NaN where the estimator has no score."""
        return -float(self.scores(columns).mean()) if hasattr(self.model.estimator, "score") else float("nan")

    def kept_estimator(self, columns: Array) -> tuple[tuple[str, Array, Array], ...]:
        """Return what the estimator that a selector keeps says of its rows, beside a new fit on the same columns."""
        again, kept, X = self._fit(columns, slice(None)), self.model.estimator_, self._cut(columns, slice(None))[0]
        if getattr(kept, "n_features_in_", X.shape[1]) != X.shape[1]:
            raise DataError(
                got=f"estimator_ of {kept.n_features_in_} columns",
                wanted=f"one fitted to the {X.shape[1]} columns kept",
            )
        pairs = [("importances of estimator_", self._importances(kept), self._importances(again))]
        for name in ("classes_", "predict", "decision_function", "predict_proba"):
            if hasattr(again, name):
                stated, found = (_said(model, name, X) for model in (kept, again))
                words = [answers.dtype.kind not in "biuf" for answers in (stated, found)]  # labels may be
                if words[0] != words[1] or stated.shape != found.shape:
                    stated, found = np.ones(found.shape), np.zeros(found.shape)
                elif words[1]:
                    stated, found = (stated != found).astype(float), np.zeros(found.shape)
                pairs.append((f"{name} of estimator_", stated.reshape(1, -1), found.reshape(1, -1)))
        return tuple(pairs)

    def eliminated_scores(self, step: int) -> EliminatedFolds:
        """Return numbers of columns, mean scores and standard errors, each fold eliminating on its training rows."""
        d, found, kept = self.X.shape[1], [], []
        least = min(d, int(getattr(self.model, "min_features_to_select", 1)))
        side = 1 if counts_like_sklearn(self.model) else -1  # of equals the first leave, or the last
        for train, test in self.folds():
            left, row, masks = np.arange(d), [], []
            while True:
                mask = np.isin(np.arange(d), left)
                fitted = self._fit(mask, train)
                row.append((len(left), self._score(fitted, mask, test)))
                masks.append(mask)
                if len(left) <= least:
                    break
                order = sorted(zip(self._importances(fitted), side * left, strict=True))
                gone = [side * j for _, j in order[: min(step, len(left) - least)]]
                left = np.setdiff1d(left, gone)
            found.append(row)
            kept.append(masks)
        table = np.array(found)
        errors = np.array([greedy.standard_error(column) for column in table[:, :, 1].T])
        return EliminatedFolds(table[0, :, 0], table[:, :, 1].mean(axis=0), errors, table[:, :, 1], np.array(kept))

    def importances(self, columns: Array) -> Array:
        """Return how much each of these columns matters to a fit on all rows."""
        return self._importances(self._fit(columns, slice(None)))

    def _importances(self, fitted: Any) -> Array:
        """Return the sum of squared coefficients of each column, or what the setting names in their place."""
        getter = self.model.importance_getter
        if callable(getter):
            found = getter(fitted)
        elif getter != "auto":
            found = attrgetter(getter)(fitted)
        else:
            found = fitted.coef_ if getattr(fitted, "coef_", None) is not None else fitted.feature_importances_
        found = np.asarray(found.toarray() if hasattr(found, "toarray") else found, dtype=np.float64)
        return np.asarray((found.reshape(-1, found.shape[-1]) ** 2).sum(axis=0))


def _said(model: Any, name: str, X: Matrix) -> Array:
    """What an estimator answers to rows, or has as an attribute."""
    found = getattr(model, name)
    return np.asarray(found(X) if callable(found) else found)


def refit_theirs(model: Any, X: Any, y: Any, sample_weight: Any) -> SearchRefit:
    """The rows and the estimator of a search of scikit-learn, which keeps nothing of its steps."""
    terms = TableTerms("none", missing=True)
    data = fitted_rows(None, int(model.n_features_in_), X, None, sample_weight, terms).load()
    scored = hasattr(model.estimator, "score") or getattr(model, "scoring", None) is not None
    scorer = find_scorer(model.estimator, getattr(model, "scoring", None)) if scored else _no_score
    return SearchRefit(data.X, None if y is None else np.asarray(y), data.w, model, scorer)


def _no_score(*_: Any) -> float:
    return float("nan")
