"""AdaBoost is forward stagewise additive modelling with the exponential loss (Friedman, Hastie & Tibshirani 2000)."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from certifit import AdaBoostClassifier, DecisionTreeClassifier


def noisy(n=150, seed=0):
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(n, 3)), 1)
    return X, np.where(X[:, 0] + X[:, 1] ** 2 + rng.normal(size=n) > 0.8, 1.0, -1.0)


def stagewise(answers, y, loss, stages):
    """Forward stagewise: the step along each learner's answers that lowers the mean loss most."""
    f, steps = np.zeros(len(y)), []
    for h in answers[:stages]:
        found = minimize_scalar(lambda b, h=h, f=f: loss(y * (f + b * h)).mean(), bounds=(-5, 5), method="bounded",
                                options={"xatol": 1e-10})  # fmt: skip
        steps.append(found.x)
        f = f + found.x * h
    return np.array(steps), f


def test_strengths_are_exact_line_searches_of_the_exponential_loss():
    X, y = noisy()
    model = AdaBoostClassifier(n_estimators=12).fit(X, y)
    answers = [tree.predict(X) for tree in model.estimators_]
    steps, f = stagewise(answers, y, lambda m: np.exp(-m), 12)
    assert np.allclose(2 * steps, model.estimator_weights_, atol=1e-6)
    assert np.allclose(2 * f, model.log_odds(X), atol=1e-5)
    other, _ = stagewise(answers, y, lambda m: np.logaddexp(0, -2 * m), 12)  # the control: another loss
    assert not np.allclose(2 * other, model.estimator_weights_, atol=1e-2)


def test_weights_are_the_slopes_of_the_exponential_loss():
    """The next learner is fitted to what the loss's derivative weighs rows by."""
    X, y = noisy(seed=1)
    model = AdaBoostClassifier(n_estimators=6).fit(X, y)
    f = np.zeros(len(y))
    for m, tree in enumerate(model.estimators_):
        w = np.exp(-y * f)
        again = DecisionTreeClassifier(max_depth=1).fit(X, y, w)
        assert (again.tree_.feature[0], again.tree_.threshold[0]) == (tree.tree_.feature[0], tree.tree_.threshold[0])
        wrong = tree.predict(X) != y
        assert model.estimator_errors_[m] == pytest.approx(w[wrong].sum() / w.sum(), rel=1e-10)
        f = f + model.estimator_weights_[m] / 2 * tree.predict(X)


@pytest.mark.parametrize("seed", range(3))
def test_the_best_learner_of_a_stage_is_the_one_with_the_least_weighted_error(seed):
    """Jointly over all stumps and steps, by brute force: the loss is least where the error is far from a half."""
    X, y = noisy(60, seed)
    w = np.random.default_rng(seed).exponential(size=60)
    w /= w.sum()
    stumps = [np.where(x > t, 1.0, -1.0) for x in X.T for t in np.unique(x)[:-1]]
    errors = np.array([w[h != y].sum() for h in stumps])
    losses = [minimize_scalar(lambda b, h=h: w @ np.exp(-y * b * h)).fun for h in stumps]
    assert np.argmin(losses) == np.argmax(np.abs(errors - 0.5))
    assert np.allclose(losses, 2 * np.sqrt(errors * (1 - errors)), rtol=1e-9)
    assert not np.allclose(losses, errors)
