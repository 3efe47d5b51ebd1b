"""The statements of docs/atlas/03_linear_algebra on data; each with a broken variant that must fail."""

from fractions import Fraction
from itertools import combinations

import numpy as np
from sklearn.datasets import load_digits, load_iris, load_wine

from certifit import linalg
from certifit.datasets import load_penguins

IRIS = load_iris().data
WINE = load_wine().data / load_wine().data.std(axis=0)
DIGITS = load_digits().data
COLUMNS = ["bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g"]
PENGUINS = load_penguins().dropna()


# -------------------------------------------------------------------------------- symmetric matrices diagonalise
def diagonalises(A, values, vectors):
    """Whether values are real, vectors orthonormal, and A = Q diag(values) Q'."""
    return bool(
        np.isrealobj(values)
        and np.allclose(vectors.T @ vectors, np.eye(len(A)), atol=1e-12)
        and np.allclose((vectors * values) @ vectors.T, A, atol=1e-12 * np.abs(A).max())
    )


def differences_of_covariances():
    covariances = [part[COLUMNS].cov().to_numpy() for _, part in PENGUINS.groupby("species")]
    return [a - b for a, b in combinations(covariances, 2)]


def test_symmetric_matrices_diagonalise():
    for A in differences_of_covariances():
        found = linalg.eigen(A)
        assert diagonalises(A, found.values, found.vectors)
        assert (found.values > 0).any()
        assert (found.values < 0).any()  # indefinite ones too


def test_control_not_symmetric():
    rows = PENGUINS[COLUMNS].to_numpy()
    regression = np.linalg.solve(rows[:, :2].T @ rows[:, :2], rows[:, :2].T @ rows[:, 2:])  # of two columns on two
    for A in (regression, np.array([[0.0, -1.0], [1.0, 0.0]]), np.array([[2.0, 1.0], [0.0, 2.0]])):
        found = linalg.diagonalisable(A)
        assert not diagonalises(A, found.values, found.P)
    assert found.verdict == "no"


# ------------------------------------------------------------------------------------------- positive definite
def principal_minors(A):
    """The determinants of the leading squares, in rational numbers."""
    A = [[Fraction(float(a)) for a in row] for row in A]

    def determinant(M):
        if len(M) == 1:
            return M[0][0]
        rest = [[row[:j] + row[j + 1 :] for row in M[1:]] for j in range(len(M))]
        return sum((-1) ** j * M[0][j] * determinant(rest[j]) for j in range(len(M)))

    return [determinant([row[:k] for row in A[:k]]) for k in range(1, len(A) + 1)]


def is_positive_definite(A):
    """Sylvester's criterion: all leading determinants are positive."""
    return all(minor > 0 for minor in principal_minors(A))


def test_positive_definite():
    rng = np.random.default_rng(0)
    covariance = PENGUINS[COLUMNS].cov().to_numpy()
    for A in (covariance, covariance[:2, :2], np.corrcoef(PENGUINS[COLUMNS].T)):
        answer = linalg.positive_definite(A)
        assert bool(answer) == is_positive_definite(A) is True
        v = rng.normal(size=(1000, len(A)))
        assert (((v @ A) * v).sum(axis=1) > 0).all()
        assert principal_minors(A)[-1] > 0  # det
        np.testing.assert_allclose(A @ np.linalg.inv(A), np.eye(len(A)), atol=1e-9)
        assert linalg.eigen(A).values.min() > 0
    for A in differences_of_covariances():
        answer = linalg.positive_definite(A)
        assert bool(answer) == is_positive_definite(A) is False
        assert answer.witness @ A @ answer.witness <= 0


def test_control_a_positive_determinant_alone():
    A = -PENGUINS[COLUMNS[:2]].cov().to_numpy()
    assert principal_minors(A)[-1] > 0
    assert not is_positive_definite(A)
    assert not linalg.positive_definite(A)


# ------------------------------------------------------------------------------------------------ Gram matrices
def columns_are_independent(U):
    """Elimination in rational numbers leaves as many pivots as columns."""
    rows = [[Fraction(int(u)) for u in row] for row in U]
    for j in range(U.shape[1]):
        pivot = next((row for row in rows if row[j] != 0), None)
        if pivot is None:
            return False
        rest = [row for row in rows if row is not pivot]
        rows = [[a - row[j] / pivot[j] * b for a, b in zip(row, pivot, strict=True)] for row in rest]
    return True


