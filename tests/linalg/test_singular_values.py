"""Singular values and low-rank approximations against NumPy, corners, and certificates that fail when they must."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.linalg import hilbert

from certifit import linalg
from certifit.checkers.linalg import singular_values as singular
from certifit.linalg.singular_values import METHODS as SVD_METHODS

SCALES = [1.0, 1e-160, 1e150]


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("shape", [(12, 8), (8, 12), (1, 5), (5, 1), (1, 1)])
@pytest.mark.parametrize("method", SVD_METHODS)
def test_svd_and_low_rank_against_numpy(method, shape, scale):
    A = np.random.default_rng(1).normal(size=shape) * 0.6 ** np.arange(shape[1])
    true = np.linalg.svd(A, compute_uv=False)
    for k in {0, 1, len(true) // 2, len(true)}:
        near = linalg.low_rank(A * scale, k, method=method)
        frobenius, spec = np.sqrt((true[k:] ** 2).sum()), true[k] if k < len(true) else 0.0
        assert near.certificate.holds
        np.testing.assert_allclose(near.s / scale, true[:k], rtol=1e-9)
        assert near.distance_frobenius / scale == pytest.approx(frobenius, abs=1e-9)
        assert near.distance_spectral / scale == pytest.approx(spec, abs=1e-7)
        assert near.certificate.bound / scale <= frobenius * (1 + 1e-12) + 1e-15
        np.testing.assert_allclose(linalg.svd(A * scale, k, method=method).s, near.s, rtol=1e-12)


@pytest.mark.parametrize("A", [np.zeros((6, 4)), np.ones((6, 4)), np.eye(6, 4), np.tri(5), hilbert(9)])
@pytest.mark.parametrize("method", SVD_METHODS)
def test_svd_of_special_matrices(method, A):
    true = np.linalg.svd(A, compute_uv=False)
    for k in range(len(true) + 1):
        found = linalg.svd(A, k, method=method)
        np.testing.assert_allclose(found.s, true[:k], atol=1e-9)
        assert found.certificate.holds


@pytest.mark.parametrize("method", ["arpack", "randomized"])
def test_low_rank_of_a_large_sparse_matrix(method):
    """Planted: orthogonal sparse columns of lengths 9, 7, 5 and a unit diagonal beside them."""
    d = 2100
    blocks = [np.full((4, 1), length / 2) for length in (9, 7, 5)]
    A = sparse.block_diag([*blocks, sparse.eye_array(d)], format="csr")
    near = linalg.low_rank(A, 3, method=method)
    np.testing.assert_allclose(near.s, [9, 7, 5], rtol=1e-10)
    assert near.certificate.kind == "statistical"
    assert near.certificate.holds
    assert near.distance_frobenius == pytest.approx(np.sqrt(d), rel=1e-10)
    assert 1 <= near.distance_spectral < 1.01
    assert near.certificate.bound == pytest.approx(np.sqrt(d), rel=1e-6)
    assert near.certificate.facts["spectral distance of any, at least"] == pytest.approx(1, rel=1e-9)


def test_sabotaged_triplets_do_not_hold():
    A = np.random.default_rng(2).normal(size=(20, 15))
    U, s, Vt = np.linalg.svd(A, full_matrices=False)
    keep = slice(0, 3)
    good = U[:, keep], s[keep], Vt[keep]
    assert singular.certify(A, *good).certificate.holds
    turn = np.eye(3)
    turn[:2, :2] = [[0.6, -0.8], [0.8, 0.6]]
    for bad in (
        (-good[0], good[1], good[2]),
        (good[0], good[1] * 1.001, good[2]),
        (good[0], good[1] - [0, 0, 0.1], good[2]),
        (good[0] * 1.001, good[1], good[2]),
        (good[0], good[1], np.roll(good[2], 1, axis=1)),
        (good[0] @ turn, good[1], turn.T @ good[2]),
        (U[:, 1:4], s[1:4], Vt[1:4]),
        (U[:, [0, 1, 3]], s[[0, 1, 3]], Vt[[0, 1, 3]]),
        (good[0][:, ::-1], good[1][::-1], good[2][::-1]),
    ):
        assert not singular.certify(A, *bad).certificate.holds


@given(st.integers(0, 10**6), st.integers(1, 9), st.integers(1, 9))
def test_svd_of_the_transpose_and_of_a_turned_matrix(seed, m, n):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(m, n))
    s = linalg.svd(A).s
    np.testing.assert_allclose(linalg.svd(A.T).s, s, atol=1e-13 * 10)
    np.testing.assert_allclose(linalg.svd(np.linalg.qr(rng.normal(size=(m, m)))[0] @ A).s, s, atol=1e-13 * 10)
