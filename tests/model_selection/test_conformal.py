"""Conformal prediction: definitions by brute force, coverage on simulated rows, and an audit that is not fooled."""

import copy

import numpy as np
import pandas as pd
import pytest
from scipy.stats import beta, binom
from sklearn.datasets import load_diabetes, load_iris
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression, RidgeClassifier
from sklearn.naive_bayes import GaussianNB

from certifit import ConformalClassifier, ConformalRegressor, DataError, audit
from certifit.checkers.model_selection.conformal import ConformalClaim, certify_conformal, rows_needed, smallest_rank

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
    with pytest.raises(DataError, match="the data it was fitted on"):
        audit(model, X[:50], y[:50])


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
