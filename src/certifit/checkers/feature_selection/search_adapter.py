"""The adapter of searches, ours or scikit-learn's: sequential selection and recursive elimination, step by step."""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral
from typing import Any

import numpy as np

from certifit.checkers.feature_selection import greedy
from certifit.checkers.feature_selection.fitted_selector import asked_columns, shaped, support_of
from certifit.checkers.feature_selection.search_refit import (
    EliminatedFolds,
    SearchRefit,
    counts_like_sklearn,
    refit_theirs,
)
from certifit.core import Certificate, Check
from certifit.exceptions import DataError
from certifit.rows import Array


def audit_sequential(model: Any, X: Any, y: Any, sample_weight: Any, tol: float) -> Certificate:
    """Check every choice of a SequentialSelector, scoring every candidate of every step again."""
    if not hasattr(model, "candidate_scores_"):
        return _search_again(model, X, y, sample_weight, tol)
    support, forward = support_of(model), model.direction == "forward"
    d = len(support)
    asked, least = _greedy_terms(model, d)
    taken = shaped(model, "path_['column']", model.path_["column"], (None,))
    if taken.dtype.kind not in "iu" or ((taken < 0) | (taken >= d)).any():
        raise DataError(got=f"path_['column'] {taken}", wanted=f"numbers of columns, from 0 to {d - 1}")
    reached, errors = (
        shaped(model, f"path_[{name!r}]", model.path_[name], (len(taken),)) for name in ("score", "error")
    )
    scores = shaped(model, "candidate_scores_", model.candidate_scores_, (None, d))
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
    trial = SearchRefit.of(model, X, y, sample_weight)
    again = greedy.rescore(path, errors, trial.scores, from_start=not counts_like_sklearn(model))
    return greedy.certify_greedy(path, tol, again)


def _greedy_terms(model: Any, d: int) -> tuple[int, float | None]:
    """The number of steps that the settings of a sequential search ask for, and the gain that each must bring."""
    asked, forward = model.n_features_to_select, model.direction == "forward"
    automatic = isinstance(asked, str)  # 'auto': go on while a step gains `tol`
    if not counts_like_sklearn(model):
        kept = (d if forward else 1) if automatic else asked_columns(asked, d, "n_features_to_select")
        return kept if forward else d - kept, float(model.tol) if automatic else None
    if automatic and model.tol is not None:
        return d - 1, float(model.tol)
    kept = d // 2 if automatic else int(asked) if isinstance(asked, Integral) else int(d * float(asked))
    return kept if forward else d - kept, None


def audit_elimination(model: Any, X: Any, y: Any, sample_weight: Any, tol: float) -> Certificate:
    """Check every step of a RecursiveElimination, fitting each again, and the cross-validated number of columns."""
    if not hasattr(model, "importances_"):
        return _eliminate_again(model, X, y, sample_weight, tol)
    support, getter = support_of(model), model.step
    d = len(support)
    step = int(getter) if isinstance(getter, Integral) else max(1, int(float(getter) * d))
    by_folds = _chosen_by_folds(model)
    names = ("n_features", "score", "error")
    path = [shaped(model, f"path_[{name!r}]", model.path_[name], (None,)) for name in names]
    if len({len(column) for column in path}) > 1 or bool(len(path[0])) != by_folds:
        raise DataError(
            got=f"a path_ of {', '.join(str(len(column)) for column in path)} numbers",
            wanted="as many scores and errors as numbers of columns tried by `cv`, and none without",
        )
    wanted = _wanted_by_settings(model, d) if not by_folds else int(path[0][path[1] == path[1].max()].min())
    found = greedy.EliminationSteps(
        shaped(model, "importances_", model.importances_, (None, d)),
        shaped(model, "ranking_", model.ranking_, (d,)),
        support,
        wanted,
        step,
    )
    trial = SearchRefit.of(model, X, y, sample_weight)
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
    if counts_like_sklearn(model):
        return type(model).__name__ == "RFECV"
    return isinstance(model.n_features_to_select, str) and model.cv is not None


def _fold_tables(model: Any, tried: EliminatedFolds) -> tuple[tuple[str, Array, Array], ...]:
    """What an RFECV states of its folds beside what they are when eliminated again."""
    shape = tried.kept.shape
    scores = shaped(model, "fold_scores_", model.fold_scores_, shape[:2])
    support = shaped(model, "fold_support_", model.fold_support_, shape)
    if support.dtype != bool:
        raise DataError(got=f"fold_support_ of type {support.dtype}", wanted="True or False")
    return (
        ("scores of the folds", scores, tried.folds),
        ("columns of the folds", support.reshape(-1, shape[2]), tried.kept.reshape(-1, shape[2])),
    )


def _wanted_by_settings(model: Any, d: int) -> int:
    if counts_like_sklearn(model):
        asked = model.n_features_to_select
        if asked is None:
            return d // 2
        return min(int(asked), d) if isinstance(asked, Integral) else max(1, int(d * float(asked)))
    asked = 0.5 if isinstance(model.n_features_to_select, str) else model.n_features_to_select
    return asked_columns(asked, d, "n_features_to_select")


MADE_AGAIN = {"steps": "made again, with new fits: the model keeps nothing of them"}


def _eliminate_again(model: Any, X: Any, y: Any, sample_weight: Any, tol: float) -> Certificate:
    """Check scikit-learn's RFE or RFECV: columns that left mattered no more than those that stayed, at every step."""
    trial = refit_theirs(model, X, y, sample_weight)
    support, ranking = support_of(model), shaped(model, "ranking_", model.ranking_, (int(model.n_features_in_),))
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
    trial, support = refit_theirs(model, X, y, sample_weight), support_of(model)
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
