"""AdaBoost for classes: brute force over all stumps, scikit-learn's stages, published identities, odd tables."""

import copy
import itertools
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import linprog, minimize
from sklearn import ensemble as theirs
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.linear_model import LogisticRegression as SklearnLogistic
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier as SklearnTree

import certifit
from certifit import (
    AdaBoostClassifier,
    AdaBoostRegressor,
    DataError,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    audit,
)
from certifit.checkers.ensemble.stump_scan import StumpScan
from certifit.ensemble.adaboost.stump_loops import add_votes, best_cut, best_cut_of_two
from certifit.ensemble.adaboost.stumps import BinnedStumps, SortedStumps, StumpTuning, binned_column, whole_weights

TABLES = {"iris": load_iris, "wine": load_wine, "cancer": load_breast_cancer}


def noisy(n=120, d=3, seed=0, missing=False):
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(n, d)), 1)
    y = (X[:, 0] + 0.5 * X[:, 1] ** 2 + rng.normal(size=n) > 0.4).astype(int)
    if missing:
        X[rng.random(X.shape) < 0.15] = np.nan
    return X, y


def all_stumps(X):
    """Every way in which a stump parts these rows (s, n) bool: left of a threshold, missing values on either side."""
    found = [np.ones(len(X), bool)]
    for x in X.T:
        gone = np.isnan(x)
        values = np.unique(x[~gone])
        for t in values if gone.any() else values[:-1]:
            found += [(x <= t) & ~gone] + ([(x <= t) | gone] if gone.any() else [])
    return np.array(found)


def gini(left, y, w, k):
    total = 0.0
    for side in (left, ~left):
        s = np.bincount(y[side], w[side], k)
        total += s.sum() - (s**2).sum() / s.sum() if s.sum() > 0 else 0.0
    return total


# ------------------------------------------------------------------------------------------------------ stumps
@pytest.mark.compiled
@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_every_search_finds_the_purest_stump(k, missing, seed):
    """Brute force over all of them; with 255 bins no threshold of so few values is left out."""
    rng = np.random.default_rng(seed)
    X, _ = noisy(40, 3, seed, missing)
    y, w = rng.integers(0, k, 40).astype(np.int32), rng.exponential(size=40)
    best = min(gini(left, y, w, k) for left in all_stumps(X))
    searches = [SortedStumps(X, y, k), BinnedStumps(X, y, k, w, 255), SortedStumps(X, y, k, StumpTuning(0))]
    splits = [search.best(w) for search in searches]
    for split in splits:
        assert gini(split.left, y, w, k) == pytest.approx(best, rel=1e-12)
        x = X[:, split.column]
        assert np.array_equal(split.left, np.where(np.isnan(x), split.missing_left, x <= split.threshold))
    assert len({(s.column, s.threshold, s.missing_left) for s in splits}) == 1


@pytest.mark.compiled
def test_the_loops_for_two_and_for_many_classes_agree():
    rng = np.random.default_rng(1)
    X, y = noisy(60, 4, 1, True)
    weight = whole_weights(rng.exponential(size=60))
    search = SortedStumps(X, y.astype(np.int32), 2)
    for entries, known in search.columns:
        two = best_cut_of_two(entries, known, np.where(y == 1, weight, -weight).astype(float))
        many = best_cut(entries, known, y.astype(np.int32), weight, 2)
        assert (two.position, two.missing_left) == (many.position, many.missing_left)


@pytest.mark.compiled
def test_votes_are_those_of_the_trees():
    X, y = noisy(missing=True)
    model = AdaBoostClassifier(n_estimators=6).fit(X, y)
    stumps = model.members_
    votes = np.zeros((len(X), 2))
    add_votes(
        X, stumps.column, stumps.threshold, stumps.missing_left, stumps.answers, model.estimator_weights_, votes
    )
    plain = sum(
        a * (tree.predict(X)[:, None] == np.arange(2))
        for tree, a in zip(model.estimators_, model.estimator_weights_, strict=True)
    )
    assert np.allclose(votes, plain, rtol=1e-14)


def test_a_column_and_its_mirror_image_tie():
    X, y = noisy(200, 2)
    X = X[:, :1]
    for order in ([1, -1], [-1, 1]):
        assert AdaBoostClassifier(n_estimators=5).fit(X * order, y).members_.column.tolist() == [0] * 5


