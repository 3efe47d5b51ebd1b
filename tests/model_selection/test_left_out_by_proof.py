"""Leaving out single rows by proof: what tight refits say, bounds that hold, refits where nothing is proved."""

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

import certifit
from certifit import assess
from certifit.model_selection.assessment.held_out import AssessedProblem
from certifit.model_selection.assessment.plans import SingleRows
from certifit.model_selection.assessment.without_refits.left_out_by_proof import (
    LeftOutTuning,
    MarginProblem,
    hold_out_by_proof,
    left_out_margins,
    margin_problem,
    minimum_of_all,
)


def table(n=60, d=3, seed=0, noise=1.0):
    rng = np.random.default_rng(seed)
    X = rng.normal([1.0, 0.0, -2.0], size=(n, d))
    return X, (X @ [1.0, -1.0, 0.5] + 1 + noise * rng.logistic(size=n) > 0).astype(int)


def problem(model, X, y):
    return AssessedProblem(model, X, y, np.unique(y))


def objective(p: MarginProblem, keep):
    """Written out once more, for SciPy."""

    def value(w):
        m = p.y[keep] * (p.X[keep] @ w)
        loss = np.logaddexp(0, -m) if p.loss.self_concordant else np.maximum(1 - m, 0) ** 2
        return 0.5 * p.ridge @ w**2 + p.C * loss.sum()

    return value


@pytest.mark.parametrize(
    "model", [LogisticRegression(), LogisticRegression(C=20.0), LogisticRegression(fit_intercept=False), LinearSVC()]
)  # fmt: skip
def test_every_row_is_what_the_minimum_without_it_says(model):
    X, y = table()
    found = hold_out_by_proof(problem(model, X, y), SingleRows(len(y)))
    assert found is not None
    answers, fits = found
    assert fits < 12
    p = margin_problem(problem(model, X, y))
    for i in range(0, 60, 7):
        keep = np.arange(60) != i
        w = minimize(objective(p, keep), np.zeros(p.X.shape[1]), method="BFGS", options={"gtol": 1e-9}).x
        assert answers.answers["decision_function"][i] == pytest.approx(p.X[i] @ w, abs=3e-6)
        assert answers.answers["predict"][i] == int(p.X[i] @ w > 0)


def test_refits_give_the_same_score():
    X, y = table(50)
    for model in (certifit.LogisticRegression(tol=1e-10), LogisticRegression(tol=1e-10), LinearSVC(tol=1e-8)):
        fast = assess(model, X, y, method="leave-one-out")
        slow = [model.fit(np.delete(X, i, 0), np.delete(y, i)).predict(X[[i]])[0] == y[i] for i in range(50)]
        assert fast.n_fits < 10
        assert fast["accuracy"].estimate == pytest.approx(np.mean(slow), abs=1e-12)
        assert fast.certificate.holds


def test_bounds_hold_from_the_first_step_on():
    """Stopped after one, two and three steps, the true margin is within the bound; the bound shrinks."""
    X, y = table(40, noise=0.3)
    for model in (LogisticRegression(C=5.0), LinearSVC()):
        p = margin_problem(problem(model, X, y))
        w = minimum_of_all(p, LeftOutTuning())
        exact, _ = left_out_margins(p, w, LeftOutTuning(margin_error=1e-13, most_steps=60))
        before = np.full(40, np.inf)
        for steps in (1, 2, 3):
            margins, errors = left_out_margins(p, w, LeftOutTuning(most_steps=steps, margin_error=0.0))
            assert (np.abs(margins - exact) <= errors + 1e-12).all()
            assert np.median(errors) <= max(np.median(before) / 2, 1e-13)
            before = errors


class InDisguise(LogisticRegression):
    """Says something else than its name."""

    def decision_function(self, X):
        return super().decision_function(X) + 1


InDisguise.__name__ = "LogisticRegression"


@pytest.mark.parametrize(
    "model",
    [
        InDisguise(),
        LogisticRegression(class_weight="balanced"),
        LogisticRegression(C=np.inf),
        LogisticRegression(solver="liblinear"),
        LinearSVC(loss="hinge"),
        LinearSVC(intercept_scaling=2.0),
        certifit.LinearSVC(penalize_intercept=False),
    ],
)
def test_what_is_not_known_is_fitted(model):
    assert hold_out_by_proof(problem(model, *table(30)), SingleRows(30)) is None


def test_three_classes_and_missing_entries_are_fitted():
    X, y = table(30)
    assert hold_out_by_proof(problem(LogisticRegression(), X, np.arange(30) % 3), SingleRows(30)) is None
    X[0, 0] = np.nan
    assert hold_out_by_proof(problem(LogisticRegression(), X, y), SingleRows(30)) is None
