"""Eigenpairs: closed forms, every method, corners, and certificates that fail when they must."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.linalg import eigvalsh_tridiagonal
from scipy.sparse.linalg import LinearOperator, aslinearoperator

from certifit import linalg
from certifit.checkers.linalg import eigenpairs as spectral
from certifit.checkers.plain.largest_eigenvalue import largest_eigenvalue
from certifit.exceptions import CertificateWarning, DataError
from certifit.linalg.eigenpairs import METHODS as EIGEN_METHODS
from certifit.linalg.eigenpairs import EigenTuning
from certifit.numerics.krylov import block_krylov, power

SCALES = [1.0, 1e-160, 1e150]


def toeplitz(d):
    """The second-difference matrix and its eigenvalues 2 - 2 cos(πj/(d+1)), descending."""
    T = sparse.diags_array([-np.ones(d - 1), np.full(d, 2.0), -np.ones(d - 1)], offsets=[-1, 0, 1])
    return T, 2 - 2 * np.cos(np.pi * np.arange(d, 0, -1) / (d + 1))


def random_symmetric(seed, d):
    G = np.random.default_rng(seed).normal(size=(d, d))
    return (G + G.T) / 2


# ------------------------------------------------------------------------------------------------ eigen
@pytest.mark.parametrize("scale", [*SCALES, -1.0])
@pytest.mark.parametrize("method", EIGEN_METHODS)
def test_eigenvalues_of_the_second_difference_matrix(method, scale):
    T, true = toeplitz(30)
    true = np.sort(scale * true)[::-1]
    for k in (1, 3):
        found = linalg.eigen(T.toarray() * scale, k, method=method)
        np.testing.assert_allclose(found.values, true[:k], rtol=1e-11, atol=1e-12 * abs(scale))
        assert found.vectors.shape == (30, k)
        assert found.certificate.kind == "optimal"
        assert found.certificate.holds


@pytest.mark.parametrize("k", [0, 2, 5, None])
@pytest.mark.parametrize("method", EIGEN_METHODS)
def test_eigen_of_an_operator_that_knows_products_with_vectors_only(method, k):
    true = np.array([5.0, 3.0, 0.0, -1.0, -4.0])
    A = LinearOperator((5, 5), matvec=lambda x: true * x.ravel(), dtype=float)
    found = linalg.eigen(A, k, method=method)
    np.testing.assert_allclose(found.values, true[:k], atol=1e-8)
    assert found.vectors.shape == (5, len(true[:k]))
    assert found.certificate.holds


@pytest.mark.parametrize("A", [np.zeros((6, 6)), np.eye(6), np.ones((6, 6)), -np.ones((6, 6)), [[3]]])
@pytest.mark.parametrize("method", EIGEN_METHODS)
def test_eigen_of_matrices_with_repeated_eigenvalues(method, A):
    k = min(2, len(A))
    found = linalg.eigen(A, k, method=method)
    np.testing.assert_allclose(found.values, np.linalg.eigvalsh(A)[::-1][:k], atol=1e-12)
    assert found.certificate.holds


def grid(side):
    """The five-point Laplacian of a square, a Kronecker sum: its eigenvalues are sums, most of them double."""
    T, one = toeplitz(side)
    A = sparse.kron(T, sparse.eye_array(side)) + sparse.kron(sparse.eye_array(side), T)
    return sparse.csr_array(A), np.sort(np.add.outer(one, one).ravel())[::-1]


@pytest.mark.parametrize("method", ["arpack", "lobpcg", "krylov", "power"])
@pytest.mark.parametrize("wrap", [sparse.csr_array, aslinearoperator])
def test_eigen_of_large_matrices_by_products_alone(method, wrap):
    """(T + I)⁻¹-like decay: a path's Laplacian plus a steep diagonal, against LAPACK's tridiagonal solver."""
    d = 2500
    diagonal_ = 100 * 0.5 ** np.arange(d) + 2
    A = sparse.diags_array([-np.ones(d - 1), diagonal_, -np.ones(d - 1)], offsets=[-1, 0, 1]).tocsr()
    true = eigvalsh_tridiagonal(diagonal_, -np.ones(d - 1), select="i", select_range=(d - 4, d - 1))[::-1]
    found = linalg.eigen(wrap(A), 4, method=method)
    np.testing.assert_allclose(found.values, true, rtol=1e-10)
    assert found.certificate.kind == "statistical"
    assert found.certificate.holds
    assert "random start" in found.certificate.facts["assumes"]


@pytest.mark.parametrize("method", ["arpack", "lobpcg"])
def test_no_copy_of_a_double_eigenvalue_is_missed(method):
    """ARPACK by itself finds 7.981 of the 50 x 50 grid once, not twice."""
    A, true = grid(50)
    found = linalg.eigen(A, 4, method=method)
    np.testing.assert_allclose(found.values, true[:4], rtol=1e-10)
    assert found.certificate.holds
    values, vectors = found.values, found.vectors
    keep = [0, 1, 3]
    missed = spectral.certify(A, values[keep], vectors[:, keep])
    assert any("left out, at least" in failure for failure in missed.failures())


@pytest.mark.parametrize("dtype", [np.float32, np.int64, bool])
def test_eigen_takes_other_types_and_leaves_its_input(dtype):
    A = np.array([[1, 0, 1], [0, 1, 1], [1, 1, 0]], dtype=dtype)
    before = A.copy()
    found = linalg.eigen(A)
    np.testing.assert_allclose(found.values, np.linalg.eigvalsh(A.astype(float))[::-1], atol=1e-14)
    np.testing.assert_array_equal(A, before)


def test_eigen_says_which_entry_is_not_symmetric():
    A = np.eye(4)
    A[1, 3] = 0.5
    for bad in (A, sparse.csr_array(A)):
        with pytest.raises(DataError, match=r"A\[1, 3\] = 0.5 but A\[3, 1\] = 0|A\[3, 1\] = 0 but A\[1, 3\] = 0.5"):
            linalg.eigen(bad)
    with pytest.raises(DataError, match="symmetric operator"):
        linalg.eigen(aslinearoperator(A), 1)


@pytest.mark.parametrize(
    ("A", "k", "message"),
    [
        (np.ones((2, 3)), 1, "square"),
        (np.ones(3), 1, "rows and columns"),
        (np.empty((0, 0)), None, "at least one row"),
        (np.eye(3), 4, "from 0 to 3"),
        (np.eye(3), -1, "from 0 to 3"),
        (np.eye(3), 1.5, "from 0 to 3"),
        (np.diag([1.0, np.nan]), 1, r"entry \(1, 1\) = nan"),
        (sparse.csr_array(np.diag([1.0, np.inf])), 1, "inf"),
        (1j * np.eye(2), 1, "real numbers"),
        ([["a", "b"], ["b", "a"]], 1, "real numbers"),
        (sparse.eye_array(3000), None, "at most 2000"),
    ],
)
def test_eigen_refuses_in_words(A, k, message):
    with pytest.raises(DataError, match=message):
        linalg.eigen(A, k)


def test_unknown_methods_are_refused():
    with pytest.raises(DataError, match="'lapack'"):
        linalg.eigen(np.eye(2), method="qr")
    with pytest.raises(DataError, match="'randomized'"):
        linalg.svd(np.eye(2), method="qr")
    with pytest.raises(DataError, match="k=None"):
        linalg.low_rank(np.eye(2), None)
    with pytest.raises(DataError, match="an array or a sparse"):
        linalg.svd(aslinearoperator(np.eye(2)))


def test_a_method_that_stops_short_is_reported():
    T, _ = toeplitz(2500)
    with pytest.warns(CertificateWarning, match=r"residual .* allowed"):
        assert not linalg.eigen(T, 3, method="krylov", tuning=EigenTuning(krylov_depth=3)).certificate.holds


def spoilt_pairs(values, vectors):
    yield values * 1.001, vectors
    yield values + np.array([0.0, 0.1, 0.0]), vectors
    yield values[::-1], vectors[:, ::-1]
    yield values, vectors[:, [0, 0, 2]]
    yield values, vectors * 1.001
    yield values, np.roll(vectors, 1, axis=0)
    turned = vectors.copy()
    turned[:, :2] = vectors[:, :2] @ np.array([[0.6, -0.8], [0.8, 0.6]])  # the same span
    yield values, turned


@pytest.mark.parametrize("wrap", [np.asarray, aslinearoperator])
def test_sabotaged_eigenpairs_do_not_hold(wrap):
    A = random_symmetric(0, 40)
    values, vectors = np.linalg.eigh(A)
    values, vectors = values[::-1], vectors[:, ::-1]
    assert spectral.certify(wrap(A), values[:3], vectors[:, :3]).holds
    for bad in spoilt_pairs(values[:3], vectors[:, :3]):
        assert not spectral.certify(wrap(A), *bad).holds
    missed = [0, 1, 3], [1, 2, 3], [0, 2, 3]
    for keep in missed:  # right pairs, but not the largest
        assert not spectral.certify(wrap(A), values[keep], vectors[:, keep]).holds


@given(st.integers(0, 10**6), st.integers(2, 12), st.floats(-50, 50))
def test_eigenvalues_shift_scale_and_turn(seed, d, shift):
    A = random_symmetric(seed, d)
    Q = np.linalg.qr(np.random.default_rng(seed).normal(size=(d, d)))[0]
    values = linalg.eigen(A).values
    turned = Q @ A @ Q.T
    np.testing.assert_allclose(linalg.eigen((turned + turned.T) / 2).values, values, atol=1e-12 * d)
    np.testing.assert_allclose(linalg.eigen(A + shift * np.eye(d)).values, values + shift, atol=1e-12 * d)
    np.testing.assert_allclose(linalg.eigen(-A).values, -values[::-1], atol=1e-12 * d)


# ------------------------------------------------------------------------------------------------ Krylov
def test_the_largest_eigenvalue_is_below_its_bound_as_often_as_stated():
    """With a failure probability of 0.2, of 400 starts about 80 may fail: 110 is nearly four standard deviations."""
    A = np.diag(np.linspace(0, 1, 100))
    found = [largest_eigenvalue(A, seed=seed, failure=0.2, steps=20) for seed in range(400)]
    assert 0 < sum(f.upper < 1 for f in found) <= 110
    assert all(f.value <= 1 + 1e-12 for f in found)


@pytest.mark.parametrize("scale", SCALES)
def test_the_largest_eigenvalue_is_exact_once_the_space_is_full(scale):
    A = random_symmetric(3, 20)
    true = np.linalg.eigvalsh(A)[-1]
    found = largest_eigenvalue(A * scale)
    assert found.steps == 20
    assert found.value / scale == pytest.approx(true, rel=1e-12)
    assert true <= found.upper / scale <= true * (1 + 1e-11)
    np.testing.assert_allclose(A @ found.vector, true * found.vector, atol=1e-10)


def test_the_largest_eigenvalue_of_special_operators():
    assert largest_eigenvalue(np.zeros((4, 4))).upper == 0
    assert 1 <= largest_eigenvalue(np.eye(500)).upper < 1 + 1e-6
    assert -1 <= largest_eigenvalue(-np.eye(500)).upper < -1 + 1e-6
    spike = np.diag(np.r_[10.0, np.ones(999)])
    assert 10 - 1e-9 <= largest_eigenvalue(spike).upper < 10 + 1e-6
    early = largest_eigenvalue(spike, enough=12.0)
    assert 10 <= early.upper <= 12
    assert early.steps < 10


@given(st.integers(0, 10**6), st.integers(1, 40), st.integers(1, 6))
def test_block_krylov_knows_its_residuals(seed, d, k):
    k = min(k, d)
    G = np.random.default_rng(seed).normal(size=(d, max(1, d // 2)))
    A = G @ G.T
    ritz = block_krylov(A, k, rng=np.random.default_rng(seed), oversample=2, depth=3)
    V, size = ritz.vectors, np.linalg.norm(A, 2)
    np.testing.assert_allclose(V.T @ V, np.eye(V.shape[1]), atol=1e-10)
    np.testing.assert_allclose(A @ V - V * ritz.values, ritz.residual, atol=1e-12 * size)
    true = np.linalg.eigvalsh(A)[::-1]
    assert (ritz.values <= true[: len(ritz.values)] + 1e-10 * size).all()  # Cauchy interlacing
    if ritz.values.size == d:
        np.testing.assert_allclose(ritz.values, true, atol=1e-10 * size)


def test_block_krylov_stops_once_it_is_accurate_enough():
    A = np.diag(0.5 ** np.arange(200.0))
    ritz = block_krylov(A, 3, rng=np.random.default_rng(0), depth=50, tol=1e-9)
    assert ritz.products < 10
    assert np.linalg.norm(ritz.residual[:, :3], axis=0).max() <= 2e-9


def test_power_iteration_converges_at_the_rate_of_the_ratio():
    """The residual falls by λ2/λ1 a step, the error of the Rayleigh quotient by its square."""
    A = np.diag([5.0, 4.0, 1.0, 0.5])
    ritz, trace = power(A, 2, rng=np.random.default_rng(0), tol=1e-12)
    np.testing.assert_allclose(ritz.values, [5, 4], rtol=1e-12)
    residual, error = trace.residual[0], 5 - trace.rayleigh[0]
    np.testing.assert_allclose(residual[31:50] / residual[30:49], 4 / 5, rtol=1e-3)
    np.testing.assert_allclose(error[31:40] / error[30:39], 16 / 25, rtol=1e-3)
    assert linalg.eigen(A, 1, method="power").trace.residual[0][-1] <= 1e-8 * 5


# ------------------------------------------------------------------------------------------------ the package
def test_names_are_the_functions_whatever_was_imported_first():
    assert set(linalg.__all__) <= set(dir(linalg))
    assert all(callable(getattr(linalg, name)) for name in linalg.__all__)
    with pytest.raises(AttributeError, match="no attribute 'inverse'"):
        linalg.inverse  # noqa: B018


def test_the_same_random_state_gives_the_same_bits():
    T, _ = toeplitz(400)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CertificateWarning)
        first, again = (linalg.eigen(T, 2, method="krylov", random_state=7) for _ in range(2))
    np.testing.assert_array_equal(first.vectors, again.vectors)


def test_products_that_are_not_finite_are_refused():
    A = LinearOperator((3, 3), matvec=lambda x: x * np.nan, dtype=float)
    with pytest.raises(DataError, match="not finite"):
        linalg.eigen(A, 1)
