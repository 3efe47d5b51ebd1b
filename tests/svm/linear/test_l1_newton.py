"""LinearSVC with an L1 penalty: closed forms, LIBLINEAR, proofs, damage, corners."""

import copy

import numpy as np
import pytest
from scipy import sparse
from sklearn import svm
from sklearn.datasets import load_iris

from certifit import DataError, LinearSVC, audit, compare
from tests.svm.linear.linear_cases import cancer, noisy

INTERCEPTS = [{}, {"fit_intercept": False}, {"intercept_scaling": 10.0}]


@pytest.mark.parametrize("C", [0.1, 0.25, 1.0, 3.0])
def test_two_rows_in_closed_form(C):
    """Rows ±1: |β| + 2 C (1 - β)² has its minimum at β = 1 - 1 / (4 C), or at 0."""
    model = LinearSVC("l1", C=C, fit_intercept=False, tol=1e-12).fit([[-1.0], [1.0]], [0, 1])
    np.testing.assert_allclose(model.coef_, [[max(0.0, 1 - 1 / (4 * C))]], atol=1e-12)
    assert model.certificate_.holds


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("C", [0.01, 0.3])
@pytest.mark.parametrize("several", [False, True])
def test_against_liblinear(intercept, C, several):
    X, y = load_iris(return_X_y=True) if several else cancer()
    w = np.random.default_rng(0).exponential(size=len(y))
    model = LinearSVC("l1", C=C, tol=1e-9, **intercept).fit(X, y, w)
    peer = svm.LinearSVC("l1", dual=False, C=C, tol=1e-8, max_iter=10**5, random_state=0, **intercept).fit(X, y, w)
    found = compare({"ours": model, "theirs": peer}, X, y, w)
    assert model.certificate_.holds
    assert audit(model, X, y, w).holds
    assert len(set(found.problems.values())) == 1
    objectives = [found.certificates[name].objective for name in ("ours", "theirs")]
    assert objectives[0] <= objectives[1] * (1 + 1e-9)
    np.testing.assert_allclose(*objectives, rtol=1e-4)
    np.testing.assert_allclose(model.objective(X, y, w).total, objectives[0], rtol=1e-10)
    assert (model.coef_ == 0).any()


@pytest.mark.parametrize("seed", range(8))
def test_no_bound_exceeds_the_minimum(seed):
    """Random coefficients, weights with zeros: what is proved for them holds for the best ones."""
    rng = np.random.default_rng(seed)
    X, y = noisy(60, 4, seed)
    w = rng.exponential(size=60) * (rng.random(60) < 0.7)
    settings = {"C": 10.0 ** rng.uniform(-2, 2), "penalize_intercept": bool(seed % 2)}
    best = LinearSVC("l1", tol=1e-6, **settings).fit(X, y, w)
    wrong = copy.deepcopy(best)
    wrong.coef_, wrong.intercept_ = rng.normal(size=(1, 4)), rng.normal(size=1)
    found = audit(wrong, X, y, w)
    assert found.bound <= best.certificate_.objective * (1 + 1e-9)
    assert not found.holds


@pytest.mark.parametrize("damage", [lambda a: -a, lambda a: 1.05 * a, lambda a: 0 * a, lambda a: a + 0.1])
@pytest.mark.parametrize("name", ["coef_", "intercept_"])
def test_damage_is_noticed(name, damage):
    X, y = cancer()
    model = LinearSVC("l1", C=0.1, tol=1e-8, intercept_scaling=10.0).fit(X, y)
    hurt = copy.deepcopy(model)
    setattr(hurt, name, damage(getattr(model, name)))
    assert audit(model, X, y).holds
    assert not audit(hurt, X, y).holds


def test_sources_weights_and_wide_tables():
    X, y = noisy(120, 6)
    twice = np.random.default_rng(1).integers(1, 3, 120)
    fit = LinearSVC("l1", C=0.5, tol=1e-10)
    model = copy.deepcopy(fit).fit(X, y, twice)
    again = copy.deepcopy(fit).fit(np.repeat(X, twice, axis=0), np.repeat(y, twice))
    np.testing.assert_allclose(again.coef_, model.coef_, atol=1e-6)
    csr = copy.deepcopy(fit).fit(sparse.csr_array(X), y, twice)
    np.testing.assert_allclose(csr.coef_, model.coef_, atol=1e-6)
    rng = np.random.default_rng(0)
    wide, z = rng.normal(size=(60, 2500)), np.arange(60) % 2
    model = LinearSVC("l1", C=0.1).fit(wide, z)
    assert model.certificate_.holds
    assert audit(model, wide, z).holds
    assert (model.coef_ != 0).sum() <= 60


def test_a_free_intercept_follows_the_columns():
    X, y = noisy(120, 6)
    settings = {"penalize_intercept": False, "C": 0.5, "tol": 1e-9}
    near, far = LinearSVC("l1", **settings).fit(X, y), LinearSVC("l1", **settings).fit(X + 3.0, y)
    assert near.certificate_.holds
    assert far.certificate_.holds
    np.testing.assert_allclose(far.coef_, near.coef_, atol=1e-4)
    assert audit(far, X + 3.0, y).holds


@pytest.mark.parametrize("other", [{"loss": "hinge"}, {"multi_class": "crammer_singer"}])
def test_what_has_no_l1_machine(other):
    with pytest.raises(DataError, match="squared_hinge"):
        LinearSVC("l1", **other).fit([[-1.0], [1.0]], [0, 1])
