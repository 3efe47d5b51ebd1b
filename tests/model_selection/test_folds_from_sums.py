"""Folds by subtracting sums: the same answers as refitting, and refits wherever sums would not do."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_iris
from sklearn.decomposition import PCA
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.naive_bayes import GaussianNB

import certifit
from certifit import DataError, assess
from certifit.checkers.model_selection.splits import SplitDeclaration, certify_partition, certify_splits, row_keys
from certifit.model_selection import KFold, LeaveOneOut
from certifit.model_selection.assessment.held_out import AssessedProblem
from certifit.model_selection.assessment.plans import SingleRows
from certifit.model_selection.assessment.without_refits.folds_from_sums import hold_out_by_sums

DIABETES = load_diabetes(return_X_y=True)
IRIS = load_iris(return_X_y=True)
MODELS = {
    "least squares": (LinearRegression(), DIABETES),
    "without intercept": (LinearRegression(fit_intercept=False), DIABETES),
    "ridge": (Ridge(0.1), (DIABETES[0] * 20 + 1e4, DIABETES[1])),
    "ridge without intercept": (Ridge(2.0, fit_intercept=False), DIABETES),
    "Bayes": (GaussianNB(), (IRIS[0] + 1e3, IRIS[1])),
    "smooth Bayes": (GaussianNB(var_smoothing=0.1), (IRIS[0], np.array(list("abc"))[IRIS[1]])),
    "our ridge": (certifit.Ridge(0.1), (DIABETES[0][:80], DIABETES[1][:80])),
    "our Bayes": (certifit.GaussianNB(), (IRIS[0][::3], IRIS[1][::3])),
}


def problem(model, X, y):
    kinds = np.unique(y) if hasattr(model, "predict_proba") else None
    return AssessedProblem(model, X, np.asarray(y), kinds)


@pytest.mark.compiled
@pytest.mark.parametrize("name", MODELS)
def test_sums_say_what_refits_say(name):
    model, (X, y) = MODELS[name]
    splits = [*KFold(4, shuffle=True, random_state=0).split(X)]
    found = hold_out_by_sums(problem(model, X, y), splits)
    assert found is not None
    for one, (train, test) in zip(found, splits, strict=True):
        assert np.array_equal(one.test, test)
        assert one.n_fitted == len(train)
        assert_same(one.answers, clone(model).fit(X[train], y[train]), X[test], y)


def assert_same(answers, fitted, X, y):
    """Answers by sums are those of a refit, to 1e-10."""
    if hasattr(fitted, "predict_proba"):
        assert np.array_equal(answers["predict"], fitted.predict(X))
        np.testing.assert_allclose(answers["predict_proba"], fitted.predict_proba(X), atol=1e-10)
    else:
        np.testing.assert_allclose(answers["predict"], fitted.predict(X), atol=1e-10 * np.abs(y).max())


@pytest.mark.compiled
@pytest.mark.parametrize("name", MODELS)
def test_single_rows_are_left_out_without_a_fit(name):
    model, (X, y) = MODELS[name]
    (found,) = hold_out_by_sums(problem(model, X, y), SingleRows(len(y)))
    assert np.array_equal(found.test, np.arange(len(y)))
    for i in (0, len(y) // 2, len(y) - 1):
        train = np.delete(np.arange(len(y)), i)
        answers = {method: values[i : i + 1] for method, values in found.answers.items()}
        assert_same(answers, clone(model).fit(X[train], y[train]), X[i : i + 1], y)


PLANES = {
    "theirs": (PCA(2), IRIS[0] * [1, 2, 3, 4] + 10),
    "whitened": (PCA(3, whiten=True), DIABETES[0][:60]),
    "ours": (certifit.PCA(2), IRIS[0][::3]),
}


@pytest.mark.parametrize("name", PLANES)
def test_planes_of_pca_are_those_of_refits(name):
    """Squared distances of rows left out from the plane of the others, to 1e-10 of their variance."""
    model, X = PLANES[name]
    size = X.var(axis=0).sum()
    shown = AssessedProblem(model, X, np.zeros(len(X)), None, reconstructs=True)
    splits = [*KFold(4, shuffle=True, random_state=0).split(X)]
    found = hold_out_by_sums(shown, splits)
    assert found is not None
    (single,) = hold_out_by_sums(shown, SingleRows(len(X)))
    some = [(np.delete(np.arange(len(X)), i), np.array([i])) for i in (0, 7, len(X) - 1)]
    said = [*(one.answers for one in found), *({k: v[t] for k, v in single.answers.items()} for _, t in some)]
    for answers, (train, test) in zip(said, [*splits, *some], strict=True):
        fitted = clone(model).fit(X[train])
        errors = X[test] - fitted.inverse_transform(fitted.transform(X[test]))
        np.testing.assert_allclose(answers["reconstruction_error"], (errors**2).sum(axis=1), atol=1e-10 * size)


def test_assess_takes_pca_without_a_target():
    X = IRIS[0][:60]
    found = assess(PCA(2), X, method="leave-one-out")
    slow = assess(PCA(2), X, method=LeaveOneOut())
    assert (found.n_fits, slow.n_fits) == (1, 60)
    assert found["neg_reconstruction_error"].estimate == pytest.approx(slow.claims[0].estimate, rel=1e-10)
    assert found.certificate.holds
    assert assess(PCA(2), X, method="holdout").certificate.holds
    with pytest.raises(DataError, match="neg_reconstruction_error"):
        assess(PCA(2), X, metrics="r2")
    with pytest.raises(DataError, match="without a target"):
        assess(PCA(2), X, method=".632+")
    with pytest.raises(DataError, match="a classifier or a regressor"):
        assess(PCA(2), X, np.zeros(60))


def test_a_plane_that_is_not_determined_is_fitted():
    """Four equal variances have no leading two; where all are kept, nothing is left to sum."""
    X = np.vstack([np.eye(4), -np.eye(4)] * 3)
    shown = AssessedProblem(PCA(2), X, np.zeros(24), None, reconstructs=True)
    assert hold_out_by_sums(shown, SingleRows(24)) is None
    assert hold_out_by_sums(replace(shown, estimator=PCA(4)), SingleRows(24)) is None
    assert hold_out_by_sums(replace(shown, estimator=PCA(0.9)), SingleRows(24)) is None


class LinearRegressionInDisguise(LinearRegression):
    """Says something else than its name."""

    def predict(self, X):
        return super().predict(X) + 1


LinearRegressionInDisguise.__name__ = "LinearRegression"


def test_where_sums_would_not_do_splits_are_fitted():
    X, y = DIABETES
    splits = [*KFold(4).split(X)]
    assert hold_out_by_sums(problem(LinearRegressionInDisguise(), X, y), splits) is None
    assert hold_out_by_sums(problem(LinearRegression(positive=True), X, y), splits) is None
    collinear = np.column_stack([X, X[:, 0] * (1 + 1e-9)])
    assert hold_out_by_sums(problem(LinearRegression(), collinear, y), splits) is None
    assert hold_out_by_sums(problem(GaussianNB(priors=[0.2, 0.3, 0.5]), *IRIS), [*KFold(5).split(IRIS[0])]) is None
    sorted_folds = [*KFold(3).split(IRIS[0])]  # each fold is a class, which is then not fitted at all
    assert hold_out_by_sums(problem(GaussianNB(), *IRIS), sorted_folds) is None
    bootstrap = [(np.r_[0:300, 0:42], np.arange(342, 442))] * 2
    assert hold_out_by_sums(problem(LinearRegression(), X, y), bootstrap) is None


def test_assess_uses_them():
    X, y = DIABETES[0][:120], DIABETES[1][:120]
    found = assess(Ridge(0.1), X, y, method="leave-one-out")
    slow = assess(Ridge(0.1), X, y, method=LeaveOneOut(), metrics="neg_mean_absolute_error")
    assert found.n_fits == 1
    assert slow.n_fits == 120
    assert found.claims[0].estimate == pytest.approx(slow.claims[0].estimate, rel=1e-10)
    assert found.certificate.holds


def test_many_single_rows_cost_few_fits():
    """20,000 rows, left out one at a time: refitting them all would take half an hour."""
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=20_000)
    X = rng.normal(size=(20_000, 5)) + y[:, None]
    found = assess(GaussianNB(), X, y, method="leave-one-out")
    assert found.n_fits == 1
    assert 0.75 < found["accuracy"].estimate < 0.95
    assert found.certificate.holds


def test_a_partition_is_proved_without_counting_fold_by_fold():
    """The same faults as when every split is written out, for folds of any size."""
    rng = np.random.default_rng(0)
    folds, groups = rng.integers(5, size=60), np.arange(60) // 3
    keys = row_keys(rng.integers(4, size=(60, 2)).astype(float))
    splits = [(np.flatnonzero(folds != k), np.flatnonzero(folds == k)) for k in range(5)]
    for terms in (SplitDeclaration(), SplitDeclaration(groups=groups), SplitDeclaration(duplicates=False)):
        assert certify_partition(folds[None], keys, terms).holds == certify_splits(splits, keys, terms).holds
    equal = "tested rows equal to a fitted row"
    plain = SplitDeclaration()
    assert (
        certify_partition(folds[None], keys, plain).facts[equal]
        == certify_splits(splits, keys, plain).facts[equal]
        > 0
    )
    assert not certify_partition(np.zeros((1, 60), dtype=int), keys, plain).holds
    assert not certify_partition(folds[None] * 2, keys, plain).holds
