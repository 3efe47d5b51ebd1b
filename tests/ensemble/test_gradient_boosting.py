"""Boosting with exact trees: against scikit-learn's, losses, parts of the rows, and a checker that is not fooled."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from sklearn.datasets import load_diabetes
from sklearn.ensemble import GradientBoostingClassifier as SklearnClassifier
from sklearn.ensemble import GradientBoostingRegressor as SklearnRegressor
from sklearn.ensemble import HistGradientBoostingRegressor as SklearnBinned
from sklearn.linear_model import LinearRegression, LogisticRegression, PoissonRegressor
from sklearn.metrics import mean_gamma_deviance, mean_poisson_deviance

from certifit import AdaBoostClassifier, GradientBoostingClassifier, GradientBoostingRegressor, audit
from certifit.checkers.ensemble.boosting.stage_rules import bag_rows, huber_centre
from certifit.checkers.ensemble.score_losses import PlainHuber
from certifit.ensemble.adaboost.stumps import SortedStumps
from certifit.ensemble.boosting.stagewise import GrownTree, StageRules, Stagewise
from certifit.exceptions import DataError
from certifit.losses.scores.score_losses import ScoreLoss
from certifit.numerics.compiled.workers import Workers


def problem(n=120, classes=0, seed=0):
    """Values of single precision, so that scikit-learn compares the same numbers; no two splits are as good."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)).astype(np.float32).astype(np.float64)
    y = X[:, 0] * X[:, 1] + np.sin(2 * X[:, 2]) + 0.3 * rng.normal(size=n)
    return (X, np.digitize(y, [-0.4, 0.4][: classes - 1])) if classes else (X, y)


# What scikit-learn finds -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings",
    [
        {"min_samples_leaf": 4},
        {"max_leaf_nodes": 5, "max_depth": None},
        {"min_samples_leaf": 7, "init": "zero"},
        {"min_samples_leaf": 4, "ccp_alpha": 0.01},
    ],
)
def test_squared_errors_give_the_trees_of_scikit_learn(settings):
    X, y = problem()
    w = np.random.default_rng(1).integers(1, 4, len(y))
    ours = GradientBoostingRegressor(n_estimators=8, **settings).fit(X, y, w)
    theirs = SklearnRegressor(n_estimators=8, **settings).fit(X, y, w)
    assert np.allclose(ours.predict(X), theirs.predict(X), atol=1e-12)
    assert np.allclose(ours.train_score_, theirs.train_score_, rtol=1e-10)
    assert np.allclose(ours.feature_importances_, theirs.feature_importances_)
    assert np.array_equal(ours.apply(X), theirs.apply(X))
    assert np.allclose(ours.estimators_[3, 0].tree_.value, theirs.estimators_[3, 0].tree_.value, atol=1e-12)
    assert ours.certificate_.holds


@pytest.mark.parametrize(("classes", "loss"), [(2, "log_loss"), (2, "exponential"), (3, "log_loss")])
def test_classes_give_the_probabilities_of_scikit_learn(classes, loss):
    X, y = problem(classes=classes)
    ours = GradientBoostingClassifier(loss=loss, n_estimators=6, max_depth=2).fit(X, y)
    theirs = SklearnClassifier(loss=loss, n_estimators=6, max_depth=2).fit(X, y)
    assert np.allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-10)
    assert np.allclose(ours.train_score_, theirs.train_score_, rtol=1e-10)
    assert np.allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-10)
    assert np.allclose(ours.init_.predict_proba(X[:2]), theirs.init_.predict_proba(X[:2]))
    assert [*ours.staged_predict(X)][2].tolist() == [*theirs.staged_predict(X)][2].tolist()
    assert ours.certificate_.holds


