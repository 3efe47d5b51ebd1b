"""Rows that count for more, signs of leaks, and everything that a user may get wrong, answered in words."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import t as student
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.metrics import r2_score
from sklearn.model_selection import KFold
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from certifit import DataError, assess, choose_setting, compare_models
from certifit.checkers.model_selection.intervals import certify_intervals
from certifit.model_selection.assessment.intervals import binomial_claim, symmetric_claim
from certifit.model_selection.assessment.leakage import told_by_column

X, Y = load_diabetes(return_X_y=True)
IRIS = load_iris(return_X_y=True)
W = np.random.default_rng(0).exponential(size=len(Y))


def test_weights_fit_and_score():
    found = assess(
        LinearRegression(), X, Y, method="k-fold", metrics=["neg_mean_absolute_error", "r2"], sample_weight=W
    )  # fmt: skip
    errors, answers = [], np.empty(len(Y))
    for train, test in found.plan.splits:
        said = LinearRegression().fit(X[train], Y[train], sample_weight=W[train]).predict(X[test])
        errors.append(-np.average(np.abs(said - Y[test]), weights=W[test]))
        answers[test] = said
    np.testing.assert_allclose(found.claims[0].values, errors)
    masses = [W[test].sum() for _, test in found.plan.splits]
    together = r2_score(Y, answers, sample_weight=W)
    assert np.average(found.claims[1].values, weights=masses) == pytest.approx(together, rel=1e-12)
    assert found.n_fits == 10
    assert found.certificate.holds


def test_the_interval_of_a_weighted_mean_is_that_of_a_ratio():
    """Var(Σ w s / Σ w) is about Σ w² (s - mean)² / (Σ w)² (Cochran, Sampling techniques, 1977, chapter 6)."""
    kinds = (Y > 140).astype(int)
    claim = assess(GaussianNB(), X, kinds, method="holdout", sample_weight=W)["accuracy"]
    plain = assess(GaussianNB(), X, kinds, method="holdout")
    test = plain.plan.splits[0][1]
    train = plain.plan.splits[0][0]
    right = GaussianNB().fit(X[train], kinds[train], sample_weight=W[train]).predict(X[test]) == kinds[test]
    mean = np.average(right, weights=W[test])
    error = np.sqrt((W[test] ** 2 * (right - mean) ** 2).sum()) / W[test].sum()
    assert claim.estimate == pytest.approx(mean)
    assert (claim.high - claim.low) / 2 == pytest.approx(student.ppf(0.95, len(test) - 1) * error, rel=0.01)
    ones = assess(GaussianNB(), X, kinds, method="leave-one-out", sample_weight=np.ones(len(Y)))["accuracy"]
    assert ones.estimate == pytest.approx(assess(GaussianNB(), X, kinds, method="leave-one-out")["accuracy"].estimate)


@pytest.mark.parametrize("method", ["subsampling", "leave-one-out", "bootstrap", ".632+", "out-of-bag"])
def test_weights_with_every_method(method):
    few = {"n_splits": 5} if method in ("subsampling", "bootstrap", ".632+") else {}
    model = RandomForestClassifier(60, random_state=0) if method == "out-of-bag" else GaussianNB()
    X, y = IRIS[0][::2], IRIS[1][::2]
    found = assess(model, X, y, method=method, sample_weight=np.where(y == 2, 5.0, 0.5), **few)
    assert found.certificate.holds
    assert found["accuracy"].low <= found["accuracy"].estimate <= found["accuracy"].high
    with pytest.raises(DataError, match="without weights"):
        found.per_class()


def test_weights_in_pipelines_comparisons_and_choices():
    scaled = make_pipeline(StandardScaler(), Ridge())
    assert assess(scaled, X, Y, method="holdout", sample_weight=W).certificate.holds
    compared = compare_models({"a": Ridge(), "b": Ridge(100.0)}, X, Y, sample_weight=W, n_splits=3, n_repeats=2)
    assert compared.certificate.holds
    chosen = choose_setting(Ridge(), {"alpha": [0.01, 100.0]}, X, Y, sample_weight=W, n_splits=3)
    assert chosen.certificate.holds
    assert chosen.params == {"alpha": 0.01}
    wanted = Ridge(0.01).fit(X, Y, sample_weight=W)
    np.testing.assert_allclose(chosen.estimator.coef_, wanted.coef_)
    means = [
        -np.average((Ridge(a).fit(X[i], Y[i], sample_weight=W[i]).predict(X[j]) - Y[j]) ** 2, weights=W[j])
        for a in (0.01, 100.0)
        for i, j in chosen.plan.splits
    ]
    assert chosen.claim.scores[:, 0].mean() == pytest.approx(np.mean(means[:3]), rel=0.02)


@pytest.mark.parametrize(
    ("weights", "model", "words"),
    [
        (W[:-1], Ridge(), "for each of the 442 rows"),
        (-W, Ridge(), "at least 0"),
        (np.zeros(len(Y)), Ridge(), "some above 0"),
        (np.where(W > 1, np.nan, W), Ridge(), "missing weights"),
        (W, KNeighborsClassifier(), "whose fit takes sample_weight"),
    ],
)
def test_bad_weights(weights, model, words):
    with pytest.raises(DataError, match=words):
        assess(model, X, (Y > 140).astype(int) if "KN" in repr(model) else Y, sample_weight=weights)
    with pytest.raises(DataError, match="rows that count alike"):
        assess(Ridge(), X, Y, sample_weight=W, method="nested")
    with pytest.raises(DataError, match="a tested row that counts"):
        assess(Ridge(), X, Y, sample_weight=np.arange(len(Y)) > 200, method=KFold(3))


# Leaks ------------------------------------------------------------------------------------------------------------


def test_a_column_that_gives_the_target_away_is_named():
    X, y = load_breast_cancer(return_X_y=True)
    frame = pd.DataFrame(X[:, :3], columns=["a", "b", "c"])
    assert "nearly determines" not in str(assess(GaussianNB(), frame, y, method="holdout"))
    frame["billed after the diagnosis"] = y * 10.0 + np.random.default_rng(0).random(len(y))
    found = " ".join(str(assess(GaussianNB(), frame, y, method="holdout")).split())
    assert "alone, billed after the diagnosis (100.0 %) nearly determines the target" in found
    words = pd.DataFrame({"x": X[:, 0], "code": np.where(y == 1, "malign", "fine")})
    tree = make_pipeline(StandardScaler().set_output(transform="default"), GaussianNB())
    numbers = pd.get_dummies(words)
    assert "code_fine" in str(assess(tree, numbers, y, method="holdout"))


def test_a_leaking_column_of_a_regression():
    leaky = np.column_stack([X, np.exp(Y / 100)])  # not linear in the target, but monotone
    assert "column 10" in str(assess(LinearRegression(), leaky, Y, method="holdout"))
    assert "nearly determines" not in str(assess(LinearRegression(), X, Y, method="holdout"))


def test_a_row_number_of_its_own_tells_nothing():
    """A column with a value of its own in every row is no leak, and noise is none."""
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=500)
    assert told_by_column(np.arange(500).astype(str), y, True, 32) <= 0
    assert told_by_column(rng.normal(size=500), y, True, 32) < 0.3
    assert told_by_column(rng.normal(size=500), rng.normal(size=500), False, 32) < 0.3


def test_equal_rows_on_both_sides_are_counted():
    twice = np.concatenate([X[:100], X[:100]]), np.concatenate([Y[:100], Y[:100]])
    found = assess(KNeighborsClassifier(1), twice[0], twice[1] > 140, method="k-fold")
    assert "tested rows equal a fitted row in every column" in str(found)
    assert found["accuracy"].estimate > 0.85  # flattered, and said to be


# Bad input --------------------------------------------------------------------------------------------------------


class FailsWithoutC(ClassifierMixin, BaseEstimator):
    """Cannot be fitted where a class is missing."""

    def fit(self, X, y):
        if "c" not in y:
            raise RuntimeError("no c")
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.full(len(X), "c")


def test_rare_classes_stay_and_are_said():
    y = np.array(["a", "b"])[IRIS[1][:100]].astype(object)
    y[:3] = "rare"
    found = assess(GaussianNB(), IRIS[0][:100], y.astype(str), method="k-fold")
    assert "classes with fewer than 10 rows are not in every fold: rare" in " ".join(str(found).split())
    assert found.per_class().to_frame()["rows"].sum() == 100


def test_an_estimator_that_fails_says_where():
    y = np.array(["a", "b"] * 20)
    y[7] = "c"
    with pytest.raises(DataError, match=r"fails on split \d of 4, fitted to 30 rows of 2 classes .*no c"):
        assess(FailsWithoutC(), np.arange(40.0)[:, None], y, method=KFold(4))


def test_scores_that_are_no_numbers_say_where():
    class Nan(Ridge):
        def predict(self, X):
            return np.where(len(X) < 60 and self.alpha > 1, np.nan, super().predict(X))

    with pytest.raises(DataError, match=r"with \{'alpha': 9\} on fold 1 of 10: 45 of 45 rows"):
        choose_setting(Nan(), {"alpha": [0.1, 9]}, X, Y)
    with pytest.raises(DataError, match=r"the setting \{'alpha': -1\}: Nan that fails on split 1 of 10"):
        choose_setting(Nan(), {"alpha": [-1]}, X, Y)
    with pytest.raises(DataError, match="on split 1 of 10, 45 of whose rows have predictions that are no numbers"):
        assess(Nan(2.0), X, Y, method="k-fold")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"method": [(np.arange(10), np.arange(0))]}, "split 1 of 1 without a row to test"),
        ({"method": [(np.arange(0), np.arange(9))]}, "split 1 of 1 without a row to fit"),
        ({"method": [(np.arange(10), np.array([442]))]}, "row 442 to test"),
        ({"method": []}, "no split"),
        ({"groups": np.arange(len(Y)) % 4, "n_splits": 5, "method": "k-fold"}, "4 groups for 5 folds"),
        ({"confidence": 0.0}, "confidence"),
        ({"confidence": 1.0}, "confidence"),
        ({"confidence": np.nan}, "confidence"),
        ({"method": "k-fold", "n_splits": 443}, "442 rows for 443 folds"),
        ({"method": "holdout", "test_size": 1.0}, "test_size"),
        ({"metrics": "accuracy"}, "a metric for a regressor"),
    ],
)
def test_bad_input_is_answered_in_words(options, words):
    with pytest.raises(DataError, match=words):
        assess(Ridge(), X, Y, **options)


def test_a_fitted_and_tested_row_fails_the_certificate():
    """A splitter that leaks is assessed, and its certificate does not hold."""
    found = assess(Ridge(), X, Y, method=[(np.arange(400), np.arange(390, 442))])
    assert not found.certificate.holds
    assert assess(LogisticRegression(max_iter=1000), *IRIS, method=KFold(3, shuffle=True)).certificate.holds


# What a forger would try --------------------------------------------------------------------------------------------


def forged(claim, **changes):
    """A claim with other terms, and the ends that follow from them."""
    return symmetric_claim(replace(claim, **changes))


def test_an_interval_cannot_be_narrowed_by_its_terms():
    """Ends that follow from terms which leave out what splits have in common are refused."""
    found = assess(Ridge(), X, Y, method="repeated", metrics="neg_mean_absolute_error", n_repeats=2)
    claim, sizes = found.claims[0], found.plan.sizes()
    assert certify_intervals([claim], None, sizes).holds
    for wrong in (
        forged(claim, ratio=0.0),  # the deviation of folds over √J
        forged(claim, ratio=np.nan),
        forged(claim, ratio=claim.ratio / 2),
        forged(claim, values=np.tile(claim.values, 10)),  # the same scores ten times
    ):
        assert not certify_intervals([wrong], None, sizes).holds


def test_a_bootstrap_interval_cannot_be_narrowed_by_its_terms():
    for method in ("bootstrap", ".632", ".632+"):
        found = assess(GaussianNB(), *IRIS, method=method, n_splits=10)
        claim, sizes = found.claims[0], found.plan.sizes()
        assert certify_intervals([claim], None, sizes).holds
        for wrong in (
            forged(claim, inflation=0.5),
            forged(claim, scale=claim.scale / 10, shift=claim.estimate - claim.scale / 10 * claim.values.mean()),
        ):
            assert not certify_intervals([wrong], None, sizes).holds


def test_one_test_cannot_be_counted_twice():
    found = assess(GaussianNB(), *IRIS, method="holdout")
    claim, sizes = found.claims[0], found.plan.sizes()
    twice = binomial_claim("accuracy", np.tile(claim.values, 2), 0.9)
    assert certify_intervals([twice], None).holds  # nothing is known of the splits here
    assert not certify_intervals([twice], None, sizes).holds


def test_what_is_no_estimator_is_refused():
    for thing in (object(), Ridge, "Ridge", None):
        with pytest.raises(DataError, match="a classifier or a regressor"):
            assess(thing, X, Y)
        with pytest.raises(DataError, match="a classifier or a regressor"):
            compare_models({"a": Ridge(), "b": thing}, X, Y)


def test_what_users_get_wrong_of_targets_and_grids_is_answered_in_words():
    table, kinds = IRIS[0], IRIS[1]
    with pytest.raises(DataError, match="NoneType, str"):
        assess(GaussianNB(), table, np.where(kinds == 1, "a", None))
    with pytest.raises(DataError, match="A classifier takes words"):
        assess(LinearRegression(), table, np.array(["a", "b", "c"])[kinds])
    with pytest.raises(DataError, match="The test has 1 of 3 classes"):
        assess(GaussianNB(), table, kinds, method=KFold(3), metrics="roc_auc_ovr")
    with pytest.raises(DataError, match="parameters of a GaussianNB"):
        choose_setting(GaussianNB(), {"C": [1.0]}, table, kinds)
    with pytest.raises(DataError, match="a grid without values"):
        choose_setting(GaussianNB(), {"var_smoothing": []}, table, kinds)


def test_fewer_groups_or_rows_than_folds_are_as_many_folds():
    found = assess(GaussianNB(), *IRIS, groups=np.arange(150) % 3)
    assert len(found.plan.splits) == 3
    assert found.certificate.holds
    assert assess(Ridge(), X[:6], Y[:6, None]).plan.options["n_splits"] == 6


def test_rows_that_are_fitted_and_tested_are_told():
    found = assess(GaussianNB(), *IRIS, method=[(np.arange(0, 150, 2), np.arange(0, 150, 3))])
    assert not found.certificate.holds
    assert "faulty splits: rows both fitted and tested: 25" in str(found)
