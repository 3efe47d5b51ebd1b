"""The duality gap of stump ensembles: never above the loss of a model of the same size, and 0 at the best one."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import approx_fprime, linprog, minimize

from certifit.checkers.ensemble.score_losses import plain_score_loss
from certifit.checkers.ensemble.stump_gap import stump_gap

NAMES = ["squared_error", "absolute_error", "quantile", "huber", "poisson", "gamma", "log_loss", "exponential"]


def targets(name, n, rng):
    if name in ("log_loss", "exponential"):
        return rng.integers(0, 2, n).astype(float)
    if name == "poisson":
        return rng.poisson(2, n).astype(float)
    return rng.gamma(2, size=n) if name == "gamma" else rng.normal(size=n) + (1e6 if name == "squared_error" else 0)


def stumps(X):
    """Every stump of a table without missing values, as columns (n, m)."""
    out = []
    for x in X.T:
        out += [(x > t).astype(float) for t in np.unique(x)[:-1]]
    return np.stack(out, axis=1)


@pytest.mark.parametrize("name", [*NAMES, "multinomial"])
def test_slopes_are_derivatives_and_no_slope_gives_more_than_the_loss(name):
    rng = np.random.default_rng(0)
    loss = plain_score_loss(name, 0.3 if name == "quantile" else None)
    y = rng.integers(0, 3, 40) if name == "multinomial" else targets(name, 40, rng)
    t = rng.normal(size=(40, 3)) if name == "multinomial" else y * loss.translates + rng.normal(size=40)
    total = lambda t: float(loss.value(y, t.reshape(np.shape(y) + (3,) * loss.several)).sum())  # noqa: E731
    assert np.allclose(loss.slope(y, t).ravel(), approx_fprime(t.ravel(), total, 1e-7), atol=1e-3, rtol=1e-3)
    if loss.smooth:
        step = 1e-5
        if not loss.several:
            rise = (loss.slope(y, t + step) - loss.slope(y, t - step)) / (2 * step)
            assert np.allclose(loss.curvature(y, t), rise, rtol=1e-4, atol=1e-5)
    u = loss.slope(y, t)
    inner = (u * t).reshape(40, -1).sum(axis=1)
    assert np.allclose(loss.gain(y, u), loss.value(y, t) - inner, atol=1e-9 * (1 + np.abs(inner).max()))
    other = loss.slope(y, t + rng.normal(size=t.shape))
    inner = (other * t).reshape(40, -1).sum(axis=1)
    assert (loss.gain(y, other) + inner <= loss.value(y, t) + 1e-12 * (1 + np.abs(inner))).all()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("seed", range(3))
def test_no_model_of_this_size_is_below_the_bound(name, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, 3)).round(1)
    loss, y, w = plain_score_loss(name), targets(name, 60, rng), rng.random(60) + 0.1
    H = stumps(X)
    start = float(np.median(y)) if loss.translates else 0.0
    beta = np.where(rng.random(H.shape[1]) < 0.1, rng.normal(size=H.shape[1]), 0)
    size = float(np.abs(beta).sum())
    found = stump_gap(X, y, w, start + H @ beta, size, loss)
    assert found.objective == pytest.approx(float(w @ loss.value(y, start + H @ beta)), rel=1e-12)
    for _ in range(200):
        other = rng.exponential(size=H.shape[1]) ** 4 * rng.choice([-1, 1], H.shape[1])
        F = start + rng.normal() + H @ (other * size / np.abs(other).sum())
        assert w @ loss.value(y, F) >= found.bound


@pytest.mark.parametrize("name", ["squared_error", "log_loss", "poisson", "exponential", "huber", "gamma"])
def test_the_gap_of_the_best_model_is_next_to_nothing(name):
    """Solved by SciPy's L-BFGS-B over positive and negative parts, with a penalty on their sum."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(80, 2)).round(1)
    loss, y, w = plain_score_loss(name), targets(name, 80, rng), np.ones(80)
    y = y - (1e6 if name == "squared_error" else 0)
    H = stumps(X)
    m = H.shape[1]

    def problem(z):
        F = z[0] + H @ (z[1 : m + 1] - z[m + 1 :])
        u = loss.slope(y, F)
        pull = H.T @ u
        return loss.value(y, F).sum() + 3 * z[1:].sum(), np.concatenate([[u.sum()], pull + 3, 3 - pull])

    options = {"maxiter": 20_000, "maxfun": 40_000, "ftol": 1e-15, "gtol": 1e-9}
    best = minimize(
        problem, np.zeros(2 * m + 1), jac=True, method="L-BFGS-B", options=options,
        bounds=[(None, None)] + [(0, None)] * (2 * m),
    ).x  # fmt: skip
    beta = best[1 : m + 1] - best[m + 1 :]
    found = stump_gap(X, y, w, best[0] + H @ beta, float(np.abs(beta).sum()), loss)
    assert beta.any()
    assert found.gap <= 1e-4 * found.objective
    # The same coefficients with the largest one turned round are no longer best.
    wrong = beta.copy()
    wrong[np.abs(wrong).argmax()] *= -1
    assert stump_gap(X, y, w, best[0] + H @ wrong, float(np.abs(beta).sum()), loss).gap > 0.01 * found.objective


