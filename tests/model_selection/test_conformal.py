"""Conformal prediction: definitions by brute force, coverage on simulated rows, and an audit that is not fooled."""

import copy

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy import sparse
from scipy.stats import beta, binom
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.datasets import load_diabetes, load_iris
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression, RidgeClassifier
from sklearn.naive_bayes import GaussianNB

import certifit
from certifit import ConformalClassifier, ConformalRegressor, DataError, audit
from certifit.checkers.model_selection.conformal import ConformalClaim, certify_conformal, rows_needed, smallest_rank
from certifit.model_selection.conformal.base import ConformalTuning

DIABETES = load_diabetes(return_X_y=True)
IRIS = load_iris(return_X_y=True)


def skewed(n, rng):
    """Rows with errors that grow with the first column, and of no symmetric law."""
    X = rng.random((n, 2))
    return X, X @ [1.0, 2.0] + (0.1 + X[:, 0]) * (rng.exponential(size=n) - 1)


def test_ranks_and_rows_needed():
    """⌈(n + 1)(1 - α)⌉: 9 rows are needed for 90 %, 19 for 95 %, 99 for 99 %; exact products are not rounded up."""
    assert [rows_needed(c) for c in (0.5, 0.8, 0.9, 0.95, 0.99, 0.999)] == [1, 4, 9, 19, 99, 999]
    assert [smallest_rank(n, 0.9) for n in (9, 19, 20, 999)] == [9, 18, 19, 900]


def test_the_radius_is_the_kth_smallest_score():
    X, y = DIABETES
    model = ConformalRegressor(LinearRegression(), random_state=0).fit(X, y)
    rows = model.calibration_rows_
    train = np.setdiff1d(np.arange(len(y)), rows)
    scores = np.sort(np.abs(y[rows] - LinearRegression().fit(X[train], y[train]).predict(X[rows])))
    assert len(rows) == 111
    assert model.radius_[None] == pytest.approx(scores[101 - 1])  # ⌈112 · 0.9⌉ = 101
    ends = model.predict_interval(X[:5])
    np.testing.assert_allclose(ends.mean(axis=1), model.predict(X[:5]))
    np.testing.assert_allclose(np.ptp(ends, axis=1), 2 * model.radius_[None])


@pytest.mark.parametrize("method", ["cv+", "jackknife+"])
def test_folds_follow_barber_and_others(method):
    """Their definition, written out: order statistics of what each row's own model says, plus and minus its error."""
    X, y = DIABETES[0][:40], DIABETES[1][:40]
    new = DIABETES[0][40:44]
    model = ConformalRegressor(LinearRegression(), method=method, n_splits=5, random_state=0).fit(X, y)
    assert model.n_folds_ == (5 if method == "cv+" else 40)
    low, high = [], []
    for k in range(model.n_folds_):
        held_out = model.calibration_rows_[model.calibration_folds_ == k]
        train = np.setdiff1d(np.arange(40), held_out)
        fitted = LinearRegression().fit(X[train], y[train])
        for i in held_out:
            error = abs(y[i] - fitted.predict(X[[i]])[0])
            low.append(fitted.predict(new) - error)
            high.append(fitted.predict(new) + error)
    wanted = np.column_stack([np.sort(low, axis=0)[4 - 1], np.sort(high, axis=0)[37 - 1]])  # ⌊.1 · 41⌋, ⌈.9 · 41⌉
    np.testing.assert_allclose(model.predict_interval(new), wanted)
    assert "asked for" in model.certificate_.facts
    # 1 - 2α, less min(2(1 - 1/K)/(n/K + 1), (1 - K/n)/(K + 1)), which is 0 for K = n
    wanted = 80 if method == "jackknife+" else 100 * (0.8 - min(1.6 / 9, 0.875 / 6))
    assert f"at least {wanted:.4g} %" in model.certificate_.claim


def test_sets_follow_their_definition():
    X, y = IRIS
    for kind in ("threshold", "adaptive"):
        model = ConformalClassifier(GaussianNB(), score_kind=kind, calibration_size=0.4, random_state=0).fit(X, y)
        p = model.estimator_.predict_proba(X)
        for i in (0, 77, 106, 133):
            for j in range(3):
                score = 1 - p[i, j] if kind == "threshold" else p[i][p[i] >= p[i, j]].sum()
                assert model.predict_set(X[[i]])[0, j] == (score <= model.radius_[None])