def test_bins_of_many_values_hold_about_equal_weight():
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=5000), rng.exponential(size=5000)
    column = binned_column(32, w, x)
    mass = np.bincount(column.codes, w, 32)
    assert len(column.thresholds) == 31
    assert mass.min() > 0.8 * w.sum() / 32
    assert np.array_equal(column.codes, np.searchsorted(column.thresholds, x))


# ---------------------------------------------------------------------------------------------- known answers
@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("rate", [1.0, 0.3])
def test_the_stages_of_scikit_learn(name, rate):
    X, y = TABLES[name](return_X_y=True)
    ours = AdaBoostClassifier(n_estimators=15, learning_rate=rate).fit(X, y)
    other = theirs.AdaBoostClassifier(n_estimators=15, learning_rate=rate, random_state=0).fit(X, y)
    assert np.allclose(ours.estimator_errors_, other.estimator_errors_, rtol=1e-9)
    assert np.allclose(ours.estimator_weights_, other.estimator_weights_, rtol=1e-9)
    assert np.allclose(ours.decision_function(X), other.decision_function(X), atol=1e-9)
    assert np.array_equal(ours.predict(X), other.predict(X))
    pairs = zip(ours.staged_decision_function(X), other.staged_decision_function(X), strict=True)
    assert all(np.allclose(a, b, atol=1e-9) for a, b in pairs)
    assert np.allclose(list(ours.staged_score(X, y)), list(other.staged_score(X, y)))


def test_the_exponential_loss_is_the_product_of_the_normalisers():
    X, y = load_breast_cancer(return_X_y=True)
    model = AdaBoostClassifier(n_estimators=30).fit(X, y)
    f = model.log_odds(X) / 2
    loss = np.exp(-(2 * y - 1) * f).mean()
    e = model.estimator_errors_
    assert loss == pytest.approx(model.normalisers_.prod(), rel=1e-11)
    assert loss == pytest.approx(np.prod(2 * np.sqrt(e * (1 - e))), rel=1e-11)
    assert 1 - model.score(X, y) <= loss
    assert model.certificate_.objective == pytest.approx(loss, rel=1e-11)


def test_probabilities_are_those_of_the_additive_logistic_model():
    X, y = load_breast_cancer(return_X_y=True)
    model = AdaBoostClassifier(n_estimators=10).fit(X, y)
    p = model.predict_proba(X)
    assert np.allclose(np.log(p[:, 1] / p[:, 0]), model.log_odds(X))
    assert np.array_equal(model.classes_[p.argmax(axis=1)], model.predict(X))
    assert np.allclose(np.exp(model.predict_log_proba(X)), p)
    *_, last = model.staged_predict_proba(X)
    assert np.allclose(last, p)
    X, y = load_wine(return_X_y=True)
    model = AdaBoostClassifier(n_estimators=10).fit(X, y)
    p = model.predict_proba(X)
    assert np.allclose(np.log(p) - np.log(p).mean(axis=1, keepdims=True), model.log_odds(X))


def test_margins_are_what_the_decision_function_says():
    X, y = noisy()
    model = AdaBoostClassifier(n_estimators=9).fit(X, y)
    assert np.allclose(model.margins(X, y), (2 * y - 1) * model.decision_function(X) / 2)
    assert model.certificate_.facts["least margin"] == pytest.approx(model.margins(X, y).min())


# ---------------------------------------------------------------------------------------------------- the bounds
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("missing", [False, True])
def test_bounds_are_honest(seed, missing):
    """Against the linear program of margins, and the convex program of the exponential loss, over all stumps."""
    X, y = noisy(40, 2, seed, missing)
    model = AdaBoostClassifier(n_estimators=10).fit(X, y)
    sign = 2.0 * y - 1
    H = np.where(all_stumps(X), 1.0, -1.0).T * sign[:, None]  # y h of every stump
    columns = np.hstack([H, -H])
    n, m = columns.shape
    best = linprog(
        np.append(np.zeros(m), -1.0),
        A_ub=np.hstack([-columns, np.ones((n, 1))]), b_ub=np.zeros(n),
        A_eq=[np.append(np.ones(m), 0.0)], b_eq=[1.0], bounds=[(0, None)] * m + [(None, None)],
    )  # fmt: skip
    certificate = model.certificate_
    assert -best.fun <= certificate.facts["no margin is larger than"] + 1e-9
    assert certificate.facts["least margin"] <= -best.fun + 1e-9
    size = certificate.facts["size of the additive model"]
    # f = b + Σ β h with Σ |β| <= size / 2 for h = ±1, whose jump is 2
    signed = np.hstack([sign[:, None], -sign[:, None], columns[:, 1:]])
    bound = {"type": "ineq", "fun": lambda v: size / 2 - v[2:].sum()}
    found = minimize(
        lambda v: np.exp(-signed @ v).mean(), np.full(signed.shape[1], 1e-3), method="SLSQP",
        jac=lambda v: -(signed.T @ np.exp(-signed @ v)) / n, bounds=[(0, None)] * signed.shape[1],
        constraints=[bound],
        options={"maxiter": 300},
    )  # fmt: skip
    assert certificate.bound <= found.fun * (1 + 1e-9)
    assert found.fun <= certificate.objective * (1 + 1e-6)