@pytest.mark.parametrize(("name", "alpha"), [("absolute_error", 0.5), ("quantile", 0.2)])
def test_a_quantile_model_against_its_linear_program(name, alpha):
    """The least pinball loss of a given size is a linear program, which HiGHS solves."""
    rng = np.random.default_rng(8)
    X = rng.normal(size=(50, 2)).round(1)
    y, size, times = rng.normal(size=50), 2.0, 2.0 if name == "absolute_error" else 1.0
    H = stumps(X)
    n, m = H.shape
    cost = np.concatenate([[0], np.zeros(2 * m), np.full(n, times * alpha), np.full(n, times * (1 - alpha))])
    A = np.hstack([np.ones((n, 1)), H, -H, np.eye(n), -np.eye(n)])
    limit = np.concatenate([[0], np.ones(2 * m), np.zeros(2 * n)])[None]
    solved = linprog(cost, limit, [size], A, y, bounds=[(None, None)] + [(0, None)] * (2 * m + 2 * n))
    F = solved.x[0] + H @ (solved.x[1 : m + 1] - solved.x[m + 1 : 2 * m + 1])
    found = stump_gap(X, y, np.ones(n), F, size, plain_score_loss(name, alpha))
    assert found.bound <= solved.fun + 1e-9
    assert found.objective == pytest.approx(solved.fun)
    # One dual point of many: slopes of rows that lie on their quantile are free, and are not sought here.
    assert found.gap <= 0.6 * found.objective


def test_several_classes_and_missing_values_and_categories():
    rng = np.random.default_rng(2)
    n = 90
    X = np.column_stack([rng.normal(size=n).round(1), rng.integers(0, 5, n)]).astype(float)
    X[rng.random(n) < 0.2, 0] = np.nan
    y = rng.integers(0, 3, n).astype(float)
    loss, w = plain_score_loss("multinomial"), rng.random(n) + 0.5
    categorical = np.array([False, True])
    found = stump_gap(X, y, w, rng.normal(size=(n, 3)), 3.0, loss, categorical)
    for _ in range(300):
        F = np.tile(rng.normal(size=3), (n, 1))
        for beta in rng.dirichlet(np.ones(4)) * 3.0 * rng.choice([-1, 1], 4):
            if rng.random() < 0.5:
                side = np.isin(X[:, 1], rng.choice(5, 2))
            else:
                side = np.where(np.isnan(X[:, 0]), rng.random() < 0.5, X[:, 0] > rng.normal())
            F[:, rng.integers(3)] += beta * side
        assert w @ loss.value(y, F) >= found.bound
