"""The adapter of fitted selectors, ours or scikit-learn's: it reads their attributes and hands them to the checkers.

The number of columns or steps that the settings ask for is worked out here again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from numbers import Integral, Real
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from certifit.checkers.feature_selection import greedy, l1_choice, screening
from certifit.checkers.feature_selection.scores import plain_variances, target_of
from certifit.checkers.feature_selection.univariate import (
    FilterClaim,
    certify_filter,
    certify_function,
    certify_variances,
)
from certifit.checkers.fitted import fitted_rows, numbers
from certifit.core import Certificate, Check, Estimator
from certifit.core.scoring import find_scorer, fit_copy, is_classifier, score_fitted
from certifit.exceptions import DataError
from certifit.rows import Array, Matrix, Rows, encode_labels
from certifit.rows.checks import TableTerms, Target
from certifit.rows.folds import make_folds


def _asked_columns(asked: Any, d: int, name: str) -> int:
    """Return a number of columns that is given as such or as a share of all d columns, rounded up."""
    whole = isinstance(asked, Integral) and not isinstance(asked, bool)
    if not (whole and 1 <= int(asked) <= d) and not (isinstance(asked, Real) and not whole and 0 < float(asked) <= 1):
        raise DataError(
            got=f"{name}={asked!r} for {d} columns",
            wanted=f"a whole number from 1 to {d}, or a share above 0 and at most 1.0",
        )
    return int(asked) if whole else int(np.ceil(float(asked) * d))


def _support(model: Any) -> Array:
    """The columns kept (d,), as the mask that it must be."""
    support = np.asarray(model.support_)
    if support.dtype != bool or support.shape != (model.n_features_in_,):
        raise DataError(
            got=f"support_ of shape {support.shape} and type {support.dtype}",
            wanted=f"True or False for each of {model.n_features_in_} columns",
        )
    return support


def _shaped(model: Any, name: str, values: Any, shape: tuple[int | None, ...]) -> Array:
    """A fitted array of this shape (None: any length), refused otherwise."""
    found = np.asarray(values)
    fits = found.ndim == len(shape) and all(n in (None, m) for n, m in zip(shape, found.shape, strict=True))
    if not fits or found.dtype.kind not in "iufb":
        raise DataError(
            got=f"{name} of shape {found.shape} and type {found.dtype} in a fitted {type(model).__name__}",
            wanted=f"numbers of shape ({', '.join('…' if n is None else str(n) for n in shape)})",
        )
    return found


# --------------------------------------------------------------------------------------------------------- filters
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
        _shaped(model, "scores_", model.scores_, numbers_of_columns)
        if (model.pvalues_ is None) != (name in WITHOUT_PVALUES):
            raise DataError(got=f"pvalues_={model.pvalues_!r} of {name} scores", wanted="those that its fit left")
        if model.pvalues_ is not None:
            _shaped(model, "pvalues_", model.pvalues_, numbers_of_columns)
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
        wanted = min(_asked_columns(model.k, len(scores), "k"), int((scores > least).sum()))
        claim = FilterClaim(name, scores, p, _support(model), wanted)
    else:
        claim = FilterClaim(name, scores, p, model.get_support(), _count_kept(model, scores, p), False)
    return certify_filter(claim, k, tol, rows)


def _audit_own_filter(model: Any, X: Any, y: Any, sample_weight: Any, tol: float) -> Certificate:
    """Check a filter of ours under scikit-learn's name: scores from the data, and columns from these by its rule."""
    d = int(model.n_features_in_)
    scores = _shaped(model, "scores_", model.scores_, (d,))
    p = None if model.pvalues_ is None else _shaped(model, "pvalues_", model.pvalues_, (d,))
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


