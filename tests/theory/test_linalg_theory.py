"""The theorems that the linear algebra stands on, seen on data."""

import numpy as np
import pytest
from scipy.linalg import hilbert, subspace_angles
from sklearn.datasets import load_digits, load_wine

from certifit import linalg
from certifit.checkers.linalg import singular_values as singular
from certifit.checkers.linalg.eigenvalue_bounds import eigenvalue_excess, proved_largest
from certifit.checkers.plain.largest_eigenvalue import largest_eigenvalue
from certifit.numerics.krylov import block_krylov

RNG = np.random.default_rng(0)


def covariance(X):
    return np.cov(X, rowvar=False)


WINE = covariance(load_wine().data)
DIGITS = load_digits().data


def random_basis(d, k):
    return np.linalg.qr(RNG.normal(size=(d, k)))[0]


def test_courant_fischer():
    """λ_k is the largest that the smallest Rayleigh quotient in a space of dimension k can be."""
    found = linalg.eigen(WINE)
    for k in (1, 3, 7):
        best = np.linalg.eigvalsh(found.vectors[:, :k].T @ WINE @ found.vectors[:, :k])[0]
        assert best == pytest.approx(found.values[k - 1], rel=1e-9)
        for _ in range(50):
            B = random_basis(13, k)
            assert np.linalg.eigvalsh(B.T @ WINE @ B)[0] <= found.values[k - 1] * (1 + 1e-12)


def test_ky_fan():
    """No k orthonormal directions have a larger trace than the eigenvectors of the k largest eigenvalues."""
    found = linalg.eigen(WINE, 4)
    for _ in range(100):
        near = np.linalg.qr(found.vectors + 0.01 * RNG.normal(size=(13, 4)))[0]
        assert np.trace(near.T @ WINE @ near) <= found.values.sum() * (1 + 1e-12)


def test_cauchy_interlacing_and_weyl():
    values = linalg.eigen(WINE).values
    without = linalg.eigen(WINE[1:, 1:]).values
    assert (values[:-1] >= without - 1e-9).all()
    assert (without >= values[1:] - 1e-9).all()
    E = RNG.normal(size=(13, 13))
    E = E + E.T
    moved = linalg.eigen(WINE + E).values
    assert np.abs(moved - values).max() <= np.abs(linalg.eigen(E).values).max() * (1 + 1e-12)


def test_eckart_young_against_other_matrices_of_the_same_rank():
    """Projections on random and on slightly turned spaces are all further away, in both norms."""
    k = 5
    near = linalg.low_rank(DIGITS, k)
    bounds = singular.certify(DIGITS, near.U, near.s, near.Vt)
    for spread in (1e-3, 1e-1, 10.0):
        V = np.linalg.qr(near.Vt.T + spread * RNG.normal(size=(64, k)))[0]
        other = DIGITS - DIGITS @ V @ V.T
        assert np.linalg.norm(other) >= bounds.frobenius_bound
        assert np.linalg.norm(other, 2) >= bounds.spectral_bound
    assert near.distance_frobenius == pytest.approx(np.linalg.norm(DIGITS - near.toarray()), rel=1e-12)
    assert near.distance_frobenius == pytest.approx(bounds.frobenius_bound, rel=1e-9)
    assert near.distance_spectral == pytest.approx(bounds.spectral_bound, rel=1e-9)


def test_low_rank_bounds_are_true_and_useful_whatever_the_vectors():
    """From rough vectors too: below the true distances, and close where the vectors nearly are right."""
    _, s, Vt = np.linalg.svd(DIGITS, full_matrices=False)
    k = 6
    frobenius, spec = np.sqrt((s[k:] ** 2).sum()), s[k]
    for spread, share in ((0.0, 1 - 1e-9), (1e-3, 0.99), (1e-2, 0.5), (10.0, 0.0)):
        V = np.linalg.qr(Vt[:k].T + spread * RNG.normal(size=(64, k)))[0]
        U, rough, W = np.linalg.svd(DIGITS @ V, full_matrices=False)
        found = singular.certify(DIGITS, U, rough, W @ V.T)
        assert share * frobenius <= found.frobenius_bound <= frobenius * (1 + 1e-12)
        assert share * spec <= found.spectral_bound <= spec * (1 + 1e-12)
        assert found.frobenius >= frobenius * (1 - 1e-12)
        assert found.spectral >= spec * (1 - 1e-12)
        assert found.certificate.holds == (spread == 0)


