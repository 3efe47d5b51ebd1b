"""Intervals say so where what they rest on is seen not to hold: each case with one beside it that is sound."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.signal import lfilter
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_iris
from sklearn.linear_model import LinearRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline

from certifit import (
    ConformalClassifier,
    ConformalRegressor,
    assess,
    assess_sizes,
    audit,
    choose_setting,
    compare_models,
)
from certifit.checkers.model_selection.choices import certify_choice
from certifit.checkers.model_selection.copies import copied_share
from certifit.checkers.model_selection.intervals import certify_intervals, rows_for_normal, separate_tests
from certifit.exceptions import CertificateWarning, DataError
from certifit.model_selection import KFold, TimeHoldout
from certifit.model_selection.assessment.assess import make_problem
from certifit.model_selection.assessment.plans import certify_plan

ABSOLUTE, SQUARED = "neg_mean_absolute_error", "neg_mean_squared_error"


def two_classes(n, seed=0, share=0.5, apart=1.5):
    rng = np.random.default_rng(seed)
    y = rng.permutation((np.arange(n) < share * n).astype(int))
    return rng.normal(size=(n, 3)) + apart * y[:, None], y


def line(errors, seed=0):
    X = np.random.default_rng(seed).normal(size=(len(errors), 3))
    return X, X @ np.array([1.0, 0.0, -1.0]) + errors


@pytest.mark.parametrize("method", ["holdout", "k-fold", "leave-one-out", ".632+"])
def test_copies_of_rows(method):
    """Where most rows are copies there is no interval; where few are, it says so."""
    X, y = two_classes(60)
    found = assess(GaussianNB(), np.repeat(X, 4, axis=0), np.repeat(y, 4), method=method)
    assert found["accuracy"].way == "none"
    assert np.isnan([found["accuracy"].low, found["accuracy"].high]).all()
    assert "copies of fitted ones" in found["accuracy"].assumption
    assert found.certificate.holds
    X, y = two_classes(200)
    some = np.concatenate([np.arange(200), np.arange(8)])
    found = assess(GaussianNB(), X[some], y[some], method=method)["accuracy"]
    assert found.covers == "perhaps less"
    assert "copies of fitted ones" in found.assumption
    # Rows of few different values are equal by chance, and then have different targets.
    rng = np.random.default_rng(0)
    few = rng.integers(3, size=(240, 2)).astype(float)
    found = assess(
        GaussianNB(), few, rng.permutation((few[:, 0] + rng.normal(size=240) > 1).astype(int)), method=method
    )
    assert "copies" not in found["accuracy"].assumption


@pytest.mark.parametrize("method", ["holdout", "k-fold", TimeHoldout(0.3)])
def test_rows_in_time_order(method):
    noise = np.random.default_rng(0).normal(size=400)
    found = assess(LinearRegression(), *line(lfilter([1.0], [1.0, -0.95], noise)), method=method, metrics=ABSOLUTE)
    assert found[ABSOLUTE].way == "none"
    assert "follow each other are alike" in found[ABSOLUTE].assumption
    assert found.certificate.holds
    found = assess(LinearRegression(), *line(noise), method=method, metrics=ABSOLUTE)
    assert "alike" not in found[ABSOLUTE].assumption


def test_a_table_that_is_sorted_by_its_target_is_not_taken_for_a_series():
    found = assess(GaussianNB(), *load_iris(return_X_y=True), method="k-fold", metrics="neg_brier_score")
    assert "alike" not in found["neg_brier_score"].assumption


def test_rows_that_follow_each_other_a_little_keep_an_interval():
    """√(1.15 / 0.85) times the error of independent rows: 1.645 of these are 1.414, which cover 84 %."""
    weak = lfilter([1.0], [1.0, -0.15], np.random.default_rng(0).normal(size=2000))
    found = assess(LinearRegression(), *line(weak), method="k-fold", metrics=ABSOLUTE)
    assert found[ABSOLUTE].covers == "perhaps less"


def test_independent_rows_that_are_sorted_by_a_column_keep_their_interval():
    """A line through a bend misses rows that follow each other by as much, however independent they are."""
    rng, x = np.random.default_rng(0), np.linspace(0, 3, 200)
    y = x**2 + 0.1 * rng.normal(size=200)
    for table in (x[:, None], np.column_stack([x, rng.normal(size=(200, 5))])):
        found = assess(LinearRegression(), table, y, method="k-fold", metrics=ABSOLUTE)[ABSOLUTE]
        assert found.covers == "perhaps less"
    mixed = np.random.default_rng(1).permutation(200)
    assert assess(LinearRegression(), x[mixed, None], y[mixed], method="k-fold", metrics=ABSOLUTE)[ABSOLUTE].covers


def test_independent_rows_that_are_sorted_by_a_place_keep_their_interval():
    """Homes of sixty towns, town by town, with prices by town: a line knows places, but not which are dear."""
    rng = np.random.default_rng(0)
    town, centres, dear = np.sort(rng.integers(60, size=1000)), rng.normal(size=(60, 2)), rng.normal(size=60)
    place, size = centres[town] + 0.05 * rng.normal(size=(1000, 2)), rng.normal(size=1000)
    words = pd.DataFrame(
        {"east": place[:, 0], "north": place[:, 1], "size": size, "kind": rng.choice(["a", "b"], 1000)}
    )
    y = size + dear[town] + 0.7 * rng.normal(size=1000)
    model = make_pipeline(ColumnTransformer([("numbers", "passthrough", [0, 1, 2])]), LinearRegression())
    found = assess(model, words, y, method="k-fold", metrics=ABSOLUTE)[ABSOLUTE]
    assert found.covers == "perhaps less"
    # Where no column tells the town, its homes may as well be one draw.
    assert assess(LinearRegression(), size[:, None], y, method="k-fold", metrics=ABSOLUTE)[ABSOLUTE].way == "none"


@pytest.mark.parametrize("method", ["k-fold", "repeated", "subsampling", "leave-one-out"])
def test_right_and_wrong_rows_are_counted_where_hardly_any_is_wrong(method):
    """Limits of Clopper & Pearson for as many rows as have the variance of J scores of m rows, (1/J + m/fitted) / m.

    Before, all right rows had the interval [1, 1].
    """
    X, y = two_classes(60, apart=9.0)
    found = assess(GaussianNB(), X, y, method=method)
    J, m = {"k-fold": (10, 6), "repeated": (50, 6), "subsampling": (25, 12), "leave-one-out": (60, 1)}[method]
    worth = m / (1 / J + m / (60 - m))
    assert (found["accuracy"].way, found["accuracy"].covers) == ("binomial", "at least")
    assert found["accuracy"].low == pytest.approx(0.05 ** (1 / worth))
    assert found["accuracy"].high == 1
    assert found.certificate.holds
    # A certificate of rows that count for more than they do is refused.
    (claim,) = found.claims
    wide = replace(claim, worth=1.0, low=0.05 ** (1 / 60))
    assert certify_intervals([replace(wide)], None).holds
    assert not certify_intervals([wide], certify_plan(found.plan, found.problem), found.plan.sizes()).holds


def test_copies_are_kept_on_one_side():
    """A neighbour knows copies by heart: of classes that no column tells it is right in half of the rows."""
    X, y = two_classes(200, apart=0.0)
    copied = np.concatenate([np.arange(200), np.arange(100)])
    alone = assess(KNeighborsClassifier(1), X[copied], y[copied])["accuracy"]
    assert alone.way == "none"
    assert "groups='copies'" in alone.assumption
    together = assess(KNeighborsClassifier(1), X[copied], y[copied], groups="copies")
    assert together["accuracy"].covers == "at least"
    assert together["accuracy"].low < 0.5 < together["accuracy"].high < alone.estimate
    assert together.certificate.holds
    # Rows in time order stay so: most groups are single rows.
    noise = lfilter([1.0], [1.0, -0.95], np.random.default_rng(0).normal(size=400))
    assert assess(LinearRegression(), *line(noise), metrics=ABSOLUTE, groups="copies")[ABSOLUTE].way == "none"


def test_tables_of_classes_have_no_intervals_where_rows_are_copies():
    X, y = two_classes(60)
    found = assess(GaussianNB(), np.repeat(X, 4, axis=0), np.repeat(y, 4), method="k-fold")
    tables = found.per_class(), found.confusion(), found.thresholds(), found.calibration()
    for table in tables:
        ends = [values for name, values in table.columns.items() if name.split()[-1] in ("from", "to")]
        assert ends
        assert np.isnan(np.array(ends)).all()
        assert "no intervals: " in " ".join(str(table).split())
        table.plot()
    for band in ("DKW", "bootstrap"):
        for curve in (found.roc(band=band), found.precision_recall(band=band)):
            assert np.isnan(curve.low).all()
            assert "copies of fitted ones" in " ".join(str(curve).split())
            curve.plot()
    sound = assess(GaussianNB(), X, y, method="k-fold").per_class()
    assert np.isfinite(sound.columns["recall from"]).all()


def test_folds_of_single_groups_are_drawn_once():
    """Drawn five times they are the same five times, and 50 scores would be taken for more than the ten they are."""
    member = np.repeat(np.arange(10), 10)
    X, y = line(np.random.default_rng(0).normal(size=100))
    found = {
        method: assess(LinearRegression(), X, y, method=method, metrics=ABSOLUTE, groups=member)[ABSOLUTE]
        for method in ("k-fold", "repeated")
    }
    assert len(found["repeated"].values) == 10
    assert found["repeated"].high - found["repeated"].low == pytest.approx(found["k-fold"].high - found["k-fold"].low)


def test_rows_that_belong_together_are_met_by_groups():
    rng, member = np.random.default_rng(0), np.repeat(np.arange(50), 6)
    X, y = line(rng.normal(size=50)[member] + 0.3 * rng.normal(size=300))
    alone = assess(LinearRegression(), X, y, metrics=ABSOLUTE)[ABSOLUTE]
    assert alone.way == "none"
    together = assess(LinearRegression(), X, y, metrics=ABSOLUTE, groups=member)[ABSOLUTE]
    assert together.covers == "at least"
    few = assess(LinearRegression(), X, y, metrics=ABSOLUTE, groups=member // 5)[ABSOLUTE]
    assert few.covers == "perhaps less"
    assert "10 groups are few" in few.assumption


def test_skewed_scores_need_more_rows():
    """Of a share p of right rows the skewness is (1 - 2p) / √(p (1 - p)): 25 g² is 33 for 3/4, and 1,176 for 0.98."""
    assert rows_for_normal(np.repeat([0.0, 1.0], [25, 75])) == pytest.approx(25 * 0.25 / (3 / 16))
    assert rows_for_normal(np.repeat([0.0, 1.0], [2, 98])) == pytest.approx(25 * 0.96**2 / (0.02 * 0.98))
    errors = np.random.default_rng(1).standard_t(2.5, size=150)
    for method in ("k-fold", "repeated", "leave-one-out", ".632+"):
        found = assess(LinearRegression(), *line(errors), method=method, metrics=SQUARED)[SQUARED]
        assert found.covers == "perhaps less", method
    normal = np.random.default_rng(1).normal(size=150)
    assert assess(LinearRegression(), *line(normal), metrics=ABSOLUTE)[ABSOLUTE].covers == "at least"


def test_few_rows_of_a_class_are_few_for_an_area():
    rare = assess(GaussianNB(), *two_classes(200, share=0.08), method="k-fold", metrics="roc_auc")["roc_auc"]
    assert rare.covers == "perhaps less"
    assert "16 tested rows of class 1, 1.6 a test" in rare.assumption
    assert assess(GaussianNB(), *two_classes(200), method="k-fold", metrics="roc_auc")["roc_auc"].covers == "at least"


def test_who_claims_more_than_the_scores_allow_is_refused():
    errors = np.random.default_rng(1).standard_t(2.5, size=150)
    found = assess(LinearRegression(), *line(errors), method="leave-one-out", metrics=SQUARED)
    splits = certify_plan(found.plan, found.problem)
    assert certify_intervals(found.claims, splits, found.plan.sizes()).holds
    boast = replace(found[SQUARED], covers="at least")
    assert not certify_intervals([boast], splits, found.plan.sizes()).holds


def test_the_table_says_how_often_intervals_cover_and_repeats_nothing():
    found = assess(GaussianNB(), *two_classes(400), method="k-fold", metrics=["accuracy", "roc_auc", "neg_log_loss"])
    assert found.table().columns["covers"][0] == "at least 90 %"
    words = " ".join(str(found).split())
    assert words.count("Nadeau & Bengio") == 1
    assert "accuracy, roc_auc, neg_log_loss rest on: scores of splits" in words
    for claim in found.claims:
        for clause in claim.assumption.split("; "):
            assert clause in words


def test_choices_and_curves_say_so_too():
    noise = lfilter([1.0], [1.0, -0.95], np.random.default_rng(0).normal(size=200))
    X, y = line(noise)
    choice = choose_setting(LinearRegression(), {"fit_intercept": [True, False]}, X, y, draws=50, n_splits=5)
    assert np.isnan([choice.claim.low, choice.claim.high]).all()
    assert choice.certificate.holds
    given = replace(choice.claim, low=choice.claim.corrected - 1, high=choice.claim.corrected + 1)
    assert not certify_choice(given, certify_plan(choice.plan, make_problem(LinearRegression(), X, y, {}))).holds
    choice.plot()
    assert "follow each other are alike" in " ".join(str(choice).split())
    curve = assess_sizes(LinearRegression(), X, y, sizes=(0.5, 1.0), n_splits=5)
    assert "follow each other are alike" in " ".join(str(curve).split())
    assert curve.certificate.holds


def test_models_that_are_alike_are_told_apart_by_no_more_tests_than_share_no_row():
    """50 tests of a tenth of the rows are worth ten: Student's t with 9 degrees of freedom, not with 49."""
    X, y = two_classes(80, apart=0.8)
    models = {"smooth": GaussianNB(var_smoothing=0.3), "plain": GaussianNB()}
    pair = compare_models(models, X, y).pairs[0]
    assert separate_tests(50, 1 / 9) == pytest.approx(9)
    d = pair.claim.differences
    error = np.sqrt((1 / 50 + 1 / 9) * d.var(ddof=1))
    # 2.262157 is the 97.5 % quantile of t with 9 degrees of freedom, in any table.
    assert pair.high - pair.claim.difference == pytest.approx(2.262157 * error, rel=1e-6)