# -------------------------------------------------------------------------------------------------------- searches
def audit_sequential(model: Any, X: Any, y: Any, sample_weight: Any, tol: float) -> Certificate:
    """Check every choice of a SequentialSelector, scoring every candidate of every step again."""
    if not hasattr(model, "candidate_scores_"):
        return _search_again(model, X, y, sample_weight, tol)
    support, forward = _support(model), model.direction == "forward"
    d = len(support)
    asked, least = _greedy_terms(model, d)
    taken = _shaped(model, "path_['column']", model.path_["column"], (None,))
    if taken.dtype.kind not in "iu" or ((taken < 0) | (taken >= d)).any():
        raise DataError(got=f"path_['column'] {taken}", wanted=f"numbers of columns, from 0 to {d - 1}")
    reached, errors = (
        _shaped(model, f"path_[{name!r}]", model.path_[name], (len(taken),)) for name in ("score", "error")
    )
    scores = _shaped(model, "candidate_scores_", model.candidate_scores_, (None, d))
    if not len(taken) <= len(scores) <= len(taken) + 1:
        raise DataError(
            got=f"candidate_scores_ of {len(scores)} steps and a path_ of {len(taken)}",
            wanted="as many, or one more for a step that was looked at and not taken",
        )
    path = greedy.GreedyPath(
        scores,
        taken,
        reached,
        support,
        forward,
        asked,
        float(model.start_score_),
        least,
    )
    trial = _Refit.of(model, X, y, sample_weight)
    again = greedy.rescore(path, errors, trial.scores, from_start=not _like_sklearn(model))
    return greedy.certify_greedy(path, tol, again)


def _like_sklearn(model: Any) -> bool:
    """Whether a search counts and stops by scikit-learn's rules, under its name."""
    return type(model).__name__ in ("RFE", "RFECV", "SequentialFeatureSelector")


def _greedy_terms(model: Any, d: int) -> tuple[int, float | None]:
    """The number of steps that the settings of a sequential search ask for, and the gain that each must bring."""
    asked, forward = model.n_features_to_select, model.direction == "forward"
    automatic = isinstance(asked, str)  # 'auto': go on while a step gains `tol`
    if not _like_sklearn(model):
        kept = (d if forward else 1) if automatic else _asked_columns(asked, d, "n_features_to_select")
        return kept if forward else d - kept, float(model.tol) if automatic else None
    if automatic and model.tol is not None:
        return d - 1, float(model.tol)
    kept = d // 2 if automatic else int(asked) if isinstance(asked, Integral) else int(d * float(asked))
    return kept if forward else d - kept, None


def audit_elimination(model: Any, X: Any, y: Any, sample_weight: Any, tol: float) -> Certificate:
    """Check every step of a RecursiveElimination, fitting each again, and the cross-validated number of columns."""
    if not hasattr(model, "importances_"):
        return _eliminate_again(model, X, y, sample_weight, tol)
    support, getter = _support(model), model.step
    d = len(support)
    step = int(getter) if isinstance(getter, Integral) else max(1, int(float(getter) * d))
    by_folds = _chosen_by_folds(model)
    names = ("n_features", "score", "error")
    path = [_shaped(model, f"path_[{name!r}]", model.path_[name], (None,)) for name in names]
    if len({len(column) for column in path}) > 1 or bool(len(path[0])) != by_folds:
        raise DataError(
            got=f"a path_ of {', '.join(str(len(column)) for column in path)} numbers",
            wanted="as many scores and errors as numbers of columns tried by `cv`, and none without",
        )
    wanted = _wanted_by_settings(model, d) if not by_folds else int(path[0][path[1] == path[1].max()].min())
    found = greedy.EliminationSteps(
        _shaped(model, "importances_", model.importances_, (None, d)),
        _shaped(model, "ranking_", model.ranking_, (d,)),
        support,
        wanted,
        step,
    )
    trial = _Refit.of(model, X, y, sample_weight)
    again = greedy.refit(found, trial.importances)
    if by_folds and (again.pairs or not len(found.importances)):
        tried = trial.eliminated_scores(step)
        beside = tuple((f"cross-validated {names[i]}", path[i], tried[i]) for i in range(3))
        if hasattr(model, "fold_scores_"):
            beside = (*beside, *_fold_tables(model, tried))
        again = greedy.Recomputed((*again.pairs, *beside))
    if hasattr(model, "estimator_") and (again.pairs or not len(found.importances)):
        again = greedy.Recomputed((*again.pairs, *trial.kept_estimator(support)))
    certificate = greedy.certify_elimination(found, trial.loss(support), tol, again)
    told = abs(float(model.n_features_wanted_) - wanted)
    return replace(certificate, checks=(*certificate.checks, Check("n_features_wanted_ off by", told, 0.0)))


