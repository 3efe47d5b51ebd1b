"""NuSVC, NuSVR and OneClassSVM: closed forms, LIBSVM, what nu means, proofs and damage, settings refused."""

import copy
import warnings

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import linprog
from sklearn import svm

from certifit import CertificateWarning, DataError, NuSVC, NuSVR, OneClassSVM, audit
from certifit.svm.kernel import smo_loops
from certifit.svm.nu import nu_smo_loops
from certifit.svm.nu.nu_training import LargeNuWarning, SmallNuWarning, smallest_nu
from tests.common.catalogue import amounts, table, three, two

KERNELS = [{}, {"kernel": "linear"}, {"kernel": "poly", "coef0": 1.0}, {"gamma": 2.0}]
MACHINES = {
    "classes": (NuSVC, svm.NuSVC, {"nu": 0.7}, two),
    "three classes": (NuSVC, svm.NuSVC, {"nu": 0.7}, three),
    "numbers": (NuSVR, svm.NuSVR, {"nu": 0.3, "C": 2.0}, amounts),
    "one class": (OneClassSVM, svm.OneClassSVM, {"nu": 0.3}, table),
}


def weights(n):
    return np.random.default_rng(7).exponential(size=n)


def values(model, X):
    return model.predict(X) if isinstance(model, NuSVR | svm.NuSVR) else model.decision_function(X)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", MACHINES)
def test_against_libsvm(kind, kernel, weighted):
    ours, theirs, params, data = MACHINES[kind]
    X, y = data(90)
    w = weights(90) if weighted else None
    model = ours(**params, **kernel, tol=1e-9).fit(X, y, w)
    peer = theirs(**params, **{**kernel, "gamma": model.gamma_}, tol=1e-10).fit(X, y, sample_weight=w)
    found, other = audit(model, X, y, w), audit(peer, X, y, w, tol=1e-6)
    assert model.certificate_.holds
    assert found.holds
    assert other.holds
    assert found.kind == "optimal"
    np.testing.assert_allclose(found.objective, model.certificate_.objective, rtol=1e-8)
    np.testing.assert_allclose(model.objective(X, y, w).total, found.objective, rtol=1e-8)
    if weighted:  # else several intercepts, and so several margins to divide by, may be best
        np.testing.assert_allclose(other.objective, found.objective, rtol=1e-5)
        size = np.abs(values(peer, X)).max()
        np.testing.assert_allclose(values(model, X), values(peer, X), atol=2e-4 * size)


def test_two_rows_in_closed_form():
    """Rows at ±1: coefficients are nu W / 2 = nu, f = 2 nu x, and the margin by which it is divided is 2 nu."""
    model = NuSVC(nu=0.4, kernel="linear", tol=1e-12).fit([[-1.0], [1.0]], [0, 1])
    np.testing.assert_allclose(model.dual_coef_, [[-0.5, 0.5]])
    np.testing.assert_allclose(model.coef_, [[1.0]])
    np.testing.assert_allclose(model.intercept_, [0.0], atol=1e-15)


@pytest.mark.parametrize(
    ("kind", "nu"),
    [("classes", 0.7), ("classes", 0.9), *((k, nu) for k in ("numbers", "one class") for nu in (0.1, 0.4, 0.8))],
)
def test_nu_is_a_share_of_the_rows(kind, nu):
    """At most nu of the rows miss, at least nu are support vectors (Schölkopf et al. 2000, proposition 5)."""
    ours, _, params, data = MACHINES[kind]
    X, y = data(200)
    model = ours(**{**params, "nu": nu}, tol=1e-8).fit(X, y)
    assert (model.slacks_ > 1e-7).mean() <= nu + 1e-12
    assert len(model.support_) / 200 >= nu - 1e-12


@pytest.mark.parametrize("kind", MACHINES)
@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("dual_coef_", lambda a: -a),
        ("dual_coef_", lambda a: 1.01 * a),
        ("intercept_", lambda a: a + 0.01 * (1 + np.abs(a))),
        ("support_vectors_", lambda a: 1.001 * a),
        ("slacks_", lambda a: a + 0.01),
        ("kkt_residuals_", lambda a: a + 0.01),
        ("gamma_", lambda a: 1.01 * a),
    ],
)
def test_damage_is_noticed(kind, name, damage):
    ours, _, params, data = MACHINES[kind]
    X, y = data(90)
    model = ours(**params, tol=1e-8).fit(X, y)
    hurt = copy.deepcopy(model)
    setattr(hurt, name, damage(getattr(model, name)))
    assert audit(model, X, y).holds
    assert not audit(hurt, X, y).holds