def test_models_get_no_verdict_on_copies():
    """Four copies of each row make p-values that small of differences which the rows themselves do not tell apart."""
    X, y = two_classes(60)
    models = {"plain": GaussianNB(), "smooth": GaussianNB(var_smoothing=100.0)}
    for test in ("corrected t", "5x2cv F", "McNemar"):
        found = compare_models(models, np.repeat(X, 4, axis=0), np.repeat(y, 4), test=test)
        assert [pair.verdict for pair in found.pairs] == ["no verdict"]
        assert np.isnan(found.table().columns["p"]).all()
        assert "nothing is said of which model is better" in found.certificate.claim
        assert found.certificate.holds
        found.plot()
    assert compare_models(models, X, y).pairs[0].verdict != "no verdict"


def test_equal_rows_of_few_values_are_no_copies():
    """Of three columns of three values 27 different rows can be drawn: most of 400 equal another, by chance."""
    rng = np.random.default_rng(0)
    X = rng.integers(3, size=(400, 3)).astype(float)
    y = (X.sum(axis=1) > 3).astype(int)  # so that equal rows agree
    assert assess(GaussianNB(), X, y, method="k-fold")["accuracy"].covers == "at least"
    assert ConformalClassifier(GaussianNB(), random_state=0).fit(X, y).certificate_.holds
    words = pd.DataFrame({"a": np.array(["x", "y", "z"])[X[:, 0].astype(int)], "b": X[:, 1]})
    assert copied_share(words, y, np.arange(100), np.zeros(100, int)) == 0


