"""What fits of SVC and SVR claim: the checker agrees, damage is noticed, gaps on the way are true."""

import copy

import numpy as np
import pytest
from sklearn import svm
from sklearn.metrics.pairwise import rbf_kernel

from certifit import CertificateWarning, DataError
from certifit import audit as certifit_audit
from certifit.checkers.plain.kernel_values import PlainValueTuning
from certifit.checkers.svm.adapter import SvmAuditTuning
from certifit.checkers.svm.kernel import SvmCheckTuning
from certifit.svm.kernel.kernel_machine import IndefiniteKernelWarning
from certifit.svm.kernel.svc import SVC
from certifit.svm.kernel.svr import SVR
from tests.common.catalogue import three, two
from tests.svm.kernel.svc_tables import audit, every_kind, fitted


@every_kind
def test_fit_and_checker_agree(kind):
    model, X, y = fitted(kind)
    checked = audit(model, X, y)
    assert model.certificate_.holds
    assert checked.holds
    assert model.certificate_.kind == checked.kind == "optimal"
    np.testing.assert_allclose(model.certificate_.objective, checked.objective, rtol=1e-10)
    np.testing.assert_allclose(model.certificate_.objective, model.objective(X, y).total, rtol=1e-10)


def test_the_checker_works_in_any_parts():
    model, X, y = fitted("three classes")
    whole = audit(model, X, y)
    for values in (PlainValueTuning(block_entries=40), PlainValueTuning(block_entries=40, held_values=40)):
        parts = audit(model, X, y, tuning=SvmAuditTuning(check=SvmCheckTuning(values=values)))
        np.testing.assert_allclose(parts.objective, whole.objective, rtol=1e-12)


def drop(a):
    a.flat[np.abs(a).argmax()] = 0


def negate(a):
    a.flat[np.abs(a).argmax()] *= -1


def scale(a):
    a *= 1.001


def swap(a):
    low, high = a.argmin(), a.argmax()
    a.flat[low], a.flat[high] = a.flat[high], a.flat[low]


@every_kind
@pytest.mark.parametrize("damage", [drop, negate, scale, swap])
@pytest.mark.parametrize("name", ["dual_coef_", "intercept_", "support_vectors_", "slacks_", "kkt_residuals_"])
def test_damage_is_noticed(kind, damage, name):
    model, X, y = fitted(kind)
    best = model.certificate_.objective
    hurt = np.array(getattr(model, name))
    damage(hurt)
    if np.abs(hurt - getattr(model, name)).max() < 1e-3:
        hurt += 0.01  # a machine solved to the end has no residuals to damage
    setattr(model, name, hurt)
    checked = audit(model, X, y)
    assert not checked.holds
    assert checked.bound <= best * (1 + 1e-12)


@every_kind
def test_damage_to_support_and_kinds_is_noticed(kind):
    model, X, y = fitted(kind)
    moved = copy.deepcopy(model)
    moved.support_[0] = np.setdiff1d(np.arange(len(X)), model.support_)[0]
    assert not audit(moved, X, y).holds
    model.support_codes_ = np.roll(model.support_codes_, 1, axis=0)
    assert not audit(model, X, y).holds


def hurt(model, **attributes):
    other = copy.deepcopy(model)
    vars(other).update(attributes)
    return other


def test_support_vectors_that_predict_otherwise_are_noticed():
    """A row named twice, rows out of the order of their classes: coefficients are the same, predictions are not."""
    X, y = three(90)
    model = SVC().fit(X, y)
    s, coef = model.support_, model.dual_coef_
    again = np.append(s[0], s)
    twice = hurt(model, support_=again, support_vectors_=X[again], dual_coef_=np.column_stack([coef[:, 0] + 9, coef]))
    twice.n_support_ = model.n_support_ + np.array([1, 0, 0])
    order = np.random.default_rng(0).permutation(len(s))
    mixed = hurt(model, support_=s[order], support_vectors_=X[s[order]], dual_coef_=coef[:, order])
    for other in (twice, mixed):
        assert (other.predict(X) != model.predict(X)).any()
        assert not audit(other, X, y).holds
    with pytest.raises(DataError, match="support vectors from -"):
        audit(hurt(model, support_=s - len(X)), X, y)


def test_support_vectors_moved_far_from_the_origin_are_noticed():
    X, y = three(90)
    X = X + 1e8
    model = SVC().fit(X, y)
    assert audit(model, X, y).holds
    noise = np.random.default_rng(0).normal(size=model.support_vectors_.shape)
    assert not audit(hurt(model, support_vectors_=model.support_vectors_ + noise), X, y).holds


