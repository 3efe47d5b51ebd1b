"""No bound of a linear machine is above what can be reached, whatever the coefficients, weights, scales and C."""

from __future__ import annotations

import copy
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn import svm

from certifit import SVC, SVR, DataError, LinearSVC, LinearSVR, audit
from tests.svm.linear.linear_cases import free_svc, free_svr

CLASSES, NUMBERS = (
    ("hinge", "squared_hinge", "huberised_hinge"),
    ("epsilon_insensitive", "squared_epsilon_insensitive"),
)


def unequal_table(rng):
    """Rows of any scale and offset, some columns constant, some rows twice; most tables have rows without weight."""
    n, d, scale = int(rng.integers(4, 50)), int(rng.integers(1, 7)), 10.0 ** rng.uniform(-6, 6)
    X = scale * rng.normal(size=(n, d))
    if rng.random() < 0.3:
        X += scale * 10.0 ** rng.uniform(0, 4) * rng.normal(size=d)
    if rng.random() < 0.3:
        X[:, 0] = X[0, 0]
    if rng.random() < 0.3:
        X[n // 2 :] = X[: n - n // 2]
    w = rng.random(n) + 0.01
    w[rng.random(n) < rng.choice([0.0, 0.1, 0.5, 0.8])] = 0.0
    return X, w


def settings(rng):
    return {
        "C": 10.0 ** rng.uniform(-6, 6),
        "fit_intercept": bool(rng.random() < 0.8),
        "penalize_intercept": bool(rng.random() < 0.4),
    }


def random_fits(seed):
    """A problem, and fits of it that are stopped early, as usual, and near to exact."""
    rng = np.random.default_rng(seed)
    X, w = unequal_table(rng)
    if rng.random() < 0.5:
        y = rng.integers(0, 2, len(X))
        y[:2], w[:2] = [0, 1], 1.0
        given = {**settings(rng), "loss": str(rng.choice(CLASSES))}
        make = LinearSVC
    else:
        y = 10.0 ** rng.uniform(-5, 5) * rng.normal(size=len(X)) + rng.choice([0.0, 100.0])
        w[0] = 1.0
        epsilon = float(rng.choice([0.0, 0.1, np.abs(y).mean()]))
        given = {**settings(rng), "loss": str(rng.choice(NUMBERS)), "epsilon": epsilon}
        make = LinearSVR
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        early, usual, near = (
            make(**given, **more).fit(X, y, sample_weight=w)
            for more in ({"max_iter": 1}, {}, {"tol": 1e-9, "max_iter": 400})
        )
    return rng, (X, y, w), early, usual, near


def exact_objective(model, X, y, w):
    """The objective in long floating-point numbers, from its definition."""
    X, w, beta = X.astype(np.longdouble), w.astype(np.longdouble), np.ravel(model.coef_).astype(np.longdouble)
    b, rho = np.longdouble(np.ravel(model.intercept_)[0]), float(model.fit_intercept and model.penalize_intercept)
    f = X @ beta + b
    z = np.abs(y - f) - model.epsilon if isinstance(model, LinearSVR) else 1 - np.where(y == 1, 1, -1) * f
    losses = np.maximum(z, 0)
    if model.loss.startswith("squared"):
        losses = losses**2
    if model.loss == "huberised_hinge":
        losses = np.where(z > 0.5, z, np.maximum(z + 0.5, 0) ** 2 / 2)
    return model.C * (w * losses).sum() + (beta @ beta + rho * b**2) / 2


@pytest.mark.parametrize("seed", range(40))
def test_no_bound_is_above_the_best_objective_known(seed):
    rng, (X, y, w), early, usual, near = random_fits(seed)
    best = min(exact_objective(model, X, y, w) for model in (early, usual, near))
    wrong = copy.deepcopy(near)
    wrong.coef_ = wrong.coef_ * rng.choice([0.0, 1.5, -1.0, 1e3, 1 + 1e-9])
    for model in (early, usual, near, wrong):
        found = audit(model, X, y, sample_weight=w)
        assert found.bound <= best * (1 + 1e-15)
        assert model is wrong or model.certificate_.bound <= best * (1 + 1e-15)
        off = np.linalg.norm(np.ravel(model.coef_) - np.ravel(near.coef_))
        assert off <= (found.parameter_error[0][0] + near.certificate_.parameter_error[0][0]) * (1 + 1e-9)
        assert not found.holds or exact_objective(model, X, y, w) - best <= found.limit * (1 + 1e-6)


@pytest.mark.parametrize("seed", range(40, 70))
def test_fit_and_audit_agree(seed):
    rng, (X, y, w), _, usual, _ = random_fits(seed)
    assert audit(usual, X, y, sample_weight=w).holds == usual.certificate_.holds
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table = sparse.csr_array(X) if rng.random() < 0.5 else X.astype(np.float32)
        again = copy.deepcopy(usual).fit(table, y, sample_weight=w)
    assert audit(again, table, y, sample_weight=w).holds == again.certificate_.holds


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge"])
def test_rows_without_weight_prove_nothing(loss):
    """With multipliers for rows without weight, a machine of zeros would seem to be the best: 60 against 11.6."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4))
    y = (X[:, 0] + 0.5 * rng.normal(size=200) > 0).astype(int)
    w = (np.arange(200) < 60) * 1.0
    best = free_svc(loss=loss).fit(X[:60], y[:60])
    zero = copy.deepcopy(best)
    zero.coef_, zero.intercept_ = 0 * best.coef_, 0 * best.intercept_
    found = audit(zero, X, y, sample_weight=w)
    assert not found.holds
    assert found.bound <= best.certificate_.objective
    np.testing.assert_allclose(audit(best, X, y, sample_weight=w).objective, best.certificate_.objective, rtol=1e-12)


@pytest.mark.parametrize("penalize", [True, False])
def test_coefficients_are_as_near_to_the_minimiser_as_they_say(penalize):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(80, 3))
    y = X @ [1.0, -2.0, 0.5] + 3 + rng.normal(size=80)
    rough = free_svr(C=0.1, tol=1e-2, penalize_intercept=penalize).fit(X, y)
    near = free_svr(C=0.1, tol=1e-12, penalize_intercept=penalize).fit(X, y)
    for found in (rough.certificate_, audit(rough, X, y)):
        ((*beta, b),) = found.parameter_error
        assert np.linalg.norm(rough.coef_ - near.coef_) <= beta[0] < 1
        assert (abs(rough.intercept_ - near.intercept_)[0] <= b < np.inf) if penalize else b == np.inf
        assert ("nothing is proved about intercepts" in " ".join(str(found).split())) == (not penalize)


# ---------------------------------------------------------------------------------------- other libraries' models
class HingeDual:
    """Stands for skglm's LinearSVC: the hinge, solved in the dual, without an intercept."""

    def __init__(self, coef, C=1.0):
        self.C, self.coef_, self.intercept_, self.classes_ = C, coef, 0.0, np.array([0, 1])


def test_the_hinge_without_an_intercept_is_audited_as_such():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(60, 3))
    y = (X[:, 0] + rng.normal(size=60) > 0).astype(int)
    HingeDual.__module__, HingeDual.__name__ = "skglm.estimators", "LinearSVC"
    best = svm.LinearSVC(loss="hinge", fit_intercept=False, tol=1e-9, max_iter=100_000).fit(X, y)
    assert audit(HingeDual(best.coef_), X, y).holds
    assert not audit(HingeDual(1.1 * best.coef_), X, y).holds