def test_the_scan_of_the_checker_sees_every_stump():
    rng = np.random.default_rng(3)
    X, y = noisy(30, 3, 3, True)
    v, w = rng.normal(size=30), rng.exponential(size=30)
    scan, stumps = StumpScan(X), all_stumps(X)
    sums = np.array([v[left].sum() for left in [*stumps, *~stumps]])
    assert scan.largest_sum(v) == pytest.approx(np.abs(sums).max())
    purest = w.sum() - min(gini(left, y, w, 2) for left in stumps)
    assert scan.largest_purity(y, 2, w) == pytest.approx(purest)


# ---------------------------------------------------------------------------------------------------- any learner
@pytest.mark.parametrize(
    "learner",
    [SklearnTree(max_depth=2, random_state=0), SklearnLogistic(), DecisionTreeClassifier(max_depth=2),
     certifit.LogisticRegression()],
    ids=lambda learner: f"{type(learner).__module__.split('.')[0]}-{type(learner).__name__}",
)  # fmt: skip
def test_any_classifier_that_takes_weights(learner):
    X, y = load_wine(return_X_y=True)
    words = np.array(["a", "b", "c"])[y]
    model = AdaBoostClassifier(learner, n_estimators=4, random_state=0).fit(X / X.std(axis=0), words)
    assert model.score(X / X.std(axis=0), words) > 0.95
    assert audit(model, X / X.std(axis=0), words).holds
    assert all(type(e) is type(learner) for e in model.estimators_)
    assert list(model) == model.estimators_
    assert len(model) == len(model.estimators_)
    assert model[0] is model.estimators_[0]


def test_a_tree_of_depth_1_is_found_by_the_quick_way():
    X, y = noisy()
    usual = AdaBoostClassifier(n_estimators=5).fit(X, y)
    named = AdaBoostClassifier(DecisionTreeClassifier(max_depth=1), n_estimators=5).fit(X, y)
    other = AdaBoostClassifier(DecisionTreeClassifier(max_depth=1, min_samples_leaf=2), n_estimators=5).fit(X, y)
    assert np.array_equal(usual.estimator_weights_, named.estimator_weights_)
    assert isinstance(other.members_, list)


def test_a_learner_without_weights_is_refused_in_words():
    with pytest.raises(DataError, match=r"KNeighborsClassifier, which doesn't support sample_weight.*stumps"):
        AdaBoostClassifier(KNeighborsClassifier()).fit(*noisy())


def test_learners_worse_than_guessing_are_refused():
    class Contrary(SklearnTree):
        def predict(self, X):
            return 1 - super().predict(X)

    with pytest.raises(DataError, match="worse than random"):
        AdaBoostClassifier(Contrary(max_depth=1)).fit(*noisy())


# ------------------------------------------------------------------------------------------------------ odd tables
def test_a_perfect_first_stump():
    X = np.arange(10.0)[:, None]
    model = AdaBoostClassifier(n_estimators=5).fit(X, X[:, 0] > 4)
    assert len(model.estimators_) == 1
    assert model.estimator_weights_.tolist() == [1, 0, 0, 0, 0]
    assert model.estimator_errors_.tolist() == [0, 1, 1, 1, 1]
    assert model.score(X, X[:, 0] > 4) == 1.0
    assert audit(model, X, X[:, 0] > 4).holds


def test_constant_columns_and_one_class():
    model = AdaBoostClassifier().fit(np.ones((6, 2)), [0, 1, 1, 1, 1, 0])
    assert model.predict([[1.0, 1.0]]).tolist() == [1]
    assert len(model.estimators_) == 1
    assert audit(model, np.ones((6, 2)), [0, 1, 1, 1, 1, 0]).holds
    alone = AdaBoostClassifier().fit(np.ones((3, 1)), ["a"] * 3)
    assert alone.predict([[0.0]]).tolist() == ["a"]
    assert alone.predict_proba([[0.0]]).tolist() == [[1.0]]


