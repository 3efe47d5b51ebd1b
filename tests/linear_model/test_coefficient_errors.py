"""How far a coefficient can be from the minimiser's: proved by fit and audit, compared with fits in 64 binary digits.

The reference is Newton's method written out here in NumPy's long doubles, started where the fit ended.
"""

from __future__ import annotations

import copy

import numpy as np
import pytest

from certifit import GeneralizedLinearRegressor, LogisticRegression, audit
from certifit.exceptions import CertificateWarning

L = np.longdouble


def solve_long(A, b):
    """Gaussian elimination with partial pivoting in long doubles."""
    A, b = A.astype(L).copy(), b.astype(L).copy()
    for j in range(len(A)):
        p = j + int(np.abs(A[j:, j]).argmax())
        A[[j, p]], b[[j, p]] = A[[p, j]], b[[p, j]]
        for i in range(j + 1, len(A)):
            f = A[i, j] / A[j, j]
            A[i, j:] -= f * A[j, j:]
            b[i] -= f * b[j]
    x = np.zeros_like(b)
    for j in reversed(range(len(A))):
        x[j] = (b[j] - A[j, j + 1 :] @ x[j + 1 :]) / A[j, j]
    return x


def exact(model, X, y, w, lam):
    """The minimiser (k, d1) in long doubles; of several classes the one with the same mean over the classes."""
    k, intercept = len(model.classes_), model.fit_intercept
    Z = np.column_stack([X, np.ones(len(X))]).astype(L) if intercept else X.astype(L)
    Z = np.asarray(Z)
    centre = np.zeros(Z.shape[1], L)
    if intercept:
        centre[:-1] = Z[:, :-1].mean(axis=0)
    theta = np.column_stack([model.coef_, model.intercept_]).astype(L)[:, : Z.shape[1]]
    Zc = Z - centre
    if intercept:
        theta[:, -1] += theta[:, :-1] @ centre[:-1]
    ridge = np.full(Z.shape[1], L(lam))
    if intercept:
        ridge[-1] = 0
    Y = (np.asarray(y)[:, None] == model.classes_).astype(L)
    w = np.asarray(w, L)
    for _ in range(8):
        if k == 2:
            p = 1 / (1 + np.exp(-(Zc @ theta[0])))
            g = Zc.T @ (w * (p - Y[:, 1])) + ridge * theta[0]
            H = (Zc.T * (w * p * (1 - p))) @ Zc + np.diag(ridge)
            theta = theta - solve_long(H, g)[None]
            continue
        eta = Zc @ theta.T
        P = np.exp(eta - eta.max(axis=1, keepdims=True))
        P /= P.sum(axis=1, keepdims=True)
        G = (w[:, None] * (P - Y)).T @ Zc + ridge * theta
        m = Z.shape[1]
        H = np.zeros((k * m, k * m), L)
        for a in range(k):
            for c in range(k):
                block = (Zc.T * (w * P[:, a] * ((a == c) - P[:, c]))) @ Zc
                H[a * m : (a + 1) * m, c * m : (c + 1) * m] = block + (a == c) * np.diag(ridge)
        # Along the free direction, where all classes move together, the mean is kept.
        free = np.where(ridge > 0, 0, np.diag(H).reshape(k, m).mean(axis=0))
        H += np.kron(np.ones((k, k), L), np.diag(free))
        theta = theta - solve_long(H, G.ravel()).reshape(k, m)
    if lam > 0 and k > 2:  # penalised coefficients sum to 0 over the classes, which the weak curvature leaves inexact
        theta[:, ridge > 0] -= theta[:, ridge > 0].mean(axis=0)
    if intercept:
        theta[:, -1] -= theta[:, :-1] @ centre[:-1]
    return theta


def drawn(seed):
    rng = np.random.default_rng(seed)
    n, d, k = int(rng.integers(40, 200)), int(rng.integers(1, 5)), int(rng.integers(2, 5))
    scale, offset = 10.0 ** rng.uniform(-3, 3, d), 10.0 ** rng.uniform(-2, 4) * rng.integers(0, 2)
    Z = rng.normal(size=(n, d))
    y = np.argmax(Z @ rng.normal(size=(d, k)) + 2 * rng.gumbel(size=(n, k)), axis=1)
    y[:k] = np.arange(k)
    w = rng.exponential(size=n) * (rng.random(n) > 0.1)
    w[:k] = 1.0
    return Z * scale + offset * scale, y, w, rng


SETTINGS = [
    {"C": 1.0}, {"C": 1e-4}, {"C": 1e5}, {"penalty": None}, {"fit_intercept": False}, {"tol": 1e-2}, {"tol": 1e-12},
]  # fmt: skip


@pytest.mark.parametrize("params", SETTINGS, ids=str)
def test_no_coefficient_is_further_from_the_minimisers_than_is_proved(params):
    tried = 0
    for seed in range(8):
        X, y, w, rng = drawn(seed)
        try:
            model = LogisticRegression(**params).fit(X, y, sample_weight=w)
        except ValueError:
            assert params.get("penalty", "") is None  # separable
            continue
        lam = 0.0 if "penalty" in params else 1 / model.C
        best = exact(model, X, y, w, lam)
        for found, fitted in (
            (model.certificate_, model),
            (audit(model, X, y, w), model),
            *moved(model, X, y, w, rng),
        ):
            error = np.array(found.parameter_error)
            assert error.shape == (len(fitted.coef_), X.shape[1] + 1)
            theta = np.column_stack([fitted.coef_, fitted.intercept_])[:, : best.shape[1]].astype(L)
            target = best
            if len(theta) > 1:  # the minimiser with the same mean in the free directions
                free = slice(0, None) if lam == 0 else slice(X.shape[1], None)
                target = best.copy()
                target[:, free] += (theta - best)[:, free].mean(axis=0)
            assert (np.abs(theta - target) <= error[:, : best.shape[1]]).all(), (seed, params)
            tried += 1
    assert tried >= 8


