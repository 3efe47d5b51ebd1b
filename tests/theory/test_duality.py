"""The theorems that the certificates stand on, each on data: written out in plain NumPy, then against our code."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.special import expit, log_expit, logsumexp, softmax, xlogy

from certifit import PCA, LogisticRegression
from certifit.checkers.decomposition.captured_variance import (
    measure_centred_rows,
    measure_covariance,
    upper_bound,
)
from certifit.checkers.linear_model.logistic import dual_point as logistic
from certifit.checkers.linear_model.logistic import likelihood
from certifit.checkers.linear_model.logistic.dual_point import LogisticClaim
from certifit.checkers.linear_model.newton_bound import self_concordant_gap
from certifit.linear_model.logistic.block_statistics import LogisticRequest, measure
from certifit.linear_model.logistic.duality import LogisticTotals, duality_gap
from certifit.rows import as_rows

SEEDS = st.integers(0, 2**32 - 1)


# ---------------------------------------------------------------------------------------- Fenchel duality
def problem(seed, k, n=30, d=3):
    rng = np.random.default_rng(seed)
    X, y, w = rng.normal(size=(n, d)) + 1, rng.integers(0, k, n), rng.exponential(size=n)
    y[:k] = np.arange(k)
    return rng, X, y, w, np.eye(k)[y]


def primal(beta, b, lam, X, y, w):
    eta = X @ beta.T + b
    return w @ (logsumexp(eta, axis=1) - eta[np.arange(len(y)), y]) + 0.5 * lam * (beta**2).sum()


def dual(P, lam, X, Y, w):
    v = (w[:, None] * (P - Y)).T @ X
    return -w @ xlogy(P, P).sum(axis=1) - (v**2).sum() / (2 * lam)


def balanced(P, Y, w):
    """Any distributions, moved to the nearest mixture with Σ w (p - y) = 0."""
    have, want = w @ P, w @ Y
    stay = (want / have).min()
    q = want - stay * have
    return P if q.sum() <= 0 else stay * P + (1 - stay) * q / q.sum()


@given(SEEDS, st.integers(2, 5), st.floats(-3, 3))
def test_log_sum_exp_and_negative_entropy_are_conjugate(seed, k, size):
    """Fenchel-Young: A(η) + A*(p) >= p·η, with equality where p is the softmax of η."""
    rng = np.random.default_rng(seed)
    eta = 10.0**size * rng.normal(size=k)
    p = rng.dirichlet(np.ones(k))
    assert logsumexp(eta) + xlogy(p, p).sum() >= p @ eta - 1e-12 * np.abs(eta).max()
    p = softmax(eta)
    np.testing.assert_allclose(logsumexp(eta) + xlogy(p, p).sum(), p @ eta, rtol=1e-10, atol=1e-10)


@given(SEEDS, st.integers(2, 4), st.sampled_from([0.01, 1.0, 100.0]), st.booleans())
def test_weak_duality(seed, k, lam, intercept):
    """Every feasible dual point lies below every primal point."""
    rng, X, y, w, Y = problem(seed, k)
    P = rng.dirichlet(np.full(k, 0.5), size=len(y))
    if intercept:
        P = balanced(P, Y, w)
        np.testing.assert_allclose(w @ (P - Y), 0, atol=1e-10)
    below = dual(P, lam, X, Y, w)
    for size in (0.0, 0.1, 1.0, 10.0):
        beta, b = size * rng.normal(size=(k, 3)), size * rng.normal(size=k) * intercept
        assert below <= primal(beta, b, lam, X, y, w) + 1e-9


@given(SEEDS, st.integers(3, 4), st.sampled_from([0.1, 1.0, 10.0]), st.booleans())
def test_strong_duality(seed, k, lam, intercept):
    """At the optimum the model's own probabilities are dual feasible and the two values meet."""
    _, X, y, w, Y = problem(seed, k)
    model = LogisticRegression(C=1 / lam, fit_intercept=intercept, tol=1e-13).fit(X, y, w)
    P = model.predict_proba(X)
    top = primal(model.coef_, model.intercept_, lam, X, y, w)
    np.testing.assert_allclose(dual(balanced(P, Y, w) if intercept else P, lam, X, Y, w), top, rtol=1e-7)
    np.testing.assert_allclose(model.certificate_.objective, top, rtol=1e-12)


