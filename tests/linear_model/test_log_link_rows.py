"""Passes of models with a log link over large dense blocks, and bounds on how far rows reach."""

import numpy as np
import pytest
from scipy.special import xlogy

import certifit
from certifit.checkers.plain.response_columns import ResponseLayout
from certifit.linear_model.glm import block_statistics
from certifit.linear_model.glm.block_statistics import GlmRequest, measure
from certifit.linear_model.glm.coordinates import GlmCoordinates
from certifit.linear_model.linear_rows import largest_sizes, row_reach
from certifit.losses.links import LogLink
from certifit.losses.response_families import response_family
from certifit.losses.response_losses import glm_loss
from certifit.optimise.self_concordance import ConcordanceProof, HessianPoint, ReachRequest
from certifit.rows import Block


@pytest.fixture
def block():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(25_000, 10))
    w = rng.integers(0, 3, len(X)).astype(float)
    return Block(X, rng.gamma(2.0, np.exp(0.3 * X[:, 0])), w, 0)


@pytest.mark.compiled
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize(("family", "power"), [("poisson", 1.0), ("gamma", 2.0), ("tweedie", 1.3)])
def test_a_large_block_is_measured_as_a_small_one(block, family, power, intercept, monkeypatch):
    """The compiled pass against the one by operations on whole arrays, which is another implementation."""
    loss = glm_loss(response_family(family, theta=1.0, power=power), LogLink())
    theta = np.linspace(-0.2, 0.3, 10 + intercept)
    squares = ReachRequest(diagonal=np.linspace(1.0, 2.0, len(theta)))
    asked = GlmRequest(hessian=True, totals=True, reach=squares)
    arguments = theta, GlmCoordinates(intercept), loss, ResponseLayout(), asked, block
    calls = []
    loop = block_statistics.add_log_link_rows
    monkeypatch.setattr(block_statistics, "add_log_link_rows", lambda *a: calls.append(1) or loop(*a))
    found = measure(*arguments)
    assert calls
    monkeypatch.setattr(block_statistics, "_suits_the_loop", lambda *a: False)
    plain = measure(*arguments)
    assert len(calls) == 1
    for name in ("loss", "g", "H", "slope", "curvature"):
        np.testing.assert_allclose(getattr(found, name), getattr(plain, name), rtol=1e-12, atol=1e-10)
    np.testing.assert_allclose(found.score.value, plain.score.value, rtol=1e-13)
    np.testing.assert_allclose(found.reach.reach.value, plain.reach.reach.value, rtol=1e-12)


@pytest.mark.compiled
def test_a_step_that_overflows_is_no_number_and_has_no_derivatives(block):
    loss = glm_loss(response_family("poisson", theta=1.0, power=1.5), LogLink())
    asked = GlmRequest(hessian=False)
    found = measure(np.full(11, 1e3), GlmCoordinates(True), loss, ResponseLayout(), asked, block)
    assert found.loss == np.inf
    assert not found.g.any()


def test_weights_of_squares_bound_every_row():
    """z·H⁻¹z <= Σ s z² for all z: s - H⁻¹ has no negative eigenvalue; it is close for hardly tied columns."""
    rng = np.random.default_rng(1)
    A = rng.normal(size=(3000, 6)) * 10.0 ** np.arange(-3, 3)
    point = HessianPoint.at(np.zeros(6), A.T @ A)
    s = point.diagonal_bound()
    scale = np.sqrt(s)
    assert np.linalg.eigvalsh(np.eye(6) - point.inverse / np.outer(scale, scale))[0] >= -1e-12
    z = rng.normal(size=(500, 6)) * 10.0 ** np.arange(-3, 3)
    exact = np.einsum("ij,jk,ik->i", z, np.linalg.inv(A.T @ A), z)
    bound = row_reach(z, ReachRequest(diagonal=s), intercept=False).reach.value
    assert exact.max() <= bound <= 1.2 * exact.max()


def test_tied_columns_are_measured_in_full():
    z = np.random.default_rng(2).normal(size=(1000, 1))
    A = z + 0.01 * np.random.default_rng(3).normal(size=(1000, 4))
    proof = ConcordanceProof(1.0, HessianPoint.at(np.zeros(4), A.T @ A))
    assert proof.anchor.diagonal_bound() is None
    assert proof.request.diagonal is None
    assert proof.request.root is not None


@pytest.mark.parametrize("n", [0, 1, 15, 16, 53])
def test_largest_sizes_are_those_of_the_columns(n):
    Z = np.random.default_rng(n).normal(size=(n, 3))
    np.testing.assert_array_equal(largest_sizes(Z), np.abs(Z).max(axis=0, initial=0.0))


def test_a_long_fit_is_that_of_maximum_penalised_likelihood(monkeypatch):
    """From the subsample's solution: the gradient of the published objective vanishes, and an audit agrees."""
    tuning = certifit.PoissonRegressor._tuning
    monkeypatch.setattr(
        certifit.PoissonRegressor, "_tuning", type(tuning)(sample_rows=2**11, long_table=2**13, rows_per_column=5)
    )
    rng = np.random.default_rng(4)
    X = rng.normal(size=(30_000, 6))
    y = rng.poisson(np.exp(0.2 + X @ rng.normal(scale=0.2, size=6))).astype(float)
    model = certifit.PoissonRegressor(alpha=1e-3, tol=1e-8).fit(X, y)
    assert model.certificate_.holds
    assert certifit.audit(model, X, y).holds
    mu = np.exp(X @ model.coef_ + model.intercept_)
    gradient = np.append((mu - y) @ X / len(y) + 1e-3 * model.coef_, (mu - y).mean())
    assert np.abs(gradient).max() < 1e-6
    half_deviance = (xlogy(y, y) - y * np.log(mu) + mu - y).sum()
    ridge = 0.5 * 1e-3 * len(y) * model.coef_ @ model.coef_
    np.testing.assert_allclose(model.certificate_.objective, half_deviance + ridge, rtol=1e-10)
