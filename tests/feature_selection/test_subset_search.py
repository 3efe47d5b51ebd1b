"""Greedy searches against scikit-learn's, their certificates under sabotage, and their manners in company."""

import io
import warnings

import numpy as np
import pytest
from joblib import parallel_config
from rich.console import Console
from scipy import sparse
from sklearn import feature_selection
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.datasets import load_diabetes, load_iris, load_wine
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.model_selection import KFold, ShuffleSplit, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

from certifit import CertificateWarning, DataError, GaussianNB, ProgressBar
from certifit.checkers.feature_selection.search_adapter import audit_elimination, audit_sequential
from certifit.feature_selection.searches.recursive_elimination import RecursiveElimination
from certifit.feature_selection.searches.sequential_selector import SequentialSelector

X, Y = load_wine(return_X_y=True)
X = X / X.std(axis=0)
SMALL, LABELS = load_iris(return_X_y=True)


def audit(model, X=X, y=Y, w=None):
    auditor = audit_sequential if isinstance(model, SequentialSelector) else audit_elimination
    return auditor(model, X, y, w, max(model.tol, 0.0))


# ------------------------------------------------------------------------------------- against scikit-learn
@pytest.mark.parametrize("direction", ["forward", "backward"])
@pytest.mark.parametrize("n", [1, 3, 0.5, "auto"])
def test_the_same_columns_as_scikit_learn(n, direction):
    A, b = SMALL, LABELS
    mine = SequentialSelector(GaussianNB(), n_features_to_select=n, direction=direction).fit(A, b)
    tol = 1e-10 if n == "auto" else None
    theirs = feature_selection.SequentialFeatureSelector(
        GaussianNB(), n_features_to_select=n, direction=direction, tol=tol
    ).fit(A, b)
    if n == "auto" and direction == "forward":
        mine = clone(mine).set_params(tol=tol).fit(A, b)
    if n != "auto" or direction == "forward":  # going backward scikit-learn always takes the first step
        np.testing.assert_array_equal(mine.get_support(), theirs.get_support())
    assert audit(mine, A, b).holds


def test_scores_are_those_of_cross_validation():
    model = SequentialSelector(GaussianNB(), n_features_to_select=2).fit(SMALL, LABELS)
    for columns, score, error in zip(([3], [3, 2]), model.path_["score"], model.path_["error"], strict=True):
        folds = cross_val_score(GaussianNB(), SMALL[:, columns], LABELS)
        np.testing.assert_allclose(score, folds.mean(), rtol=1e-12)
        np.testing.assert_allclose(error, folds.std(ddof=1) / np.sqrt(5), rtol=1e-12)
    np.testing.assert_allclose(model.score(SMALL, LABELS), model.path_["score"][-1], rtol=1e-12)
    assert model.certificate_.objective == -model.path_["score"][-1]


@pytest.mark.parametrize("step", [1, 3, 0.2])
def test_elimination_agrees_with_rfe(step):
    mine = RecursiveElimination(Ridge(), n_features_to_select=4, step=step).fit(X, Y)
    theirs = feature_selection.RFE(Ridge(), n_features_to_select=4, step=step).fit(X, Y)
    np.testing.assert_array_equal(mine.ranking_, theirs.ranking_)
    assert mine.certificate_.holds
    assert audit(mine).holds


def test_cross_validated_elimination_agrees_with_rfecv():
    A, b = load_diabetes(return_X_y=True)
    mine, theirs = (
        RecursiveElimination(Ridge(0.1), cv=4).fit(A, b),
        feature_selection.RFECV(Ridge(0.1), cv=4).fit(A, b),
    )
    np.testing.assert_array_equal(mine.ranking_, theirs.ranking_)
    np.testing.assert_allclose(mine.path_["score"][::-1], theirs.cv_results_["mean_test_score"], rtol=1e-10)
    assert audit(mine, A, b).holds


def test_backward_starts_from_all_columns():
    model = SequentialSelector(GaussianNB(), direction="backward", tol=0.5).fit(
        SMALL, LABELS
    )  # no step is worth that
    assert model.get_support().all()
    assert len(model.path_["column"]) == 0
    np.testing.assert_allclose(model.start_score_, cross_val_score(GaussianNB(), SMALL, LABELS).mean(), rtol=1e-12)
    assert audit(model, SMALL, LABELS).holds


# ------------------------------------------------------------------------------------------------- sabotage
def test_sabotage_of_a_path_is_noticed():
    def noticed(change, **settings):
        model = SequentialSelector(GaussianNB(), n_features_to_select=3, cv=2, **settings).fit(SMALL, LABELS)
        change(model)
        return not audit(model, SMALL, LABELS).holds

    def raise_a_rival(model):
        model.candidate_scores_[0, 0] = 2.0

    def change_a_score(model):
        model.candidate_scores_[0, 0] += 1e-6

    def swap_two_steps(model):
        model.path_["column"][:2] = model.path_["column"][:2][::-1].copy()

    def another_column(model):
        model.support_ = ~model.support_

    def forget_a_step(model):
        model.path_ = {name: a[:-1] for name, a in model.path_.items()}
        model.candidate_scores_ = model.candidate_scores_[:-1]

    def flatter(model):
        model.path_["score"][-1] = 1.0

    for change in (raise_a_rival, change_a_score, swap_two_steps, another_column, forget_a_step, flatter):
        assert noticed(change), change.__name__
        assert noticed(change, direction="backward") or change is swap_two_steps, change.__name__


