"""Kernel machines on data that rounding spoils: no certificate claims what 100 digits of arithmetic refute."""

import warnings
from decimal import Decimal, localcontext

import numpy as np
import pytest
from scipy import sparse

from certifit import SVC, SVR, CertificateWarning, HardMarginSVC, NoSolutionError, OneClassSVM, audit
from certifit.checkers.plain import kernels as plain_kernels
from certifit.svm.kernel.gram import RadialGram
from certifit.svm.kernel.training import RecheckTuning
from tests.common.catalogue import two
from tests.common.tuning import tuned

exact = np.vectorize(lambda v: v if isinstance(v, Decimal) else Decimal(float(v)), otypes=[object])


@pytest.fixture(autouse=True)
def _digits():
    with localcontext() as context:
        context.prec = 100
        yield


def base(X, Z, gamma, coef0):
    return Decimal(gamma) * X.dot(Z.T) + Decimal(coef0)


def tanh(x):
    return (((2 * x).exp() - 1) / ((2 * x).exp() + 1)) if abs(x) < 100 else Decimal(1).copy_sign(x)


def gram(kernel, X, Z, gamma=1.0, coef0=0.0, degree=1):
    """In 100 digits."""
    X, Z = exact(X), exact(Z)
    if kernel == "linear":
        return X.dot(Z.T)
    if kernel == "rbf":
        squares = ((X[:, None] - Z) ** 2).sum(axis=2)
        return np.vectorize(lambda v: (-Decimal(gamma) * v).exp(), otypes=[object])(squares)
    f = {"poly": lambda v: v ** int(degree), "sigmoid": tanh}[kernel]
    return np.vectorize(f, otypes=[object])(base(X, Z, gamma, coef0))


# ------------------------------------------------------------------------------------------------ kernel values
PLAIN = {
    "linear": lambda g, c, p: plain_kernels.PlainLinear(),
    "rbf": lambda g, c, p: plain_kernels.PlainRadial(g),
    "poly": lambda g, c, p: plain_kernels.PlainPolynomial(p, g, c),
    "sigmoid": lambda g, c, p: plain_kernels.PlainSigmoid(g, c),
}


@pytest.mark.parametrize("kernel", PLAIN)
@pytest.mark.parametrize("dtype", [np.float64, np.longdouble])
def test_rounding_in_kernel_values_is_within_its_bound(kernel, dtype):
    rng = np.random.default_rng(0)
    eps = Decimal(float(np.finfo(dtype).eps))
    for _ in range(12):
        X = rng.normal(size=(7, 3)) * 10.0 ** rng.uniform(-6, 5, 3) + 10.0 ** rng.uniform(-3, 6) * rng.integers(2)
        gamma, coef0, degree = float(10 ** rng.uniform(-3, 1)), float(rng.choice([0.0, 1.0])), int(rng.integers(1, 7))
        plain = PLAIN[kernel](gamma, coef0, degree)
        true, reach = gram(kernel, X, X, gamma, coef0, degree), exact(plain.reach(X))
        for table in (X.astype(dtype), sparse.csr_array(X.astype(dtype))):
            K = plain(table, table)
            high, low = exact(K.astype(np.float64)), exact((K - K.astype(np.float64)).astype(np.float64))
            assert K.dtype == dtype
            assert (abs(high + low - true) <= eps * reach[:, None] * reach).all()


def test_close_rows_far_from_the_others_keep_their_distances():
    """exp(-|x - z|²) of rows near 0 and one at 1e12: the mean is far from all of them."""
    X = np.array([[0.0], [0.5], [1.0], [1e12]])
    expected = np.exp(-((X - X.T) ** 2))
    np.testing.assert_allclose(plain_kernels.PlainRadial(1.0)(X, X), expected, rtol=1e-12)


# -------------------------------------------------------------------------------------------------------- fits
def hinge(K, y, C, beta, b):
    """Objective and bound of a machine of two sides."""
    f = K.dot(beta)
    losses = sum(c * max(Decimal(0), 1 - s * (v + b)) for c, s, v in zip(C, y, f, strict=True))
    feasible = np.array([s * min(max(s * v, Decimal(0)), c) for s, v, c in zip(y, beta, C, strict=True)])
    return beta.dot(f) / 2 + losses, feasible, lambda a: y.dot(a) - a.dot(K.dot(a)) / 2