def test_an_exclusive_or_ends_where_no_stump_has_an_edge():
    X = np.array(list(itertools.product([0.0, 1.0], repeat=2)))
    with pytest.raises(DataError, match="worse than random"):
        AdaBoostClassifier().fit(X, [0, 1, 1, 0])
    tilted = AdaBoostClassifier().fit(X, [0, 1, 1, 0], sample_weight=[2, 1, 1, 1])
    assert 1 <= len(tilted.estimators_) < 50
    assert audit(tilted, X, [0, 1, 1, 0], [2, 1, 1, 1]).holds


def test_columns_that_are_all_missing_and_neighbouring_doubles():
    x = np.array([1.0, np.nextafter(1.0, 2.0), 1.0, np.nextafter(1.0, 2.0)])
    X = np.column_stack([np.full(4, np.nan), x])
    model = AdaBoostClassifier().fit(X, [0, 1, 0, 1])
    assert model.score(X, [0, 1, 0, 1]) == 1.0
    assert audit(model, X, [0, 1, 0, 1]).holds


@pytest.mark.parametrize("bins", [None, 64])
def test_missing_values(bins):
    X, y = noisy(200, 3, missing=True)
    model = AdaBoostClassifier(n_estimators=10, max_bins=bins).fit(X, y)
    assert audit(model, X, y).holds
    filled = np.where(np.isnan(X), 0.0, X)
    assert model.score(X, y) > AdaBoostClassifier(n_estimators=10).fit(filled, y).score(filled, y) - 0.1
    trees = model.estimators_
    assert np.array_equal(trees[0].predict(X) == y, next(iter(model.staged_predict(X))) == y)


# ------------------------------------------------------------------------------------------------- early stopping
def test_rows_held_out_say_when_to_stop():
    X, y = noisy(400, 6, 2)
    model = AdaBoostClassifier(n_estimators=200, n_iter_no_change=10, random_state=0).fit(X, y)
    assert 1 <= len(model.estimators_) < 200
    assert audit(model, X, y).holds
    out = np.random.default_rng(model.validation_seed_).random(400) < 0.1
    losses = [
        np.exp(-(2 * y[out] - 1) * np.log(p[out, 1] / p[out, 0]) / 2).mean() for p in model.staged_predict_proba(X)
    ]
    assert np.argmin(losses) == len(losses) - 1
    other = copy.deepcopy(model)
    other.validation_seed_ += 1
    assert not audit(other, X, y).holds


def test_nothing_to_hold_out_is_said():
    with pytest.raises(DataError, match="validation_fraction"):
        AdaBoostClassifier(n_iter_no_change=2, validation_fraction=1e-9).fit(*noisy(20))


# ---------------------------------------------------------------------------------------------------------- proofs
def test_scikit_learns_ensembles_are_audited_and_tampered_ones_refused():
    X, y = load_breast_cancer(return_X_y=True)
    model = theirs.AdaBoostClassifier(n_estimators=10, random_state=0).fit(X, y)
    found = audit(model, X, y)
    assert found.holds
    assert found.kind == "bounded"
    deep = theirs.AdaBoostClassifier(SklearnTree(max_depth=3), n_estimators=5, random_state=0).fit(X, y)
    assert audit(deep, X, y).holds
    assert audit(deep, X, y).kind == "exact"
    shrunk = copy.deepcopy(model)
    shrunk.estimator_weights_ *= 0.9
    swapped = copy.deepcopy(model)
    swapped.estimators_[2], swapped.estimators_[5] = swapped.estimators_[5], swapped.estimators_[2]
    assert not audit(shrunk, X, y).holds
    assert not audit(swapped, X, y).holds


def test_a_stump_that_is_not_the_purest_does_not_hold():
    X, y = noisy(100, 2)
    model = AdaBoostClassifier(n_estimators=3).fit(X[:, 1:], y)
    wide = copy.deepcopy(model)
    wide.members_ = replace(model.members_, column=model.members_.column + 1)
    wide.n_features_in_ = 2
    found = audit(wide, X, y)
    assert [c.name for c in found.checks if not c.passed] == ["purest stump missed by, of what rounding allows"]