def test_stopping_early_is_noticed():
    """A row of candidates that was looked at and not taken although it was worth a step."""
    model = SequentialSelector(GaussianNB(), tol=0.01).fit(SMALL, LABELS)
    assert audit(model, SMALL, LABELS).holds
    assert len(model.candidate_scores_) == len(model.path_["column"]) + 1
    model.tol = -1.0
    assert not audit(model, SMALL, LABELS).holds


def test_sabotage_of_an_elimination_is_noticed():
    def noticed(**changes):
        model = RecursiveElimination(Ridge(), n_features_to_select=4).fit(X, Y)
        vars(model).update(changes)
        return not audit(model).holds

    model = RecursiveElimination(Ridge(), n_features_to_select=4).fit(X, Y)
    ranks = model.ranking_.copy()
    ranks[[ranks.argmax(), ranks.argmin()]] = ranks[[ranks.argmin(), ranks.argmax()]]
    assert noticed(ranking_=ranks)
    assert noticed(importances_=model.importances_ * 1.01)
    assert noticed(importances_=model.importances_[::-1].copy())
    assert noticed(n_features_wanted_=3)
    assert noticed(support_=np.roll(model.support_, 1))
    assert not audit(model, X[::-1] * np.arange(1, 14), Y).holds  # other rows


def test_greedy_certificates_say_nothing_of_a_bound():
    for model in (SequentialSelector(Ridge(), n_features_to_select=2), RecursiveElimination(Ridge())):
        assert "lower bound" not in str(model.fit(X, Y).certificate_)


