"""The statements of docs/atlas/07_trees_and_ensembles on data; each with a broken variant that must fail."""

import numpy as np
import pytest
from scipy.optimize import linprog, minimize_scalar
from sklearn.datasets import load_diabetes, load_wine

from certifit import (
    AdaBoostClassifier,
    BaggingRegressor,
    DecisionTreeClassifier,
    OptimalTreeClassifier,
    RandomForestRegressor,
    Ridge,
    load_penguins,
)

WINE, CULTIVAR = load_wine(return_X_y=True)
SIGNS = np.where(CULTIVAR == 1, 1.0, -1.0)
DIABETES, PROGRESSION = load_diabetes(return_X_y=True)
OLD, NEW = slice(0, None, 2), slice(1, None, 2)


# The best small tree. ------------------------------------------------------------------------------------------


def questions(X):
    """Every question x <= t with rows on both sides (q, n)."""
    return np.stack([x <= t for x in X.T for t in np.unique(x)[:-1]])


def least_wrong(asked, classes):
    """The fewest rows that one question, or none, leaves wrong; asked (q, n), classes (n, k) of zeros and ones."""
    left = asked.astype(float) @ classes
    right = classes.sum(axis=0) - left
    return len(classes) - max(classes.sum(axis=0).max(), (left.max(axis=1) + right.max(axis=1)).max(initial=0))


def best_of_all_trees(X, y, model):
    """Whether no tree of depth two, out of all of them, leaves fewer rows wrong than the model does."""
    asked, classes = questions(X), np.eye(y.max() + 1)[y]
    fewest = min(sum(least_wrong(asked[:, side], classes[side]) for side in (yes, ~yes)) for yes in asked)
    return (model.predict(X) != y).sum() == fewest


# Columns for which all trees can be tried: flavanoids, colour, hue and proline, rounded to 2 digits or so.
FEW = np.column_stack([WINE[:, 6].round(1), WINE[:, 9].round(), WINE[:, 10].round(1), WINE[:, 12].round(-2)])


def test_no_tree_of_depth_two_is_better():
    assert best_of_all_trees(FEW, CULTIVAR, OptimalTreeClassifier(max_depth=2).fit(FEW, CULTIVAR))


def test_control_the_greedy_tree_is_not_the_best():
    assert not best_of_all_trees(FEW, CULTIVAR, DecisionTreeClassifier(max_depth=2).fit(FEW, CULTIVAR))


# Bags and forests. ----------------------------------------------------------------------------------------------


def bag_of_trees(seed, members=15):
    return RandomForestRegressor(members, max_features=None, random_state=seed)


@pytest.fixture(scope="module")
def bag():
    return bag_of_trees(0, 25).fit(DIABETES[OLD], PROGRESSION[OLD])


@pytest.fixture(scope="module")
def forest():
    return RandomForestRegressor(25, max_features=1, random_state=0).fit(DIABETES[OLD], PROGRESSION[OLD])


def member_answers(model):
    """What each member says of new rows (T, n)."""
    return np.stack([tree.predict(DIABETES[NEW]) for tree in model.estimators_])


def gains_what_members_disagree_by(answers, told):
    """Whether told (n,) has the members' mean squared error less the variance of their answers (T, n)."""
    y = PROGRESSION[NEW]
    expected = ((answers - y) ** 2).mean(axis=0) - answers.var(axis=0)
    return np.allclose((told - y) ** 2, expected, rtol=1e-9, atol=1e-6)


def test_a_bag_gains_what_its_members_disagree_by(bag):
    assert gains_what_members_disagree_by(member_answers(bag), bag.predict(DIABETES[NEW]))
    assert member_answers(bag).var(axis=0).mean() > 1000  # a third of a tree's squared error


def test_control_the_median_is_no_mean(bag):
    assert not gains_what_members_disagree_by(member_answers(bag), np.median(member_answers(bag), axis=0))


def spread_over_samples(make, samples=5):
    """The mean variance of what models say of 100 patients, each fitted to another half of the rest."""
    drawn = np.random.default_rng(0)
    halves = [drawn.permutation(342)[:171] for _ in range(samples)]
    told = [make(s).fit(DIABETES[k], PROGRESSION[k]).predict(DIABETES[342:]) for s, k in enumerate(halves)]
    return np.var(told, axis=0, ddof=1).mean()