def test_another_nu_or_tube_is_noticed():
    X, y = amounts(90)
    model = NuSVR(nu=0.3, tol=1e-8).fit(X, y)
    assert not audit(copy.deepcopy(model).set_params(nu=0.31), X, y).holds
    model.epsilon_ *= 1.01
    assert not audit(model, X, y).holds


@pytest.mark.parametrize("kind", MACHINES)
def test_sources_and_settings(kind):
    ours, _, params, data = MACHINES[kind]
    X, y = data(90)
    model = ours(**params, tol=1e-9).fit(X, y)
    again = ours(**params, tol=1e-9).fit(sparse.csr_array(X), y)
    np.testing.assert_allclose(values(again, X), values(model, X), atol=1e-6 * np.abs(values(model, X)).max())
    K = np.exp(-model.gamma_ * ((X[:, None] - X[None]) ** 2).sum(axis=2))
    given = ours(**params, kernel="precomputed", tol=1e-9).fit(K, y)
    np.testing.assert_allclose(values(given, K), values(model, X), atol=1e-6 * np.abs(values(model, X)).max())
    assert audit(given, K, y).holds
    with pytest.raises(DataError, match="nu"):
        ours(**{**params, "nu": 1.5}).fit(X, y)


def test_a_nu_that_no_machine_has():
    X, y = two(90)
    few = np.flatnonzero((y == 0) | (np.arange(90) < 20))
    with pytest.warns(LargeNuWarning, match="infeasible"):
        model = NuSVC(nu=0.9).fit(X[few], y[few])
    lighter = min(np.bincount(y[few]))
    most = NuSVC(nu=2 * lighter / len(few)).fit(X[few], y[few])
    np.testing.assert_allclose(model.decision_function(X), most.decision_function(X), rtol=1e-6)
    assert audit(model, X[few], y[few]).holds


def least_mean_hinge(X, y, w):
    """The smallest Σ w max(0, 1 - y (x·v + b)) / Σ w, as a linear program in v, b and the losses."""
    n, d = X.shape
    rows = -np.column_stack([y[:, None] * X, y, np.eye(n)])
    bounds = [(None, None)] * (d + 1) + [(0, None)] * n
    return linprog(np.append(np.zeros(d + 1), w / w.sum()), rows, -np.ones(n), bounds=bounds).fun


def test_a_nu_too_small_for_classes_that_are_not_parted():
    """Below the mean hinge loss of the best function without a penalty (strong duality), the margin is 0."""
    rng = np.random.default_rng(0)
    X, w = rng.normal(size=(60, 2)), rng.uniform(0.5, 2.0, 60)
    y = (X[:, 0] + 1.5 * rng.normal(size=60) > 0).astype(int)
    least = smallest_nu(X @ X.T, 2.0 * y - 1, w)
    assert least == pytest.approx(least_mean_hinge(X, 2.0 * y - 1, w), rel=1e-9)
    words = rf"nu=0.2 is too small.* above {least:.3g} \(up to"
    with pytest.warns(SmallNuWarning, match=words), pytest.warns(CertificateWarning, match="nu is too small"):
        model = NuSVC(nu=0.2, kernel="linear").fit(X, y, w)
    found = audit(model, X, y, w)
    assert not found.holds
    assert found.failures() == model.certificate_.failures()
    assert NuSVC(nu=1.01 * least, kernel="linear").fit(X, y, w).certificate_.holds
    with pytest.warns(SmallNuWarning), pytest.warns(CertificateWarning):
        NuSVC(nu=0.99 * least, kernel="linear").fit(X, y, w)
    # Classes with the same mean that surround each other: a plane parts them at no nu.
    square = np.array([[1.0, 1.0], [-1.0, -1.0], [1.0, -1.0], [-1.0, 1.0]])
    with pytest.warns(SmallNuWarning, match="whatever nu is"), pytest.warns(CertificateWarning):
        NuSVC(nu=0.5, kernel="linear").fit(square, [0, 0, 1, 1])


