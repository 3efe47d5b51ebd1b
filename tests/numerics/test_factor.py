"""Inverses of symmetric positive semidefinite matrices, beside NumPy's."""

import numpy as np
import pytest

from certifit.numerics.factor import factor


@pytest.mark.parametrize("d", [0, 1, 2, 31])
def test_the_inverse_is_numpys(d):
    rng = np.random.default_rng(d)
    X = rng.normal(size=(3 * d + 1, d)) * 10.0 ** rng.integers(-6, 6, d)
    A = X.T @ X
    found = factor(A).inverse()
    np.testing.assert_allclose(found * np.sqrt(np.outer(np.diag(A), np.diag(A))), _scaled_inverse(A), atol=1e-9)


def _scaled_inverse(A):
    unit = 1 / np.sqrt(np.diag(A))
    return np.linalg.inv(A * unit * unit[:, None])


def test_of_a_singular_matrix_it_is_the_one_on_its_range():
    A = np.ones((3, 3))
    np.testing.assert_allclose(factor(A).inverse(), np.linalg.pinv(A), atol=1e-12)