@pytest.mark.parametrize("loss", ["squared_error", "huber", "quantile"])
def test_leaves_of_nothing_but_zeros_are_proved(loss):
    """Of 0 rounding leaves about 1e-30 beside amounts of 20."""
    for seed in (1, 9, 17, 21):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(60, 3)).round(1)
        y = (X[:, 0] > 0) * rng.integers(0, 3, 60) * 10.0 ** rng.integers(-3, 6)
        w = rng.random(60)
        model = GradientBoostingRegressor(n_estimators=5, loss=loss).fit(X, y, w)
        assert model.certificate_.holds
        assert audit(model, X, y, sample_weight=w).holds


@pytest.mark.parametrize("loss", ["absolute_error", "huber", "quantile"])
def test_robust_losses_come_as_low_as_those_of_scikit_learn(loss):
    """Leaves are quantiles, of which there may be several, or the best constants of Huber's loss."""
    X, y = problem(300)
    y[::20] += 30.0
    ours = GradientBoostingRegressor(loss=loss, n_estimators=30).fit(X, y)
    theirs = SklearnRegressor(loss=loss, n_estimators=30).fit(X, y)
    assert ours.certificate_.holds
    assert ours.train_score_[-1] == pytest.approx(theirs.train_score_[-1], rel=0.1)