def test_voted_sets_follow_romano_and_others():
    """CV+ for classes: a class is in the set where fewer than (1 - α)(n + 1) rows have a smaller score."""
    X, y = IRIS[0][::3], IRIS[1][::3]
    model = ConformalClassifier(GaussianNB(), method="cv+", n_splits=5, random_state=0).fit(X, y)
    new = IRIS[0][[1, 70, 106, 133]]
    counts = np.zeros((4, 3))
    for i, fold in zip(model.calibration_rows_, model.calibration_folds_, strict=True):
        fitted = model.estimators_[fold]
        own = 1 - fitted.predict_proba(X[[i]])[0, y[i]]
        counts += own < 1 - fitted.predict_proba(new)
    assert np.array_equal(model.predict_set(new), counts < 0.9 * 51)


def test_coverage_is_what_the_beta_law_says():
    """40 models of 49 calibration rows: coverages on 2000 new rows have the Beta law's mean, within 3 errors."""
    rng, shares = np.random.default_rng(0), []
    for seed in range(40):
        X, y = skewed(98, rng)
        model = ConformalRegressor(LinearRegression(), calibration_size=0.5, random_state=seed).fit(X, y)
        shares.append(model.covered(*skewed(2000, rng))[0])
    law = beta(45, 5)  # k = ⌈50 · .9⌉ of n = 49
    assert abs(np.mean(shares) - law.mean()) < 3 * law.std() / np.sqrt(40)
    assert 0.5 < np.std(shares) / law.std() < 1.5
    # a coverage of 82.3 % leaves 45 or more of 49 rows within the radius with a chance of 5 %
    assert "at least 82.3 %" in model.certificate_.facts["this model, with 95 % confidence"]
    assert binom.sf(44, 49, 0.823) == pytest.approx(0.05, abs=2e-3)


def test_groups_are_covered_each_for_itself():
    """Errors grow with the group: one radius for all covers the noisy half too rarely, one for each does not."""
    rng = np.random.default_rng(1)

    def draw(n):
        groups = rng.integers(2, size=n)
        X = rng.normal(size=(n, 2))
        return X, X.sum(axis=1) + rng.normal(size=n) * np.where(groups, 5.0, 0.5), groups

    X, y, groups = draw(2000)
    new, target, of = draw(4000)
    together = ConformalRegressor(LinearRegression(), random_state=0).fit(X, y)
    apart = ConformalRegressor(LinearRegression(), random_state=0).fit(X, y, groups)
    assert together.covered(new[of == 1], target[of == 1])[0] < 0.85
    for group in (0, 1):
        here = of == group
        assert 0.85 < apart.covered(new[here], target[here], of[here])[0] < 0.95
    assert "in every group" in apart.certificate_.claim
    with pytest.raises(DataError, match="a row of group 7"):
        apart.predict_interval(new[:1], [7])
    with pytest.raises(DataError, match="the group of each of the 3 rows"):
        apart.predict_interval(new[:3])


def test_classes_are_covered_each_for_itself():
    rng = np.random.default_rng(0)
    y = np.where(rng.random(6000) < 0.15, "rare", "usual")
    X = rng.normal(size=(6000, 2)) + 1.0 * (y == "rare")[:, None]
    model = ConformalClassifier(GaussianNB(), conditional="class", random_state=0).fit(X[:2000], y[:2000])
    plain = ConformalClassifier(GaussianNB(), random_state=0).fit(X[:2000], y[:2000])
    rare = y[2000:] == "rare"
    assert plain.covered(X[2000:][rare], y[2000:][rare])[0] < 0.6
    assert 0.82 < model.covered(X[2000:][rare], y[2000:][rare])[0] < 0.97
    assert set(model.radius_) == {"rare", "usual"}


def test_too_few_calibration_rows_say_how_many_are_needed():
    X, y = DIABETES[0][:60], DIABETES[1][:60]
    with pytest.raises(DataError, match=r"Got 15 calibration rows for a coverage of 0.95; wanted at least 19\."):
        ConformalRegressor(LinearRegression(), coverage=0.95).fit(X, y)
    with pytest.raises(DataError, match=r"in group 'b' for a coverage of 0\.9; wanted at least 9"):
        ConformalRegressor(LinearRegression(), random_state=0).fit(X, y, ["a"] * 55 + ["b"] * 5)
    with pytest.raises(DataError, match="wanted at least 9"):
        ConformalClassifier(GaussianNB(), conditional="class", calibration_size=0.1).fit(*IRIS)


