"""Dual coordinate ascent of linear support vector machines: what holds after every round and every combination."""

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize

from certifit.rows import set_threads
from certifit.svm.linear.coordinate_ascent import (
    CoordinateAscent,
    CoordinateAscentTuning,
    DualIterate,
    DualTerms,
    ascend,
)
from tests.common.tuning import tuned
from tests.svm.linear.linear_cases import free_svc, free_svr

FORMS = pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])


def start(form, tau=1.0, balance=None, soft=0.0, n=60, d=8):
    """An ascent from a = 0, of rows where few columns tell the classes apart."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d)) * np.geomspace(3.0, 0.1, d)
    X[rng.random((n, d)) < 0.3] = 0.0
    s = np.where(X @ rng.normal(size=d) + 0.5 * rng.normal(size=n) > 0, 1.0, -1.0)
    terms = DualTerms(np.arange(n), s, np.ones(n), np.full(n, soft), rng.uniform(0.5, 1.5, n))
    norms = (X**2).sum(axis=1)
    at = DualIterate(np.zeros(n), np.zeros(d), np.zeros(1))
    return CoordinateAscent(form(X), norms, terms, at, tau, balance, CoordinateAscentTuning()), X


def dual(X, terms, tau, a):
    """D at b₀ = 0, as written in the module."""
    pull = X.T @ (terms.s * a)
    return a @ terms.q - 0.5 * (terms.soft @ a**2 + pull @ pull + tau * (terms.s @ a) ** 2)


@FORMS
@pytest.mark.parametrize("soft", [0.0, 0.3])
def test_rounds_and_combinations_ascend_within_the_limits(form, soft):
    at, X = start(form, soft=soft, d=80)
    values = [0.0]
    moving = np.arange(len(at.a))
    for _ in range(5):
        for _ in range(3):
            moving = at.round(moving)
            values.append(dual(X, at.terms, at.tau, at.a))
        at.combine()
        values.append(dual(X, at.terms, at.tau, at.a))
        assert (at.a >= 0).all()
        assert (at.a <= at.terms.top).all()
        np.testing.assert_allclose(at.beta, X.T @ (at.terms.s * at.a), atol=1e-11)
        np.testing.assert_allclose(at.b, at.tau * at.terms.s @ at.a, atol=1e-11)
    assert np.diff(values).min() > -1e-11
    assert np.diff(values)[3::4].max() > 1e-6  # some combination gains


@FORMS
def test_a_combination_is_the_best_of_all(form):
    """Against a general minimiser over the weights of the moves."""
    at, X = start(form, soft=1.0)
    for _ in range(2):
        at.round(np.arange(60))
    moves, before = np.stack([move for move, _ in at.moves]), at.a.copy()
    best = minimize(lambda c: -dual(X, at.terms, at.tau, before + c @ moves), np.zeros(2), tol=1e-12).x
    at.combine()
    assert not np.array_equal(at.a, before)
    np.testing.assert_allclose(at.a, np.clip(before + best @ moves, 0.0, at.terms.top), atol=1e-6)


@FORMS
def test_picked_variables_go_on_as_they_would_have(form):
    """The same rounds on the picked dual variables alone, in their order, free intercept included."""
    whole, _ = start(form, balance=0.0)
    whole.round(np.arange(60))
    order = np.random.default_rng(1).permutation(60)[:25]
    part = whole.pick(order)
    at = DualIterate(part.a, part.beta.copy(), part.b.copy())
    part = CoordinateAscent(part.X, part.norms, part.terms, at, part.tau, part.balance, part.tuning)
    whole.round(order)
    part.round(np.arange(25))
    np.testing.assert_allclose(part.a, whole.a[order], rtol=1e-12)
    np.testing.assert_allclose(part.beta, whole.beta, rtol=1e-12)
    np.testing.assert_allclose(part.b, whole.b, rtol=1e-12)


@FORMS
def test_a_free_intercept_is_the_multiplier_of_its_balance(form):
    at, _ = start(form, tau=0.5, balance=0.0)
    for seed in range(30):
        ascend(at, np.random.default_rng(seed))
    assert abs(at.terms.s @ at.a) < 1e-8


def documents(n, d):
    """Rows of some words each, the first used most, and classes that overlap."""
    rng = np.random.default_rng(0)
    words = (d * rng.random(40 * n) ** 3).astype(int)
    X = sparse.csr_array((rng.random(40 * n), (np.repeat(np.arange(n), 40), words)), shape=(n, d))
    X.sum_duplicates()
    eta = X @ rng.normal(size=d)
    return X, eta + 0.5 * eta.std() * rng.normal(size=n) > np.median(eta)


def test_combining_saves_rounds(monkeypatch):
    rounds = []
    once = CoordinateAscent.round
    monkeypatch.setattr(CoordinateAscent, "round", lambda self, moving: (rounds.append(1), once(self, moving))[1])
    X, y = documents(3000, 2100)
    counts = []
    for tuning in (CoordinateAscentTuning(), CoordinateAscentTuning(combined_rounds=10**6)):
        rounds.clear()
        assert tuned(free_svc(loss="hinge"), ascent=tuning).fit(X, y).certificate_.holds
        counts.append(len(rounds))
    assert counts[0] < 0.6 * counts[1]


class TestStartOfALargeTable:
    """The primal solver after dual coordinate ascent, on a table that counts as large here."""

    def table(self, noise):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(1200, 6))
        eta = X[:, 0] - X[:, 1] + 0.5 + noise * rng.normal(size=1200)
        return X, eta

    @pytest.mark.parametrize("noise", [0.05, 3.0])  # few rows near the kink, and many
    @pytest.mark.parametrize("intercept", [{}, {"penalize_intercept": True}, {"fit_intercept": False}])
    def test_same_objective(self, noise, intercept):
        X, eta = self.table(noise)
        for model, y in ((free_svc(loss="hinge"), eta > 0), (free_svr(epsilon=0.1), eta)):
            model.set_params(tol=1e-8, **intercept)
            expected = model.fit(X, y).certificate_.objective
            certificate = tuned(model, dual_start_entries=100).fit(X, y).certificate_
            assert certificate.holds
            assert certificate.objective == pytest.approx(expected, rel=2e-8)

    def test_a_start_that_leads_astray_is_left(self):
        """The working set is too small: the machine goes on by Newton's method."""
        start = {"dual_start_entries": 100, "dual_start_gap": 0.5, "dual_start_width": 0.0}
        X, eta = self.table(1.0)
        model = tuned(free_svc(loss="hinge", tol=1e-8), **start, dual_start_rows_per_column=1).fit(X, eta > 0)
        assert model.certificate_.holds

    def test_same_bits_for_any_number_of_threads(self):
        X, eta = self.table(0.3)
        found = []
        try:
            for threads in (1, 3):
                set_threads(threads)
                found.append(tuned(free_svc(loss="hinge"), dual_start_entries=100).fit(X, eta > 0).coef_)
        finally:
            set_threads(None)
        assert np.array_equal(*found)
