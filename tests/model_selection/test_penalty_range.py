"""Penalties proved good: against fits at many C, ranges that hold, and a checker that is not fooled."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

import certifit
from certifit import DataError, prove_penalty
from certifit.checkers.model_selection.penalty_range import FoldedTable, certify_penalty, score_ranges
from certifit.model_selection.assessment.held_out import AssessedProblem
from certifit.model_selection.assessment.without_refits.left_out_by_proof import (
    LeftOutTuning,
    margin_problem,
    minimum_of_all,
)

X, Y = load_breast_cancer(return_X_y=True)
X = ((X - X.mean(axis=0)) / X.std(axis=0))[::3, :4]
Y = Y[::3]
MODELS = [LogisticRegression(), LogisticRegression(fit_intercept=False), LinearSVC(), certifit.LogisticRegression()]


def folded(model, folds):
    known = margin_problem(AssessedProblem(model, X, Y, np.unique(Y)))
    free = not known.ridge.all()
    return known, FoldedTable(known.X[:, :-1] if free else known.X, known.y, folds, free, known.loss.self_concordant)


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_no_c_of_a_fine_grid_is_better_than_what_is_proved(model):
    found = prove_penalty(model, X, Y, between=(0.05, 2.0), eps=0.06, n_splits=3)
    assert found.eps <= 0.06
    assert found.certificate.holds
    assert 0.05 <= found.best_C <= 2.0
    known, _ = folded(model, found.rows.folds)
    for C in np.geomspace(0.05, 2.0, 25):
        wrong = 0
        for k in range(3):
            test = found.rows.folds == k
            w = minimum_of_all(replace(known, X=known.X[~test], y=known.y[~test], C=C), LeftOutTuning())
            wrong += np.count_nonzero((known.X[test] @ w > 0) != (known.y[test] > 0))
        assert wrong / len(Y) >= found.claim.error - found.eps - 1e-12
        assert wrong / len(Y) >= found.bounds[np.searchsorted(found.claim.Cs, C).clip(1, len(found.claim.Cs) - 1) - 1]


@pytest.mark.parametrize("model", MODELS[:3], ids=str)
def test_scores_stay_in_their_ranges(model):
    """Solved at C = 0.3, the ranges up to 0.45 hold the scores of fits at every C between."""
    folds = np.arange(len(Y)) % 3
    known, table = folded(model, folds)
    keep, test = folds != 0, folds == 0
    start = minimum_of_all(replace(known, X=known.X[keep], y=known.y[keep], C=0.3), LeftOutTuning())
    low, high = score_ranges(table, test, (0.3, start), 0.45)
    for C in (0.3, 0.35, 0.4, 0.45):
        w = minimum_of_all(replace(known, X=known.X[keep], y=known.y[keep], C=C), LeftOutTuning())
        scores = known.X[test] @ w
        assert (low - 1e-9 <= scores).all()
        assert (scores <= high + 1e-9).all()
    assert np.median(high - low) < np.abs(scores).mean()


def test_the_checker_is_not_fooled():
    found = prove_penalty(LogisticRegression(), X, Y, between=(0.1, 1.0), eps=0.1, n_splits=3)
    table = found.rows
    claim = found.claim
    assert certify_penalty(claim, table).holds
    for wrong in (
        replace(claim, eps=claim.eps / 2),
        replace(claim, error=claim.error - 0.02),
        replace(claim, models=claim.models + 0.5),
        replace(claim, Cs=claim.Cs[::-1].copy()),
        replace(claim, Cs=np.append(claim.Cs[:-1], 1e3)),
    ):
        assert not certify_penalty(wrong, table).holds


def test_results_show():
    found = prove_penalty(LinearSVC(), X, Y, between=(0.1, 1.0), eps=0.1, n_splits=3)
    assert max(map(len, str(found).splitlines())) <= 80
    assert found.to_frame()["C"].iloc[0] == 0.1
    assert len(found.plot().lines) == 3
    nothing = prove_penalty(LinearSVC(), X, Y, between=(1e-3, 10.0), eps=0.001, n_splits=3, max_solutions=4)
    assert not nothing.certificate.holds  # a lower bound of 0 proves nothing
    few = prove_penalty(LinearSVC(), X, Y, between=(0.5, 1.0), eps=0.001, n_splits=3, max_solutions=4)
    assert len(few.claim.Cs) == 4
    assert few.eps > 0.001
    assert few.certificate.holds


@pytest.mark.parametrize(
    ("model", "options", "words"),
    [
        (LogisticRegression(), {"between": (1.0, 0.1)}, "the smaller first"),
        (LogisticRegression(), {"between": (0.0, 1.0)}, "positive"),
        (LogisticRegression(), {"eps": 0.0}, "eps"),
        (LogisticRegression(), {"folds": 3}, "n_splits"),
        (LogisticRegression(class_weight="balanced"), {}, "ridge-penalised"),
        (LinearSVC(loss="hinge"), {}, "squared-hinge"),
        (certifit.GaussianNB(), {}, "C"),
    ],
)
def test_bad_input_is_answered_in_words(model, options, words):
    with pytest.raises((DataError, ValueError), match=words):
        prove_penalty(model, X, Y, **options)