def _chosen_by_folds(model: Any) -> bool:
    """Whether cross-validation chooses the number of columns."""
    if _like_sklearn(model):
        return type(model).__name__ == "RFECV"
    return isinstance(model.n_features_to_select, str) and model.cv is not None


def _fold_tables(model: Any, tried: EliminatedFolds) -> tuple[tuple[str, Array, Array], ...]:
    """What an RFECV states of its folds beside what they are when eliminated again."""
    shape = tried.kept.shape
    scores = _shaped(model, "fold_scores_", model.fold_scores_, shape[:2])
    support = _shaped(model, "fold_support_", model.fold_support_, shape)
    if support.dtype != bool:
        raise DataError(got=f"fold_support_ of type {support.dtype}", wanted="True or False")
    return (
        ("scores of the folds", scores, tried.folds),
        ("columns of the folds", support.reshape(-1, shape[2]), tried.kept.reshape(-1, shape[2])),
    )


def _wanted_by_settings(model: Any, d: int) -> int:
    if _like_sklearn(model):
        asked = model.n_features_to_select
        if asked is None:
            return d // 2
        return min(int(asked), d) if isinstance(asked, Integral) else max(1, int(d * float(asked)))
    asked = 0.5 if isinstance(model.n_features_to_select, str) else model.n_features_to_select
    return _asked_columns(asked, d, "n_features_to_select")


class EliminatedFolds(NamedTuple):
    """Eliminations on the training rows of every fold, made again, for each of m numbers of columns."""

    n_features: Array  # (m,)
    mean: Array  # (m,) score
    error: Array  # (m,) its standard error
    folds: Array  # (folds, m) scores
    kept: Array  # (folds, m, d) bool


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
        for method in ("predict", "decision_function", "predict_proba"):
            if hasattr(again, method):
                stated, found = (np.asarray(getattr(model, method)(X)) for model in (kept, again))
                if found.dtype.kind not in "biuf":  # labels that are words
                    stated, found = (stated != found).astype(float), np.zeros(found.shape)
                pairs.append((f"{method} of estimator_", stated.reshape(1, -1), found.reshape(1, -1)))
        return tuple(pairs)

    def eliminated_scores(self, step: int) -> EliminatedFolds:
        """Return numbers of columns, mean scores and standard errors, each fold eliminating on its training rows."""
        d, found, kept = self.X.shape[1], [], []
        least = min(d, int(getattr(self.model, "min_features_to_select", 1)))
        side = 1 if _like_sklearn(self.model) else -1  # of equals the first leave, or the last
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


# ------------------------------------------------------------------------------------ searches of scikit-learn
def _refit_theirs(model: Any, X: Any, y: Any, sample_weight: Any) -> _Refit:
    """The rows and the estimator of a search of scikit-learn, which keeps nothing of its steps."""
    terms = TableTerms("none", missing=True)
    data = fitted_rows(None, int(model.n_features_in_), X, None, sample_weight, terms).load()
    scored = hasattr(model.estimator, "score") or getattr(model, "scoring", None) is not None
    scorer = find_scorer(model.estimator, getattr(model, "scoring", None)) if scored else _no_score
    return _Refit(data.X, None if y is None else np.asarray(y), data.w, model, scorer)


def _no_score(*_: Any) -> float:
    return float("nan")


MADE_AGAIN = {"steps": "made again, with new fits: the model keeps nothing of them"}