def test_bad_input_is_answered_in_words():
    X, y = IRIS
    with pytest.raises(DataError, match="without predict_proba"):
        ConformalClassifier(RidgeClassifier()).fit(X, y)
    with pytest.raises(DataError, match="coverage=90"):
        ConformalClassifier(GaussianNB(), coverage=90).fit(X, y)
    with pytest.raises(DataError, match="a class without a row"):
        ConformalClassifier(GaussianNB(), method="jackknife+").fit(X[:101], y[:101])
    with pytest.raises(DataError, match="the class "):
        ConformalClassifier(GaussianNB().fit(X[:100], y[:100]), method="prefit").fit(X, y)
    with pytest.raises(DataError, match="missing ones"):
        ConformalRegressor(LinearRegression()).fit(X, np.full(150, np.nan))
    with pytest.raises(DataError, match="groups with method='cv\\+'"):
        ConformalRegressor(LinearRegression(), method="cv+").fit(X, y, y)


MODELS = {
    "split": (ConformalRegressor(RandomForestRegressor(5), random_state=0), DIABETES),
    "cv+": (ConformalRegressor(LinearRegression(), method="cv+", n_splits=4, random_state=0), DIABETES),
    "prefit": (ConformalRegressor(LinearRegression().fit(*DIABETES), method="prefit"), DIABETES),
    "sets": (ConformalClassifier(GaussianNB(), calibration_size=0.4, random_state=0), IRIS),
    "by class": (ConformalClassifier(GaussianNB(), conditional="class", calibration_size=0.4, random_state=0), IRIS),
}


@pytest.mark.parametrize("name", MODELS)
def test_the_audit_holds_for_honest_models_and_for_no_tampered_one(name):
    model, (X, y) = MODELS[name]
    model.fit(X, y)
    assert audit(model, X, y).holds, audit(model, X, y)
    frame = pd.DataFrame(X)
    assert audit(copy.deepcopy(model).fit(frame.to_numpy(), y), X, y).holds
    tampers = {
        "scores_": lambda scores: scores * 0.9,
        "n_folds_": lambda folds: folds + 1,
        "calibration_rows_": lambda rows: rows[::-1].copy(),
    }
    if not model.n_folds_:
        tampers["coverage"] = lambda coverage: coverage + 0.05
        tampers["radius_"] = lambda radius: {group: value * 0.8 for group, value in radius.items()}
    if name != "prefit":
        tampers["estimators_"] = lambda fitted: [copy.deepcopy(fitted[0]).fit(X, y), *fitted[1:]]
    tampers["estimator_"] = lambda fitted: copy.deepcopy(fitted).fit(X[::2], y[::2])
    for attribute, change in tampers.items():
        wrong = copy.copy(model)
        setattr(wrong, attribute, change(getattr(model, attribute)))
        assert not audit(wrong, X, y).holds, attribute
    if model.method != "split":
        assert not audit(without_its_worst_rows(model, 10), X, y).holds
    with pytest.raises(DataError, match="the data it was fitted on"):
        audit(model, X[:50], y[:50])


def without_its_worst_rows(model, worst):
    """A calibration that keeps quiet about rows that the model is wrong about, and fits its radius to the others."""
    kept = np.sort(np.argsort(model.scores_)[:-worst])
    wrong = copy.copy(model)
    for name in ("scores_", "calibration_rows_", "calibration_folds_"):
        setattr(wrong, name, getattr(model, name)[kept])
    if not model.n_folds_:
        k = smallest_rank(len(kept), model.coverage)
        wrong.radius_ = {None: float(np.sort(wrong.scores_)[k - 1])}
    return wrong


def test_leaving_out_single_rows_is_no_name_for_folds():
    X, y = DIABETES[0][:60], DIABETES[1][:60]
    model = ConformalRegressor(LinearRegression(), method="cv+", n_splits=6, random_state=0).fit(X, y)
    model.method = "jackknife+"
    found = audit(model, X, y)
    assert not found.holds
    assert any("single rows" in failure for failure in found.failures())


def test_a_radius_is_proved_by_counting():
    scores = np.arange(1.0, 20.0)  # 19 rows: k = 18
    assert certify_conformal(ConformalClaim(0.9, {None: scores}, {None: 18.0})).holds
    for radius in (17.0, 19.0, 17.999, np.nan):
        assert not certify_conformal(ConformalClaim(0.9, {None: scores}, {None: radius})).holds
    assert not certify_conformal(ConformalClaim(0.96, {None: scores}, {None: 19.0})).holds  # 20 rows are needed


