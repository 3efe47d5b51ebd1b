"""The judges of the benchmarks of generalised linear models, against scikit-learn's and SciPy's own numbers."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.linear_model import GammaRegressor, LogisticRegression, PoissonRegressor
from sklearn.metrics import mean_gamma_deviance, mean_poisson_deviance

from benchmarks.datasets import binary_labels, tall_factors
from benchmarks.elastic_path import WorstOfPath, elastic_path, sparse_truth
from benchmarks.glm import (
    GAMMA,
    LOGISTIC,
    POISSON,
    HalfDeviance,
    WithErrors,
    amounts,
    counts,
    gamma_tall,
    logistic_errors,
    poisson_errors,
    poisson_tall,
)
from benchmarks.harness import Options

X = tall_factors(2000, 5)
TARGETS = {"poisson": counts(X), "gamma": amounts(X), "logistic": binary_labels(X)}
LOSSES = {"poisson": POISSON, "gamma": GAMMA, "logistic": LOGISTIC}


@pytest.mark.parametrize("family", LOSSES)
def test_slope_and_curvature_are_derivatives(family):
    """Central differences: error about step² for the first, rounding / step for the second."""
    loss, y, eta, step = LOSSES[family], TARGETS[family], np.linspace(-2.0, 2.0, len(X)), 1e-5
    slope = (loss.value(y, eta + step) - loss.value(y, eta - step)) / (2 * step)
    curvature = (loss.slope(y, eta + step) - loss.slope(y, eta - step)) / (2 * step)
    np.testing.assert_allclose(loss.slope(y, eta), slope, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(loss.curvature(y, eta), curvature, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize(
    ("family", "estimator", "deviance"),
    [("poisson", PoissonRegressor, mean_poisson_deviance), ("gamma", GammaRegressor, mean_gamma_deviance)],
)
def test_half_deviance(family, estimator, deviance):
    y, alpha = TARGETS[family], 1e-3
    judge = HalfDeviance(X, y, LOSSES[family], alpha)
    rough = estimator(alpha=alpha, tol=1e-3).fit(X, y)
    tight = estimator(alpha=alpha, tol=1e-10, solver="newton-cholesky").fit(X, y)
    penalty = alpha * (tight.coef_ @ tight.coef_) / 2
    assert judge(tight) == pytest.approx(deviance(y, tight.predict(X)) / 2 + penalty, rel=1e-12)
    objective, within = judge.proved(tight)
    assert within < 1e-12
    value, distance = judge.proved(rough)
    assert value - distance * value <= objective <= value  # the bound is below the optimum, though not by much
    assert 0 < distance < 0.1


@pytest.mark.parametrize("family", ["poisson", "logistic"])
def test_standard_errors_are_judged(family):
    y = TARGETS[family]
    judge = WithErrors(X, y, LOSSES[family])
    if family == "poisson":
        peer = PoissonRegressor(alpha=0.0, tol=1e-10, solver="newton-cholesky").fit(X, y)
    else:
        peer = LogisticRegression(C=np.inf, tol=1e-10, solver="newton-cholesky").fit(X, y)
    found = judge.solution
    np.testing.assert_allclose(found.coef_, np.ravel(peer.coef_), rtol=1e-6)
    objective, within = judge.optimum()
    assert within < 1e-12
    assert objective == pytest.approx(LOSSES[family].value(y, X @ found.coef_ + found.intercept_).mean(), rel=1e-12)
    off = SimpleNamespace(**{**vars(found), "standard_errors_": 1.01 * found.standard_errors_})
    assert judge(off) == np.inf


@pytest.mark.parametrize("l1_ratio", [0.5, 1.0])
def test_path(l1_ratio):
    """The bounds lie below what SciPy's L-BFGS-B finds (coefficients split into two non-negative parts)."""
    Z, y = sparse_truth(300, 8)
    judge = WorstOfPath(Z, y, l1_ratio)
    judge.alphas = judge.alphas[::7]
    assert judge.objectives(np.zeros((8, 8))) == pytest.approx(np.log(2.0), rel=1e-12)
    path = np.array([split_lbfgs(Z, y, alpha, l1_ratio) for alpha in judge.alphas])
    assert not path[0].any()
    assert path[-1].any()
    found = judge.objectives(path)
    gaps = found - judge.bounds(path)
    assert (gaps >= -1e-12).all()
    assert gaps.max() < 1e-4
    assert (judge.bounds(np.roll(path, 1, axis=0)) <= found).all()


def split_lbfgs(Z, y, alpha, l1_ratio):
    def objective(parts):
        beta = parts[:8] - parts[8:]
        eta = Z @ beta
        slope = Z.T @ (1 / (1 + np.exp(-eta)) - y) / len(y) + alpha * (1 - l1_ratio) * beta
        value = (np.logaddexp(0, eta) - y * eta).mean() + alpha * (
            l1_ratio * parts.sum() + (1 - l1_ratio) * (beta @ beta) / 2
        )
        return value, np.concatenate([slope, -slope]) + alpha * l1_ratio

    options = {"ftol": 1e-15, "gtol": 1e-10, "maxiter": 5000}
    parts = minimize(objective, np.zeros(16), jac=True, bounds=[(0, None)] * 16, options=options).x
    return parts[:8] - parts[8:]


@pytest.mark.parametrize("cases", [poisson_tall, gamma_tall, poisson_errors, logistic_errors, elastic_path])
def test_cases_have_ours_first(cases):
    for case in cases(Options(shrink=1000)):
        assert case.contestants[0].name == "certifit"
        assert 0 < case.target <= 1
        assert not {c.package for c in case.contestants} <= {"certifit"}