def test_the_methods_of_one_class():
    X, _ = table(90)
    model = OneClassSVM(nu=0.2).fit(X)
    np.testing.assert_allclose(model.score_samples(X), model.decision_function(X) + model.offset_)
    clear = np.abs(model.decision_function(X)) > 1e-5 * model.offset_  # rows that support the level lie on it
    np.testing.assert_array_equal(model.predict(X)[clear], np.sign(model.decision_function(X))[clear])
    assert (model.predict(X)[~clear] == 1).all()
    np.testing.assert_array_equal(model.fit_predict(X), model.predict(X))
    linear = OneClassSVM(kernel="linear", nu=0.2).fit(X)
    np.testing.assert_allclose(
        linear.coef_[0] @ X.T - linear.offset_, linear.decision_function(X), atol=2e-6 * linear.offset_[0]
    )


def test_many_rows_are_solved_a_working_set_at_a_time():
    X, y = two(2500)
    model = NuSVC(nu=0.7).fit(X, y)
    peer = svm.NuSVC(nu=0.7, tol=1e-8, gamma=model.gamma_).fit(X, y)
    assert model.certificate_.holds
    np.testing.assert_allclose(audit(peer, X, y).objective, model.certificate_.objective, rtol=1e-2)


@pytest.mark.compiled
def test_pairs_of_a_side_keep_its_sum():
    """Against the solver of machines of C: with all rows of one side both solve the same problem."""
    rng = np.random.default_rng(0)
    A = rng.normal(size=(12, 12))
    K, s, C = A @ A.T, np.ones(12), rng.uniform(0.5, 1.0, 12)
    first, second = C * 0.4, C * 0.4
    p = rng.normal(size=12)
    t = -p - K @ first
    nu_smo_loops.solve_pairs_of_a_side(K, s, t.copy(), first, C, 1e-10, 10_000)
    smo_loops.solve_pairs(K, s, t.copy(), second, C, 1e-10, 10_000)
    np.testing.assert_allclose(first.sum(), 0.4 * C.sum())
    np.testing.assert_allclose(first, second, atol=1e-8)


def test_the_stated_tube_is_the_one_that_is_judged():
    """Next to a row of weight 1e12 the last digit of the tube is worth what whole rows are."""
    X, w = np.array([[-1.0], [-3.0], [0.0], [3.0], [0.0]]), np.array([1e12, 1.0, 1.0, 1.0, 1.0])
    y = np.array([1.44413192, -2405.8169, 657.60964, -1303.54644, -1462.38301])
    held = 0
    for nu in (0.1, 0.2, 0.3, 0.3477106001763605, 0.4):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CertificateWarning)  # sums of 1e12 keep few digits of the balance
            model = NuSVR(nu=nu, C=9.99, kernel="linear").fit(X, y, w)
        found = audit(model, X, y, w)
        assert found.holds == model.certificate_.holds
        held += found.holds
        if found.holds:
            np.testing.assert_allclose(found.objective, model.certificate_.objective, rtol=1e-9)
    assert held


@pytest.mark.parametrize("seed", range(4))
def test_an_intercept_is_as_far_off_as_its_tube(seed):
    """Of equal rows with weights of eight decades the tube is known to few digits, and the intercept to no more."""
    rng = np.random.default_rng(seed)
    X, y, w = np.full((19, 2), -2e-6), 5e-3 * rng.normal(size=19), 10.0 ** rng.uniform(-4, 4, size=19)
    model = NuSVR(C=0.00143, nu=0.087).fit(X, y, w)
    assert model.certificate_.holds
    assert audit(model, X, y, w).holds
    model.intercept_ = model.intercept_ + 1e-4 * np.ptp(y)
    assert not audit(model, X, y, w).holds


@pytest.mark.parametrize("seed", [7, 14, 36])
def test_a_tube_is_known_to_the_digits_that_values_have(seed):
    """Products of rows 1e5 apart lose a ten-thousandth of targets next to each other; fit and audit lose others."""
    rng = np.random.default_rng(seed)
    X = 2.4e7 + 1e5 * rng.normal(size=(3, 2))[np.arange(28) % 3]
    y = 0.25 * rng.normal(size=28)
    model = NuSVR(C=0.357, kernel="linear", nu=0.55, tol=1e-7).fit(X, y)
    assert model.certificate_.holds
    assert audit(model, X, y).holds
    model.epsilon_ = model.epsilon_ + 0.02 * np.ptp(y)
    assert not audit(model, X, y).holds


def test_a_margin_whose_square_overflows_is_refused_in_words():
    X = 1e140 * np.random.default_rng(0).normal(size=(13, 4))
    with pytest.raises(DataError, match=r"a margin of .*whose square overflows.*Rescale"):
        NuSVC(kernel="linear", nu=0.2).fit(X, np.arange(13) % 2)
