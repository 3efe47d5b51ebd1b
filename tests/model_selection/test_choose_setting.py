"""Choosing among settings: the rule, the correction for having chosen, and a checker that is not fooled."""

from dataclasses import replace

import numpy as np
import pytest
from joblib import parallel_config
from sklearn.datasets import load_diabetes, load_iris
from sklearn.linear_model import Ridge
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC

import certifit.model_selection.choosing.choose_setting as choosing
from certifit import DataError, choose_setting
from certifit.checkers.model_selection.choices import certify_choice
from certifit.checkers.model_selection.splits import SplitDeclaration, certify_splits, row_keys
from certifit.model_selection import GridSearchCV
from certifit.model_selection.choosing.choose_setting import make_claim
from certifit.plots.style import figures_apart

IRIS = load_iris(return_X_y=True)
GRID = {"n_neighbors": [60, 25, 9, 1]}


@pytest.fixture(scope="module")
def found():
    return choose_setting(KNeighborsClassifier(), GRID, *IRIS, n_splits=5, draws=100)


def test_the_best_is_grid_searchs(found):
    search = GridSearchCV(KNeighborsClassifier(), GRID, cv=list(found.plan.splits)).fit(*IRIS)
    np.testing.assert_allclose(found.claim.scores.mean(axis=0), search.cv_results_["mean_test_score"])
    assert found.params == search.best_params_
    assert np.array_equal(found.estimator.predict(IRIS[0]), search.predict(IRIS[0]))


def test_one_standard_error_takes_the_first_that_is_near_enough(found):
    simple = choose_setting(KNeighborsClassifier(), GRID, *IRIS, n_splits=5, draws=100, rule="one standard error")
    means, scores = simple.claim.scores.mean(axis=0), simple.claim.scores
    best = means.argmax()
    least = means[best] - np.sqrt(1 + 5 / 4) * scores[:, best].std() / np.sqrt(150)
    assert simple.claim.chosen == np.flatnonzero(means >= least)[0]
    assert simple.claim.chosen <= found.claim.chosen


def test_the_error_of_the_difference_sees_what_rows_have_in_common():
    """Rows are hard for all settings, ten times as much as these differ: paired, the better one wins."""
    rng = np.random.default_rng(0)
    hard, n = rng.normal(size=200), 200
    scores = np.column_stack([hard, hard + 0.1 + 0.01 * rng.normal(size=n), hard + 0.1 + 0.01 * rng.normal(size=n)])
    splits = certify_splits([(np.arange(100, 200), np.arange(100)), (np.arange(100), np.arange(100, 200))],
                            row_keys(np.arange(200.0)[:, None]), SplitDeclaration(tested=1))  # fmt: skip
    for rule, chosen in (("one standard error", 0), ("one standard error of the difference", 1)):
        claim = make_claim(scores, "accuracy", 0.9, 0, {"rule": rule, "draws": 40, "n_splits": 2})
        assert claim.chosen == chosen
        assert certify_choice(claim, splits).holds
        assert not certify_choice(replace(claim, paired=not claim.paired), splits).holds


def test_the_best_of_many_useless_settings_is_not_believed():
    """30 tables of 100 coins for each of 20 settings: the best looks like .59 (Φ⁻¹(20/21) · .05), and is worth .5."""
    rng, naive, corrected, hits = np.random.default_rng(0), [], [], 0
    for seed in range(30):
        scores = rng.integers(2, size=(100, 20)).astype(float)
        claim = make_claim(scores, "accuracy", 0.9, seed, {"rule": "best", "draws": 60, "n_splits": 5})
        naive.append(scores[:, claim.chosen].mean())
        corrected.append(claim.corrected)
        hits += claim.low <= 0.5 <= claim.high
    assert np.mean(naive) > 0.57
    assert abs(np.mean(corrected) - 0.5) < 0.02
    assert hits >= 24


def test_sums_choose_a_ridge_penalty():
    X, y = load_diabetes(return_X_y=True)
    found = choose_setting(Ridge(), {"alpha": [100.0, 1.0, 0.01]}, X, y, draws=50)
    search = GridSearchCV(
        Ridge(), {"alpha": [100.0, 1.0, 0.01]}, cv=list(found.plan.splits), scoring="neg_mean_squared_error"
    )
    assert found.params == search.fit(X, y).best_params_
    assert found.certificate.holds


