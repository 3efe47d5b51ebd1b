"""Probabilities of SVC: closed forms, likelihood, ties, weights, and never another class than `predict`'s."""

import copy

import numpy as np
import pytest
from scipy import sparse, special
from scipy.optimize import minimize_scalar
from sklearn import svm
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.metrics import log_loss
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from certifit import CertificateWarning, audit
from certifit.svm.kernel import calibration
from certifit.svm.kernel.calibration import couple_pairs, fit_slope, folds, smoothed_targets, with_winner
from certifit.svm.kernel.svc import SVC
from tests.common.catalogue import three, two

SCHEMES = ("ovo", "ovr")
every_scheme = pytest.mark.parametrize("multi_class", SCHEMES)


def agrees(model, X):
    """The likeliest class is the predicted one, row by row, and probabilities are probabilities."""
    p = model.predict_proba(X)
    assert (p > 0).all()
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-12)
    np.testing.assert_array_equal(model.classes_[p.argmax(axis=1)], model.predict(X))
    np.testing.assert_allclose(model.predict_log_proba(X), np.log(p), rtol=1e-12)
    return p


# ------------------------------------------------------------------------------------------ the slope, in closed form
def test_slope_of_two_values():
    """Values ±s, right three times out of four: σ(a s) = 3/4, so a = log(3) / s."""
    scores = np.array([[2.0, 0.0]] * 4 + [[0.0, 2.0]] * 4)
    right = np.array([1.0, 1.0, 1.0, 0.0])
    targets = np.column_stack([np.r_[right, 1 - right], np.r_[1 - right, right]])
    np.testing.assert_allclose(fit_slope(scores, targets, np.ones(8)), np.log(3) / 2, rtol=1e-12)
    weight = np.array([1.0, 1.0, 1.0, 6.0] * 2)  # now wrong six times out of nine
    assert fit_slope(scores, targets, weight) == 1e-3 / 2  # an order must remain
    assert fit_slope(np.zeros((3, 2)), np.full((3, 2), 0.5), np.ones(3)) == 1.0


def test_slope_is_the_minimum_that_scipy_finds():
    rng = np.random.default_rng(0)
    code, weight = rng.integers(0, 3, 80), rng.exponential(size=80)
    scores = rng.normal(size=(80, 3)) + np.eye(3)[code]
    targets = smoothed_targets(code, weight, 3)

    def loss(a):
        return -weight @ (targets * special.log_softmax(a * scores, axis=1)).sum(axis=1)

    best = minimize_scalar(loss, bounds=(0, 10), method="bounded", options={"xatol": 1e-9})
    np.testing.assert_allclose(fit_slope(scores, targets, weight), best.x, rtol=1e-6)


def test_targets_are_those_of_platt():
    """Platt (1999): (N+ + 1) / (N+ + 2) and 1 / (N- + 2)."""
    targets = smoothed_targets(np.array([1, 1, 1, 0]), np.ones(4), 2)
    np.testing.assert_allclose(targets[:, 1], [4 / 5, 4 / 5, 4 / 5, 1 / 3])
    np.testing.assert_allclose(smoothed_targets(np.array([0, 1, 2]), np.ones(3), 3).sum(axis=1), 1.0)


def test_consistent_pairs_are_coupled_exactly():
    """If r = pᵢ / (pᵢ + pⱼ) for all pairs, p itself is the answer (Wu, Lin & Weng 2004, section 2)."""
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(4), 30)
    pairs = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]
    odds = np.column_stack([np.log(p[:, i] / p[:, j]) for i, j in pairs])
    np.testing.assert_allclose(couple_pairs(odds, pairs, 4), p, rtol=1e-6, atol=1e-9)
    extreme = couple_pairs(1e4 * np.sign(odds), pairs, 4)
    assert np.isfinite(extreme).all()
    np.testing.assert_array_equal(extreme.argmax(axis=1), p.argmax(axis=1))


def test_the_winner_leads_by_the_least_change():
    """Against the same projection by brute force: pool the winner with the m largest others, for the best m."""
    rng = np.random.default_rng(0)
    p, winner = rng.dirichlet(np.ones(4), 50), rng.integers(0, 4, 50)
    led = with_winner(p, winner)
    for before, after, w in zip(p, led, winner, strict=True):
        assert after.argmax() == w
        options = []
        others = np.setdiff1d(np.argsort(-before, kind="stable"), [w], assume_unique=True)
        for m in range(4):
            pool = [w, *others[:m]]
            option = before.copy()
            option[pool] = before[pool].mean()
            if option[w] >= option.max() - 1e-15:
                options.append(np.square(option - before).sum())
        np.testing.assert_allclose(np.square(after - before).sum(), min(options), atol=1e-12)
    tied = with_winner(np.full((2, 2), 0.5), np.array([0, 1]))
    assert tied.argmax(axis=1).tolist() == [0, 1]


