"""What the course says of ensembles of trees, each statement on data, with a control."""

import numpy as np
import pytest
from scipy import stats
from sklearn import datasets
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.model_selection import train_test_split

from certifit import (
    BaggingClassifier,
    BaggingRegressor,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    Ridge,
)


def moons(n, seed):
    return datasets.make_moons(n, noise=0.3, random_state=seed)


def roughness(model):
    """The share of neighbouring points of a grid whose predicted class differs: how long the boundary is."""
    U, V = np.meshgrid(np.linspace(-1.5, 2.5, 120), np.linspace(-1.2, 1.7, 120))
    Z = model.predict(np.column_stack([U.ravel(), V.ravel()])).reshape(U.shape)
    return (Z[1:] != Z[:-1]).mean() + (Z[:, 1:] != Z[:, :-1]).mean()


def test_bagging_smooths_the_boundary():
    """Shorter than that of a single tree, on every sample; a bag of one member is no smoother (the control)."""
    single, bag, one = [], [], []
    for seed in range(4):
        X, y = moons(300, seed)
        single.append(roughness(DecisionTreeClassifier().fit(X, y)))
        bag.append(roughness(BaggingClassifier(DecisionTreeClassifier(), 15, random_state=seed).fit(X, y)))
        one.append(roughness(BaggingClassifier(DecisionTreeClassifier(), 1, random_state=seed).fit(X, y)))
    assert (np.array(bag) < 0.9 * np.array(single)).sum() >= 3
    assert np.mean(bag) < 0.8 * np.mean(single)
    assert np.mean(one) > 1.2 * np.mean(bag)


def spread_of_predictions(make, n=150, repeats=6):
    """The mean variance of predictions over training samples."""
    new = datasets.make_friedman1(200, random_state=99)[0]
    found = [make(seed).fit(*datasets.make_friedman1(n, random_state=seed)).predict(new) for seed in range(repeats)]
    return np.var(found, axis=0, ddof=1).mean()


def test_bagging_lowers_the_variance_of_trees_and_not_of_a_stable_learner():
    tree = spread_of_predictions(lambda _: DecisionTreeRegressor())
    bagged = spread_of_predictions(lambda seed: RandomForestRegressor(20, random_state=seed))  # of all columns: a bag
    assert bagged < 0.5 * tree
    line = spread_of_predictions(lambda _: Ridge())
    lines = spread_of_predictions(lambda seed: BaggingRegressor(Ridge(), 8, random_state=seed))
    assert lines > 0.8 * line


@pytest.mark.parametrize("few", [1, 3])
def test_forests_decorrelate_their_trees(few):
    """Mean correlation between the errors of two trees, with few columns to choose from and with all of them."""
    X, y = datasets.make_friedman1(400, random_state=0)
    new, target = datasets.make_friedman1(400, random_state=1)

    def correlation(columns):
        forest = RandomForestRegressor(25, max_features=columns, random_state=0).fit(X, y)
        errors = np.stack([tree.predict(new) - target for tree in forest.estimators_])
        C = np.corrcoef(errors)
        mean_variance = np.cov(errors).diagonal().mean()
        # The variance of the mean of T errors is ρσ² + (1 - ρ)σ²/T.
        off = (C.sum() - 25) / (25 * 24)
        assert np.var(errors.mean(axis=0)) == pytest.approx(mean_variance * (off + (1 - off) / 25), rel=0.15)
        return off

    assert correlation(few) < correlation(None) - 0.05


def paired_errors(X, y, boosting, repeats=6):
    """Test errors of a tree, a bag of trees, a forest and, if asked for, boosting on the same splits (repeats, ·)."""
    found = []
    for seed in range(repeats):
        train, test, y_train, y_test = train_test_split(X, y, test_size=0.4, random_state=seed, stratify=y)
        models = [
            DecisionTreeClassifier(),
            RandomForestClassifier(40, max_features=None, random_state=seed),
            RandomForestClassifier(40, random_state=seed),
        ]
        models += [GradientBoostingClassifier(random_state=seed, n_estimators=40)] if boosting else []
        found.append([1 - model.fit(train, y_train).score(test, y_test) for model in models])
    return np.array(found)


def interval(difference):
    """95 % for a mean difference over random splits: the corrected resampled t (Nadeau & Bengio 2003)."""
    n = len(difference)
    error = np.sqrt((1 / n + 0.4 / 0.6) * np.var(difference, ddof=1))
    reach = stats.t.ppf(0.975, n - 1) * error
    return difference.mean() - reach, difference.mean() + reach


def test_a_tree_is_worse_than_its_bag_and_a_bag_than_a_forest_on_digits():
    """On handwritten digits, with 95 % confidence each."""
    tree, bag, forest = paired_errors(*datasets.load_digits(return_X_y=True), boosting=False).T
    assert interval(tree - bag)[0] > 0
    assert interval(bag - forest)[0] > 0


def test_bag_forest_and_boosting_are_not_told_apart_on_breast_cancer():
    """A tree errs most; for the other three, in this order, the statement is not found: intervals contain 0."""
    tree, bag, forest, boosted = paired_errors(*datasets.load_breast_cancer(return_X_y=True), boosting=True).T
    assert max(bag.mean(), forest.mean(), boosted.mean()) < tree.mean()
    for low, high in (interval(bag - forest), interval(forest - boosted)):
        assert low <= 0 <= high
