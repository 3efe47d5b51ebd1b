"""The compiled loop of coordinate descent against proximal gradient steps in plain NumPy."""

import numpy as np
import pytest

from certifit.optimise.coordinate_descent_loops import shrink_quadratic

pytestmark = pytest.mark.compiled


def shrink_by_gradient(H, q, lam, steps=20_000):
    """The same minimum by proximal gradient steps, in plain NumPy."""
    x, step = np.zeros(len(q)), 1 / np.linalg.eigvalsh(H)[-1]
    for _ in range(steps):
        z = x - step * (H @ x + q)
        x = np.sign(z) * np.maximum(np.abs(z) - step * lam, 0.0)
    return x


@pytest.mark.parametrize("seed", range(3))
def test_shrink_quadratic(seed):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(12, 6))
    H, q, lam = A.T @ A, 3 * rng.normal(size=6), np.array([0.0, 1.0, 1.0, 2.0, 4.0, 100.0])
    x = rng.normal(size=6)
    shrink_quadratic(H, q, lam, x, 1e-28, 10_000)
    np.testing.assert_allclose(x, shrink_by_gradient(H, q, lam), atol=1e-9)
    assert x[5] == 0.0


def test_shrink_quadratic_leaves_flat_coordinates_alone():
    x = np.array([2.0, 5.0])
    shrink_quadratic(np.array([[2.0, 0.0], [0.0, 0.0]]), np.array([-4.0, 0.0]), np.array([1.0, 1.0]), x, 1e-20, 100)
    np.testing.assert_allclose(x, [1.5, 5.0])  # (4 - 1) / 2; the second has no curvature to go by