@pytest.mark.parametrize("name", ["C", "epsilon"])
@pytest.mark.parametrize("peer", [svm.SVR(), svm.LinearSVR()])
def test_settings_that_no_fit_has_are_refused(peer, name):
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(30, 2)), rng.normal(size=30)
    model = copy.deepcopy(peer.fit(X, y))
    setattr(model, name, -1.0)
    with pytest.raises(DataError, match=name):
        audit(model, X, y)


def test_attributes_that_do_not_fit_are_refused_in_words():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(30, 2))
    y = (X[:, 0] > 0).astype(int)
    model = SVC().fit(X, y)
    for name, value, words in (
        ("support_", model.support_ + 100, "support vectors"),
        ("dual_coef_", model.dual_coef_[:, :-1], "dual_coef_ of shape"),
        ("gamma_", -1.0, "gamma"),
        ("support_codes_", model.support_codes_.astype(float), "whole numbers"),
    ):
        hurt = copy.deepcopy(model)
        setattr(hurt, name, value)
        with pytest.raises(DataError, match=words):
            audit(hurt, X, y)
    with pytest.raises(DataError, match="29 rows"):
        audit(model, X[:-1], y[:-1])


@pytest.mark.parametrize("make", [SVC, SVR])
def test_equal_entries_have_no_variance(make):
    X, y = np.full((20, 3), 0.1, np.float32), np.arange(20) % 2
    model = make().fit(X, y)
    assert model.gamma_ == 1.0
    assert audit(model, X, y).holds