@pytest.mark.parametrize("method", ["split", "cv+", "jackknife+"])
def test_conformal_models_of_copies_prove_nothing(method):
    """One neighbour knows copies by heart: its radius is 0, and no new row is within it."""
    X, y = line(np.random.default_rng(0).normal(size=40))
    copies = np.repeat(X, 3, axis=0), np.repeat(y, 3)
    model = ConformalRegressor(KNeighborsRegressor(1), method=method, coverage=0.8, random_state=0)
    with pytest.warns(CertificateWarning, match="copies of fitted ones"):
        model.fit(*copies)
    assert not model.certificate_.holds
    assert "copies of fitted ones" in model.certificate_.failures()[0]
    assert not audit(model, *copies).holds
    sound = ConformalRegressor(KNeighborsRegressor(1), method=method, coverage=0.8, random_state=0).fit(X, y)
    assert sound.certificate_.holds
    assert audit(sound, X, y).holds


def test_folds_of_a_sorted_table_say_nothing():
    """Each of three folds of iris in its order tests the one class that its model does not know."""
    X, y = load_iris(return_X_y=True)
    found = assess(GaussianNB(), X, y, method=KFold(3))
    assert found["accuracy"].way == "none"
    assert "100 % of tested rows are of classes that were not fitted" in found["accuracy"].assumption
    assert found.certificate.holds
    assert assess(GaussianNB(), X, y, method=KFold(3, shuffle=True, random_state=0))["accuracy"].way == "binomial"


