"""The search for signs against every set of signs there is, and on collinear columns where descent creeps."""

from itertools import product

import numpy as np
import pytest

from certifit import Lasso, LassoCV
from certifit.optimise.sign_search import SignSearchTuning, search_signs


def objective(G, c, lam, beta):
    return 0.5 * beta @ G @ beta - c @ beta + lam @ np.abs(beta)


def least(G, c, lam, positive):
    """The smallest objective of all sets of signs, each solved by linear equations."""
    found = [0.0]
    for signs in product((0, 1) if positive else (-1, 0, 1), repeat=len(c)):
        here, beta = np.flatnonzero(signs), np.zeros(len(c))
        if len(here):
            beta[here] = np.linalg.lstsq(G[np.ix_(here, here)], (c - lam * signs)[here])[0]
        if (np.sign(beta[here]) == np.array(signs)[here]).all():
            found.append(objective(G, c, lam, beta))
    return min(found)


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_it_is_the_best_of_all_signs(seed, positive):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(3 + seed % 6, 5))  # fewer rows than columns among them
    X[:, 4] = X[:, seed % 4]  # twice the same column
    G, c, lam = X.T @ X, X.T @ rng.normal(size=len(X)), rng.uniform(0.05, 0.5, 5)
    start = np.where(rng.random(5) < 0.5, rng.normal(size=5), 0.0)
    beta = search_signs(G, c, lam, np.abs(start) if positive else start, positive)
    assert not positive or (beta >= 0).all()
    assert objective(G, c, lam, beta) == pytest.approx(least(G, c, lam, positive), rel=1e-10, abs=1e-12)


def test_a_column_without_spread_stays_at_0_and_no_time_is_no_answer():
    G, c, lam = np.diag([2.0, 0.0]), np.array([3.0, 0.0]), np.ones(2)
    np.testing.assert_allclose(search_signs(G, c, lam, np.zeros(2)), [1.0, 0.0])
    assert search_signs(G, c, lam, np.zeros(2), tuning=SignSearchTuning(work=0.0)) is None


@pytest.mark.parametrize("alpha", [1e-5, 4e-5, 1e-4])
def test_signs_that_rounding_brings_back_end_the_search(alpha):
    """Five columns of 40,410 ± 3, two of them sums of others: the search went round for twenty minutes."""
    X = np.array([
        [40410.283, 40409.298, 40408.598], [40409.522, 40410.647, 40410.937], [40407.993, 40409.464, 40408.613],
        [40405.501, 40411.375, 40409.773], [40412.333, 40409.373, 40410.361],
    ])  # fmt: skip
    X = np.column_stack([X, X.sum(axis=1), 2 * X[:, 0]])
    y, w = np.array([96483.0, -44974, 36327, -147703, 98847]), np.array([0.0183, 1.472, 0.0132, 0.0007, 111.37])
    lam = np.full(5, alpha * w.sum() / 2)
    G, c = (X.T * w) @ X + np.diag(lam), X.T @ (w * y)
    beta = search_signs(G, c, lam, np.zeros(5), tuning=SignSearchTuning(work=3e6))
    assert objective(G, c, lam, beta) < 0.0


def test_lasso_of_more_collinear_columns_than_rows_is_solved():
    """Coordinate descent creeps where rows nearly interpolate: 1,000 passes of it left a gap of 4e-7 here."""
    rng = np.random.default_rng(0)
    y = 1.0 + np.arange(60) % 3
    X = np.floor(np.abs(rng.normal(size=(60, 200)) + y[:, None]))
    X = np.hstack([X, X[:, :100]])
    model = Lasso(1e-3, max_iter=20).fit(X, y)
    assert model.certificate_.holds
    assert LassoCV(cv=2, alphas=10).fit(X, y).certificate_.holds