def _eliminate_again(model: Any, X: Any, y: Any, sample_weight: Any, tol: float) -> Certificate:
    """Check scikit-learn's RFE or RFECV: columns that left mattered no more than those that stayed, at every step."""
    trial = _refit_theirs(model, X, y, sample_weight)
    support, ranking = _support(model), _shaped(model, "ranking_", model.ranking_, (int(model.n_features_in_),))
    d, wanted = len(support), int(support.sum())
    step = int(model.step) if isinstance(model.step, Integral) else max(1, int(float(model.step) * d))
    left, worst, odd = np.ones(d, bool), 0.0, int((support != (ranking == 1)).sum())
    while left.sum() > wanted:
        importance, here = trial.importances(left), np.flatnonzero(left)
        gone = ranking[here] == ranking[here].max()
        odd += int(gone.sum() != min(step, left.sum() - wanted))
        if gone.all():
            odd += 1
            break
        most = float(importance.max()) or 1.0
        worst = max(worst, float(importance[gone].max() - importance[~gone].min()) / most)
        left[here[gone]] = False
    if type(model).__name__ == "RFE":
        asked = _wanted_by_settings(model, d)
    else:
        tried = trial.eliminated_scores(step)
        asked = int(tried.n_features[tried.mean >= tried.mean.max() - tol * abs(tried.mean.max())].min())
    checks = [
        Check("a column that left mattered more than one that stayed, by a share of", worst, tol),
        Check("steps and ranks that do not go together", float(odd), 0.0),
        Check("number of columns kept is off by", float(abs(asked - wanted)), 0.0),
        *(
            Check(f"{words} differ by a share of", _relative(stated, again), tol)
            for words, stated, again in trial.kept_estimator(support)
        ),
    ]
    words = "every column left out was the least important of its step"
    return Certificate("greedy", words, trial.loss(support), tol=tol, checks=tuple(checks), facts=MADE_AGAIN)


def _relative(stated: Array, again: Array) -> float:
    """How far two arrays are apart, as a share of the second's size; infinite where their shapes differ."""
    if stated.shape != again.shape:
        return float("inf")
    off = float(np.abs(stated.astype(np.float64) - again.astype(np.float64)).max(initial=0.0))
    return off / (float(np.abs(again).max(initial=0.0)) or 1.0)


def _search_again(model: Any, X: Any, y: Any, sample_weight: Any, tol: float) -> Certificate:
    """Check scikit-learn's SequentialFeatureSelector: the same search keeps the same columns."""
    trial, support = _refit_theirs(model, X, y, sample_weight), _support(model)
    d, forward = len(support), model.direction == "forward"
    asked, auto = model.n_features_to_select, isinstance(model.n_features_to_select, str)
    gains = auto and model.tol is not None
    keep = d - 1 if gains else d // 2 if auto else int(asked) if isinstance(asked, Integral) else int(d * asked)
    mask, old = np.zeros(d, bool), -np.inf
    for _ in range(keep if gains or forward else d - keep):
        scores = {}
        for j in np.flatnonzero(~mask):
            tried = mask.copy()
            tried[j] = True
            scores[j] = float(trial.scores(tried if forward else ~tried).mean())
        best = max(scores, key=lambda j: scores[j])
        if gains and scores[best] - old < model.tol:
            break
        mask[best], old = True, scores[best]
    again = mask if forward else ~mask
    check = Check("columns that the same search keeps otherwise", float((again != support).sum()), 0.0)
    words = "every choice was the best of its candidates"
    return Certificate("greedy", words, trial.loss(support), tol=tol, checks=(check,), facts=MADE_AGAIN)


# -------------------------------------------------------------------------------------------------------- L1 paths
def audit_l1(model: Any, X: Any, y: Any, sample_weight: Any, tol: float) -> Certificate:
    """Check the gap at every strength of an L1Selector, the columns that it calls 0 there, and its choice."""
    target: Target = "numbers" if model.loss_ == "squared" else "classes"
    rows = fitted_rows(model, len(_support(model)), X, y, sample_weight, target)
    _check_loss(model, rows)
    if target == "classes":
        rows = encode_labels(rows, model.classes_).rows
    k = len(model.classes_) if target == "classes" and len(model.classes_) > 2 else 1
    coef, columns = _l1_path(model, k, rows.n_features)
    m = len(coef)
    problem = screening.screening_problem(model.loss_, bool(model.fit_intercept), rows)
    alphas = l1_choice.strengths_again(model, problem, k, rows)
    if len(alphas) < m:
        raise DataError(got=f"{m} fits for {len(alphas)} strengths", wanted="at most one fit for each strength")
    screened = tuple(
        screening.screen(problem.at(float(alpha), float(model.l1_ratio)), beta, b, rows)
        for alpha, beta, b in zip(alphas, coef, numbers(model, "intercept_path_"), strict=False)
    )
    path = l1_choice.StatedPath(columns, coef, np.asarray(model.proved_path_, dtype=bool), screened)
    further: tuple[Check, ...] = ()
    if model.criterion == "cv":
        data = rows.load()
        fits = _fold_fits(model, data.n_rows, coef.shape)
        held = l1_choice.held_out_again(model, fits, alphas[:m], data)
        criterion, error = held.criterion, held.error
        gap = l1_choice.fold_gap(held.gap, tol, data.n_rows)
        further = (gap, *l1_choice.fold_check(model, fits.roles, data))
    else:
        criterion, error = l1_choice.information_again(model, path, problem.weight), np.zeros(m)
    chosen = l1_choice.chosen_strength(path)
    used = path.nonzero[chosen]
    claim = screening.PathClaim(
        chosen, float(alphas[chosen]), path.proved, np.asarray(model.support_), used, len(alphas) - m
    )
    checks = (*further, *l1_choice.path_checks(path, alphas, criterion, error), *_chosen_fit(model, path, chosen))
    return screening.certify_path(screened, claim, tol, rows.n_rows, checks)