def test_chosen_settings_that_are_always_right_say_that_their_interval_is_none():
    X, y = two_classes(60, apart=9.0)
    found = choose_setting(GaussianNB(), {"var_smoothing": [1e-9, 1e-3]}, X, y)
    assert found.claim.low == found.claim.high == 1
    assert any("all scores are alike" in note for note in found.table().notes)


@pytest.mark.parametrize("unit", [1e-170, 1e-310])
def test_r2_has_no_unit(unit):
    X, y = line(np.random.default_rng(0).normal(size=60))
    claims = [assess(LinearRegression(), X, t, metrics="r2")["r2"] for t in (y, y * unit)]
    assert claims[1].estimate == pytest.approx(claims[0].estimate, rel=1e-9)
    assert claims[1].low == pytest.approx(claims[0].low, rel=1e-9)


def test_r2_of_few_rows_may_cover_less():
    """The certificate of an interval that claimed more failed."""
    X, y = line(np.random.default_rng(0).normal(size=6))
    found = assess(LinearRegression(), X, y)
    assert found["r2"].covers == "perhaps less"
    assert found.certificate.holds


def test_names_of_scikit_learn_are_answered_with_ours():
    for name, ours in (("cv", "n_splits"), ("scoring", "metrics")):
        with pytest.raises(DataError, match=f"{ours} takes"):
            assess(GaussianNB(), *two_classes(60), **{name: 5})