def test_parts_depend_on_what_is_in_the_rows_only():
    X, y = three()
    part = folds(X, y, 3)
    order = np.random.default_rng(0).permutation(len(X))
    np.testing.assert_array_equal(folds(X[order], y[order], 3), part[order])
    np.testing.assert_array_equal(folds(np.repeat(X, 2, axis=0), np.repeat(y, 2), 3), np.repeat(part, 2))
    np.testing.assert_array_equal(folds(sparse.csr_array(X), y, 3), part)
    np.testing.assert_array_equal(folds(X.astype(np.float32), y, 3), part)
    for c in range(3):
        np.testing.assert_array_equal(np.bincount(part[y == c]), 10)
    assert folds(np.array([[1.0], [2.0], [2.0], [3.0]]), np.array([0, 1, 1, 0]), 2).tolist().count(-1) == 2


# --------------------------------------------------------------------------------------------------- the model
@every_scheme
@pytest.mark.parametrize("load", [load_iris, load_wine, load_breast_cancer])
def test_left_out_rows_are_as_likely_as_scikit_learn_makes_them(load, multi_class):
    """Log-loss of rows not in the fit, on average of three halves, against both of scikit-learn's ways."""
    X, y = load(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    losses = []
    for seed in range(3):
        A, B, a, b = train_test_split(X, y, test_size=0.5, random_state=seed, stratify=y)
        model = SVC(probability=True, multi_class=multi_class).fit(A, a)
        peer = CalibratedClassifierCV(svm.SVC(), ensemble=False).fit(A, a)
        losses.append([log_loss(b, agrees(model, B)), log_loss(b, peer.predict_proba(B))])
        assert model.certificate_.holds
    mine, theirs = np.mean(losses, axis=0)
    assert mine < 1.02 * theirs


@every_scheme
@pytest.mark.parametrize("data", [two, three])
def test_predictions_are_those_without_probabilities(data, multi_class):
    X, y = data()
    model = SVC(probability=True, multi_class=multi_class, C=0.05).fit(X, y)
    plain = SVC(multi_class=multi_class, C=0.05).fit(X, y)
    Z = np.random.default_rng(0).normal(size=(3000, 4)) * 5 + X.mean(axis=0)
    agrees(model, Z)
    np.testing.assert_array_equal(model.predict(Z), plain.predict(Z))
    np.testing.assert_array_equal(model.decision_function(Z), plain.decision_function(Z))


def test_two_classes_are_even_on_the_boundary_and_monotone():
    X, y = two()
    model = SVC(probability=True).fit(X, y)
    f, p = model.decision_function(X), model.predict_proba(X)[:, 1]
    (a,) = model.probability_slopes_
    np.testing.assert_allclose(p, 1 / (1 + np.exp(-a * f)), rtol=1e-12)
    assert (np.diff(p[np.argsort(f)]) >= 0).all()


def test_held_out_values_are_those_of_machines_that_have_not_seen_the_row():
    X, y = two(60)
    model = SVC(probability=True, tol=1e-9).fit(X, y)
    part = folds(X, y, 2)
    for fold in range(5):
        other = svm.SVC(gamma=model.gamma_, tol=1e-9).fit(X[part != fold], y[part != fold])
        values = other.decision_function(X[part == fold])
        np.testing.assert_allclose(model.held_out_values_[part == fold, 0], values, atol=1e-5)


@every_scheme
def test_weights_are_repeated_rows_and_order_does_not_matter(multi_class):
    X, y = three(90)
    times = np.arange(90) // 3 % 3
    settings = {"probability": True, "multi_class": multi_class, "tol": 1e-9, "gamma": 0.1}
    weighted = SVC(**settings).fit(X, y, sample_weight=times)
    order = np.random.default_rng(0).permutation(np.repeat(np.arange(90), times))
    repeated = SVC(**settings).fit(X[order], y[order])
    np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), atol=1e-5)
    assert audit(weighted, X, y, times).holds


@pytest.mark.parametrize("multi_class", SCHEMES)
def test_damage_to_probabilities_is_noticed(multi_class):
    X, y = three()
    model = SVC(probability=True, multi_class=multi_class).fit(X, y)
    assert audit(model, X, y).holds
    for name, change in {
        "probability_slopes_": lambda a: a * 1.001,
        "held_out_values_": lambda a: a * 1.001,
    }.items():
        hurt = copy.deepcopy(model)
        setattr(hurt, name, change(getattr(model, name)))
        assert not audit(hurt, X, y).holds
    hurt.held_out_values_ = model.held_out_values_
    hurt.probability_slopes_ = -model.probability_slopes_
    assert not audit(hurt, X, y).holds


