"""Covariances of columns in different units: small variances keep their digits beside large ones."""

import copy

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer

from certifit import ProbabilisticPCA, audit
from certifit.checkers.decomposition.scaled_covariance import ScaledCovariance

X = load_breast_cancer().data  # variances from 7e-7 to 4e5


def test_both_eigenvalues_of_two_columns_twenty_decades_apart():
    """λ₁ + λ₂ = 1e20 + 1 and λ₁ λ₂ = 0.75e20."""
    S = np.array([[1e20, 0.5e10], [0.5e10, 1.0]])
    found = ScaledCovariance.of(S, 0.0)
    np.testing.assert_allclose(found.values, [0.75, 1e20], rtol=1e-14)
    np.testing.assert_allclose(found.log_determinant, np.log(0.75) + 20 * np.log(10), rtol=1e-14)
    np.testing.assert_allclose(found.trace_of_inverse_times(np.diag([1e20, 1.0])), 2 / 0.75, rtol=1e-14)


@pytest.mark.parametrize("scale", [1e-60, 1.0, 1e60])
def test_the_share_of_rounding_is_that_of_what_is_known(scale):
    rng = np.random.default_rng(0)
    S = X.T @ X / len(X) * scale
    found = ScaledCovariance.of(S, 1e-12)
    D = np.sqrt(np.diag(S))
    for _ in range(20):
        E = rng.uniform(-1, 1, S.shape)
        moved = ScaledCovariance.of(S + 1e-12 * (np.tril(E) + np.tril(E, -1).T) * D * D[:, None], 0.0)
        assert (abs(moved.values / found.values - 1) <= found.share).all()


def test_singular_covariances_have_none():
    assert ScaledCovariance.of(np.ones((2, 2)), 0.0) is None
    assert ScaledCovariance.of(np.diag([1.0, 0.0]), 0.0) is None
    assert ScaledCovariance.of(np.full((2, 2), np.inf), 0.0) is None
    assert ScaledCovariance.of(np.array([[1.0, 1 - 1e-13], [1 - 1e-13, 1.0]]), 1e-9) is None  # known to no digit


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_probabilistic_pca_of_an_ordinary_table_is_proved(dtype):
    """Singular values of the rows, which lose half as many digits, give the least value again."""
    rows = X.astype(dtype)
    model = ProbabilisticPCA().fit(rows)
    again = audit(model, rows)
    assert model.certificate_.holds
    assert again.holds
    Z = rows.astype(float) - rows.astype(float).mean(axis=0)
    values = np.linalg.svd(Z, compute_uv=False) ** 2 / len(Z)
    least = 0.5 * (np.log(values).sum() + len(values) * (np.log(2 * np.pi) + 1))
    for found in (model.certificate_, again):
        assert found.bound <= least + 1e-9
        assert least - 1e-9 <= found.objective <= least + 1e-7
        assert found.gap < 1e-5
    wrong = copy.deepcopy(model)
    wrong.noise_variance_ *= 1.02  # a likelihood lower by 1e-4 nats a row
    assert not audit(wrong, rows).holds
    wrong = copy.deepcopy(model)
    wrong.loglikelihood_ += 0.1
    assert not audit(wrong, rows).holds