@pytest.mark.parametrize("cls", [SVC, svm.SVC])
def test_settings_that_are_not_those_of_the_fit_are_noticed(cls):
    """With no coefficient at its bound, heavier classes have the same optimum; but not what class_weight says."""
    X, y = np.random.default_rng(0).normal(size=(40, 2)), np.arange(40) % 2
    X[:, 0] += 9 * y
    model = cls(C=1e4, tol=1e-9, gamma=0.5).fit(X, y)
    assert audit(model, X, y, tol=1e-3).holds
    assert not audit(hurt(model, gamma="scale"), X, y, tol=1e-3).holds
    assert not audit(hurt(model, class_weight_=2 * model.class_weight_), X, y, tol=1e-3).holds
    assert not audit(hurt(model, classes_=model.classes_[::-1]), X, y, tol=1e-3).holds


def test_what_is_said_beside_the_machine_is_checked_too():
    X, y = three(90)
    G = rbf_kernel(X)
    given = SVC(kernel="precomputed").fit(G, y)
    assert audit(given, G, y).holds
    assert not audit(hurt(given, support_gram_=2 * given.support_gram_), G, y).holds
    slacks = given.slacks_.copy()
    slacks[y == 2, 0] += 0.1  # of the machine for classes 0 and 1
    assert not audit(hurt(given, slacks_=slacks), G, y).holds
    tiny = SVR(epsilon=0.0).fit(X, 1e-9 * X[:, 0])
    assert audit(tiny, X, 1e-9 * X[:, 0]).holds
    for change in ({"n_support_": tiny.n_support_ + 1}, {"slacks_": tiny.slacks_ + 1e-12}):
        assert not audit(hurt(tiny, **change), X, 1e-9 * X[:, 0]).holds


def test_regression_far_from_zero():
    """The same machine, its intercept moved by as much: no more than rounding may be held against it."""
    X, _ = three(90)
    far, near = SVR().fit(X, X[:, 0] + 1e8), SVR().fit(X, X[:, 0])
    assert audit(far, X, X[:, 0] + 1e8).holds
    np.testing.assert_allclose(far.predict(X) - 1e8, near.predict(X), atol=1e-3)


def test_a_kernel_that_is_not_symmetric_gets_no_bound():
    X, y = two()
    twisted = np.eye(4) + 0.01 * (np.triu(np.ones((4, 4))) - np.tril(np.ones((4, 4))))
    G = X @ twisted @ X.T
    found = audit(svm.SVC(kernel="precomputed").fit(G, y), G, y)
    assert found.kind == "stationary"
    assert found.facts["kernel"].startswith("not symmetric")


@every_kind
def test_stopping_early_is_said_and_the_gap_is_true(kind):
    best = fitted(kind)[0].certificate_.objective
    with pytest.warns(CertificateWarning, match="of the optimum; asked for"):
        model, X, y = fitted(kind, max_iter=0)
    for found in (model.certificate_, audit(model, X, y)):
        assert not found.holds
        assert found.objective >= best * (1 - 1e-9)
        assert found.bound <= best * (1 + 1e-9)


def test_out_of_time_returns_machines_for_every_pair():
    with pytest.warns(CertificateWarning):
        model, X, y = fitted("three classes", max_time=0.0)
    assert model.intercept_.shape == (3,)
    assert set(model.predict(X)) <= set(y)
    assert audit(model, X, y).bound <= fitted("three classes")[0].certificate_.objective


def test_rows_are_of_the_kind_their_coefficients_say():
    model, X, y = fitted("two classes")
    margin = np.where(y == 1, 1, -1) * model.decision_function(X)
    kinds = model.support_kinds_
    np.testing.assert_allclose(margin[kinds == "margin"], 1.0, atol=1e-6)
    assert (margin[kinds == "non-margin"] <= 1 + 1e-6).all()
    assert (margin[kinds == "none"] >= 1 - 1e-6).all()
    np.testing.assert_allclose(model.slacks_, np.maximum(0, 1 - margin), atol=1e-12)
    assert set(np.flatnonzero(kinds != "none")) == set(model.support_)


def test_every_gap_on_the_way_is_true():
    """The history's objective and gap bracket the minimum at every round."""
    model, _, _ = fitted("two classes", C=100.0)
    best = model.certificate_.objective
    (history,) = model.history_
    assert len(history) >= 3
    for mark in history:
        assert mark.objective * (1 - mark.gain) <= best * (1 + 1e-9)
        assert mark.objective >= best * (1 - 1e-9)