def test_eigenvalue_bounds_are_true_whatever_the_vectors():
    """θ_i <= λ_i <= θ_i + excess, with an excess of second order where the vectors nearly are right."""
    values, vectors = np.linalg.eigh(WINE / WINE.max())
    values, vectors = values[::-1], vectors[:, ::-1]
    for spread in (1e-6, 1e-4, 1e-2, 1.0):
        for k in (1, 2, 4):
            Q = np.linalg.qr(vectors[:, :k] + spread * RNG.normal(size=(13, k)))[0]
            H = Q.T @ WINE @ Q / WINE.max()
            theta = np.linalg.eigvalsh(H)[::-1]
            rest = WINE / WINE.max() @ Q - Q @ H
            outside = (np.eye(13) - Q @ Q.T) @ (WINE / WINE.max()) @ (np.eye(13) - Q @ Q.T)
            over = eigenvalue_excess(proved_largest(outside), theta, np.linalg.norm(rest, 2))
            assert (theta <= values[:k] + 1e-14).all()
            assert (values[:k] <= theta + over + 1e-14).all()


def test_the_bound_on_the_largest_eigenvalue_beats_the_one_that_knows_the_number_of_steps_only():
    """Kuczyński & Woźniakowski: P(value < (1-e) λ) <= 1.648 sqrt(d) exp(-sqrt(e) (2 steps - 1))."""
    d, failure = 400, 1e-9
    for spectrum in (np.linspace(0, 1, d), np.r_[np.linspace(0, 0.5, d - 1), 1.0], 1 / np.arange(1.0, d + 1)):
        for steps in (20, 60):
            found = largest_eigenvalue(np.diag(spectrum), steps=steps, failure=failure)
            e = (np.log(1.648 * np.sqrt(d) / failure) / (2 * steps - 1)) ** 2
            assert found.upper >= 1
            assert e >= 1 or found.upper <= found.value / (1 - e)


def test_block_krylov_is_far_ahead_of_as_many_power_steps():
    """Chebyshev polynomials against the power t^q (Musco & Musco 2015)."""
    A = np.diag(np.linspace(1, 0, 1000) ** 2)
    Q = np.random.default_rng(0).normal(size=(1000, 10))
    for _ in range(12):
        Q = np.linalg.qr(A @ Q)[0]
    lost = 1 - np.linalg.eigvalsh(Q.T @ A @ Q)[-1]
    ritz = block_krylov(A, 5, rng=np.random.default_rng(0), oversample=5, depth=12)
    assert 1 - ritz.values[0] < 0.25 * lost


def test_davis_kahan():
    """The sine of the angle between exact and disturbed leading spaces is at most |E| / gap."""
    values, vectors = np.linalg.eigh(WINE)
    gap = values[-1] - values[-2]
    E = RNG.normal(size=(13, 13))
    E = E + E.T
    found = linalg.eigen(WINE + E, 1)
    angle = subspace_angles(vectors[:, -1:], found.vectors)[0]
    assert np.sin(angle) <= np.linalg.norm(E, 2) / (gap - np.linalg.norm(E, 2))


def test_the_condition_of_hilbert_matrices_grows_as_known():
    """Asymptotically (1 + √2)^(4n) / √n up to a constant (Todd 1954): a factor of about 33.97 for each order."""
    condition = []
    for n in (6, 7, 8):
        s = linalg.svd(hilbert(n)).s
        condition.append(s[0] / s[-1])
    growth = (1 + np.sqrt(2)) ** 4
    np.testing.assert_allclose(np.divide(condition[1:], condition[:-1]), growth, rtol=0.12)