def test_the_summary_has_a_line_for_each_radius():
    X, y = IRIS
    model = ConformalClassifier(GaussianNB(), conditional="class", calibration_size=0.4, random_state=0).fit(X, y)
    found = model.summary()
    assert max(map(len, str(found).splitlines())) <= 80
    frame = found.to_frame()
    assert frame["group"].tolist() == ["0", "1", "2"]
    assert frame["rows"].sum() == 60
    n = int(frame["rows"][0])
    k = smallest_rank(n, 0.9)
    # The coverage of one model is Beta(k, n + 1 - k): a sum of binomial chances.
    assert binom.sf(k - 1, n, frame["this model, at least"][0]) == pytest.approx(0.05)
    assert "<table>" in found._repr_html_()
    assert len(found.plot().lines) == 2 * 3 + 1
    folds = ConformalRegressor(LinearRegression(), method="cv+", n_splits=3).fit(*DIABETES).summary()
    assert "every calibration row votes" in str(folds).replace("\n", " ")


class Columns(LinearRegression):
    """Answers in a column, as some libraries do; beyond x = 5 with what is no number."""

    def predict(self, X):
        said = super().predict(X)
        return np.where(np.asarray(X)[:, 0] > 5, np.nan, said)[:, None]


class LostProbabilities(GaussianNB):
    """Has no numbers for rows beyond x = 50, where sums of likelier classes would be 0."""

    def predict_proba(self, X):
        said = super().predict_proba(X)
        said[np.asarray(X)[:, 0] > 50] = np.nan
        return said


@pytest.mark.parametrize("method", ["split", "cv+"])
def test_predictions_that_are_no_numbers_have_no_interval(method):
    X, y = DIABETES
    model = ConformalRegressor(Columns(), method=method, random_state=0).fit(X, y)
    plain = ConformalRegressor(LinearRegression(), method=method, random_state=0).fit(X, y)
    assert np.array_equal(model.predict_interval(X[:3]), plain.predict_interval(X[:3]))
    with pytest.raises(DataError, match="a prediction that is no number, of row 1"):
        model.predict_interval(np.stack([X[0], X[0] + 10]))
    flowers, kinds = IRIS
    for score_kind in ("threshold", "adaptive"):
        sets = ConformalClassifier(
            LostProbabilities(), method=method, score_kind=score_kind, calibration_size=0.4, random_state=0
        ).fit(flowers, kinds)
        with pytest.raises(DataError, match="a prediction that is no number, of row 1"):
            sets.predict_set(np.stack([flowers[0], flowers[0] + 100]))
        with pytest.raises(DataError, match="predictions that are no numbers, of row"):
            sets.fit(flowers + 100, kinds)


def test_more_bad_input_is_answered_in_words():
    X, y = IRIS
    for model, target, groups, words in (
        (ConformalRegressor(GaussianNB()), y, None, "which is a classifier"),
        (ConformalRegressor(LinearRegression), y, None, "an estimator with predict"),
        (ConformalRegressor(LinearRegression(), method="cv+", coverage=0.5), y, None, "a coverage above 0.5"),
        (ConformalRegressor(LinearRegression()), y, np.array([None, "a"], object)[y % 2], "row 0 without a group"),
        (ConformalRegressor(LinearRegression()), y, np.where(y, y, np.nan), "row 0 without a group"),
        (ConformalClassifier(GaussianNB()), np.array([None, "a", "b"], object)[y], None, "several types"),
        (ConformalClassifier(GaussianNB()), np.where(y, y, np.nan), None, "missing labels"),
        (ConformalClassifier(GaussianNB()), 0 * y, None, "one class"),
        (ConformalRegressor(LinearRegression(), method="jackknife+"), y[:8], None, r"Give more rows, or ask for"),
    ):
        with pytest.raises(DataError, match=words):
            model.fit(X[: len(target)], target, groups)


@pytest.mark.parametrize("form", [sparse.coo_matrix, pa.table, pd.DataFrame, np.ndarray.tolist])
def test_tables_of_any_form_are_split(form):
    X, y = IRIS
    table = form({f"x{j}": X[:, j] for j in range(4)}) if form is pa.table else form(X)
    model = ConformalRegressor(certifit.Ridge(), method="cv+", n_splits=3, random_state=0).fit(table, y[:, None])
    np.testing.assert_allclose(
        model.predict_interval(table), clone(model).fit(X, y).predict_interval(X), rtol=1e-9, atol=1e-9
    )
    assert audit(model, table, y).holds


def test_a_generator_among_the_settings_is_made_a_seed():
    model = ConformalRegressor(RandomForestRegressor(3, random_state=np.random.RandomState(0)), random_state=0)
    assert audit(model.fit(*DIABETES), *DIABETES).holds