def test_a_fit_that_ended_too_early_does_not_hold():
    X, y = noisy()
    model = AdaBoostClassifier(n_estimators=5).fit(X, y)
    model.members_ = model.members_.part(slice(0, 3))
    model.estimator_weights_[3:], model.estimator_errors_[3:] = 0.0, 1.0
    assert any("ended though" in words for words in audit(model, X, y).failures())


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("nu", [0.05, 0.3])
def test_linear_programming_finds_the_largest_soft_margin(nu, missing):
    """Against the whole linear program over every stump there is."""
    X, y = noisy(50, 2, 1, missing)
    sign = 2.0 * y - 1
    model = AdaBoostClassifier(n_estimators=5, corrective="lpboost", nu=nu).fit(X, y)
    left = all_stumps(X)
    answers = [np.where(left, a, b) for a in (-1.0, 1.0) for b in (-1.0, 1.0)]
    signed = np.vstack(answers) * sign
    m, n = signed.shape
    best = linprog(
        np.r_[np.zeros(m), -1.0, np.full(n, 1 / (n * nu))],
        A_ub=np.hstack([-signed.T, np.ones((n, 1)), -np.eye(n)]), b_ub=np.zeros(n),
        A_eq=[np.r_[np.ones(m), np.zeros(n + 1)]], b_eq=[1.0],
        bounds=[(0, None)] * m + [(None, None)] + [(0, None)] * n,
    )  # fmt: skip
    certificate = model.certificate_
    assert certificate.kind == "optimal"
    assert certificate.holds
    assert 1 - certificate.objective == pytest.approx(-best.fun, abs=1e-7)
    assert certificate.bound <= 1 + best.fun + 1e-9
    assert audit(model, X, y).holds
    assert model.estimator_weights_.sum() == pytest.approx(1.0)
    assert model.objective(X, y).total == pytest.approx(certificate.objective, rel=1e-12)
    plain = AdaBoostClassifier(n_estimators=5).fit(X, y)
    wrong = copy.deepcopy(model)
    wrong.estimator_weights_ = (np.arange(len(wrong)) == 0).astype(float)
    assert not audit(wrong, X, y).holds
    assert np.quantile(model.margins(X, y), nu) >= np.quantile(plain.margins(X, y), nu) - 0.05


def test_linear_programming_needs_two_classes_and_stumps():
    with pytest.raises(DataError, match="two classes and stumps"):
        AdaBoostClassifier(corrective="lpboost").fit(*load_iris(return_X_y=True))


def test_a_saved_ensemble_is_the_same(tmp_path):
    X, y = load_wine(return_X_y=True)
    for learner in (None, DecisionTreeClassifier(max_depth=2)):
        model = AdaBoostClassifier(learner, n_estimators=4).fit(X, y)
        certifit.save(model, tmp_path / "boosted.certifit")
        again = certifit.load(tmp_path / "boosted.certifit")
        assert np.array_equal(again.predict_proba(X), model.predict_proba(X))
        assert audit(again, X, y).holds


@pytest.mark.parametrize("kind", [AdaBoostClassifier, AdaBoostRegressor])
def test_importances_come_from_nodes_that_were_checked(kind):
    """Impurities decide which columns matter, and nothing that the ensemble predicts."""
    X, y = load_breast_cancer(return_X_y=True)
    learner = DecisionTreeClassifier if kind is AdaBoostClassifier else DecisionTreeRegressor
    model = kind(learner(max_depth=2), n_estimators=3, random_state=0).fit(X, y)
    importances, tree = model.feature_importances_, model.members_[1].tree_
    assert audit(model, X, y).holds
    model.members_[1].tree_ = replace(tree, impurity=tree.impurity[::-1].copy())
    assert not np.allclose(model.feature_importances_, importances)
    assert any("nodes of learners" in failure for failure in audit(model, X, y).failures())


def test_weights_that_were_raised_do_not_refute_the_product_of_normalisers():
    """Deep trees leave rows with weights below the least that learners are handed, and a loss below it."""
    rng = np.random.default_rng(8)
    X = rng.normal(size=(120, 3))
    y = np.digitize(X[:, 0] + rng.normal(size=120), [-0.5, 0.5])
    model = AdaBoostClassifier(
        DecisionTreeClassifier(max_depth=4), n_estimators=60, learning_rate=2.0, random_state=0
    )
    model.fit(X, y)
    found = audit(model, X, y)
    assert model.certificate_.holds
    assert found.holds
    assert found.objective < found.facts["product of Z"] < 1e-90