def test_values_in_float32_are_accurate_enough():
    """Above 2000 rows the default tolerance lets kernel values be float32; the checker's are float64."""
    X, y = two(2600)
    model = SVC().fit(X, y)
    checked = audit(model, X, y)
    assert model.certificate_.holds
    assert checked.holds
    np.testing.assert_allclose(model.certificate_.objective, checked.objective, rtol=1e-6)
    assert checked.bound <= SVC(tol=1e-6).fit(X, y).certificate_.objective


@pytest.mark.parametrize("move", [0.5, -0.3, 1e-3])
def test_of_many_best_intercepts_the_middle_one_is_kept(move):
    """A small C leaves all rows inside the margin: losses do not tell intercepts apart (Burges & Crisp, 2000)."""
    X, y = np.array([[0.0], [1.0], [3.0], [4.0]]), np.array([0, 0, 1, 1])
    model = SVC(C=0.01, kernel="linear", tol=1e-8).fit(X, y)
    np.testing.assert_allclose(model.coef_, [[0.01 * (3 + 4 - 0 - 1)]])  # every coefficient is at C
    np.testing.assert_allclose(model.intercept_, [(-1.0 + (1 - 0.06 * 4)) / 2])  # the outer rows on their margins
    moved = copy.deepcopy(model)
    moved.intercept_ = model.intercept_ + move
    again = audit(moved, X, y)
    np.testing.assert_allclose(again.objective, model.certificate_.objective, rtol=1e-12)
    assert audit(model, X, y).holds
    assert not again.holds


def test_classes_in_another_order_are_refused():
    """Where scores tie, the order of the classes is the prediction."""
    X, y = np.zeros((4, 1)), np.array([0, 1, 0, 1])
    model = SVC().fit(X, y)
    model.classes_ = model.classes_[::-1].copy()
    with pytest.raises(DataError, match="do not ascend"):
        certifit_audit(model, X, y)


# ---------------------------------------------------------------------------------------------- indefinite kernels
@pytest.mark.parametrize("regression", [False, True])
def test_an_indefinite_kernel_is_fitted_with_a_warning(regression):
    """As LIBSVM does: the same stationary machines, and no claim that they are best."""
    X, y = three(120)
    ours, theirs = (SVR, svm.SVR) if regression else (SVC, svm.SVC)
    y = X[:, 0] - X[:, 1] if regression else y
    with pytest.warns(IndefiniteKernelWarning, match="not positive semidefinite"):
        model = ours(kernel="sigmoid", gamma=0.05, tol=1e-8).fit(X, y)
    peer = theirs(kernel="sigmoid", gamma=0.05, tol=1e-10).fit(X, y)
    found = certifit_audit(model, X, y)
    assert model.certificate_.kind == found.kind == "stationary"
    assert model.certificate_.holds
    assert found.holds
    values = [m.predict(X) if regression else m.decision_function(X) for m in (model, peer)]
    np.testing.assert_allclose(*values, atol=1e-4 * np.abs(values[1]).max())
    moved = copy.deepcopy(model)
    moved.dual_coef_ = 0.9 * moved.dual_coef_
    assert not certifit_audit(moved, X, y).holds


def test_an_intercept_that_alone_predicts_is_held_to_its_last_digits():
    """All numbers lie within the tube: the prediction is the middle of the smallest and the largest number."""
    y = 74.0 + 1e-6 * np.array([-1.0, 0.5, 2.0, 3.0, -0.5])
    X = np.arange(5.0)[:, None]
    model = SVR(epsilon=0.05).fit(X, y)
    np.testing.assert_allclose(model.intercept_, [74.0 + 1e-6], rtol=1e-14)
    assert certifit_audit(model, X, y).holds
    model.intercept_ = model.intercept_.astype(np.float32) + 2e-7
    assert not certifit_audit(model, X, y).holds


def test_gamma_is_held_to_its_last_digits():
    X, y = two()
    model = SVC().fit(X, y)
    assert certifit_audit(model, X, y).holds
    model.gamma_ = float(np.float32(model.gamma_))
    assert not certifit_audit(model, X, y).holds


def test_a_row_without_weight_moves_neither_the_fit_nor_its_audit():
    rng = np.random.default_rng(0)
    X, y, w = rng.normal(size=(30, 2)), np.arange(30) % 2, np.ones(30)
    X[0], w[0] = 1e9, 0.0
    model = SVC(C=100.0, kernel="linear").fit(X, y, sample_weight=w)
    again = certifit_audit(model, X, y, sample_weight=w)
    assert again.holds
    alone = SVC(C=100.0, kernel="linear").fit(X[1:], y[1:])
    assert again.objective == pytest.approx(alone.certificate_.objective, rel=1e-9)