def test_the_checker_refuses_what_does_not_follow(found):
    splits = certify_splits(found.plan.splits, row_keys(IRIS[0]), SplitDeclaration(tested=1))
    claim = found.claim
    assert found.certificate.holds
    assert certify_choice(claim, splits).holds
    for wrong in (
        replace(claim, chosen=0),
        replace(claim, corrected=claim.corrected + 0.01),
        replace(claim, low=claim.low + 0.01),
        replace(claim, values=claim.values + 0.01),
        replace(claim, seed=claim.seed + 1),
        replace(claim, confidence=0.99),
        replace(claim, inflation=1.0),
        replace(claim, scores=np.where(claim.scores == 0, np.nan, claim.scores)),
    ):
        assert not certify_choice(wrong, splits).holds, wrong


def test_a_time_budget_is_kept_and_told():
    found = choose_setting(KNeighborsClassifier(), GRID, *IRIS, n_splits=5, draws=20, max_time=0)
    assert len(found.settings) == 1
    assert "1 of 4 settings were tried" in str(found)
    assert found.certificate.holds


def test_results_show(found):
    assert found.to_frame()["chosen"].tolist().count("yes") == 1
    assert "<table>" in found._repr_html_()
    assert "corrected for a choice among 4" in " ".join(str(found).split())
    with figures_apart():
        assert found.plot().get_ylabel() == "accuracy"


def test_bad_input_is_answered_in_words():
    for grid in ([], "C", [1, 2]):
        with pytest.raises(DataError, match=r"a grid of \d settings"):
            choose_setting(SVC(), grid, *IRIS)
    with pytest.raises(DataError, match="Did you mean 'one standard error'"):
        choose_setting(SVC(), {"C": [1]}, *IRIS, rule="one standard eror")
    with pytest.raises(DataError, match="a mean over rows"):
        choose_setting(SVC(), {"C": [1]}, *IRIS, metric="f1_macro")
    with pytest.raises(DataError, match="n_repeats=3"):
        choose_setting(SVC(), {"C": [1]}, *IRIS, n_repeats=3)


def test_several_workers_choose_the_same():
    """Fits of all settings are one queue: their order is that of the settings, and an error names its own."""
    grid = {"n_neighbors": [45, 15, 5]}
    alone = choose_setting(KNeighborsClassifier(), grid, *IRIS, n_splits=5, draws=20)
    with parallel_config(backend="threading"):
        two = choose_setting(KNeighborsClassifier(), grid, *IRIS, n_splits=5, draws=20, n_jobs=2)
        with pytest.raises(DataError, match=r"the setting \{'n_neighbors': -1\}"):
            choose_setting(KNeighborsClassifier(), {"n_neighbors": [5, -1]}, *IRIS, n_splits=5, n_jobs=2)
    np.testing.assert_array_equal(alone.claim.scores, two.claim.scores)


def test_long_searches_take_all_cores_by_themselves(monkeypatch):
    """The first setting is timed; what is left then goes to processes, with the same scores."""
    X, y = load_iris(return_X_y=True)
    grid = {"n_neighbors": [15, 5, 1]}
    asked = []

    class Recorded(choosing.Parallel):
        def __init__(self, **terms):
            asked.append(terms["n_jobs"])
            super().__init__(**{**terms, "n_jobs": 1})

    monkeypatch.setattr(choosing, "Parallel", Recorded)
    monkeypatch.setattr(choosing, "thread_count", lambda: 3)
    short = choose_setting(KNeighborsClassifier(), grid, X, y, n_splits=5)
    assert asked == []
    monkeypatch.setattr(choosing.FitTimes.__init__, "__defaults__", (choosing.SpreadTuning(0.0, 1e9),))
    long = choose_setting(KNeighborsClassifier(), grid, X, y, n_splits=5)
    assert asked == [3]
    np.testing.assert_array_equal(short.claim.scores, long.claim.scores)
    choose_setting(KNeighborsClassifier(), grid, X, y, n_splits=5, n_jobs=1)
    assert asked == [3]


def test_fits_that_use_several_cores_are_left_alone():
    times = choosing.FitTimes()
    assert not times.spreads(100)  # nothing is known yet
    times.count, times.wall, times.cpu = 1, 5.0, 5.0
    assert not times.spreads(1)
    assert times.spreads(3) == (choosing.thread_count() > 1)
    times.cpu = 9.0
    assert not times.spreads(3)


def test_a_setting_that_fails_is_named_before_its_fold():
    with pytest.raises(DataError, match=r"the setting \{'alpha': -1\}: Ridge that fails on split 1 of"):
        choose_setting(Ridge(), {"alpha": [-1, 1]}, np.arange(40.0).reshape(20, 2), np.arange(20.0), n_splits=5)