def _check_loss(model: Any, rows: Rows) -> None:
    """Refuse a fit for another kind of target than the setting, or y where that is 'auto', asks for."""
    asked = l1_choice.loss_for(rows) if model.loss == "auto" else model.loss
    if asked != model.loss_:
        raise DataError(
            got=f"an L1Selector {'with' if model.loss_ == 'logistic' else 'without'} classes_, as fits with the "
            f"{model.loss_} loss have them",
            wanted=f"the {asked} loss, for which its settings and this y ask",
            fix="Fit it again, on the data given here.",
        )


def _l1_path(model: Any, k: int, d: int) -> tuple[Array, dict[str, Array]]:
    """The coefficients (m, k, d) and the columns of `path_` (m,), in the shapes that belong together."""
    coef, intercept = numbers(model, "coef_path_"), numbers(model, "intercept_path_")
    m = len(np.atleast_1d(coef))
    if m == 0 or coef.shape != (m, k, d) or intercept.shape != (m, k) or np.shape(model.proved_path_) != (m, d):
        raise DataError(
            got=f"a path of {coef.shape} coefficients and {intercept.shape} intercepts for {k} scores of {d} columns",
            wanted="as many fits, at least one, of as many scores in every part of the path",
        )
    names = ("alpha", "nonzero", "proved_zero", "gap", "loss", "criterion", "error")
    if not isinstance(model.path_, Mapping) or set(model.path_) != {*names}:
        found = (
            f"the columns {', '.join(map(str, model.path_))}" if isinstance(model.path_, Mapping) else "no columns"
        )
        raise DataError(got=f"path_ with {found}", wanted=f"a dict with {', '.join(names)}")
    columns = {name: _shaped(model, f"path_[{name!r}]", model.path_[name], (m,)) for name in names}
    strange = [name for name in names if not np.isfinite(columns[name]).all()]
    if strange:
        raise DataError(got=f"path_[{strange[0]!r}] with NaN or infinity", wanted="finite numbers")
    return coef, {name: values.astype(np.float64) for name, values in columns.items()}


def _fold_fits(model: Any, n: int, shape: tuple[int, ...]) -> l1_choice.FoldFits:
    """The fits of the folds, in the shapes that belong together."""
    missing = [name for name in ("fold_roles_", "fold_coef_", "fold_intercept_") if not hasattr(model, name)]
    if missing:
        raise DataError(
            got=f"an L1Selector with criterion='cv' without {missing[0]}",
            wanted="the fits of the folds, by which the strength was chosen",
            fix="Fit it again.",
        )
    roles = _shaped(model, "fold_roles_", model.fold_roles_, (None, n))
    if (
        len(roles) < 2
        or roles.dtype.kind != "i"
        or not all({1, 2} <= {*role.tolist()} <= {0, 1, 2, 3} for role in roles)
    ):
        raise DataError(
            got="fold_roles_ that do not say what each row is to every fold",
            wanted="at least two rows of 0, 1 (fitted) and 2 (held out), with some of both",
        )
    coef = _shaped(model, "fold_coef_", numbers(model, "fold_coef_"), (len(roles), *shape))
    intercept = numbers(model, "fold_intercept_")
    return l1_choice.FoldFits(roles, coef, _shaped(model, "fold_intercept_", intercept, (len(roles), *shape[:2])))


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