@given(SEEDS, st.integers(3, 4), st.sampled_from([0.1, 1.0, 10.0]))
def test_without_intercept_the_gradient_norm_is_the_duality_gap(seed, k, lam):
    """P(β) - D(softmax) = |∇P|²/(2λ), at any β: written out, by the fit's sums and by the checker."""
    rng, X, y, w, Y = problem(seed, k)
    best = LogisticRegression(C=1 / lam, fit_intercept=False).fit(X, y, w)
    beta = best.coef_ + 0.01 * rng.normal(size=(k, 3))
    P = softmax(X @ beta.T, axis=1)
    gradient = (w[:, None] * (P - Y)).T @ X + lam * beta
    gap = (gradient**2).sum() / (2 * lam)
    rows = as_rows(X, y, w, target="classes")
    np.testing.assert_allclose(primal(beta, np.zeros(k), lam, X, y, w) - dual(P, lam, X, Y, w), gap, rtol=1e-9)
    assert_fit_gap(beta, lam, False, rows, gap)
    checked = logistic.certify(beta, np.zeros(k), LogisticClaim(0.0, lam, False), 1e-6, rows)
    np.testing.assert_allclose(checked.gap, min(gap, checked.objective), rtol=1e-9)  # no loss is negative


def fit_gap(theta, lam, intercept, rows):
    block = next(iter(rows))
    s = measure(theta, None, intercept, LogisticRequest(hessian=False, totals=True), block)
    return duality_gap(theta, (0.0, lam), intercept, s, LogisticTotals.of(s))


def assert_fit_gap(theta, lam, intercept, rows, gap):
    np.testing.assert_allclose(fit_gap(theta, lam, intercept, rows), gap, rtol=1e-9)


@given(SEEDS, st.integers(2, 4), st.sampled_from([0.1, 1.0, 10.0]), st.floats(-2, 1))
def test_both_gaps_cover_what_is_missing(seed, k, lam, size):
    """With a free intercept the fit's cheap gap and the checker's tighter one are both true, near and far."""
    rng, X, y, w, _ = problem(seed, k)
    best = LogisticRegression(C=1 / lam, tol=1e-13).fit(X, y, w)
    theta = np.column_stack([best.coef_, best.intercept_])
    theta = theta + 10.0**size * rng.normal(size=theta.shape)
    rows = as_rows(X, y, w, target="classes")
    checked = logistic.certify(theta[:, :3], theta[:, 3], LogisticClaim(0.0, lam), 1e-6, rows)
    missing = checked.objective - best.certificate_.objective
    assert missing <= checked.gap * (1 + 1e-9) + 1e-10
    assert missing <= fit_gap(theta, lam, True, rows) * (1 + 1e-9) + 1e-10


@given(SEEDS, st.integers(2, 4), st.sampled_from([0.0, 1e-3, 1.0]), st.floats(-4, 0))
def test_the_hessian_proof_covers_what_is_missing(seed, k, lam, size):
    """Self-concordance, with and without a penalty."""
    rng, X, y, w, _ = problem(seed, k, n=80)
    y = rng.integers(0, k, 80)  # no signal: a maximum exists
    y[:k] = np.arange(k)
    best = LogisticRegression(C=np.inf if lam == 0 else 1 / lam, tol=1e-13).fit(X, y, w)
    theta = np.column_stack([best.coef_, best.intercept_])
    theta = theta + 10.0**size * rng.normal(size=theta.shape)
    rows = as_rows(X, y, w, target="classes")
    checked = likelihood.certify(theta[:, :3], theta[:, 3], LogisticClaim(0.0, lam), 1e-6, rows)
    missing = checked.objective - best.certificate_.objective
    assert missing <= checked.gap * (1 + 1e-9) + 1e-10
    if size < -2:
        assert checked.gap < 1.2 * missing + 1e-10  # nearly exact close by


@given(st.lists(st.tuples(st.floats(-3, 3), st.booleans()), min_size=4, max_size=10), st.floats(-2, 2))
def test_self_concordant_bound_in_one_dimension(rows, at):
    """P - P* <= (νc + (1 - νc) log(1 - νc))/c², wherever νc < 1; against a bracketing search."""
    x = np.array([r[0] for r in rows])
    y = np.array([r[1] for r in rows])

    def loss(t):
        return -log_expit(np.where(y, x, -x) * t).sum()

    p = expit(x * at)
    g, h = ((p - y) * x).sum(), (p * (1 - p) * x**2).sum()
    if h < 1e-9:
        return
    nu, c = abs(g) / np.sqrt(h), np.abs(x).max() / np.sqrt(h)
    bound = self_concordant_gap(nu, c)
    if np.isfinite(bound):
        lowest = minimize_scalar(loss, bounds=(-60, 60), method="bounded", options={"xatol": 1e-10}).fun
        assert loss(at) - lowest <= bound * (1 + 1e-9) + 1e-9


def test_self_concordant_bound_is_half_the_squared_decrement_close_by():
    for nu in (1e-8, 1e-5, 1e-3):
        np.testing.assert_allclose(self_concordant_gap(nu, 1.0), nu**2 / 2, rtol=2 * nu)
    small, large = self_concordant_gap(0.99e-4, 1.0), self_concordant_gap(1.01e-4, 1.0)  # series and formula meet
    assert 0.99**2 * large / 1.01**2 == pytest.approx(small, rel=1e-4)
    assert self_concordant_gap(1.0, 1.0) == np.inf


