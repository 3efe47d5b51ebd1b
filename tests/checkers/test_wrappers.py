"""Models inside other models: what is audited of a pipeline, a search, a transformed target or a calibration."""

import numpy as np
import pytest
from sklearn import decomposition, linear_model
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor
from sklearn.datasets import load_diabetes, load_iris
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import certifit
from certifit import DataError, audit

X, Y = load_iris(return_X_y=True)
RAW, AMOUNTS = load_diabetes(return_X_y=True)


def logit():
    return linear_model.LogisticRegression(tol=1e-8, max_iter=1000)


def test_a_pipeline_says_what_is_audited_of_it():
    model = make_pipeline(StandardScaler(), decomposition.PCA(3), logit()).fit(X, Y)
    found = audit(model, X, Y)
    assert found.holds
    assert found.facts["audited"] == "the last step, logisticregression, on what the steps before it produce"
    assert found.facts["taken as they are"] == "standardscaler"
    assert "step pca fails its own audit (1: yes)" in [check.name for check in found.checks]


def test_a_step_that_is_known_is_audited_too():
    """The last step is right for the wrong axes, on which it was fitted: the axes themselves fail."""
    wrong = decomposition.PCA(2).fit(X)
    wrong.components_ = wrong.components_[:, [1, 0, 2, 3]]
    last = logit().fit(wrong.transform(X), Y)
    model = make_pipeline(wrong, last)
    assert audit(last, wrong.transform(X), Y).holds
    found = audit(model, X, Y)
    assert not found.holds
    assert any("step pca" in words for words in found.failures())


@pytest.mark.parametrize("search", [GridSearchCV, RandomizedSearchCV])
def test_of_a_search_the_best_estimator_is_audited(search):
    more = {"n_iter": 2, "random_state": 0} if search is RandomizedSearchCV else {}
    model = search(logit(), {"C": [0.1, 1.0]}, cv=3, **more).fit(X, Y)
    found = audit(model, X, Y)
    assert found.holds
    assert "best_estimator_" in found.facts["audited"]
    assert found.objective == audit(model.best_estimator_, X, Y).objective
    model.best_estimator_.coef_ *= 1.1
    assert not audit(model, X, Y).holds


def test_a_search_without_a_refit_is_refused():
    model = GridSearchCV(logit(), {"C": [0.1, 1.0]}, cv=3, refit=False).fit(X, Y)
    with pytest.raises(DataError, match="refit=True"):
        audit(model, X, Y)


@pytest.mark.parametrize("regressor", [linear_model.Ridge(), certifit.Ridge()], ids=["scikit-learn", "certifit"])
def test_of_a_transformed_target_the_regressor_is_audited_on_that_target(regressor):
    model = TransformedTargetRegressor(regressor, func=np.log, inverse_func=np.exp).fit(RAW, AMOUNTS)
    assert audit(model, RAW, AMOUNTS).holds
    assert audit(regressor.__class__().fit(RAW, np.log(AMOUNTS)), RAW, np.log(AMOUNTS)).objective == pytest.approx(
        audit(model, RAW, AMOUNTS).objective, rel=1e-12
    )
    assert "its inverse, by which predictions are made, is not looked at" in " ".join(
        str(audit(model, RAW, AMOUNTS)).split()
    )
    with pytest.raises(DataError, match="no y"):
        audit(model, RAW)
    model.regressor_.coef_ = 1.1 * model.regressor_.coef_
    assert not audit(model, RAW, AMOUNTS).holds


def test_of_a_calibration_the_classifier_is_audited_where_it_saw_all_rows():
    model = CalibratedClassifierCV(logit(), ensemble=False, cv=3).fit(X, Y)
    assert audit(model, X, Y).holds
    assert "its calibration is not" in audit(model, X, Y).facts["audited"]
    with pytest.raises(DataError, match="each fitted on a part of the rows"):
        audit(CalibratedClassifierCV(logit(), ensemble=True, cv=3).fit(X, Y), X, Y)


def test_wrappers_in_wrappers():
    pipe = make_pipeline(StandardScaler(), logit())
    model = GridSearchCV(pipe, {"logisticregression__C": [0.1, 1.0]}, cv=3).fit(X, Y)
    found = audit(model, X, Y)
    assert found.holds
    assert found.facts["taken as they are"] == "standardscaler"


def test_unfitted_wrappers_are_refused_in_words():
    for model in (make_pipeline(StandardScaler(), logit()), GridSearchCV(logit(), {"C": [1.0]})):
        with pytest.raises(ValueError, match="fit"):
            audit(model, X, Y)


def test_another_estimator_in_a_search_is_noticed():
    model = GridSearchCV(logit(), {"C": [0.1, 1.0]}, cv=3).fit(X, Y)
    model.best_estimator_ = linear_model.LogisticRegression(C=5.0, tol=1e-8, max_iter=1000).fit(X, Y)
    assert audit(model.best_estimator_, X, Y).holds
    assert not audit(model, X, Y).holds


def test_models_inside_wrappers_are_compared_where_they_see_the_same_rows():
    """A search over pipelines is held against a pipeline of another library; one with other rows stands apart."""
    scaled = make_pipeline(StandardScaler(), logit())
    models = {
        "theirs": scaled.fit(X, Y),
        "ours": make_pipeline(StandardScaler(), certifit.LogisticRegression()).fit(X, Y),
        "search": GridSearchCV(scaled, {"logisticregression__C": [1.0]}).fit(X, Y),
        "raw": logit().fit(X, Y),
        "shorter": make_pipeline(StandardScaler(with_mean=False), logit()).fit(X, Y),
    }
    found = certifit.compare(models, X, Y, show=False)
    problems = found.problems
    assert problems["theirs"] == problems["ours"] == problems["search"]
    assert len({problems[name] for name in ("theirs", "raw", "shorter")}) == 3
    assert found.differences() == [
        "rows: after StandardScaler against as given",
        "rows: what was done to them before left different numbers",
    ]
    bounds = {found.certificates[name].bound for name in ("theirs", "ours", "search")}
    assert len(bounds) == 1


def test_a_search_over_plain_models_sees_the_rows_as_given():
    models = {"plain": logit().fit(X, Y), "search": GridSearchCV(logit(), {"C": [1.0]}).fit(X, Y)}
    assert certifit.compare(models, X, Y, show=False).differences() == []