def moved(model, X, y, w, rng):
    """Audits of models that are a little off: their errors are true as well, where they say any."""
    for size in (1e-8, 1e-3):
        rough = copy.deepcopy(model)
        rough.coef_ = model.coef_ * (1 + size * rng.normal(size=model.coef_.shape))
        found = audit(rough, X, y, w)
        if found.parameter_error:
            yield found, rough


def test_the_errors_are_not_much_larger_than_they_need_be():
    """A fit to 1e-4 of the objective is off by more than a hundredth of what is proved."""
    X, y, w, _ = drawn(3)
    model = LogisticRegression(tol=1e-4).fit(X, y, sample_weight=w)
    theta = np.column_stack([model.coef_, model.intercept_])
    off = np.abs(theta - exact(model, X, y, w, 1.0).astype(float))
    if len(theta) > 1:
        off = np.abs((theta - exact(model, X, y, w, 1.0)).astype(float))
    error = np.array(audit(model, X, y, w).parameter_error)
    assert (off / error).max() > 0.01


def test_the_free_intercept_of_a_penalised_model_has_an_error_too():
    X, y, _, _ = drawn(1)
    for model in (LogisticRegression(), LogisticRegression(tol=1e-3)):
        assert np.isfinite(model.fit(X, y).certificate_.parameter_error).all()
        assert np.isfinite(audit(model, X, y).parameter_error).all()


def test_nothing_is_said_of_coefficients_that_are_not_determined():
    """Two equal columns: the likelihood has a maximum, and infinitely many coefficients reach it."""
    X, y, _, _ = drawn(1)
    model = LogisticRegression(penalty=None).fit(np.column_stack([X, X[:, :1]]), y)
    assert model.certificate_.holds
    assert model.certificate_.parameter_error == ()


def test_a_fit_that_was_stopped_says_how_far_it_is():
    X, y, w, _ = drawn(2)
    with pytest.warns(CertificateWarning):
        model = LogisticRegression(max_iter=1).fit(X, y, sample_weight=w)
    for found in (model.certificate_, audit(model, X, y, w)):
        error = np.array(found.parameter_error)
        best = exact(LogisticRegression().fit(X, y, sample_weight=w), X, y, w, 1.0)
        off = np.abs(model.coef_ - best[:, : X.shape[1]].astype(float))
        assert (off <= error[:, : X.shape[1]]).all()


def long_glm(X, y, family, ridge, theta):
    """The minimiser (d1,) of a Poisson, gamma or gaussian model with its usual link, in long doubles."""
    Z = np.column_stack([X, np.ones(len(X))]).astype(L)
    lam = np.append(np.full(X.shape[1], L(ridge)), L(0))
    theta, y = theta.astype(L), y.astype(L)
    for _ in range(6):
        eta = Z @ theta
        mu = np.exp(eta)
        u, h = {"poisson": (mu - y, mu), "gamma": (1 - y / mu, y / mu), "gaussian": (eta - y, np.ones_like(eta))}[
            family
        ]
        theta = theta - solve_long((Z.T * h) @ Z + np.diag(lam), Z.T @ u + lam * theta)
    return theta


@pytest.mark.parametrize("alpha", [0.0, 1e-3])
@pytest.mark.parametrize("family", ["poisson", "gamma", "gaussian"])
def test_long_tables_have_errors_from_the_last_pass_of_the_fit(family, alpha):
    rng = np.random.default_rng(7)
    n, d = 30_000, 6  # more entries than a fit is given to the checker for
    X = rng.normal(size=(n, d)) + 2.0
    eta = X @ rng.normal(size=d) / 6
    y = {"poisson": rng.poisson(np.exp(eta)).astype(float), "gamma": rng.gamma(2, np.exp(eta) / 2), "gaussian": eta}[
        family
    ]
    y = y + rng.normal(size=n) if family == "gaussian" else y
    model = GeneralizedLinearRegressor(family, "auto", alpha=alpha).fit(X, y)
    error = np.array(model.certificate_.parameter_error[0])
    best = long_glm(X, y, family, alpha * n, np.append(model.coef_, model.intercept_))
    away = np.abs(np.append(model.coef_, model.intercept_) - best).astype(float)
    assert (away <= error).all()
    checked = np.array(audit(model, X, y).parameter_error[0])
    assert (error <= 10 * checked).all()
    assert (error < 1e-2).all()
    if alpha == 0:
        assert "coef (unproved)" not in model.summary()


@pytest.mark.parametrize("k", [2, 3, 4])
def test_long_tables_of_classes_have_errors_from_the_last_pass_of_the_fit(k):
    rng = np.random.default_rng(k)
    n, d = 30_000, 5
    X = rng.normal(size=(n, d)) + 1.0
    y = (X @ rng.normal(size=(d, k)) / 2 + rng.gumbel(size=(n, k))).argmax(axis=1)
    model = LogisticRegression(C=0.5).fit(X, y)
    error = np.array(model.certificate_.parameter_error)
    assert np.isfinite(error).all()
    best = exact(model, X, y, np.ones(n), 2.0)
    theta = np.column_stack([model.coef_, model.intercept_])
    assert (np.abs(theta - best).astype(float) <= error).all()
    assert (error <= 20 * np.array(audit(model, X, y).parameter_error)).all()