def test_folds_without_weight_are_refused():
    weight = np.where(np.arange(len(Y)) < len(Y) // 3, 0.0, 1.0)
    with pytest.raises(DataError, match="a fold that has no row of positive weight"):
        SequentialSelector(Ridge(), n_features_to_select=2).fit(X, Y, sample_weight=weight)


def test_random_estimators_are_not_scored_again_and_the_certificate_says_so():
    forest = RandomForestClassifier(5, max_depth=2)  # another one every time
    model = SequentialSelector(forest, n_features_to_select=1, cv=2, scoring="neg_log_loss").fit(SMALL, LABELS)
    assert "random" in audit(model, SMALL, LABELS).facts["candidates scored again"]
    model = SequentialSelector(GaussianNB(), n_features_to_select=1, cv=ShuffleSplit(2)).fit(SMALL, LABELS)
    assert "random" in audit(model, SMALL, LABELS).facts["candidates scored again"]
    model = RecursiveElimination(forest, n_features_to_select=2).fit(SMALL, LABELS)
    assert "random" in audit(model, SMALL, LABELS).facts["importances computed again"]


# ----------------------------------------------------------------------------------- time, progress, stopping
@pytest.mark.parametrize(
    "model",
    [
        SequentialSelector(GaussianNB(), n_features_to_select=3),
        RecursiveElimination(Ridge(), n_features_to_select=1),
    ],
    ids=lambda model: type(model).__name__,
)
def test_out_of_time_returns_the_best_so_far(model):
    with pytest.warns(CertificateWarning, match="steps asked for and not made|columns too many"):
        late = clone(model).set_params(max_time=0.0).fit(SMALL, LABELS)
    assert not late.certificate_.holds
    full = model.fit(SMALL, LABELS)
    assert late.transform(SMALL).shape == (150, 1 if isinstance(model, SequentialSelector) else 3)
    if isinstance(model, SequentialSelector):  # the first step of the whole path
        assert late.path_["column"].tolist() == full.path_["column"][:1].tolist()


def test_progress_shows_candidates_and_the_best_score():
    screen = io.StringIO()
    console = Console(file=screen, width=140, force_terminal=True, color_system=None)
    model = SequentialSelector(GaussianNB(), n_features_to_select=2).set_callbacks(ProgressBar(console))
    model.fit(SMALL, LABELS)
    last = screen.getvalue().split("\r")[-1]
    assert "step 2 of 2" in last
    assert "pass 3" in last  # three candidates
    assert f"objective {-model.path_['score'][-1]:.6g}"[:14] in last


def test_a_callback_may_stop_the_search():
    class Enough:
        def setup(self, estimator, context):
            pass

        def on_fit_task_begin(self, estimator, context):
            pass

        def on_fit_task_end(self, estimator, context):
            return context.task_name == "pass"

        def teardown(self, estimator, context):
            pass

    with pytest.warns(CertificateWarning):
        model = SequentialSelector(GaussianNB(), n_features_to_select=3).set_callbacks(Enough()).fit(SMALL, LABELS)
    assert model.support_.sum() == 1


# ----------------------------------------------------------------------------------------------- in company
def test_inside_a_pipeline_and_cross_validation():
    pipe = make_pipeline(SequentialSelector(GaussianNB(), n_features_to_select=3, cv=3), GaussianNB())
    assert cross_val_score(pipe, X, Y, cv=3).mean() > 0.85


def test_parallel_candidates_give_the_same_path():
    one = SequentialSelector(GaussianNB(), n_features_to_select=2).fit(SMALL, LABELS)
    with parallel_config(backend="threading"):
        two = SequentialSelector(GaussianNB(), n_features_to_select=2, n_jobs=2).fit(SMALL, LABELS)
    np.testing.assert_array_equal(one.candidate_scores_, two.candidate_scores_)


def test_any_kind_of_estimator():
    """Without a target, with sparse rows, with holes, with coefficients behind a step."""
    groups = SequentialSelector(KMeans(3, n_init=1, random_state=0), n_features_to_select=1).fit(SMALL)
    assert groups.support_.sum() == 1
    wide = sparse.csr_matrix(np.where(X > 3, X, 0.0))
    kept = RecursiveElimination(Ridge(), n_features_to_select=2).fit(wide, Y).transform(wide)
    assert sparse.issparse(kept)
    holed = SMALL.copy()
    holed[::7, 1] = np.nan
    assert SequentialSelector(GaussianNB(), n_features_to_select=1).fit(holed, LABELS).certificate_.holds
    with pytest.raises(DataError, match="NaN"):
        SequentialSelector(KNeighborsClassifier(), n_features_to_select=1).fit(holed, LABELS)
    inner = make_pipeline(Ridge())
    model = RecursiveElimination(inner, n_features_to_select=2, importance_getter="steps")
    model.set_params(importance_getter=lambda fitted: fitted[-1].coef_).fit(X, Y)
    np.testing.assert_array_equal(
        model.ranking_, RecursiveElimination(Ridge(), n_features_to_select=2).fit(X, Y).ranking_
    )


def test_weights_count_in_fit_and_score():
    """On the rows themselves (cv=None) a row of weight 2 is a row twice, and one of weight 0 is absent."""
    A, b = load_diabetes(return_X_y=True)
    times = np.arange(len(A)) % 3
    weighted = SequentialSelector(LinearRegression(), n_features_to_select=4, cv=None).fit(A, b, sample_weight=times)
    repeated = SequentialSelector(LinearRegression(), n_features_to_select=4, cv=None)
    repeated.fit(np.repeat(A, times, axis=0), np.repeat(b, times))
    assert weighted.path_["column"].tolist() == repeated.path_["column"].tolist()
    np.testing.assert_allclose(weighted.path_["score"], repeated.path_["score"], rtol=1e-9)
    assert audit(weighted, A, b, times).holds
    with pytest.raises(DataError, match="KNeighborsClassifier whose fit takes none"):
        SequentialSelector(KNeighborsClassifier()).fit(SMALL, LABELS, sample_weight=np.linspace(1, 2, 150))


def test_among_equal_columns_the_first_is_taken():
    A = SMALL[:, [2, 3, 3, 2]]
    assert SequentialSelector(GaussianNB(), n_features_to_select=1).fit(A, LABELS).path_["column"].tolist() == [1]
    same = RecursiveElimination(Ridge(), n_features_to_select=2, importance_getter=lambda m: np.ones_like(m.coef_))
    assert same.fit(A, LABELS).ranking_.tolist() == [1, 1, 2, 3]


def test_names():
    A, b = load_wine(return_X_y=True, as_frame=True)
    model = RecursiveElimination(Ridge(), n_features_to_select=2).fit(A, b)
    assert model.get_feature_names_out().tolist() == A.columns[model.support_].tolist()


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (SequentialSelector(GaussianNB(), direction="sideways"), "direction='sideways'"),
        (SequentialSelector(GaussianNB(), n_features_to_select=5), "n_features_to_select=5 for 4 columns"),
        (RecursiveElimination(GaussianNB()), "neither coef_ nor feature_importances_"),
        (RecursiveElimination(Ridge(), step=0), "step=0"),
        (RecursiveElimination(Ridge(), n_features_to_select=0), "n_features_to_select=0"),
        (SequentialSelector(GaussianNB(), scoring=lambda *_: np.nan), "a score that is not a number"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_settings_that_are_refused(model, words):
    with pytest.raises(DataError) as caught:
        model.fit(SMALL, LABELS)
    assert words in str(caught.value)
    assert not hasattr(model, "support_")


def test_all_columns_may_be_kept():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for model in (
            SequentialSelector(GaussianNB(), n_features_to_select=4, cv=KFold(3, shuffle=True, random_state=0)),
            SequentialSelector(GaussianNB(), n_features_to_select=4, direction="backward"),
            RecursiveElimination(Ridge(), n_features_to_select=1.0),
        ):
            assert model.fit(SMALL, LABELS).support_.all()
            assert audit(model, SMALL, LABELS).holds
