"""Copies of an estimator, fitted to one side of each split, and what they answer for the rows of the other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import has_fit_parameter

from certifit.checkers.model_selection.splits import Split
from certifit.core.config import carrying_choice, config
from certifit.exceptions import DataError
from certifit.rows import Array


@dataclass(frozen=True)
class UnseenAnswers:
    """What a model answers for rows that it was not fitted to."""

    test: Array  # (m,) their numbers
    n_fitted: int  # different rows that the model was fitted to
    answers: Mapping[str, Array]  # by method, a row of answers for each


@dataclass(frozen=True)
class AnswersOfFold(Mapping[str, Array]):
    """The answers for a fold's rows, taken when they are asked for out of the answers for all rows."""

    all_rows: Mapping[str, Array]  # by method, for every row by the model that left out its fold
    fold: Array  # (m,) numbers of the fold's rows

    def __getitem__(self, method: str) -> Array:
        return self.all_rows[method].take(self.fold, axis=0)

    def __iter__(self) -> Iterator[str]:
        return iter(self.all_rows)

    def __len__(self) -> int:
        return len(self.all_rows)

    def __contains__(self, method: object) -> bool:
        return method in self.all_rows


@dataclass(frozen=True)
class AssessedProblem:
    """An estimator, a table and its target."""

    estimator: Any
    X: Any
    y: Array  # (n,)
    classes: Array | None  # (k,) of a classifier, ascending; None for a regressor
    groups: Array | None = None  # (n,)
    n_jobs: int | None = None
    weights: Array | None = None  # (n,) how much each row counts
    reconstructs: bool = False  # whether rows are encoded and decoded: there is no target then, and y is 0

    @cached_property
    def codes(self) -> Array:
        """Return the number of each row's class (n,)."""
        assert self.classes is not None
        if len(self.classes) == 2:
            return (self.y == self.classes[1]).astype(np.intp)
        return np.searchsorted(self.classes, self.y)

    def hold_out(self, splits: Sequence[Split]) -> list[UnseenAnswers]:
        """Fit a copy for every split, and keep what it answers for the rows left out."""
        if len(splits) == 1:
            return [_fit_and_answer(self, splits[0], 0, 1)]
        fit = carrying_choice(_fit_and_answer)
        jobs = (delayed(fit)(self, split, i, len(splits)) for i, split in enumerate(splits))
        return [*Parallel(n_jobs=self.n_jobs)(jobs)]

    def hold_out_one(self, split: Split, number: int, of: int) -> UnseenAnswers:
        """Fit a copy for one split, whose number among all is for errors, and keep its answers."""
        return _fit_and_answer(self, split, number, of)

    def fit(self, rows: Array | None = None) -> Any:
        """Fit a copy to some of the rows, or to all, with their weights."""
        X, y = (self.X, self.y) if rows is None else (take_rows(self.X, rows), self.y[rows])
        if self.reconstructs:
            return clone(self.estimator).fit(X)
        if self.weights is None:
            return clone(self.estimator).fit(X, y)
        weights = self.weights if rows is None else self.weights[rows]
        return clone(self.estimator).fit(X, y, **{weight_name(self.estimator): weights})

    def among(self, rows: Array) -> AssessedProblem:
        """Return the problem of some of the rows."""
        groups = None if self.groups is None else self.groups[rows]
        weights = None if self.weights is None else self.weights[rows]
        return replace(self, X=take_rows(self.X, rows), y=self.y[rows], groups=groups, weights=weights)

    def mean(self, scores: Array, rows: Array) -> float:
        """Return the mean of the scores of rows (m,), each by its weight."""
        return float(np.mean(scores) if self.weights is None else np.average(scores, weights=self.weights[rows]))

    def weighed(self, scores: Array, rows: Array) -> Array:
        """Return scores of rows (m,) whose plain mean is the weighted one, and whose spread is that of its error."""
        if self.weights is None:
            return scores
        w, mean = self.weights[rows], self.mean(scores, rows)
        return mean + w / w.mean() * (scores - mean)

    def answers_of(self, fitted: Any, rows: Array) -> dict[str, Array]:
        """Return what a fitted model answers for rows, by method; columns of classes are those of all classes."""
        X = take_rows(self.X, rows)
        if self.reconstructs:
            errors = np.asarray(X) - np.asarray(fitted.inverse_transform(fitted.transform(X)))
            return {"reconstruction_error": (errors**2).sum(axis=1)}
        said = np.asarray(fitted.predict(X))
        found = {"predict": said.ravel() if said.shape == (len(rows), 1) else said}
        if found["predict"].ndim != 1:
            raise ValueError(f"predictions of shape {said.shape} for {len(rows)} rows, one each is wanted")
        if self.classes is not None:
            for method in ("predict_proba", "decision_function"):
                if hasattr(fitted, method):
                    found[method] = _align(np.asarray(getattr(fitted, method)(X)), fitted, self.classes, method)
        for method, values in found.items():
            if len(values) != len(rows):
                raise ValueError(f"{method} gives {len(values)} answers for {len(rows)} rows")
        return found