@pytest.mark.parametrize("multi_class", ["ovo", "ovr", "crammer-singer"])
def test_probabilities_that_do_not_follow_from_the_slopes_are_noticed(multi_class, monkeypatch):
    X, y = three()
    model = SVC(probability=True, multi_class=multi_class, C=0.05).fit(X, y)
    sound = audit(model, X, y)
    assert sound.holds
    assert "given held_out_values_" in sound.claim
    assert sound.facts["values of rows left out"] == "recomputed from machines that have not seen them"
    right = calibration.with_winner
    for wrong in (lambda p, w: right(0.99 * p + 0.0033, w), lambda p, w: right(p, w)[:, ::-1]):
        monkeypatch.setattr(calibration, "with_winner", wrong)
        assert any("probabilities differ" in words for words in audit(model, X, y).failures())


def test_sparse_precomputed_and_named_kernels_give_the_same():
    X, y = three(90)
    settings = {"probability": True, "tol": 1e-9}
    plain = SVC(gamma=0.1, **settings).fit(X, y)
    thin = SVC(gamma=0.1, **settings).fit(sparse.csr_array(X), y)
    np.testing.assert_allclose(thin.predict_proba(sparse.csr_array(X)), plain.predict_proba(X), atol=1e-5)
    G = rbf_kernel(X, gamma=0.1)
    given = SVC(kernel="precomputed", **settings).fit(G, y)
    agrees(given, G)
    assert audit(given, G, y).holds


def test_values_that_know_nothing_keep_their_order():
    """Labels by chance: the likeliest slope may be negative, and the smallest above 0 is taken instead."""
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(60, 2)), np.arange(60) % 2
    model = SVC(probability=True, C=0.01).fit(X, y)
    p = agrees(model, X)
    assert np.abs(p - 0.5).max() < 0.2
    assert audit(model, X, y).holds


def test_rows_that_are_all_there_is_of_a_class_are_never_left_out():
    X, y = two(40)
    X, y = np.vstack([X, [[9.0, 9.0, 9.0, 9.0]] * 3]), np.append(y, [7, 7, 7])
    model = SVC(probability=True).fit(X, y)
    assert (model.held_out_values_[-3:] == 0).all()
    assert model.predict(X[-1:]) == [7]
    agrees(model, X)
    assert audit(model, X, y).holds
    few = SVC(probability=True).fit([[0.0], [1.0]], ["a", "b"])
    agrees(few, [[0.0], [0.4], [1.0]])
    assert few.certificate_.holds


def test_probabilities_are_there_where_asked_for_only():
    X, y = two(40)
    assert hasattr(SVC(probability=True), "predict_proba")
    model = SVC().fit(X, y)
    assert not hasattr(model, "predict_proba")
    with pytest.raises(AttributeError) as caught:
        model.set_params(probability=True).predict_proba(X)
    assert "fit again" in str(caught.value)


def test_out_of_time_is_said():
    X, y = three()
    with pytest.warns(CertificateWarning, match="parts left out whose machines are not within tolerance: 5"):
        model = SVC(probability=True, max_time=0.0).fit(X, y)
    agrees(model, X)


@pytest.mark.parametrize("multi_class", SCHEMES)
def test_values_of_rows_left_out_come_from_machines_that_have_not_seen_them(multi_class):
    """Values and slopes that fit each other, machines of a part trained on it, rows in another part."""
    X, y = three()
    model = SVC(probability=True, multi_class=multi_class, C=0.1).fit(X, y)
    assert audit(model, X, y).holds

    def hurt(**changes):
        return audit(vars_replaced(model, changes), X, y).holds

    values, slopes = model.held_out_values_, model.probability_slopes_
    assert not hurt(held_out_values_=10 * values, probability_slopes_=slopes / 10)
    assert not hurt(held_out_intercept_=model.held_out_intercept_ + 0.1)
    assert not hurt(held_out_dual_coef_=(model.held_out_dual_coef_[0] * 1.1, *model.held_out_dual_coef_[1:]))
    own = model.support_, model.dual_coef_, model.intercept_
    seen = [tuple([part] * 5) for part in own]
    names = ("held_out_support_", "held_out_dual_coef_", "held_out_intercept_")
    assert not hurt(**dict(zip(names, (*seen[:2], np.array(seen[2])), strict=True)))
    part = model.held_out_part_.copy()
    part[:2] = part[1::-1] if part[0] != part[1] else (part[0] + 1) % 5
    assert not hurt(held_out_part_=part)


def test_copies_of_a_row_are_left_out_together():
    X, y = three()
    X, y = np.vstack([X, X[:5]]), np.append(y, y[:5])
    model = SVC(probability=True).fit(X, y)
    assert audit(model, X, y).holds
    part = model.held_out_part_.copy()
    part[0] = (part[0] + 1) % 5
    found = audit(vars_replaced(model, {"held_out_part_": part}), X, y)
    assert any("wrong part" in words for words in found.failures())


def vars_replaced(model, changes):
    other = copy.deepcopy(model)
    for name, value in changes.items():
        setattr(other, name, value)
    return other