@pytest.mark.parametrize("loss", ["poisson", "gamma"])
def test_the_first_stage_of_a_log_link_in_closed_form(loss):
    """From log ȳ a leaf moves by -Σ φ' / Σ φ", which with r = mean of the leaf / ȳ is r - 1, or 1 - 1 / r."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, size=(60, 1)).astype(float)
    y = rng.gamma(2.0, 1.0 + X[:, 0]).round(1) + 0.1
    model = GradientBoostingRegressor(loss=loss, n_estimators=1, max_depth=1, learning_rate=0.5).fit(X, y)
    r = np.where(X[:, 0] > 0, y[X[:, 0] > 0].mean(), y[X[:, 0] == 0].mean()) / y.mean()
    step = r - 1 if loss == "poisson" else 1 - 1 / r
    np.testing.assert_allclose(model.predict(X), y.mean() * np.exp(0.5 * step))
    assert model.init_.predict(X[:1])[0] == pytest.approx(y.mean())


@pytest.mark.parametrize("loss", ["poisson", "gamma"])
def test_losses_with_a_log_link_come_as_low_as_those_of_bins(loss):
    rng = np.random.default_rng(1)
    X = rng.integers(0, 12, size=(300, 3)).astype(float)
    y = rng.gamma(3.0, np.exp(0.1 * X[:, 0] - 0.1 * X[:, 1])) + 0.01
    model = GradientBoostingRegressor(loss=loss, n_estimators=30, random_state=0).fit(X, y)
    binned = SklearnBinned(loss=loss, max_iter=30, max_depth=3, min_samples_leaf=1, max_leaf_nodes=None).fit(X, y)
    deviance = mean_poisson_deviance if loss == "poisson" else mean_gamma_deviance
    assert deviance(y, model.predict(X)) == pytest.approx(deviance(y, binned.predict(X)), rel=0.1)
    assert model.certificate_.holds
    assert audit(model, X, y).holds
    assert model.objective(X, y).total == pytest.approx(model.certificate_.objective, rel=1e-9)
    other = GradientBoostingRegressor(loss=loss, n_estimators=3, init=PoissonRegressor(), subsample=0.5).fit(X, y)
    assert audit(other, X, y).holds
    with pytest.raises(DataError, match="predictions of init"):
        GradientBoostingRegressor(loss=loss, init=LinearRegression()).fit(X, y)
    stumps = GradientBoostingRegressor(loss=loss, n_estimators=5, max_depth=1).fit(X, y)
    assert stumps.certificate_.kind == "bounded"
    with pytest.raises(DataError, match="targets from -1"):
        GradientBoostingRegressor(loss=loss).fit(X, y - y.min() - 1)


def test_an_estimator_to_begin_with():
    X, y = problem()
    ours = GradientBoostingRegressor(n_estimators=4, init=LinearRegression()).fit(X, y)
    theirs = SklearnRegressor(n_estimators=4, init=LinearRegression()).fit(X, y)
    assert np.allclose(ours.predict(X), theirs.predict(X), atol=1e-6)
    assert audit(ours, X, y).holds
    ours.init_estimator_.coef_ = ours.init_estimator_.coef_ + 0.1
    assert not audit(ours, X, y).holds
    X, y = problem(classes=3)
    with_classes = GradientBoostingClassifier(n_estimators=3, init=LogisticRegression()).fit(X, y)
    assert with_classes.certificate_.holds
    assert np.allclose([*with_classes.staged_predict_proba(X)][-1], with_classes.predict_proba(X))


# The mathematics -------------------------------------------------------------------------------------------------


def test_the_best_constant_of_hubers_loss():
    rng = np.random.default_rng(0)
    for _ in range(30):
        x, w, delta = rng.standard_t(1, 15), rng.random(15) + 0.1, rng.exponential() + 0.01
        plain = PlainHuber(delta)
        total = lambda c: float(w @ plain.value(x, np.full(15, c)))  # noqa: E731, B023
        best = minimize_scalar(total, bounds=(x.min(), x.max()), method="bounded")
        assert total(huber_centre(x, w, delta)) <= best.fun + 1e-9 * abs(best.fun)


class ClassifyingStumps:
    """A learner that answers ±1 on either side of the stump that tells weighted rows apart best."""

    by_slopes = False

    def __init__(self, X, y):
        self.search, self.y = SortedStumps(X, y.astype(np.int32), 2), y
        self.workers, self.categories, self.splits = Workers(1), (np.empty(0),) * X.shape[1], []

    def grow(self, wanted):
        weights = np.abs(wanted.pairs[0])  # the slopes of the exponential loss are AdaBoost's weights, with a sign
        split = self.search.best(weights / weights.sum())
        self.splits.append((split.column, split.threshold))
        sides = [split.left, ~split.left]
        answers = np.sign([weights[side] @ (2.0 * self.y[side] - 1) for side in sides])
        rows = np.concatenate([np.flatnonzero(side) for side in sides])
        runs = np.array([[[0, split.left.sum()]], [[split.left.sum(), len(rows)]]])
        free = np.full(2, np.inf)
        return GrownTree(rows, runs, np.arange(2), -free, free, lambda values: values, answers)


def test_adaboost_is_the_exponential_case():
    """The engine with the exponential loss and classifying stumps goes through the stages of AdaBoost.

    Reference: Friedman, Hastie & Tibshirani, Additive logistic regression (2000), section 4.
    """
    X, y = problem(200, classes=2)
    ada = AdaBoostClassifier(n_estimators=12).fit(X, y)
    learner = ClassifyingStumps(X, y)
    engine = Stagewise(
        y.astype(float), np.ones(200), ScoreLoss("exponential"), learner, StageRules(1.0, 0), np.zeros((200, 1))
    )
    for stage in range(12):
        engine.stage()
        left, right = engine.trees[-1]
        assert 2 * abs(left) == pytest.approx(ada.estimator_weights_[stage], rel=1e-9)
        assert abs(left) == abs(right)
        mean = float(np.exp(-(2 * y - 1) * engine.F[:, 0]).mean())
        assert mean == pytest.approx(np.prod(ada.normalisers_[: stage + 1]), rel=1e-10)
    assert learner.splits == [*zip(ada.members_.column.tolist(), ada.members_.threshold.tolist(), strict=True)]
    assert np.allclose(2 * engine.F[:, 0], ada.log_odds(X), rtol=1e-9)


# Parts of the rows -----------------------------------------------------------------------------------------------


def test_stages_see_other_rows_each_time_and_an_audit_draws_them_again():
    X, y = problem(200)
    model = GradientBoostingRegressor(n_estimators=10, subsample=0.5, random_state=3).fit(X, y)
    bags = [bag_rows(np.ones(200, bool), 0.5, model.draw_seed_, s) for s in range(2)]
    assert [bag.sum() for bag in bags] == [100, 100]
    assert 30 < (bags[0] & bags[1]).sum() < 70
    assert model.oob_improvement_.shape == model.oob_scores_.shape == (10,)
    assert np.allclose(np.diff(model.oob_scores_), -model.oob_improvement_[1:])
    assert audit(model, X, y).holds
    model.draw_seed_ += 1
    assert not audit(model, X, y).holds


def test_early_stopping_keeps_rows_and_warm_start_goes_on():
    X, y = problem(300, classes=2)
    model = GradientBoostingClassifier(n_estimators=300, n_iter_no_change=3, learning_rate=0.5, random_state=0)
    assert model.fit(X, y).n_estimators_ < 300
    assert audit(model, X, y).holds
    whole = GradientBoostingClassifier(n_estimators=7).fit(X, y)
    parts = GradientBoostingClassifier(n_estimators=3, warm_start=True).fit(X, y).set_params(n_estimators=7).fit(X, y)
    assert np.allclose(parts.predict_proba(X), whole.predict_proba(X), atol=1e-12)
    assert len(parts.train_score_) == 7
    with pytest.raises(DataError, match="at least as many stages"):
        parts.set_params(n_estimators=2).fit(X, y)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"loss": "exponential"}, "two classes"),
        ({"init": LinearRegression()}, "predict_proba"),
        ({"subsample": 1.5}, "subsample"),
    ],
)
def test_wrong_settings_are_refused_in_words(settings, words):
    X, y = problem(classes=3)
    with pytest.raises(DataError, match=words):
        GradientBoostingClassifier(**settings).fit(X, y)


# The checker cannot be fooled ------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["squared_error", "huber", "quantile", "poisson"])
def test_a_tree_that_is_not_the_greedy_one_is_found_out(loss):
    X, y = load_diabetes(return_X_y=True)
    X, y = X[:150], y[:150]
    model = GradientBoostingRegressor(loss=loss, n_estimators=4, max_depth=2).fit(X, y)
    assert audit(model, X, y).holds
    # A tree grown on fewer columns has leaves as they should be, and worse splits.
    poor = GradientBoostingRegressor(loss=loss, n_estimators=4, max_depth=2, max_features=1, random_state=0).fit(X, y)
    assert audit(poor, X, y).holds
    poor.max_features_ = X.shape[1]
    poor.max_features = None
    found = audit(poor, X, y)
    assert not found.holds
    assert any("best split" in words for words in found.failures())
    model.trees_ = replace(model.trees_, impurity=model.trees_.impurity * 1.01)
    assert not audit(model, X, y).holds


def test_a_threshold_moved_between_the_rows_of_its_node_is_found_out():
    """Rows outside the bag lie between those that a stage saw: they go where the threshold itself sends them."""
    X, y = problem(60, classes=2)
    model = GradientBoostingClassifier(n_estimators=5, subsample=0.5, random_state=0).fit(X, y)
    assert audit(model, X, y).holds
    fitted = model.trees_
    model.trees_ = replace(fitted, threshold=np.round(fitted.threshold, 2))
    assert not audit(model, X, y).holds
    # Numbers of nodes that are no whole numbers lead nowhere.
    model.trees_ = replace(fitted, left=fitted.left.astype(np.float32))
    assert not audit(model, X, y).holds


@pytest.mark.parametrize("seed", [41, 43, 57])
@pytest.mark.parametrize("fractions", [False, True])
def test_one_row_that_outweighs_all_others(seed, fractions):
    """Slopes of the light rows differ in their tenth digit then, and splits are found by it."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(8, 30))
    X, y, w = rng.normal(size=(n, 4)), rng.integers(0, 3, n), rng.random(n) if fractions else np.ones(n)
    y[:3], w[0] = (0, 1, 2), 1e12
    model = GradientBoostingClassifier(n_estimators=2).fit(X, y, sample_weight=w)
    assert model.certificate_.holds, model.certificate_.failures()
