"""Is it positive definite, is it diagonalisable: known matrices, exact arithmetic, and answers that must not hold."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.linalg import block_diag, companion, hilbert, invhilbert

from certifit import linalg
from certifit.checkers.linalg import definite
from certifit.checkers.linalg import diagonalisation as diagonal
from certifit.exceptions import DataError


def random_symmetric(seed, d):
    G = np.random.default_rng(seed).normal(size=(d, d))
    return (G + G.T) / 2


def jordan(size, value):
    return value * np.eye(size) + np.eye(size, k=1)


# ------------------------------------------------------------------------------------------------ positive definite
def test_hilbert_matrices():
    """Their Cholesky factors are known to exist; in float64 the stored matrix stops being definite at order 14."""
    for n in (1, 3, 8, 13):
        answer = linalg.positive_definite(hilbert(n))
        assert answer
        assert answer.certificate.holds
        np.testing.assert_allclose(answer.factor @ answer.factor.T, hilbert(n), atol=1e-15)
    assert linalg.positive_definite(invhilbert(5))
    last = linalg.positive_definite(hilbert(14))
    assert last.verdict == "no"
    assert definite.quadratic_form(hilbert(14), last.witness) <= 0
    assert linalg.positive_definite(hilbert(14), strict=False)  # up to rounding


@pytest.mark.parametrize(
    ("A", "strict", "verdict"),
    [
        ([[5]], True, "yes"),
        ([[0]], True, "no"),
        ([[0]], False, "yes"),
        ([[-1]], False, "no"),
        (np.zeros((3, 3)), True, "no"),
        (np.ones((2, 2)), True, "no"),
        (np.ones((2, 2)), False, "yes"),
        ([[0, 1], [1, 5]], False, "no"),
        ([[0, 1e300], [1e300, 0]], False, "no"),
        (np.eye(3) * 1e-160, True, "yes"),
        (np.diag([1e-200, 1.0, 1e200]), True, "yes"),
        (np.diag([1e-200, -1.0, 1e200]), True, "no"),
        (np.ones((40, 40)), True, "not decided to rounding"),
        (np.ones((40, 40)), False, "yes"),
        (sparse.eye_array(50), True, "yes"),
        (np.eye(3, dtype=np.float32), True, "yes"),
    ],
)
def test_definite_or_not(A, strict, verdict):
    answer = linalg.positive_definite(A, strict=strict)
    assert answer.verdict == verdict
    assert bool(answer) == (verdict == "yes")
    assert answer.certificate.proved == (verdict != "not decided to rounding")
    assert answer.certificate.holds == (verdict == "yes")
    assert (answer.factor is not None) == (verdict == "yes")
    assert (answer.witness is not None) == (verdict == "no")


def test_one_unit_in_the_last_place_decides():
    """[[1, a], [a, 1]] is definite for |a| < 1; its eigenvalues are 1 ± a."""
    for a, definite_ in ((1 - 2.0**-53, True), (1.0, False), (1 + 2.0**-52, False)):
        assert bool(linalg.positive_definite([[1, a], [a, 1]])) == definite_
    A = np.eye(10)
    A[0, 1] = A[1, 0] = 1 - 2.0**-53
    assert "rational" in linalg.positive_definite(A).certificate.claim


@given(st.integers(0, 10**6), st.integers(1, 5))
def test_elimination_in_rational_numbers_agrees_with_sylvester(seed, n):
    """Definite where all leading minors are positive (Sylvester), semidefinite where all eigenvalues are >= 0."""
    G = np.random.default_rng(seed).integers(-2, 3, size=(n, n))
    A = (G @ G.T - np.eye(n, dtype=int) * (seed % 3)).astype(float)
    found = definite.eliminate(A)
    minors = [round(np.linalg.det(A[:j, :j])) for j in range(1, n + 1)]
    assert found.definite == all(minor > 0 for minor in minors)
    assert found.semidefinite == bool(np.linalg.eigvalsh(A).min() > -1e-9)
    if not found.definite:
        form = definite.quadratic_form(A, found.witness)
        assert form <= 1e-14
        assert found.semidefinite or form < 0


def test_sabotaged_answers_do_not_hold():
    A = random_symmetric(4, 6)
    A = A @ A + np.eye(6)
    L = np.linalg.cholesky(A)
    assert definite.certify_factor(A, L).holds
    assert not definite.certify_factor(A, L * 1.0001).holds
    assert not definite.certify_factor(A, L.T).holds
    B = A - 1.0001 * np.linalg.eigvalsh(A)[0] * np.eye(6)
    assert not definite.certify_factor(B, np.linalg.cholesky(A)).holds
    v = linalg.positive_definite(B).witness
    assert definite.certify_witness(B, v).proved
    assert not definite.certify_witness(A, v).proved
    assert not definite.certify_witness(B, np.ones(6)).proved
    assert not definite.certify_witness(B, np.zeros(6)).proved
    assert not definite.certify_elimination(B).holds
    assert not definite.certify_elimination(A, refuse=True).proved


# ------------------------------------------------------------------------------------------------ diagonalisable
Q6 = np.linalg.qr(np.random.default_rng(0).normal(size=(6, 6)))[0]
TURN = np.array([[0.0, -1.0], [1.0, 0.0]])


@pytest.mark.parametrize(
    ("A", "eigenvalue"),
    [
        (jordan(2, 2.0), 2),
        (jordan(10, 2.0), 2),
        (jordan(3, 0.0) * 1e-160, 0),
        (jordan(3, 1.0) * 1e150, 1e150),
        (Q6 @ block_diag(jordan(2, 1.0), np.diag([2.0, 3.0, 4.0, 5.0])) @ Q6.T, 1),
        (Q6 @ block_diag(jordan(5, 1.0), [[3.0]]) @ Q6.T, 1),
        (Q6 @ block_diag(jordan(2, 1.0), np.eye(4)) @ Q6.T, 1),
        (np.block([[TURN, np.eye(2)], [np.zeros((2, 2)), TURN]]), 1j),
        (companion([1, -5, 8, -4]), 2),  # (x - 1)(x - 2)²
        ([[1, 1], [0, 1 + 1e-10]], 1),
        (sparse.csr_array(jordan(3, 5.0)), 5),
    ],
)
def test_matrices_that_are_not_diagonalisable(A, eigenvalue):
    answer = linalg.diagonalisable(A)
    assert not answer
    assert answer.verdict == "no"
    assert answer.certificate.kind == "impossible"
    assert answer.certificate.proved
    assert not answer.certificate.holds
    found = answer.eigenvalue
    assert found.real + 1j * abs(found.imag) == pytest.approx(eigenvalue, rel=1e-9)
    A = A.toarray() if sparse.issparse(A) else np.asarray(A)
    B = (A - found * np.eye(len(A))) / np.abs(A).max()
    link = np.linalg.norm(B @ answer.witness)
    assert link > 0.1
    assert np.linalg.norm(B @ B @ answer.witness) < 1e-9 * link


@pytest.mark.parametrize(
    "A",
    [
        np.zeros((3, 3)),
        np.eye(4),
        [[3]],
        [[1, 1], [0, 2]],
        [[1, 1], [0, 1 + 1e-6]],
        TURN,
        np.eye(5)[[1, 2, 3, 4, 0]],
        companion([1, -6, 11, -6]),  # (x - 1)(x - 2)(x - 3)
        random_symmetric(1, 20),
        np.random.default_rng(1).normal(size=(20, 20)) * 1e-160,
        np.diag([1.0, 1, 0]) + np.outer([0, 0, 1.0], [1, 0, 0]),  # a projection that is not orthogonal
    ],
)
def test_matrices_that_are_diagonalisable(A):
    answer = linalg.diagonalisable(A)
    assert answer
    assert answer.certificate.holds
    A = np.asarray(A, dtype=float)
    back = answer.P * answer.values @ np.linalg.inv(answer.P)
    np.testing.assert_allclose(back, A, atol=1e-13 * answer.condition * (np.abs(A).max() or 1))
    if np.array_equal(A @ A.T, A.T @ A):
        assert answer.condition == pytest.approx(1, abs=1e-12)


def test_roots_of_unity():
    """The eigenvalues of the cyclic shift of order n are the n-th roots of 1."""
    values = linalg.diagonalisable(np.roll(np.eye(7), 1, axis=1)).values
    np.testing.assert_allclose(np.sort(np.angle(values)), 2 * np.pi * np.arange(-3, 4) / 7, atol=1e-13)


def test_a_wider_tolerance_finds_what_is_near():
    A = [[1, 1], [0, 1 + 1e-6]]
    assert linalg.diagonalisable(A)
    assert not linalg.diagonalisable(A, tol=1e-9)
    with pytest.raises(DataError, match="square"):
        linalg.diagonalisable(np.ones((2, 3)))


def test_sabotaged_bases_and_chains_do_not_hold():
    A = np.random.default_rng(5).normal(size=(5, 5))
    values, P = np.linalg.eig(A)
    assert diagonal.certify_basis(A, values, P).holds
    for bad in ((values * 1.001, P), (values[::-1], P), (values, np.roll(P, 1, axis=0)), (values, P[:, [0] * 5])):
        assert not diagonal.certify_basis(A, *bad).holds
    J = jordan(3, 2.0)
    e = np.eye(3)
    assert diagonal.certify_chain(J, 2.0, e[1], 1e-14).proved
    for value, v in ((2.001, e[1]), (2.0, e[2]), (2.0, e[0]), (2.0, 0 * e[0])):
        assert not diagonal.certify_chain(J, value, v, 1e-14).proved
    assert not diagonal.certify_chain(np.eye(3), 1.0, e[1], 1e-14).proved