def bagging_lowers_variance(single, bagged):
    """Whether the bag varies at most half as much as the single learner from sample to sample."""
    return spread_over_samples(bagged) < 0.5 * spread_over_samples(single)


def test_bagging_lowers_the_variance_of_trees():
    assert bagging_lowers_variance(lambda seed: bag_of_trees(seed, 1), bag_of_trees)


def test_control_bagging_a_stable_learner_gains_nothing():
    assert not bagging_lowers_variance(
        lambda seed: Ridge(), lambda seed: BaggingRegressor(Ridge(), 8, random_state=seed)
    )


def correlation(answers):
    """The mean correlation between the errors of two members."""
    C, T = np.corrcoef(answers - PROGRESSION[NEW]), len(answers)
    return (C.sum() - T) / (T * (T - 1))


def variance_of_mean(model, rho):
    """Whether the variance of the model's error is ρσ² + (1 - ρ)σ²/T, up to the differences between the members."""
    errors = member_answers(model) - PROGRESSION[NEW]
    expected = errors.var(axis=1).mean() * (rho + (1 - rho) / len(errors))
    return (model.predict(DIABETES[NEW]) - PROGRESSION[NEW]).var() == pytest.approx(expected, rel=0.03)


def test_the_variance_of_a_mean_of_trees(bag, forest):
    assert variance_of_mean(bag, correlation(member_answers(bag)))
    assert variance_of_mean(forest, correlation(member_answers(forest)))


def test_control_trees_are_not_independent(forest):
    assert not variance_of_mean(forest, 0.0)


def decorrelates(model, than):
    """Whether two of a model's trees err together less: by more than three standard errors over its trees."""
    found = []
    for one in (model, than):
        C = np.corrcoef(member_answers(one) - PROGRESSION[NEW])
        of_trees = (C.sum(axis=1) - 1) / (len(C) - 1)
        found.append((of_trees.mean(), of_trees.var(ddof=1) / len(C)))
    (low, noise), (high, more) = found
    return high - low > 3 * np.sqrt(noise + more)


def test_few_columns_decorrelate_trees(bag, forest):
    assert decorrelates(forest, bag)


def test_control_all_columns_decorrelate_nothing(bag):
    other = bag_of_trees(1, 25).fit(DIABETES[OLD], PROGRESSION[OLD])
    assert not decorrelates(other, bag)
    assert not decorrelates(bag, other)


# Boosting. ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def boosted():
    """Twelve stages and what each says of the rows, +1 or -1 (12, n)."""
    model = AdaBoostClassifier(n_estimators=12).fit(WINE, SIGNS)
    return model, np.stack([stump.predict(WINE) for stump in model.estimators_])


def minimise_stage_by_stage(strengths, answers, loss, y):
    """Whether each strength is, up to 1e-5, the step along its learner's answers with the least mean loss(y f)."""
    f = np.zeros(len(y))
    for strength, h in zip(strengths, answers, strict=True):
        best = minimize_scalar(lambda b, h=h, f=f: loss(y * (f + b * h)).mean(), (0.0, 1.0), tol=1e-12).x
        if abs(best - strength) > 1e-5:
            return False
        f += strength * h
    return True


def test_strengths_minimise_the_exponential_loss(boosted):
    model, answers = boosted
    assert minimise_stage_by_stage(model.estimator_weights_ / 2, answers, lambda m: np.exp(-m), SIGNS)


def test_control_steps_of_another_loss(boosted):
    model, answers = boosted
    assert not minimise_stage_by_stage(
        model.estimator_weights_ / 2, answers, lambda m: np.logaddexp(0, -2 * m), SIGNS
    )


def are_log_odds(scores, values, yes):
    """Whether rows of one value have log(share / (1 - share)) of those that are `yes`, as counted."""
    shares = {v: yes[values == v].mean() for v in np.unique(values)}
    return np.allclose(scores, [np.log(shares[v] / (1 - shares[v])) for v in values], rtol=0, atol=1e-3)


@pytest.fixture(scope="module")
def birds():
    """Masses of penguins in steps of 500 g, who is male, and AdaBoost, which can build any function of these."""
    table = load_penguins().dropna()
    table = table[(table["body_mass_g"] >= 3000) & (table["body_mass_g"] < 5500)]
    mass, male = table["body_mass_g"].to_numpy() // 500, (table["sex"] == "male").to_numpy()
    return mass, male, AdaBoostClassifier(n_estimators=100).fit(mass[:, None], male)