def test_every_fold_is_fitted_again():
    """One copy has seen its rows, and the scores are those of that copy: both hold together, but not with a fit."""
    X, y = DIABETES
    model = ConformalRegressor(LinearRegression(), method="cv+", n_splits=5, random_state=0).fit(X, y)
    wrong, rows = copy.deepcopy(model), model.calibration_rows_[model.calibration_folds_ == 3]
    wrong.estimators_[3] = LinearRegression().fit(X, y)
    wrong.scores_[model.calibration_folds_ == 3] = np.abs(y[rows] - wrong.estimators_[3].predict(X[rows]))
    assert not audit(wrong, X, y).holds
    assert audit(model, X, y).facts["copies fitted again"] == "5 of 5"
    grouped = ConformalRegressor(LinearRegression(), random_state=0).fit(X, y, np.arange(len(y)) % 2)
    assert "as stored" in audit(grouped, X, y).facts["groups"]
    grouped.calibration_strata_ = 1 - grouped.calibration_strata_
    assert not audit(grouped, X, y).holds


def test_folds_of_unequal_size_have_a_bound_of_their_own():
    """1 - 2 (K + n - k) / (n + K): twice the weighted mean of p-values of K folds, whose votes n - k fall short."""
    scores = {None: np.arange(43.0)}  # 43 rows in 5 folds; k = ⌈44 · .9⌉ = 40
    claim = certify_conformal(ConformalClaim(0.9, scores, {}, n_folds=5)).claim
    assert f"at least {100 * (1 - 2 * 8 / 48):.4g} %" in claim
    equal = certify_conformal(ConformalClaim(0.9, {None: np.arange(40.0)}, {}, n_folds=5)).claim
    assert f"at least {100 * (0.8 - (1 - 5 / 40) / 6):.4g} %" in equal


def test_a_fitted_estimator_is_taken_on_trust_and_said_so():
    X, y = DIABETES
    model = ConformalRegressor(LinearRegression().fit(X[:200], y[:200]), method="prefit").fit(X[200:], y[200:])
    for certificate in (model.certificate_, audit(model, X[200:], y[200:])):
        assert "came fitted" in certificate.facts["assumed"]
        assert certificate.holds


def test_many_new_rows_are_answered_in_parts():
    X, y = DIABETES[0][:60], DIABETES[1][:60]
    model = ConformalRegressor(LinearRegression(), method="jackknife+").fit(X, y)
    whole = model.predict_interval(DIABETES[0])
    model._tuning = ConformalTuning(votes_at_once=700)
    assert np.array_equal(model.predict_interval(DIABETES[0]), whole)


class Constant(RegressorMixin, BaseEstimator):
    """Answers 0."""

    def fit(self, X, y):
        self.level_ = 0.0
        return self

    def predict(self, X):
        return np.zeros(len(X))


def test_ties_cover_more_and_tiny_sets_cover_exactly():
    """9 calibration rows: a new row is beyond the largest of 9 scores with a chance of 1/10, and less with ties."""
    rng, missed, tied = np.random.default_rng(0), 0, 0
    model = Constant().fit(None, None)
    for _ in range(400):
        y = rng.normal(size=19)
        for target in (y, np.round(y)):
            fitted = ConformalRegressor(model, method="prefit").fit(np.zeros((9, 1)), target[:9])
            ends = fitted.predict_interval(np.zeros((10, 1)))
            out = np.count_nonzero((target[9:] < ends[:, 0]) | (target[9:] > ends[:, 1]))
            missed, tied = (missed + out, tied) if target is y else (missed, tied + out)
    # The share that one calibration misses is Beta(1, 9), of variance .0082; ten tested rows add theirs.
    assert abs(missed / 4000 - 0.1) < 3 * np.sqrt((0.0082 + 0.09 / 10) / 400)
    assert tied / 4000 < 0.06


def test_weights_are_refused_with_what_to_do_instead():
    """Equal weights change nothing; a fit with weights of its own is calibrated as it is."""
    X, y = DIABETES
    w = np.random.default_rng(0).uniform(0.5, 2, len(y))
    model = ConformalRegressor(LinearRegression(), random_state=0)
    with pytest.raises(DataError, match=r"different weights; wanted rows that count alike.*method='prefit'"):
        model.fit(X, y, sample_weight=w)
    assert not hasattr(model, "certificate_")
    with pytest.raises(DataError, match="colour in fit; wanted X, y and groups"):
        model.fit(X, y, colour="red")
    same = model.fit(X, y, sample_weight=np.ones(len(y))).radius_[None]
    assert same == model.fit(X, y).radius_[None]
    first, rest = slice(0, 200), slice(200, None)
    fitted = LinearRegression().fit(X[first], y[first], w[first])
    assert ConformalRegressor(fitted, method="prefit").fit(X[rest], y[rest]).certificate_.holds
