"""Corners of generalised linear models: tables that determine nothing, likelihoods without a maximum, exact fits."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn import linear_model
from sklearn.base import clone

from certifit import (
    CertificateWarning,
    ElasticNet,
    GeneralizedLinearRegressor,
    LinearRegression,
    LogisticRegression,
    NoSolutionError,
    Ridge,
    audit,
)
from certifit.linear_model.glm.glm import CollinearWarning
from certifit.numerics.products import choose_shift


@pytest.mark.parametrize(
    ("model", "deviance"),
    [
        (ElasticNet(alpha=0.0, fit_intercept=False), 4.0),  # Σ y²
        (LinearRegression(fit_intercept=False), 4.0),
        (GeneralizedLinearRegressor("binomial", fit_intercept=False), 12 * np.log(2)),  # every p is ½
        (GeneralizedLinearRegressor("poisson", fit_intercept=False, covariance="sandwich"), 4.0),  # every μ is 1
    ],
)
def test_a_table_of_zeros_leaves_no_coefficient(model, deviance):
    X, y = np.zeros((6, 2)), np.array([0.0, 1, 1, 0, 1, 1])
    with pytest.warns(CollinearWarning, match="column 0, column 1"):
        model.fit(X, y)
    assert (model.coef_ == 0).all()
    assert model.deviance_ == pytest.approx(deviance)
    assert model.certificate_.holds
    assert audit(model, X, y).holds


def test_fit_and_audit_agree_that_there_is_no_maximum():
    """The one row whose mean falls for ever has little weight: no score was extreme, and the fit gave up."""
    corners = np.array([[-0.05623637, 0.01937489], [-0.02643781, 0.00676001], [0.01235268, -0.00458058]])
    X = corners[[0, 1, 1, 0, 1, 2, 0, 0, 1]]
    y = np.array([1.0, 0, 1, 1, 1, 0, 0, 1, 1])
    w = np.array([962.9, 5.03e-3, 0.425, 0.541, 0.817, 1.7e-3, 2582.2, 0.808, 1.28e-2])
    with pytest.raises(NoSolutionError, match="column 0, column 1") as caught:
        GeneralizedLinearRegressor("poisson").fit(X, y, w)
    assert caught.value.certificate.proved


@pytest.mark.parametrize("names", [None, [f"measurement number {j} of the second laboratory" for j in range(12)]])
@pytest.mark.parametrize("classes", [2, 4])
def test_errors_without_a_maximum_are_short_and_name_columns(names, classes):
    X = np.random.default_rng(5).normal(size=(12, 12))
    X = X if names is None else pd.DataFrame(X, columns=names)
    word = "column 0" if names is None else "'measurement number 0 of"
    with pytest.raises(NoSolutionError, match=word) as caught:
        LogisticRegression(penalty=None).fit(X, np.arange(12) % classes)
    assert len(str(caught.value)) < 310
    with pytest.raises(NoSolutionError, match=word) as caught:
        GeneralizedLinearRegressor("poisson", fit_intercept=False).fit(X, np.arange(12) % classes)
    assert len(str(caught.value)) < 310


@pytest.mark.parametrize("covariance", ["classical", "sandwich"])
@pytest.mark.parametrize("bits", [12, 15, 17])
@pytest.mark.parametrize("family", ["gaussian", "poisson", "logistic"])
def test_covariance_of_nearly_collinear_columns(family, bits, covariance):
    """x₂ = x₁ + δu, without rounding: the covariance is a linear image of that beside x₁ and u."""
    rng, delta = np.random.default_rng(bits), 2.0**-bits
    x, u = rng.integers(-(2**10), 2**10, size=(2, 80)) / 2**10
    y = rng.poisson(np.exp(x)).astype(float)
    model = (
        LogisticRegression(penalty=None, covariance=covariance)
        if family == "logistic"
        else GeneralizedLinearRegressor(family, covariance=covariance)
    )
    y = (y > 1).astype(int) if family == "logistic" else y
    easy = clone(model).fit(np.column_stack([x, u]), y).covariance_
    J = np.array([[1, 0, 0], [0, 1, -1 / delta], [0, 0, 1 / delta]])
    X = np.column_stack([x, x + delta * u])
    found = model.fit(X, y).covariance_
    errors = np.sqrt(np.diag(J @ easy @ J.T))
    np.testing.assert_allclose(found / errors / errors[:, None], J @ easy @ J.T / errors / errors[:, None], atol=1e-6)
    assert audit(model, X, y).holds
    model.covariance_ = (1 + 1e-5) * found
    assert not audit(model, X, y).holds


def test_a_covariance_of_columns_whose_squares_overflow():
    """Columns of 1e210 that vary by a 1e5th: the checker centres them as well as the fit does."""
    rng = np.random.default_rng(3)
    Z = rng.normal(size=(40, 3))
    y = rng.poisson(np.exp(Z[:, 0])).astype(float)
    X = (1e5 + Z) * 2.0**680
    model = GeneralizedLinearRegressor("poisson").fit(X, y)
    found = audit(model, X, y)
    assert found.holds
    off = next(check for check in found.checks if check.name.startswith("covariance_"))
    assert off.residual < 1e-7


@pytest.mark.parametrize(
    ("far", "near"), [(0.0, 1.0), (0.0, 1e-11), (1e3, 1.0), (1e3, 1e-8), (1e8, 1.0), (1e8, 1e-4)]
)
def test_exact_fits_hold_far_from_zero(far, near):
    """The intercept belongs to the coefficients as they are stored; of a deviance of rounding no digit is asked."""
    rng = np.random.default_rng(7)
    Z = rng.normal(size=(30, 3))
    Z[:, 1] = Z[:, 0] + near * Z[:, 1]
    X, slopes = Z + far, [1.0, 2.0, 3.0]
    for model, y in (
        (LinearRegression(), X @ slopes + 1),
        (LinearRegression(), X @ slopes + 1 + 1e-6 * rng.normal(size=30)),
        (GeneralizedLinearRegressor("gamma"), np.exp(0.3 * Z @ slopes)),
    ):
        model.fit(X, y)
        assert model.certificate_.holds
        assert audit(model, X, y).holds


def test_rounding_excuses_a_small_share_of_the_objective_only():
    """x₂ = 1 + x₁ but for its rounding, which a fit then explains by coefficients of 1e14: no digit is proved."""
    x = np.array([0.318, -0.851, -0.0869, -1.06, 1.34, 2.52, 2.37, -1.37, 0.0685, 0.223, 1.61, 0.402]) * 1e-6
    y = np.array([0.216, 0.067, 0.146, 0.054, 0.598, 1.83, 1.74, 0.041, 0.181, 0.201, 0.851, 0.238])
    X = np.column_stack([x, 1 + x])
    with pytest.warns(CertificateWarning):
        model = GeneralizedLinearRegressor("gamma").fit(X, y)
    found = audit(model, X, y)
    assert np.abs(model.coef_).max() > 1e12
    assert found.gap > 0.01 * found.objective
    assert not found.holds


@pytest.mark.parametrize("far", [0.0, 1e6])
@pytest.mark.parametrize("family", ["gaussian", "gamma"])
def test_an_exact_fit_has_no_likelihood(family, far):
    """Residuals that are rounding have a likelihood of rounding: there is none, and no standard errors are shown."""
    rng = np.random.default_rng(11)
    Z = rng.normal(size=(25, 2))
    eta = Z @ [0.5, 0.25] + 1
    y = np.exp(eta) if family == "gamma" else eta
    model = GeneralizedLinearRegressor(family).fit(Z + far, y)
    assert model.exact_fit_
    assert model.loglikelihood_ == np.inf
    assert "the fit is exact" in model.summary()
    assert not any(word in model.summary() for word in ("log-likelihood", "AIC", "std err"))
    assert audit(model, Z + far, y).holds
    model.loglikelihood_ = 500.0
    assert not audit(model, Z + far, y).holds
    y = y * (1 + 1e-5 * rng.normal(size=25))
    model = GeneralizedLinearRegressor(family).fit(Z + far, y)
    assert not model.exact_fit_
    assert "log-likelihood" in model.summary()
    model.loglikelihood_ = np.inf
    assert not audit(model, Z + far, y).holds


@pytest.mark.parametrize("scale", [1e-160, 1.0, 1e160, 1e270])
def test_columns_far_from_zero_are_centred_whatever_their_scale(scale):
    """Squares of 1e160 overflow, and those of 1e-170 are 0; where a column's centre is chosen neither matters."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 2)) + 1e6
    y = np.exp(0.3 * rng.normal(size=30))
    model = GeneralizedLinearRegressor("inverse_gaussian").fit(X * scale, y)
    found = audit(model, X * scale, y)
    assert model.certificate_.holds
    assert found.holds, found.failures()
    np.testing.assert_allclose(choose_shift(X * scale, np.ones(30)), X.mean(axis=0) * scale)


