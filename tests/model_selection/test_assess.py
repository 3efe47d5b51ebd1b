"""Scores on new rows: estimates against scikit-learn and brute force, errors in words, any estimator."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.stats import t as student
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, Ridge, RidgeClassifier
from sklearn.metrics import get_scorer, r2_score
from sklearn.model_selection import cross_val_predict
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import certifit
from certifit import DataError, assess
from certifit.checkers.model_selection.intervals import certify_intervals
from certifit.model_selection import BootstrapSplit, KFold, cross_val_score
from certifit.model_selection.assessment.metrics import ROW_METRICS
from certifit.model_selection.assessment.plans import certify_plan

IRIS = load_iris(return_X_y=True)
CANCER = load_breast_cancer(return_X_y=True)
DIABETES = load_diabetes(return_X_y=True)


class Lost(DummyRegressor):
    """Answers nothing."""

    def predict(self, X):
        return np.full(len(X), np.nan)


@pytest.mark.parametrize("method", ["holdout", "subsampling", "k-fold", "repeated", "bootstrap", ".632", ".632+"])
def test_every_method_has_an_interval_that_holds(method):
    options = {} if method == "holdout" else {"n_splits": 6}
    found = assess(GaussianNB(), *IRIS, method=method, metrics=["accuracy", "neg_log_loss"], **options)
    assert found.certificate.holds, found.certificate
    for claim in found.claims:
        assert claim.low < claim.estimate < claim.high
    assert 0.9 < found["accuracy"].estimate < 1
    assert found["accuracy"].high <= 1


def test_folds_are_scored_as_scikit_learn_scores_them():
    cv = KFold(5, shuffle=True, random_state=3)
    found = assess(Ridge(), *DIABETES, method=cv, metrics=["r2", "neg_mean_squared_error", "neg_max_error"])
    for metric in ("neg_mean_squared_error", "neg_max_error"):
        theirs = cross_val_score(Ridge(), *DIABETES, cv=cv, scoring=metric)
        np.testing.assert_allclose(found[metric].values, theirs, rtol=1e-12)
        assert found[metric].estimate == pytest.approx(theirs.mean(), rel=1e-12)

    sizes = [len(test) for _, test in found.plan.splits]
    together = r2_score(DIABETES[1], cross_val_predict(Ridge(), *DIABETES, cv=cv))
    assert np.average(found["r2"].values, weights=sizes) == pytest.approx(together, rel=1e-12)
    assert found["r2"].covers == "at least"


def test_the_interval_of_r2_is_that_of_a_ratio_of_means():
    """Its logarithm's error is the jackknife's (Efron & Tibshirani, 1993, equation 11.5): rows are left out here."""
    found = assess(Ridge(), *DIABETES, method="holdout", metrics="r2")
    (train, test), claim = found.plan.splits[0], found["r2"]
    y = DIABETES[1][test]
    said = Ridge().fit(DIABETES[0][train], DIABETES[1][train]).predict(DIABETES[0][test])
    assert claim.estimate == pytest.approx(r2_score(y, said), rel=1e-12)
    n, rows = len(y), np.arange(len(y))
    without = np.array([np.log(1 - r2_score(y[rows != i], said[rows != i])) for i in rows])
    error = np.sqrt((n - 1) / n * ((without - without.mean()) ** 2).sum())
    reach = student.ppf(0.95, len(y) - 1) * error
    ends = [1 - (1 - claim.estimate) * np.exp(by) for by in (reach, -reach)]
    np.testing.assert_allclose([claim.low, claim.high], ends, rtol=1e-12)
    assert found.certificate.holds
    for wrong in (replace(claim, low=claim.low + 0.01), replace(claim, covers="at least")):
        assert not certify_intervals([wrong], certify_plan(found.plan, found.problem), found.plan.sizes()).holds


def test_few_rows_and_few_members_are_said_to_cover_perhaps_less():
    few = assess(Ridge(), *DIABETES, method="holdout", test_size=0.1, metrics="neg_mean_squared_error")
    many = assess(Ridge(), *DIABETES, method="holdout", test_size=0.5, metrics="neg_mean_absolute_error")
    assert few.claims[0].covers == "perhaps less"
    assert "45 tested rows are few" in str(few).replace("\n", " ")
    assert many.claims[0].covers == "about"
    bag = assess(RandomForestClassifier(50, random_state=0), *IRIS, method="out-of-bag")["accuracy"]
    assert bag.covers == "perhaps less"
    right = assess(DummyRegressor(strategy="constant", constant=1.0), np.ones((40, 1)), np.ones(40), metrics="r2")
    assert right["r2"].estimate == 1.0


@pytest.mark.parametrize("metric", sorted({*ROW_METRICS} - {"neg_reconstruction_error"}))  # which they have not
@pytest.mark.parametrize("data", [IRIS, CANCER], ids=["three classes", "two classes"])
def test_scores_of_rows_have_the_mean_that_scikit_learn_says(metric, data):
    if ROW_METRICS[metric].classes:
        (X, y), model = data, GaussianNB()
    else:
        (X, y), model = DIABETES, LinearRegression()
    found = assess(model, X, y, method="holdout", metrics=metric)
    train, test = found.plan.splits[0]
    wanted = get_scorer(metric)(clone(model).fit(X[train], y[train]), X[test], y[test])
    assert found[metric].estimate == pytest.approx(wanted, rel=1e-10)
    assert found.certificate.holds


def test_the_corrected_t_is_nadeau_and_bengios():
    """J = 3 scores .8, .9, 1.0 of tests half as large as the training sets: S = 0.1, √(1/3 + 1/2) = .91287."""
    splits = [(np.arange(100), np.arange(100, 150))] * 3
    X, y = np.zeros((150, 1)), np.arange(150) % 2
    scores = iter([0.8, 0.9, 1.0])
    found = assess(DummyClassifier(), X, y, method=splits, metrics={"given": lambda *_: next(scores)})
    assert found["given"].estimate == pytest.approx(0.9)
    # quantile .95 of Student's t with 2 degrees of freedom: 2.919986 (tables)
    assert found["given"].high - 0.9 == pytest.approx(2.919986 * 0.1 * 0.9128709, rel=1e-6)


def test_leave_one_out_is_brute_force():
    X, y = IRIS[0][::3], IRIS[1][::3]
    found = assess(KNeighborsClassifier(3), X, y, method="leave-one-out")
    right = [
        KNeighborsClassifier(3).fit(np.delete(X, i, 0), np.delete(y, i)).predict(X[i : i + 1])[0] == y[i]
        for i in range(len(y))
    ]
    assert found["accuracy"].estimate == pytest.approx(np.mean(right))
    assert found.n_fits == 50


def test_632_and_632_plus_follow_efron_and_tibshirani():
    """Their formulas, written out anew on the same samples; a nearest neighbour fits its own rows perfectly."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 5)), np.arange(40) % 2
    model = KNeighborsClassifier(1)
    claims = {m: assess(model, X, y, method=m, n_splits=15)["accuracy"] for m in ("bootstrap", ".632", ".632+")}
    plan = assess(model, X, y, method="bootstrap", n_splits=15).plan
    wrong, left = np.zeros(40), np.zeros(40)
    for train, test in plan.splits:
        wrong[test] += model.fit(X[train], y[train]).predict(X[test]) != y[test]
        left[test] += 1
    left_out = np.mean(wrong / left)
    said = model.fit(X, y).predict(X)
    apparent = np.mean(said != y)
    gamma = sum(np.mean(y == k) * (1 - np.mean(said == k)) for k in (0, 1))
    relative = (min(left_out, gamma) - apparent) / (gamma - apparent)
    weight = 0.632 / (1 - 0.368 * relative)
    assert 1 - claims["bootstrap"].estimate == pytest.approx(left_out)
    assert 1 - claims[".632"].estimate == pytest.approx(0.368 * apparent + 0.632 * left_out)
    assert 1 - claims[".632+"].estimate == pytest.approx((1 - weight) * apparent + weight * min(left_out, gamma))
    # no column says anything of y: .632+ is near one half where .632 is far too hopeful (their section 3)
    assert 1 - claims[".632"].estimate < 0.4
    assert 0.4 < 1 - claims[".632+"].estimate < 0.6