def test_boosting_ends_at_the_log_odds(birds):
    mass, male, model = birds
    assert are_log_odds(model.log_odds(mass[:, None]), mass, male)


def test_control_the_mean_vote_is_no_log_odds(birds):
    mass, male, model = birds
    assert not are_log_odds(model.decision_function(mass[:, None]), mass, male)


def loss_is_product(strengths, answers, y):
    """Whether the mean of exp(-y f) is the product of 2 √(e (1 - e)), with errors under weights exp(-y f).

    Rows that are wrong are no larger a share than that, and that is no more than exp(-2 Σ (½ - e)²).
    """
    f, errors = np.zeros(len(y)), []
    for strength, h in zip(strengths, answers, strict=True):
        w = np.exp(-y * f)
        errors.append(w[h != y].sum() / w.sum())
        f = f + strength * h
    e = np.array(errors)
    product, loss = np.prod(2 * np.sqrt(e * (1 - e))), np.exp(-y * f).mean()
    bounds = (y * f <= 0).mean() <= loss <= np.exp(-2 * ((0.5 - e) ** 2).sum())
    return bool(np.isclose(loss, product, rtol=1e-9) and bounds)


def test_the_loss_is_the_product(boosted):
    model, answers = boosted
    for stages in (1, 5, 12):
        assert loss_is_product(model.estimator_weights_[:stages] / 2, answers[:stages], SIGNS)


def test_control_strengths_without_the_half(boosted):
    model, answers = boosted
    assert not loss_is_product(model.estimator_weights_, answers, SIGNS)


# Edges and margins. ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def largest_margin():
    return AdaBoostClassifier(n_estimators=10, corrective="lpboost", nu=1 / len(SIGNS)).fit(WINE, SIGNS)


def least_margin(model):
    """The least of y Σ a h(x) / Σ a over the rows."""
    strengths = np.asarray(model.estimator_weights_)[: len(model.estimators_)]
    votes = np.stack([stump.predict(WINE) * SIGNS for stump in model.estimators_])
    return (strengths @ votes).min() / strengths.sum()


def largest_edge(d):
    """The most that any stump's answers, or their opposites, or a constant, agree with the classes under d (n,)."""
    votes = np.where(questions(WINE), 1.0, -1.0) @ (d * SIGNS)
    return max(np.abs(votes).max(), abs(d @ SIGNS))


def is_minimax(margin, edge):
    """Whether one number is both: no margin is above an edge, and so equal ones are the largest and the smallest."""
    assert margin <= edge + 1e-9
    return edge - margin < 1e-7


def test_the_largest_margin_is_the_smallest_edge(largest_margin):
    d = largest_margin.row_distribution_
    assert d.min() >= 0
    assert d.sum() == pytest.approx(1)
    assert is_minimax(least_margin(largest_margin), largest_edge(d))


def test_the_minimax_is_that_of_all_stumps_by_linear_programming():
    """On four columns: max ρ with y Σ a h >= ρ for all rows, solved with every stump at once by SciPy."""
    told = np.where(questions(FEW), 1.0, -1.0)
    A = np.vstack([told, -told, np.ones((1, len(SIGNS))), -np.ones((1, len(SIGNS)))]) * SIGNS
    rows = np.hstack([-A.T, np.ones((len(SIGNS), 1))])
    cost, one = np.append(np.zeros(len(A)), -1.0), np.append(np.ones(len(A)), 0.0)[None]
    best = linprog(cost, rows, np.zeros(len(SIGNS)), one, [1.0], [(0, None)] * len(A) + [(None, None)])
    model = AdaBoostClassifier(n_estimators=10, corrective="lpboost", nu=1 / len(SIGNS)).fit(FEW, SIGNS)
    assert model.certificate_.facts["largest edge"] == pytest.approx(-best.fun, abs=1e-7)


def test_control_equal_weights_have_a_larger_edge(largest_margin):
    assert not is_minimax(least_margin(largest_margin), largest_edge(np.full(len(SIGNS), 1 / len(SIGNS))))


def test_control_adaboost_has_a_smaller_margin(boosted, largest_margin):
    assert not is_minimax(least_margin(boosted[0]), largest_edge(largest_margin.row_distribution_))