def test_a_table_without_a_column_that_tells_anything_is_judged():
    y = np.random.default_rng(0).normal(size=20)
    found = audit(linear_model.LinearRegression(fit_intercept=False).fit(np.zeros((20, 1)), y), np.zeros((20, 1)), y)
    assert found.holds


def test_null_deviance_is_judged_by_its_own_rounding():
    """Targets that hardly differ, far from 0, and no intercept: the fit's deviance is 1e14 times that of the mean."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(7, 2)) * 1e-6, 26379.85 + 1e-3 * rng.normal(size=7)
    model = LinearRegression(fit_intercept=False, covariance=None).fit(X, y)
    assert audit(model, X, y).holds
    model.null_deviance_ *= 1.5
    assert not audit(model, X, y).holds


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_ridge_penalty_of_equal_rows_asks_for_one_step(dtype):
    X, y = np.tile([8.9575e6, 563.8, 4.17e6, 0.0], (5, 1)).astype(dtype), np.array([-1.0, 1, 1, -1, 1])
    model = Ridge().fit(X, y)
    assert (model.coef_ == 0).all()
    assert np.max(model.n_iter_) <= 2
    assert model.certificate_.holds


def test_a_strong_ridge_penalty_leaves_small_coefficients_not_zeros():
    """The start is proved close enough at once; one step from there is the solution (X'X + αI)⁻¹ X'y."""
    X = np.random.default_rng(0).normal(size=(40, 3))
    y = X @ [1.0, -2.0, 0.5]
    model = Ridge(1e9, fit_intercept=False).fit(X, y)
    np.testing.assert_allclose(model.coef_, np.linalg.solve(X.T @ X + 1e9 * np.eye(3), X.T @ y), rtol=1e-10)
    assert Ridge(1.0).fit(X, np.ones(40)).n_iter_ == 0