def _fit_and_answer(problem: AssessedProblem, split: Split, number: int, of: int) -> UnseenAnswers:
    train, test = split
    try:
        with config(certify="audit"):  # its answers are kept, not the model
            fitted = problem.fit(train)
        answers = problem.answers_of(fitted, test)
    except Exception as error:
        kinds = "" if problem.classes is None else f" of {len(np.unique(problem.y[train]))} classes"
        raise DataError(
            got=f"{type(problem.estimator).__name__} that fails on split {number + 1} of {of}, fitted to "
            f"{len(train)} rows{kinds} ({type(error).__name__}: {error})",
            wanted="an estimator that can be fitted to every split, and answers every row",
            fix="Fewer or larger folds, or method='holdout', leave more rows of each kind to fit.",
        ) from error
    return UnseenAnswers(test, int(np.count_nonzero(np.bincount(train))), answers)


def weight_name(estimator: Any) -> str:
    """Return the name of the argument of `fit` that takes weights; of a pipeline, of its last step."""
    if isinstance(estimator, Pipeline):
        name, last = estimator.steps[-1]
        if not isinstance(last, Pipeline) and has_fit_parameter(last, "sample_weight"):
            return f"{name}__sample_weight"
    elif has_fit_parameter(estimator, "sample_weight"):
        return "sample_weight"
    raise DataError(
        got=f"sample_weight for a {type(estimator).__name__}",
        wanted="an estimator whose fit takes sample_weight",
        fix="Leave the weights out, or choose another estimator.",
    )


def _align(values: Array, fitted: Any, classes: Array, method: str) -> Array:
    """Return answers with a column for each class, also for those that were not among the fitted rows."""
    known = np.asarray(getattr(fitted, "classes_", classes))
    if len(known) == len(classes) or values.ndim == 1 or values.shape[1] != len(known):
        return values
    absent = 0.0 if method == "predict_proba" else float(values.min()) - 1.0
    full = np.full((len(values), len(classes)), absent)
    full[:, np.searchsorted(classes, known)] = values
    return full


def with_rows(X: Any) -> Any:
    """Return a table as something of which rows can be taken: sparse ones of formats without rows change theirs."""
    if sparse.issparse(X) and X.format not in ("csr", "csc"):
        return X.tocsr()
    return X if hasattr(X, "shape") or isinstance(X, list | tuple) else np.asarray(X)


def take_rows(X: Any, rows: Array) -> Any:
    """Return rows of an array, a sparse matrix, a data frame, an Arrow table or a list, as what it is.

    >>> take_rows(["a", "b", "c"], np.array([2, 0]))
    ['c', 'a']
    """
    if hasattr(X, "iloc"):
        return X.iloc[rows]
    if isinstance(X, list | tuple):
        return [X[i] for i in rows]
    if hasattr(X, "column_names"):  # Arrow's own
        return X.take(rows)
    return X[rows]