MILLIMETRES = np.rint(10 * IRIS[::10])  # whole numbers, whose products have no rounding


def gram_is_definite(U):
    """Whether Σ of squares |Uv|² is positive for all v, which is decided by exact determinants of U'U."""
    return is_positive_definite(U.T @ U)


def test_gram_matrices():
    assert columns_are_independent(MILLIMETRES)
    assert gram_is_definite(MILLIMETRES)
    assert linalg.positive_definite(MILLIMETRES.T @ MILLIMETRES)


def test_control_a_column_that_is_a_sum():
    U = np.column_stack([MILLIMETRES, MILLIMETRES[:, 0] + MILLIMETRES[:, 1]])
    assert not columns_are_independent(U)
    assert not gram_is_definite(U)
    answer = linalg.positive_definite(U.T @ U)
    assert answer.verdict == "no"
    np.testing.assert_allclose(U @ answer.witness, 0, atol=1e-9 * np.abs(U).max())


# --------------------------------------------------------------- eigenvalues are squared singular values
def are_one_decomposition(rows, singular_values, right_vectors):
    """Whether σ²/N are the roots and V the vectors of the covariance about the mean, which is summed by hand."""
    mean = rows.sum(axis=0) / len(rows)
    S = sum(np.outer(row - mean, row - mean) for row in rows) / len(rows)
    return bool(np.allclose(S @ right_vectors.T, right_vectors.T * singular_values**2 / len(rows), atol=1e-10))


def test_eigenvalues_are_squared_singular_values():
    found = linalg.svd(WINE - WINE.mean(axis=0))
    assert are_one_decomposition(WINE, found.s, found.Vt)
    pairs = linalg.eigen(np.cov(WINE.T, bias=True))
    np.testing.assert_allclose(pairs.values, found.s**2 / len(WINE), rtol=1e-10)
    np.testing.assert_allclose(np.abs((found.Vt.T * pairs.vectors).sum(axis=0)), 1, atol=1e-9)


def test_control_rows_not_centred():
    found = linalg.svd(WINE)
    assert not are_one_decomposition(WINE, found.s, found.Vt)


# ------------------------------------------------------------------------------------------------ Eckart-Young
def is_nearest(A, B, k):
    """Whether B has rank k and no more distance than the bounds that hold for every matrix of that rank.

    Both are sums over eigenvalues of A'A: no projection of rank k keeps more of trace(A'A) than its k largest.
    """
    values = np.sqrt(np.maximum(np.linalg.eigvalsh(A.T @ A)[::-1], 0))
    left = A - B
    return bool(
        np.linalg.matrix_rank(B) <= k
        and np.isclose(np.linalg.norm(left), np.linalg.norm(values[k:]), rtol=1e-9)
        and np.isclose(np.linalg.norm(left, 2), values[k], rtol=1e-9)
    )


def test_eckart_young():
    rng = np.random.default_rng(0)
    for k in (2, 8):
        near = linalg.low_rank(DIGITS, k)
        assert is_nearest(DIGITS, near.toarray(), k)
        left = DIGITS - near.toarray()
        told = near.distance_frobenius, near.distance_spectral
        np.testing.assert_allclose(told, [np.linalg.norm(left), np.linalg.norm(left, 2)], rtol=1e-9)
        for _ in range(10):  # the best matrix of rank k with other directions, near by
            V = np.linalg.qr(near.Vt.T + 0.05 * rng.normal(size=(64, k)))[0]
            left = DIGITS - DIGITS @ V @ V.T
            assert np.linalg.norm(left) > near.distance_frobenius
            assert np.linalg.norm(left, 2) > near.distance_spectral


def test_control_any_other_singular_values():
    U, s, Vt = np.linalg.svd(DIGITS, full_matrices=False)
    for kept in ([0, 1, 2, 3, 4, 5, 6, 8], list(range(1, 9))):
        assert not is_nearest(DIGITS, U[:, kept] * s[kept] @ Vt[kept], 8)
