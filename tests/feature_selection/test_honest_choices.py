"""Random honest fits of selectors hold in fit and audit; every number they keep is looked at; scikit-learn's own."""

import copy
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn import feature_selection
from sklearn.datasets import load_diabetes, load_iris
from sklearn.feature_selection import chi2, f_classif, mutual_info_classif
from sklearn.linear_model import Ridge
from sklearn.naive_bayes import GaussianNB

from certifit import DataError, RecursiveElimination, SelectFeatures, SequentialSelector, audit

SMALL, LABELS = load_iris(return_X_y=True)
WIDE, AMOUNTS = (a[:80] for a in load_diabetes(return_X_y=True))
NARROW = WIDE[:, :5]
SCORES = ("anova", "chi2", "information", "binned_information", "jeffreys", "correlation", "regression_information",
          "variance")  # fmt: skip


@pytest.mark.parametrize("score", SCORES)
def test_filters_agree_with_their_audit(score):
    """Copies of columns, constants, separated classes, counts, sparse rows and float32."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        n, d = int(rng.integers(12, 80)), int(rng.integers(2, 9))
        X = np.abs(np.round(2 * rng.normal(size=(n, d)))) if seed % 2 else np.abs(rng.normal(size=(n, d)))
        X[:, 0] = X[:, -1] if seed % 3 else 1.0
        classes = np.arange(n) % int(rng.integers(2, 4))
        if seed % 5 == 0:
            X[:, 1] = classes  # infinite scores
        y = rng.normal(size=n) + X[:, 1] if "correlation" in score or "regression" in score else classes
        X = (np.asarray, sparse.csr_array, np.float32)[seed % 3](X)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model = SelectFeatures(score).fit(X, y)
        found = audit(model, X, y)
        assert model.certificate_.holds, (seed, model.certificate_.failures())
        assert found.holds, (seed, found.failures())
        assert found.claim == model.certificate_.claim


@pytest.mark.parametrize("seed", range(8))
def test_searches_agree_with_their_audit(seed):
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(20, 50)), int(rng.integers(2, 6))
    X = rng.normal(size=(n, d)) if seed % 2 else rng.integers(0, 3, (n, d)).astype(float)
    y = X[:, 0] + 0.3 * rng.normal(size=n)
    for model in (
        SequentialSelector(Ridge(), cv=3, direction=("forward", "backward")[seed % 2]),
        SequentialSelector(Ridge(), cv=3, n_features_to_select=1),
        RecursiveElimination(Ridge(), step=1 + seed % 3),
        RecursiveElimination(Ridge(), cv=3),
    ):
        model.fit(X, y)
        found = audit(model, X, y)
        assert model.certificate_.holds
        assert found.holds, (model, found.failures())
        assert found.claim == model.certificate_.claim
        assert found.objective == pytest.approx(model.certificate_.objective, rel=1e-10, nan_ok=True)


def changed(model, name, key, at, to):
    hurt = copy.deepcopy(model)
    array = getattr(hurt, name) if key is None else getattr(hurt, name)[key]
    array[at] = to(array[at])
    return hurt


def test_no_number_of_a_path_can_be_changed():
    """Each single score, error and column of each step, those between the first and the last included."""
    for model in (
        SequentialSelector(Ridge(), n_features_to_select=4, cv=2).fit(NARROW, AMOUNTS),
        SequentialSelector(Ridge(), n_features_to_select=2, cv=2, direction="backward").fit(NARROW, AMOUNTS),
    ):
        steps = len(model.path_["column"])
        for step in range(steps):
            other = int(np.flatnonzero(np.isfinite(model.candidate_scores_[step]))[0])
            lowered = changed(model, "candidate_scores_", None, (step, other), lambda s: s - 1e-6)
            wrong = [
                lowered,
                changed(model, "path_", "score", step, lambda s: s + 1e-6),
                changed(model, "path_", "error", step, lambda s: s * 1.001),
                changed(model, "path_", "column", step, lambda j: (j + 1) % 5),
            ]
            assert not [i for i, hurt in enumerate(wrong) if audit(hurt, NARROW, AMOUNTS).holds], step
        started = copy.deepcopy(model)
        started.start_score_ = 0.5
        assert not audit(started, NARROW, AMOUNTS).holds
        assert (
            audit(model, NARROW, AMOUNTS).facts["candidates scored again"]
            == np.isfinite(model.candidate_scores_).sum()
        )


def test_no_number_of_an_elimination_can_be_changed():
    model = RecursiveElimination(Ridge(), cv=3).fit(NARROW, AMOUNTS)
    assert audit(model, NARROW, AMOUNTS).holds
    for step in range(len(model.importances_)):
        least = int(np.nanargmin(model.importances_[step]))
        assert not audit(changed(model, "importances_", None, (step, least), lambda s: s / 2), NARROW, AMOUNTS).holds
    for at in range(len(model.path_["score"])):
        for key in ("score", "error", "n_features"):
            hurt = changed(model, "path_", key, at, lambda s: s - 1 if s >= 1 else s * 0.999)
            assert not audit(hurt, NARROW, AMOUNTS).holds, (key, at)
    for changes in ({"step": 2}, {"n_features_wanted_": model.n_features_wanted_ + 1}):
        hurt = copy.deepcopy(model)
        vars(hurt).update(changes)
        assert not audit(hurt, NARROW, AMOUNTS).holds, changes


@pytest.mark.parametrize(
    ("model", "changes", "words"),
    [
        (SequentialSelector(Ridge(), n_features_to_select=2, cv=2), {"n_features_to_select": 11}, "for 10 columns"),
        (
            SequentialSelector(Ridge(), n_features_to_select=2, cv=2),
            {"support_": np.ones(3, bool)},
            "support_ of shape",
        ),
        (
            SequentialSelector(Ridge(), n_features_to_select=2, cv=2),
            {"candidate_scores_": np.ones(3)},
            "candidate_scor",
        ),
        (RecursiveElimination(Ridge()), {"ranking_": np.ones(3)}, "ranking_ of shape"),
        (RecursiveElimination(Ridge()), {"n_features_to_select": 0}, "n_features_to_select=0; wanted 'auto'"),
        (RecursiveElimination(Ridge()), {"cv": 3}, "as many scores and errors"),
        (SelectFeatures("correlation"), {"k": 0}, "k=0 for 10 columns"),
        (SelectFeatures("correlation"), {"scores_": np.ones(3)}, "scores_ of shape"),
        (SelectFeatures("correlation"), {"pvalues_": None}, "those that its fit left"),
        (SelectFeatures("correlation"), {"support_": np.arange(10)}, "support_ of shape"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_attributes_that_do_not_fit_together(model, changes, words):
    model.fit(WIDE, AMOUNTS)
    vars(model).update(changes)
    with pytest.raises(DataError, match=words):
        audit(model, WIDE, AMOUNTS)


@pytest.mark.parametrize("changes", [{"k": 3}, {"score_func": "regression_information"}], ids=str)
def test_other_settings_do_not_pass(changes):
    model = SelectFeatures("correlation", k=4).fit(WIDE, AMOUNTS)
    assert not audit(model.set_params(**changes), WIDE, AMOUNTS).holds
    search = SequentialSelector(Ridge(), n_features_to_select=2, cv=2).fit(WIDE, AMOUNTS)
    for setting in ({"n_features_to_select": 1}, {"n_features_to_select": 3}, {"cv": 3}, {"direction": "backward"}):
        assert not audit(copy.deepcopy(search).set_params(**setting), WIDE, AMOUNTS).holds, setting


# ------------------------------------------------------------------------------------------ scikit-learn's selectors
@pytest.mark.parametrize(
    "theirs",
    [
        feature_selection.SelectKBest(f_classif, k=2),
        feature_selection.SelectKBest(chi2, k="all"),
        feature_selection.SelectPercentile(f_classif, percentile=50),
        feature_selection.SelectFpr(f_classif, alpha=1e-20),
        feature_selection.SelectFdr(chi2, alpha=1e-3),
        feature_selection.SelectFwe(chi2, alpha=1e-10),
        feature_selection.GenericUnivariateSelect(f_classif, mode="k_best", param=1),
        feature_selection.GenericUnivariateSelect(f_classif, mode="fdr", param=1e-30),
        feature_selection.SelectKBest(feature_selection.r_regression, k=2),
        feature_selection.SelectKBest(feature_selection.f_regression, k=2),
    ],
    ids=lambda model: type(model).__name__,
)
def test_filters_of_scikit_learn(theirs):
    theirs.fit(SMALL, LABELS)
    found = audit(theirs, SMALL, LABELS)
    assert found.holds, found.failures()
    theirs.scores_ = theirs.scores_ * 1.001
    assert not audit(theirs, SMALL, LABELS).holds


@pytest.mark.parametrize(
    ("theirs", "words"),
    [
        (feature_selection.SelectKBest(mutual_info_classif, k=2), "a score function among"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_selectors_of_scikit_learn_that_are_refused(theirs, words):
    with pytest.raises(DataError, match=words):
        audit(theirs.fit(SMALL, LABELS), SMALL, LABELS)


THEIR_SEARCHES = [
    feature_selection.RFE(Ridge(), n_features_to_select=2),
    feature_selection.RFE(Ridge(), step=2),
    feature_selection.RFECV(Ridge(), cv=2),
    feature_selection.SequentialFeatureSelector(GaussianNB(), cv=2, n_features_to_select=2),
    feature_selection.SequentialFeatureSelector(GaussianNB(), cv=2, direction="backward"),
    feature_selection.SequentialFeatureSelector(GaussianNB(), cv=2, tol=1e-3),
]


@pytest.mark.parametrize("theirs", THEIR_SEARCHES, ids=str)
def test_searches_of_scikit_learn_are_made_again(theirs):
    theirs = copy.deepcopy(theirs).fit(SMALL, LABELS)
    found = audit(theirs, SMALL, LABELS)
    assert found.kind == "greedy"
    assert found.holds, found.failures()
    assert "made again" in found.facts["steps"]
    kept, out = np.flatnonzero(theirs.support_)[0], np.flatnonzero(~theirs.support_)
    if not len(out):
        return
    theirs.support_ = theirs.support_.copy()
    theirs.support_[[kept, out[0]]] = False, True
    if hasattr(theirs, "ranking_"):
        theirs.ranking_[[kept, out[0]]] = theirs.ranking_[[out[0], kept]]
    assert not audit(theirs, SMALL, LABELS).holds
