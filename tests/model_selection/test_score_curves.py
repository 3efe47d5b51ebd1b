"""Scores by size and by parameter, and bias with variance: against loops written out, and identities."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from certifit import DataError, assess_sizes, assess_values, bias_and_variance
from certifit.checkers.model_selection.bias_variance import certify_decomposition
from certifit.checkers.model_selection.replicates import drawn_rows, replicate_keys

X, Y = load_diabetes(return_X_y=True)
IRIS = load_iris(return_X_y=True)


def test_values_are_scored_on_the_same_folds():
    found = assess_values(Ridge(), X, Y, values={"alpha": [0.01, 100.0]}, n_splits=4)
    for alpha, claim in zip((0.01, 100.0), found.claims, strict=True):
        wanted = [
            -np.abs(Y[test] - Ridge(alpha).fit(X[train], Y[train]).predict(X[test])).mean()
            for train, test in found.plan.splits
        ]
        np.testing.assert_allclose(claim.values, wanted, rtol=1e-9)
        assert claim.ratio == pytest.approx(1 / 3)
    assert found.certificate.holds
    assert found.fitted[0] > found.fitted[1]
    assert found.to_frame()["alpha"].tolist() == [0.01, 100.0]
    assert found.plot().get_xscale() == "log"
    words = assess_values(Ridge(), X, Y, values={"solver": ["svd", "cholesky"]}, n_splits=3)
    assert words.claims[0].estimate == pytest.approx(words.claims[1].estimate)
    assert len(words.plot().get_xticklabels()) == 2


def test_more_rows_help_until_they_do_not():
    """Least squares of 10 columns: the expected squared error is σ² (1 + d/(n - d - 1)) for Gaussian columns."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 10))
    y = X.sum(axis=1) + rng.normal(size=3000)
    found = assess_sizes(LinearRegression(), X, y, sizes=[20, 40, 2700], metric="neg_mean_squared_error")
    assert found.at == (20, 40, 2700)
    for n, claim in zip(found.at, found.claims, strict=True):
        truth = -(1 + 1 / n) * (1 + 10 / (n - 12))
        assert claim.low < truth * (1 if n == 2700 else 0.99) < claim.high
    assert found.certificate.holds
    assert max(map(len, str(found).splitlines())) <= 80
    assert len(found.plot().lines) == 2


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"sizes": [0.0, 0.5]}, "shares above 0"),
        ({"sizes": [500]}, "1 to 397 rows"),
        ({"sizes": [np.nan]}, "shares above 0"),
        ({"metric": ["r2", "neg_mean_squared_error"]}, "one to draw"),
        ({"confidence": 2.0}, "confidence"),
    ],
)
def test_bad_sizes(options, words):
    with pytest.raises(DataError, match=words):
        assess_sizes(Ridge(), X, Y, **options)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"alpha": []}, "at least one"),
        ({"beta": [1]}, "a parameter"),
        ({"alpha": [1], "solver": ["svd"]}, "one parameter"),
        ("alpha", "one parameter"),
        ({"alpha": "lots"}, "a list"),
    ],
)
def test_bad_values(values, words):
    with pytest.raises(DataError, match=words):
        assess_values(Ridge(), X, Y, values=values)


# Bias and variance ------------------------------------------------------------------------------------------------


def test_parts_are_those_of_a_loop():
    x, y = X[:60], Y[:60]
    found = bias_and_variance(LinearRegression(), x, y, n_replicates=25, random_state=5)
    said = [[] for _ in range(60)]
    for key in replicate_keys(5, 25):
        rows = drawn_rows(int(key), 60)
        left = np.setdiff1d(np.arange(60), rows)
        for i, value in zip(left, LinearRegression().fit(x[rows], y[rows]).predict(x[left]), strict=True):
            said[i].append(value)
    assert found.variance == pytest.approx(np.mean([np.var(values) for values in said]))
    assert found.bias == pytest.approx(np.mean([(np.mean(v) - t) ** 2 for v, t in zip(said, y, strict=True)]))
    assert found.certificate.holds


def test_what_is_known_of_simple_learners():
    """A constant answer has no variance over classes; one neighbour has more variance than twenty."""
    flat = bias_and_variance(DummyClassifier(strategy="constant", constant=1), *IRIS, n_replicates=40)
    assert (flat.bias, flat.variance) == (pytest.approx(2 / 3), 0.0)
    mean = bias_and_variance(DummyRegressor(), X, Y, n_replicates=30)
    assert mean.variance == pytest.approx(Y.var() / len(Y), rel=0.4)
    one, twenty = (bias_and_variance(KNeighborsRegressor(k), X, Y, n_replicates=20) for k in (1, 20))
    assert one.variance > 5 * twenty.variance
    tree = bias_and_variance(DecisionTreeClassifier(random_state=0), IRIS[0][:, :2], IRIS[1], n_replicates=20)
    bayes = bias_and_variance(GaussianNB(), IRIS[0][:, :2], IRIS[1], n_replicates=20)
    assert tree.variance > bayes.variance
    assert "variance" in str(tree)
    assert len(tree.plot().patches) == 2


def test_the_checker_is_not_fooled():
    claim = bias_and_variance(GaussianNB(), *IRIS, n_replicates=10).claim
    told = claim.answers.copy()
    told[0, int(np.flatnonzero(np.isnan(told[0]))[0])] = 1.0  # a row that was drawn
    for wrong in (
        replace(claim, bias=claim.bias + 1e-3),
        replace(claim, variance=claim.variance * 1.01),
        replace(claim, bias=claim.bias + 1e-3, variance=claim.variance - 1e-3),
        replace(claim, answers=told),
        replace(claim, seed=1),
    ):
        assert not certify_decomposition(wrong).holds


def test_bad_replicates():
    with pytest.raises(DataError, match="n_replicates"):
        bias_and_variance(GaussianNB(), *IRIS, n_replicates=2)
    with pytest.raises(DataError, match="a classifier or a regressor"):
        bias_and_variance(object(), *IRIS)


def test_intervals_end_where_scores_end():
    """Of 14 rows, folds of iris have accuracies far apart: the interval is cut at 1."""
    for found in (
        assess_sizes(GaussianNB(), *IRIS),
        assess_values(GaussianNB(), *IRIS, values={"var_smoothing": [1]}),
    ):
        assert all(0 <= claim.low <= claim.high <= 1 for claim in found.claims)
        assert found.certificate.holds


def test_notes_say_which_intervals_rest_on_what():
    """Heavily penalised, models are often wrong, and scores of splits about normal; else hardly any row is wrong."""
    X, y = load_breast_cancer(return_X_y=True)
    model = make_pipeline(StandardScaler(), LogisticRegression())
    found = assess_values(model, X, y, values={"logisticregression__C": [1e-3, 1.0]})
    assert [claim.way for claim in found.claims] == ["corrected t", "binomial"]
    notes = found.table().notes
    assert notes[1].startswith("at 0.001: scores of splits are about normal")
    assert notes[2].startswith("at 1.0: tested rows are independent draws")