# ------------------------------------------------------------------------------------- spectral theorems
def covariance(seed, d, decay):
    rng = np.random.default_rng(seed)
    Q = np.linalg.qr(rng.normal(size=(d, d)))[0]
    return rng, (Q * 10.0 ** (-decay * np.arange(d))) @ Q.T


@given(SEEDS, st.integers(2, 8), st.floats(0, 2))
def test_ky_fan(seed, d, decay):
    """No k orthonormal directions capture more than the k largest eigenvalues, and those eigenvectors do."""
    rng, S = covariance(seed, d, decay)
    values, vectors = np.linalg.eigh(S)
    for k in range(1, d + 1):
        best = values[-k:].sum()
        B = np.linalg.qr(rng.normal(size=(d, k)))[0].T
        assert np.trace(B @ S @ B.T) <= best * (1 + 1e-12)
        np.testing.assert_allclose(np.trace(vectors[:, -k:].T @ S @ vectors[:, -k:]), best, rtol=1e-12)


@given(SEEDS, st.integers(2, 8), st.floats(0, 2), st.floats(-8, 0))
@example(29775, 8, 0.0, 0.0)  # all eigenvalues 0 or 1: LAPACK's selective eigensolver gives up on this one
def test_the_residual_bounds_what_the_best_basis_could_add(seed, d, decay, size):
    """Both forms, k (λmax(E) - θ_k)₊ + |C|_* always and |C|²_F/(θ_k - λmax(E)) where it applies, at any basis."""
    rng, S = covariance(seed, d, decay)
    values, vectors = np.linalg.eigh(S)
    for k in range(1, d):
        B = vectors[:, ::-1][:, :k].T + 10.0**size * rng.normal(size=(k, d))
        s = measure_covariance(S, B)
        missing = s.discarded - values[:-k].sum()
        slack = 1e-13 * s.total
        assert missing <= k * max(0.0, s.rest - s.smallest) + s.leak_nuclear + slack
        if s.smallest > s.rest:
            assert missing <= s.leak**2 / (s.smallest - s.rest) + slack


@given(SEEDS, st.integers(2, 6), st.integers(7, 12))
def test_rows_and_covariance_tell_the_same(seed, n, d):
    """With fewer rows than columns the Gram side gives the spectrum of the covariance side."""
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n, d))
    B = rng.normal(size=(2, d))
    one, other = measure_covariance(Z.T @ Z, B), measure_centred_rows(Z, B)
    for name in ("total", "captured", "discarded", "smallest", "rest", "leak", "leak_nuclear", "deviations"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-8, err_msg=name)


@given(SEEDS, st.integers(1, 8), st.sampled_from([None, 0.0, 0.5, 1.0, 2.0]))
def test_a_cholesky_factor_proves_the_largest_eigenvalue(seed, d, share):
    """Whatever is guessed, the answer is never below; a good guess is taken at its word."""
    _, E = covariance(seed, d, 0.5)
    largest = np.linalg.eigvalsh(E)[-1]
    proved = upper_bound(E, None if share is None else share * largest)
    assert largest <= proved <= max(1.0, share or 0.0) * largest * (1 + 1e-9) + 1e-12


@given(SEEDS, st.integers(2, 12), st.integers(1, 12))
def test_eckart_young(seed, n, d):
    """No matrix of rank k is nearer than the truncated decomposition; PCA's reconstruction is that matrix."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) + 3
    centred = X - X.mean(axis=0)
    sigma = np.linalg.svd(centred, compute_uv=False)
    for k in range(1, min(n, d) + 1):
        best = (sigma[k:] ** 2).sum()
        V = np.linalg.qr(rng.normal(size=(d, k)))[0]
        assert ((centred - centred @ V @ V.T) ** 2).sum() >= best - 1e-9  # the best of rank k on some span
        model = PCA(k).fit(X)
        lost = ((X - model.inverse_transform(model.transform(X))) ** 2).sum()
        np.testing.assert_allclose(lost, best, atol=1e-9)
        np.testing.assert_allclose(model.certificate_.objective * n, best, atol=1e-9)


@given(SEEDS, st.integers(3, 20), st.integers(1, 8))
def test_total_variance_is_kept_plus_lost(seed, n, d):
    """Pythagoras: mean squared distance from the mean = captured variance + reconstruction error."""
    X = np.random.default_rng(seed).normal(size=(n, d)) * np.arange(1, d + 1)
    for k in range(min(n, d) + 1):
        model = PCA(k).fit(X)
        kept = model.explained_variance_.sum() * (n - 1) / n
        np.testing.assert_allclose(kept + model.certificate_.objective, X.var(axis=0).sum(), rtol=1e-10)