def test_nested_folds_follow_bates_hastie_and_tibshirani():
    """Algorithm 1 written out anew: every inner fold is fitted by itself, none is shared."""
    X, y = DIABETES[0][:90], DIABETES[1][:90]
    folds = 5
    found = assess(
        LinearRegression(), X, y, method="nested", n_splits=folds, n_repeats=2, metrics="neg_mean_squared_error"
    )
    claim = found["neg_mean_squared_error"]
    splits = found.plan.splits
    a, b, inner, outer = [], [], [], []
    for repeat in (splits[:folds], splits[folds:]):
        tests = [test for _, test in repeat]
        for train, test in repeat:
            e_in = []
            for other in tests:
                if not set(other) & set(test):
                    rest = np.setdiff1d(train, other)
                    e_in += [*(y[other] - LinearRegression().fit(X[rest], y[rest]).predict(X[other])) ** 2]
            e_out = (y[test] - LinearRegression().fit(X[train], y[train]).predict(X[test])) ** 2
            a.append((np.mean(e_in) - e_out.mean()) ** 2)
            b.append(e_out.var(ddof=1) / len(test))
            inner += e_in
            outer += [*e_out]
    wanted = np.mean(inner) - (1 + (folds - 2) / folds) * (np.mean(inner) - np.mean(outer))
    assert -claim.estimate == pytest.approx(wanted, rel=1e-9)
    naive = np.std(outer[:90], ddof=1) / np.sqrt(90)
    error = np.clip(np.sqrt(max(0, np.mean(a) - np.mean(b)) * (folds - 1) / folds), naive, naive * np.sqrt(folds))
    assert claim.high - claim.estimate == pytest.approx(student.ppf(0.95, 89) * error, rel=1e-6)
    assert found.n_fits == 2 * (5 + 10)
    assert found.certificate.holds