def tube(K, y, C, beta, b, epsilon):
    """Of a machine for numbers."""
    f, e = K.dot(beta), Decimal(epsilon)
    losses = sum(c * max(Decimal(0), abs(t - v - b) - e) for c, t, v in zip(C, y, f, strict=True))
    feasible = np.array([min(max(v, -c), c) for v, c in zip(beta, C, strict=True)])
    return beta.dot(f) / 2 + losses, feasible, lambda a: y.dot(a) - e * abs(a).sum() - a.dot(K.dot(a)) / 2


def hull(K, y, beta, b):
    """Of a hard margin, scaled to its smallest y f."""
    f = K.dot(beta)
    lowest = min(y * (f + b))
    objective = beta.dot(f) / 2 / lowest**2 if lowest > 0 else Decimal("inf")
    feasible = np.array([s * max(s * v, Decimal(0)) for s, v in zip(y, beta, strict=True)])
    return objective, feasible, lambda a: abs(a).sum() ** 2 / (2 * a.dot(K.dot(a)))


def balanced(beta):
    up, down = beta[beta > 0].sum(), -beta[beta < 0].sum()
    least = min(up, down)
    return np.where(beta > 0, beta * (least / up if up else 0), beta * (least / down if down else 0))


def drawn(seed):
    """A small problem with something extreme about it, and what it is in 100 digits once it is fitted."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(6, 14)), int(rng.integers(1, 5))
    X = rng.normal(size=(n, d)) * 10.0 ** rng.uniform(-5, 5, d if rng.integers(2) else 1)
    X += 10.0 ** rng.uniform(-2, 6) * rng.integers(2)
    X = X.astype(rng.choice([np.float32, np.float64]))
    kernel, sides = str(rng.choice(["poly", "poly", "rbf"])), np.where(np.arange(n) % 2, 1.0, -1.0)
    settings = {
        "kernel": kernel,
        "gamma": float(10 ** rng.uniform(-3, 2)),
        "degree": int(rng.integers(1, 7)),
        "coef0": float(rng.integers(2)),
        "tol": float(rng.choice([1e-3, 1e-6])),
    }
    C, w = float(10 ** rng.uniform(-6, 8)), 10 ** rng.uniform(-2, 2, n)
    what = rng.choice(["SVC", "SVR", "hard"])
    target = X[:, 0] + 1e3 * rng.normal(size=n) if what == "SVR" else sides
    model = {"SVC": SVC(C=C), "SVR": SVR(C=C), "hard": HardMarginSVC(ridge=0.0)}[what].set_params(
        **settings, max_iter=200
    )

    def truth():
        K = gram(kernel, X, X, settings["gamma"], settings["coef0"], settings["degree"])
        beta = np.zeros(n)
        beta[model.support_] = model.dual_coef_[0]
        y, prices, beta, b = exact(target), exact(C * w), exact(beta), Decimal(float(model.intercept_[0]))
        if what == "hard":
            return hull(K, y, beta, b)
        return hinge(K, y, prices, beta, b) if what == "SVC" else tube(K, y, prices, beta, b, model.epsilon)

    return model, X, target, w, truth


def fitted(model, X, y, w):
    try:
        return model.fit(X, y, sample_weight=w)
    except NoSolutionError:  # a hard margin that is none
        return None


@pytest.mark.filterwarnings("ignore::certifit.CertificateWarning")
def test_a_certificate_that_holds_is_true_in_100_digits():
    """Of what is claimed, the bound is below what is proved, and the objective is as far above it as said."""
    held = failed = 0
    for seed in range(40):
        model, X, y, w, truth = drawn(seed)
        if fitted(model, X, y, w) is None:
            continue
        checked, certificate = audit(model, X, y, w), model.certificate_
        assert checked.holds or not certificate.holds, seed
        held, failed = held + certificate.holds, failed + (not certificate.holds)
        if not certificate.holds:
            continue
        objective, feasible, bound = truth()
        proved = bound(balanced(feasible))
        for found in (certificate, checked):
            size = Decimal(found.objective)
            assert objective - proved <= Decimal(found.limit) + size * Decimal("1e-15"), seed
            assert abs(objective - size) <= Decimal(found.limit), seed
            assert Decimal(found.bound) <= objective * (1 + Decimal("1e-15")), seed
    assert held > 15
    assert failed > 5


def far_and_wide():
    """Rows of size 1e9 with a gap between two classes: |f|² is about 1e-18, and a last bit of y f costs C 1e-16."""
    X = np.random.default_rng(0).normal(size=(20, 2))
    y = np.where(X[:, 0] > 0, 1, -1)
    X[:, 0] += y
    return X * 1e9, y


def in_full(model, X, y):
    """The objective in 100 digits, and half of |f|²."""
    beta = np.zeros(len(X))
    beta[model.support_] = model.dual_coef_[0]
    K, C, b = gram("poly", X, X), np.full(len(X), Decimal(model.C)), Decimal(float(model.intercept_[0]))
    return hinge(K, exact(y), C, exact(beta), b)[0], exact(beta).dot(K.dot(exact(beta))) / 2


def test_losses_that_rounding_makes_are_counted():
    X, y = far_and_wide()
    model = tuned(SVC(kernel="poly", degree=1, gamma=1.0, C=1e4), recheck=RecheckTuning(rounding_slack=0.0))
    with pytest.warns(CertificateWarning, match="rounding in the objective"):
        model.fit(X, y)
    objective, square = in_full(model, X, y)
    assert objective > 1000 * square
    assert not audit(model, X, y).holds


def test_a_last_bit_more_removes_losses_that_rounding_makes():
    X, y = far_and_wide()
    model = SVC(kernel="poly", degree=1, gamma=1.0, C=1e4).fit(X, y)
    objective, square = in_full(model, X, y)
    assert objective == square  # no row has any loss
    assert model.certificate_.objective == pytest.approx(float(objective), rel=1e-12)
    assert model.certificate_.holds
    assert audit(model, X, y).holds


# ---------------------------------------------------------------------- what training believes is not what is claimed
def blurred(self, rows, columns, block=RadialGram.block):
    return block(self, rows, columns) ** 1.02


@pytest.mark.parametrize(("n", "params"), [(150, {}), (2100, {}), (2100, {"C": 20.0})])
def test_wrong_kernel_values_in_training_are_noticed(monkeypatch, n, params):
    """Of few rows, of many of which a sample is looked at, and of many with large C."""
    X, y = two(n)
    monkeypatch.setattr(RadialGram, "block", blurred)
    with pytest.warns(CertificateWarning, match="of the optimum"):
        model = SVC(tol=1e-4, **params).fit(X, y)
    found = audit(model, X, y)
    assert not found.holds
    assert model.certificate_.objective == pytest.approx(found.objective, rel=1e-12)


@pytest.mark.parametrize("multi_class", ["ovo", "crammer-singer"])
def test_a_sample_of_many_rows_is_enough_where_it_agrees(multi_class):
    X, y = two(2100)
    settings = {"multi_class": multi_class, "tol": 1e-2}
    trusted = SVC(**settings).fit(X, y).certificate_
    every = tuned(SVC(**settings), recheck=RecheckTuning(rounding_share=0.0)).fit(X, y).certificate_
    assert trusted.holds
    assert every.holds
    assert trusted.objective != every.objective  # float32 and float64
    assert trusted.objective == pytest.approx(every.objective, rel=1e-6)


@pytest.mark.parametrize("distance", [1e6, 1e8])
@pytest.mark.parametrize("multi_class", ["ovo", "weston-watkins"])
def test_groups_far_apart_have_the_machine_of_groups_less_far_apart(distance, multi_class):
    """Values between them are 0 either way; about a common mean, those within a group would lose their digits."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(80, 2))
    y = (rows[:, 0] + 0.5 * rng.normal(size=80) > 0).astype(int)
    apart = np.where(np.arange(80)[:, None] % 2, [1.0, 1.0], 0.0)
    model = SVC(gamma=1.0, tol=1e-6, multi_class=multi_class)
    near = model.fit(rows + 1e3 * apart, y).certificate_
    far = model.fit(rows + distance * apart, y).certificate_
    assert near.holds
    assert far.holds
    assert far.objective == pytest.approx(near.objective, rel=1e-6)
    assert audit(model, rows + distance * apart, y).holds


def test_the_offset_of_one_class_beside_columns_in_other_units():
    """The fit takes the middle of values in float64: audits in longer numbers must not blame it for their digits."""
    held = 0
    for seed in range(1, 12):
        rng = np.random.default_rng(seed)
        X, w = rng.normal(size=(5, 3)) * np.array([1e5, 1.0, 1e-3]), rng.exponential(size=5)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CertificateWarning)
            model = OneClassSVM(kernel="linear", nu=0.47).fit(X, sample_weight=w)
        assert audit(model, X, sample_weight=w).holds == model.certificate_.holds
        held += model.certificate_.holds
    assert held > 5
    model = OneClassSVM(kernel="linear", nu=0.47).fit(X := np.random.default_rng(0).normal(size=(9, 3)) + 3)
    model.intercept_ = model.intercept_ * (1 + 1e-6)
    assert not audit(model, X).holds
