"""The compiled loops of numerics, packed matrices and missing entries, against plain NumPy twins."""

import numpy as np
import pytest

from certifit.numerics.missing_loops import centre
from certifit.numerics.packed import pack, unpack
from certifit.numerics.packed.inverses_loops import LANES, invert_packed
from certifit.numerics.packed.packed_loops import add_outer, multiply_packed, outer_packed, sum_unmarked

pytestmark = pytest.mark.compiled


def random_definite(m, k, rng):
    A = rng.normal(size=(m, k, k + 2))
    return A @ A.transpose(0, 2, 1)


@pytest.mark.parametrize("k", [0, 1, 2, 7, 13])
@pytest.mark.parametrize("m", [1, LANES - 1, LANES + 3])
def test_inverses_and_products_of_packed_matrices(m, k):
    rng = np.random.default_rng(k)
    A, b, which = random_definite(m, k, rng), rng.normal(size=(9, k)), rng.integers(0, m, 9)
    packed, log_det, z = pack(A), np.empty(m), np.full((9, k), np.nan)
    np.testing.assert_array_equal(unpack(packed, k), A)
    multiply_packed(packed, which, b, z)
    np.testing.assert_allclose(z, (A[which] @ b[..., None])[..., 0], rtol=1e-12, atol=1e-12)
    invert_packed(packed, k, log_det)
    np.testing.assert_allclose(unpack(packed, k), np.linalg.inv(A), rtol=1e-8, atol=1e-8 * (k > 0))
    np.testing.assert_allclose(log_det, np.linalg.slogdet(A)[1], rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 1.0])
def test_sums_over_what_is_not_marked(share):
    rng = np.random.default_rng(0)
    marks, source, base = rng.random((20, 40)) < share, rng.normal(size=(40, 9)), rng.normal(size=9)
    less, out = rng.random(20) < 0.5, np.full((20, 9), np.nan)
    sum_unmarked(marks, less, source, source.sum(axis=0), base, out)
    np.testing.assert_allclose(out, base + ~marks @ source, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_centring_puts_zeros_in_missing_entries(dtype):
    rng = np.random.default_rng(0)
    X = np.where(rng.random((9, 7)) < 0.2, np.nan, 5 + rng.normal(size=(9, 7))).astype(dtype)
    assert np.isnan(X).any()
    mean, Z = np.arange(7.0), np.full((9, 7), 5.0)
    centre(X, mean, Z)
    np.testing.assert_array_equal(Z, np.nan_to_num(X - mean))


def test_outer_products_of_rows():
    W = np.random.default_rng(0).normal(size=(6, 4))
    out = np.full((6, 10), np.nan)
    outer_packed(W, out)
    np.testing.assert_array_equal(unpack(out, 4), W[:, :, None] * W[:, None, :])


def test_outer_products_by_set():
    rng = np.random.default_rng(0)
    which, w, z = rng.integers(0, 3, 30), rng.exponential(size=30), rng.normal(size=(30, 4))
    T = np.zeros((3, 15))
    add_outer(which, w, z, T)
    u = np.column_stack([z, np.ones(30)])
    want = [(w[which == p, None] * u[which == p]).T @ u[which == p] for p in range(3)]
    np.testing.assert_allclose(unpack(T, 5), want, rtol=1e-12, atol=1e-12)