def test_out_of_bag_is_the_forests_own_score():
    model = RandomForestClassifier(50, random_state=0)
    found = assess(model, *IRIS, method="out-of-bag")
    theirs = RandomForestClassifier(50, random_state=0, oob_score=True).fit(*IRIS)
    assert found["accuracy"].estimate == pytest.approx(theirs.oob_score_, abs=1e-12)
    assert found.n_fits == 1
    with pytest.raises(DataError, match="a bag or a forest"):
        assess(GaussianNB(), *IRIS, method="out-of-bag")


def test_the_default_says_why():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20_000, 2)), rng.integers(2, size=20_000)
    for n, method in ((500, "repeated"), (1000, "k-fold"), (20_000, "holdout")):
        found = assess(GaussianNB(), X[:n], y[:n])
        assert found.plan.method == method
        assert str(n) in found.plan.why
        assert found.plan.why in " ".join(str(found).split())
    assert assess(GaussianNB(), X[:60], y[:60], groups=np.arange(60) // 3).plan.method == "k-fold"


def test_groups_stay_together_and_take_part_in_the_certificate():
    groups = np.arange(150) % 30
    found = assess(GaussianNB(), *IRIS, groups=groups, n_splits=5)
    assert all(not set(groups[train]) & set(groups[test]) for train, test in found.plan.splits)
    assert found.certificate.holds
    one = assess(GaussianNB(), *IRIS, groups=groups, method="holdout")["accuracy"]
    assert one.way == "none"
    assert "depend on each other" in one.assumption
    assert np.isnan(one.low)
    with pytest.raises(DataError, match="30 groups for 40 folds"):
        assess(GaussianNB(), *IRIS, groups=groups, n_splits=40)
    with pytest.raises(DataError, match="keeps groups together"):
        assess(GaussianNB(), *IRIS, groups=groups, method="leave-one-out")


def test_rare_classes_do_not_stop_an_assessment():
    X, y = np.vstack([IRIS[0], IRIS[0][:2] + 9]), np.append(IRIS[1], [3, 3])
    found = assess(GaussianNB(), X, y, method="k-fold", metrics=["accuracy", "neg_log_loss"])
    assert "fewer than 10 rows are not in every fold: 3" in str(found)
    assert found.tested.answers["predict_proba"].shape == (152, 4)


@pytest.mark.parametrize("form", [pd.DataFrame, sparse.csr_array, lambda X: X.tolist()], ids=["frame", "csr", "list"])
def test_tables_of_any_kind(form):
    model = RidgeClassifier()
    found = assess(model, form(IRIS[0]), IRIS[1], method="k-fold", n_splits=3)
    assert found["accuracy"].estimate == assess(model, *IRIS, method="k-fold", n_splits=3)["accuracy"].estimate


def test_pipelines_words_and_our_own_estimators():
    words = np.array(["setosa", "versicolor", "virginica"])[IRIS[1]]
    model = make_pipeline(StandardScaler(), RidgeClassifier())
    found = assess(model, IRIS[0], words, method="holdout", metrics=["accuracy", "f1_macro"])
    assert found["f1_macro"].way == "percentiles"
    assert found["f1_macro"].low < found["f1_macro"].estimate < found["f1_macro"].high
    ours = assess(certifit.GaussianNB(), *IRIS, method="k-fold", n_splits=3)
    theirs = assess(GaussianNB(), *IRIS, method="k-fold", n_splits=3)
    assert ours["accuracy"].estimate == pytest.approx(theirs["accuracy"].estimate, abs=0.01)


class FailsOnce(ClassifierMixin, BaseEstimator):
    """Fails where row 7 of the table is not among those fitted."""

    def fit(self, X, y):
        if not np.any(X[:, 0] == 7.0):
            raise ArithmeticError("no row 7")
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.zeros(len(X), dtype=int)


def test_bad_input_is_answered_in_words():
    X, y = np.arange(40.0)[:, None], np.arange(40) % 2
    with pytest.raises(DataError, match=r"fails on split 1 of 4, fitted to 30 rows of 2 classes .*no row 7"):
        assess(FailsOnce(), X, y, method=KFold(4))
    with pytest.raises(DataError, match="Did you mean 'k-fold'"):
        assess(GaussianNB(), X, y, method="kfold")
    with pytest.raises(DataError, match="Did you mean 'accuracy'"):
        assess(GaussianNB(), X, y, metrics="acuracy")
    with pytest.raises(DataError, match="n_splits=3 with method='holdout'"):
        assess(GaussianNB(), X, y, method="holdout", n_splits=3)
    with pytest.raises(DataError, match="confidence=95"):
        assess(GaussianNB(), X, y, confidence=95)
    with pytest.raises(DataError, match="a classifier or a regressor"):
        assess(StandardScaler(), X, y)
    with pytest.raises(DataError, match="one class"):
        assess(GaussianNB(), X, np.zeros(40, dtype=int))
    with pytest.raises(DataError, match="missing or infinite targets"):
        assess(LinearRegression(), X, np.full(40, np.nan))
    with pytest.raises(DataError, match="'r2' with method='leave-one-out'"):
        assess(LinearRegression(), X, y, metrics="r2", method="leave-one-out")
    with pytest.raises(DataError, match="without predict_proba"):
        assess(RidgeClassifier(), X, y, metrics="neg_log_loss")
    with pytest.raises(DataError, match="for a regressor"):
        assess(LinearRegression(), X, y, metrics="accuracy")
    with pytest.raises(DataError, match="40 rows for 50 folds"):
        assess(LinearRegression(), X, y, n_splits=50, method="k-fold")


def test_scores_that_are_no_numbers_name_their_split():
    X, y = np.arange(8.0)[:, None], np.arange(8.0)
    with pytest.raises(DataError, match=r"nan on split 1 of 10, 45 of whose rows have predictions that are no numb"):
        assess(Lost(), *DIABETES, method="k-fold")
    with pytest.raises(DataError, match=r"nan on split 1 of 2, a test of 4 rows"):
        assess(LinearRegression(), X, y, method=KFold(2), metrics={"nan": lambda *_: float("nan")})


def test_the_estimator_is_not_changed_and_a_seed_gives_the_same():
    model = GaussianNB()
    first, again, other = (assess(model, *IRIS, method="k-fold", random_state=seed) for seed in (0, 0, 1))
    assert not hasattr(model, "theta_")
    assert first["accuracy"].values.tolist() == again["accuracy"].values.tolist()
    assert first.certificate.facts == again.certificate.facts
    assert first.certificate.facts != other.certificate.facts


def test_results_print_show_and_turn_into_frames():
    found = assess(LinearRegression(), *DIABETES, method=BootstrapSplit(5, 0))
    frame = found.to_frame()
    assert frame["metric"].tolist() == ["neg_mean_absolute_error", "r2"]
    assert "<table>" in found._repr_html_()
    assert "<details><summary>Certificate: statistical, holds</summary>" in found._repr_html_()
    assert "BootstrapSplit(n_splits=5" in str(found)
    with pytest.raises(KeyError, match="there are"):
        found["accuracy"]
    with pytest.raises(DataError, match="one of a classifier"):
        found.roc()


@pytest.mark.parametrize("method", ["k-fold", "holdout"])
def test_scores_that_are_all_alike_are_no_proof_of_perfection(method):
    """A rule that holds on every row seen may fail on one in thirty: an interval without width says so."""
    X = np.r_[np.zeros(20), np.ones(20)][:, None] + 0.01 * np.arange(40)[:, None]
    y = np.repeat([0, 1], 20)
    found = assess(KNeighborsClassifier(1), X, y, method=method, metrics=["accuracy", "f1"])
    for claim in found.claims:
        if claim.low == claim.high:
            assert claim.covers == "perhaps less"
            assert "alike" in claim.assumption
    assert found.claims[1].low == found.claims[1].high == 1
    boast = replace(found.claims[1], covers="at least")
    assert not certify_intervals([boast], None).holds
    assert found.certificate.holds


def test_intervals_end_where_scores_do():
    metrics = ["f1_macro", "roc_auc_ovr", "balanced_accuracy"]
    found = assess(GaussianNB(), *IRIS, method="k-fold", n_splits=3, metrics=metrics)
    assert all(claim.high <= 1 for claim in found.claims)
    assert found.certificate.holds


def test_sparse_tables_of_any_format_are_split():
    X, y = IRIS
    csr, coo = (
        assess(RidgeClassifier(), table, y, method="k-fold", n_splits=3)
        for table in (sparse.csr_array(X), sparse.coo_array(X))
    )
    assert coo.claims[0].estimate == csr.claims[0].estimate
