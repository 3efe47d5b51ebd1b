"""Gap-safe screening: a column that is proved to be 0 is 0 in the optimum, by whatever solver it was found.

Ndiaye, Fercoq, Gramfort & Salmon, Gap safe screening rules for sparsity enforcing penalties (2017).
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from sklearn.linear_model import ElasticNet, LogisticRegression, lasso_path

from certifit.checkers.feature_selection import screening
from certifit.rows import as_rows


def squared(seed, n=60, d=12, informative=3):
    """Rows at an offset, numbers that depend on a few columns, uneven weights."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * rng.uniform(0.5, 2, d) + 3
    return X, X[:, :informative].sum(axis=1) + rng.normal(size=n), rng.exponential(size=n) + 0.1


def optimum(X, y, w, alpha, ratio, intercept):
    """The penalised least-squares optimum to 1e-12 of a gap, by scikit-learn's coordinate descent."""
    model = ElasticNet(alpha, l1_ratio=ratio, fit_intercept=intercept, tol=1e-14, max_iter=10**6)
    return model.fit(X, y, w)


@given(
    st.integers(0, 10**6),
    st.floats(0.01, 1.0),
    st.sampled_from([1.0, 0.7]),
    st.booleans(),
    st.floats(-12, 0),
)
def test_least_squares_columns_proved_zero_are_zero(seed, share, ratio, intercept, size):
    """From the optimum disturbed by any amount: what is proved is true, and the bound is below the optimum."""
    X, y, w = squared(seed)
    rows = as_rows(X, y, w, target="numbers")
    p = screening.screening_problem("squared", intercept, rows)
    alpha = share * screening.largest_strength(p, 1, ratio, rows)
    p = p.at(alpha, ratio)
    best = optimum(X, y, w, alpha, ratio, intercept)
    rng = np.random.default_rng(seed)
    beta = best.coef_ + 10.0**size * rng.normal(size=X.shape[1])
    found = screening.screen(p, beta, np.array([best.intercept_]), rows)
    assert not (found.proved & (np.abs(best.coef_) > 1e-9)).any()
    at_best = screening.screen(p, best.coef_, np.array([best.intercept_]), rows)
    assert found.bound <= at_best.objective * (1 + 1e-12)
    assert at_best.objective <= found.objective * (1 + 1e-12)


@given(st.integers(0, 10**6), st.floats(0.02, 1.0), st.booleans(), st.floats(-12, 0))
def test_logistic_columns_proved_zero_are_zero(seed, share, intercept, size):
    """Against scikit-learn's liblinear without an intercept, SAGA with one, as tight as they go."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(50, 8)) * rng.uniform(0.5, 2, 8)
    y = (X[:, 0] - X[:, 1] + rng.logistic(size=50) > 0).astype(int)
    y[:2] = 0, 1
    rows = as_rows(X, y, target="classes")
    p = screening.screening_problem("logistic", intercept, rows)
    alpha = share * screening.largest_strength(p, 1, 1.0, rows)
    solver = {"solver": "saga", "max_iter": 10**5} if intercept else {"solver": "liblinear", "max_iter": 10**4}
    best = LogisticRegression(
        C=1 / (50 * alpha), l1_ratio=1.0, fit_intercept=intercept, tol=1e-10, random_state=0, **solver
    )
    best.fit(X, y)
    beta = best.coef_ + 10.0**size * rng.normal(size=(1, 8))
    found = screening.screen(p.at(alpha, 1.0), beta, best.intercept_, rows)
    assert not (found.proved & (np.abs(best.coef_[0]) > 1e-6)).any()
    at_best = screening.screen(p.at(alpha, 1.0), best.coef_, best.intercept_, rows)
    assert found.bound <= at_best.objective * (1 + 1e-10)


@pytest.mark.parametrize("share", [0.9, 0.5, 0.2, 0.05])
def test_softmax_columns_proved_zero_are_zero(share):
    X, y = load_wine(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    rows = as_rows(X, y, target="classes")
    p = screening.screening_problem("logistic", True, rows)
    alpha = share * screening.largest_strength(p, 3, 1.0, rows)
    best = LogisticRegression(C=1 / (len(X) * alpha), l1_ratio=1.0, solver="saga", tol=1e-10, max_iter=10**5).fit(
        X, y
    )
    found = screening.screen(p.at(alpha, 1.0), best.coef_, best.intercept_, rows)
    used = (np.abs(best.coef_) > 1e-6).any(axis=0)
    assert not (found.proved & used).any()
    assert found.relative_gap < 1e-6
    assert found.proved.sum() >= (~used).sum() - 1  # near the optimum nearly all of them are proved


def test_nearly_every_zero_is_proved_along_the_lasso_path():
    X, y = load_diabetes(return_X_y=True)
    rows = as_rows(X, y, target="numbers")
    p = screening.screening_problem("squared", True, rows)
    alphas, coefs, _ = lasso_path(X - X.mean(axis=0), y - y.mean(), tol=1e-14, max_iter=10**6)
    proved = zeros = 0
    for alpha, beta in zip(alphas, coefs.T, strict=True):
        found = screening.screen(p.at(alpha, 1.0), beta, np.array([y.mean() - X.mean(axis=0) @ beta]), rows)
        assert not (found.proved & (beta != 0)).any()
        proved, zeros = proved + found.proved.sum(), zeros + (beta == 0).sum()
    assert proved > 0.95 * zeros


def test_the_largest_strength_is_where_the_first_column_enters():
    X, y = load_breast_cancer(return_X_y=True)
    X = X / X.std(axis=0)
    rows = as_rows(X, y, target="classes")
    p = screening.screening_problem("logistic", True, rows)
    alpha = screening.largest_strength(p, 1, 1.0, rows)
    share = y.mean()  # at β = 0 every row has this probability
    np.testing.assert_allclose(alpha, np.abs((share - y) @ X).max() / len(y), rtol=1e-12)
    null = screening.screen(
        p.at(1.001 * alpha, 1.0), np.zeros((1, 30)), np.array([np.log(share / (1 - share))]), rows
    )
    assert null.proved.all()  # and a little above it, all columns are proved 0
    assert null.relative_gap < 1e-12


def test_the_sphere_holds_the_best_dual_point():
    """The inequality behind the rule: Σ w |u - u*|² <= 2γ gap, with γ = 1/4 for two classes, far from the optimum."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 4))
    y = (X[:, 0] + rng.logistic(size=40) > 0).astype(float)
    lam = 3.0

    def smooth(z):  # β = z₁ - z₂ with z >= 0
        beta = z[:4] - z[4:]
        eta = X @ beta
        grad = X.T @ (1 / (1 + np.exp(-eta)) - y)
        return np.logaddexp(0, eta).sum() - y @ eta + lam * z.sum(), np.append(grad, -grad) + lam

    z = minimize(smooth, np.zeros(8), jac=True, bounds=[(0, None)] * 8, method="L-BFGS-B",
                 options={"ftol": 1e-16, "gtol": 1e-12}).x  # fmt: skip
    best = 1 / (1 + np.exp(-X @ (z[:4] - z[4:]))) - y
    rows = as_rows(X, y.astype(int), target="classes")
    p = screening.screening_problem("logistic", False, rows).at(lam / 40, 1.0)
    gamma = screening.LOSSES["logistic"].smoothness(1)
    for size in (0.01, 0.1, 1.0):
        beta = (z[:4] - z[4:]) + size * rng.normal(size=4)
        u = 1 / (1 + np.exp(-X @ beta)) - y
        u *= min(1.0, lam / np.abs(X.T @ u).max())  # the dual point of the checker
        found = screening.screen(p, beta[None], np.zeros(1), rows)
        assert ((u - best) ** 2).sum() <= 2 * gamma * (found.objective - found.bound) * (1 + 1e-9)


@pytest.mark.parametrize(("loss", "k"), [("squared", 1), ("logistic", 1), ("logistic", 2), ("logistic", 5)])
def test_the_smoothness_is_the_largest_curvature(loss, k):
    """γ bounds φ" everywhere, and is reached: at even odds, between two classes where there are more."""
    eta = np.random.default_rng(0).normal(size=(500, k)) * 3
    eta[0], eta[0, :2] = -40.0, 0.0
    curvature, smoothness = screening.LOSSES[loss].curvature, screening.LOSSES[loss].smoothness(k)
    largest = max(np.linalg.eigvalsh(curvature(row[None], np.ones(1)))[-1] for row in eta)
    np.testing.assert_allclose(largest, smoothness, rtol=1e-12)


def test_an_unbalanced_intercept_is_found():
    """Any intercept will do: the checker finds the balanced one itself."""
    X, y, w = squared(0)
    rows = as_rows(X, y, w, target="numbers")
    p = screening.screening_problem("squared", True, rows)
    alpha = 0.3 * screening.largest_strength(p, 1, 1.0, rows)
    best = optimum(X, y, w, alpha, 1.0, True)
    near = screening.screen(p.at(alpha, 1.0), best.coef_, np.array([best.intercept_]), rows)
    far = screening.screen(p.at(alpha, 1.0), best.coef_, np.array([best.intercept_ + 5.0]), rows)
    np.testing.assert_allclose(far.bound, near.bound, rtol=1e-9)
    assert far.objective > near.objective
