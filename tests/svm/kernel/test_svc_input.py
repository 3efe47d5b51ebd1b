"""SVC and SVR on bad settings, odd labels, hopeless scales, huge C, and far from zero."""

import warnings

import numpy as np
import pytest
from scipy import sparse

from certifit import CertificateWarning, DataError, HardMarginSVC, Nystroem, RBFSampler
from certifit.svm.kernel.smo import descend_by_newton
from certifit.svm.kernel.svc import SVC
from certifit.svm.kernel.svr import SVR
from tests.common.catalogue import amounts, three, two, unfitted
from tests.svm.kernel.svc_tables import FITTED, audit, every_kind, fitted

# ----------------------------------------------------------------------------------------------- bad input
BAD = {
    "C=0": ({"C": 0}, "C=0"),
    "C=inf": ({"C": np.inf, "kernel": "linear"}, "C=inf, and rows that every machine of this kernel has"),
    "C text": ({"C": "1"}, "C='1'"),
    "kernel": ({"kernel": "rfb"}, "'rfb'"),
    "gamma": ({"gamma": -1.0}, "gamma=-1.0"),
    "gamma word": ({"gamma": "big"}, "'big'"),
    "degree": ({"kernel": "poly", "degree": 2.5}, "degree=2.5"),
    "tol": ({"tol": -1.0}, "tol=-1.0"),
    "cache": ({"cache_size": 0}, "cache_size=0"),
    "max_iter": ({"max_iter": -2}, "max_iter=-2"),
    "max_time": ({"max_time": -1}, "max_time=-1"),
    "shape": ({"decision_function_shape": "ovx"}, "'ovx'"),
    "shape of a kernel": ({"kernel": lambda A, _: np.ones(len(A))}, r"shape \(150,\)"),
    "not symmetric": ({"kernel": lambda A, B: A[:, :1] + 0 * B[:, 0]}, "not symmetric"),
    "not finite": ({"kernel": lambda A, B: np.full((len(A), len(B)), np.nan)}, "not finite"),
    "overflow": ({"kernel": "poly", "degree": 300, "gamma": 100.0}, "not finite"),
    "not square": ({"kernel": "precomputed"}, r"\(150, 4\)"),
    "C below 0": ({"C": -1.0}, "C=-1.0; wanted a number above 0"),
    "kernel array": ({"kernel": np.eye(2)}, "kernel=array"),
    "coef0": ({"kernel": "poly", "coef0": "a"}, "coef0='a'"),
    "coef0 nan": ({"kernel": "poly", "coef0": np.nan}, "coef0=nan"),
    "text from a kernel": ({"kernel": lambda A, B: np.full((len(A), len(B)), "x")}, "values of type <U1"),
    "complex from a kernel": ({"kernel": lambda A, B: A @ B.T + 0j}, "values of type complex128"),
    "probability": ({"probability": "yes"}, "probability='yes'"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_settings(name):
    params, words = BAD[name]
    model = SVC(**params)
    with pytest.raises(DataError, match=words):
        model.fit(*two())
    assert unfitted(model)


def test_bad_epsilon():
    with pytest.raises(DataError, match="epsilon=-1"):
        SVR(epsilon=-1).fit(*amounts())


def test_values_whose_squares_overflow_are_refused():
    X, y = two(40)
    for table in (X * 1e200, sparse.csr_array(X * 1e200)):
        with pytest.raises(DataError, match="squares overflow"):
            SVC().fit(table, y)


@pytest.mark.parametrize(
    "model",
    [
        SVC(gamma="auto"),
        SVC(gamma=0.5, multi_class="crammer-singer"),
        SVC(kernel="poly", gamma="auto"),
        SVR(gamma="auto"),
        HardMarginSVC(kernel="rbf", gamma="auto", ridge=0.01),
        Nystroem(gamma="auto", n_components=5),
        RBFSampler(gamma=0.5, n_components=5),
    ],
    ids=repr,
)
def test_they_are_refused_without_a_warning_for_any_gamma(model):
    X, y = two(40)
    for table in (X * 1e155, sparse.csr_array(X * 1e200)):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(DataError, match="squares overflow"):
                model.fit(table, y)


@pytest.mark.parametrize(
    "label",
    [[False, True], ["no", "yes"], [b"x".decode(), "y"], [-1.0, 1.0], np.array([1, 2], "M8[D]"), np.uint8([3, 200])],
)
def test_labels_of_any_type(label):
    X, y = two(40)
    label = np.asarray(label)
    model = SVC(probability=True).fit(X, label[y])
    assert model.predict(X).dtype == label.dtype
    np.testing.assert_array_equal(model.predict(X), label[SVC().fit(X, y).predict(X)])


def test_a_sparse_precomputed_kernel():
    X, y = two(40)
    G = X @ X.T
    model = SVC(kernel="precomputed").fit(sparse.csr_array(G), y)
    plain = SVC(kernel="precomputed").fit(G, y)
    np.testing.assert_allclose(model.decision_function(sparse.csr_array(G)), plain.decision_function(G), atol=1e-9)


def test_other_rows_are_refused_or_fail():
    model, X, y = fitted("two classes")
    with pytest.raises(DataError, match="the 150 rows that the SVC was fitted on"):
        audit(model, X[:100], y[:100])
    assert not audit(model, X + 0.1, y).holds
    with pytest.raises(AttributeError, match="linear"):
        _ = model.coef_


def test_the_same_rows_with_opposite_labels():
    """Nothing can be learnt: f = 0, and every row costs 1."""
    X, y = two(40)
    model = SVC().fit(np.vstack([X, X]), np.concatenate([y, 1 - y]))
    np.testing.assert_allclose(model.decision_function(X), 0.0, atol=1e-7)
    np.testing.assert_allclose(model.certificate_.objective, 80.0, rtol=1e-9)


def test_huge_c_on_separable_rows_is_the_hard_margin():
    X = np.array([[0.0, 0.0], [0.0, 1.0], [2.0, 0.0], [2.0, 1.0], [3.0, 0.0]])
    model = SVC(kernel="linear", C=1e10).fit(X, [0, 0, 1, 1, 1])
    np.testing.assert_allclose(model.coef_, [[1.0, 0.0]], atol=1e-7)
    np.testing.assert_allclose(model.intercept_, [-1.0], atol=1e-7)
    assert model.certificate_.holds


def test_a_hopeless_problem_ends_and_says_so():
    """Huge C, classes that overlap, columns of very different scales: pairs of coefficients get nowhere."""
    X, y = two()
    with pytest.warns(CertificateWarning, match="of the optimum; asked for 0.001"):
        model = SVC(kernel="linear", C=1e10).fit(X * [1, 1e5, 1e-3, 1], y)
    assert np.isfinite(model.decision_function(X)).all()


def test_badly_scaled_columns_are_solved_where_pairs_get_nowhere():
    """A linear machine on columns times s is one with the kernel X s² Xᵀ, given as a matrix."""
    X, y = two(100)
    scales = np.array([1.0, 1e4, 1e-4, 1e2])
    plain = SVC(kernel="linear").fit(X * scales, y)
    given = SVC(kernel="precomputed").fit((X * scales**2) @ X.T, y)
    assert plain.certificate_.holds
    np.testing.assert_allclose(plain.certificate_.objective, given.certificate_.objective, rtol=1e-3)
    X, y = amounts(100)
    for model in (SVR(C=1e10), SVR(kernel="linear", C=1e4)):
        assert model.fit(X, y).certificate_.holds
        assert audit(model, X, y).holds


def test_steps_of_all_free_variables_reach_the_minimum():
    """½ zᵀKz - (K z* + 3)·z is least at z*, among z of its sum; where the box has no z*, a bound is reached."""
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(12, 12)) * 10.0 ** np.linspace(-1, 1, 12)
    K, y = Z @ Z.T, np.where(np.arange(12) % 2, 1.0, -1.0)
    best, start = (y * (0.5 + 0.1 * (v - (y * v).sum() * y / 12)) for v in rng.normal(size=(2, 12)))  # of sum 0
    linear = K @ best + 3.0
    alpha, t = y * start, linear - K @ start
    descend_by_newton(K, y, t, alpha, np.ones(12), np.ones((12, 1)))
    np.testing.assert_allclose(y * alpha, best, atol=1e-8)
    np.testing.assert_allclose(t, 3.0, atol=1e-8)
    C = np.where(np.arange(12) < 4, y * start + 1e-3, 1.0)
    alpha = y * start
    descend_by_newton(K, y, linear - K @ start, alpha, C, np.ones((12, 1)))
    assert ((alpha >= 0) & (alpha <= C)).all()
    assert ((alpha == 0) | (alpha == C)).any()
    np.testing.assert_allclose(y @ alpha, 0.0, atol=1e-12)
    values = [0.5 * z @ K @ z - linear @ z for z in (best, y * alpha, start)]
    assert values[0] < values[1] < values[2]
    alpha = np.array([0.5, 0.5])
    K, y, t = np.array([[1.0, 2.0], [2.0, 1.0]]), np.array([1.0, -1.0]), np.array([1.0, 0.0])
    descend_by_newton(K, y, t, alpha, np.ones(2), np.ones((2, 1)))
    assert alpha.tolist() == [0.5, 0.5]  # no kernel matrix: left to pairs


def test_steps_that_keep_the_sum_of_either_side():
    """½ zᵀKz - l·z is least among z of these sums where K z - l is the same number on each side."""
    rng = np.random.default_rng(1)
    Z = rng.normal(size=(10, 10))
    K, y, start = Z @ Z.T, np.repeat([1.0, -1.0], 5), np.full(10, 0.5)
    linear, sides = K @ (y * rng.uniform(0.45, 0.55, 10)), np.column_stack([y > 0, y < 0]).astype(float)
    alpha, t = start.copy(), linear - K @ (y * start)
    descend_by_newton(K, y, t, alpha, np.ones(10), sides)
    np.testing.assert_allclose(t, linear - K @ (y * alpha), atol=1e-10)
    np.testing.assert_allclose(t, sides @ (sides.T @ t / 5), atol=1e-10)
    np.testing.assert_allclose(sides.T @ alpha, 2.5, atol=1e-12)
    assert ((alpha > 0) & (alpha < 1)).all()


@every_kind
def test_an_interrupt_in_a_kernel_leaves_nothing(kind):
    cls, settings, data = FITTED[kind]
    calls = 0

    def kernel(A, B):
        nonlocal calls
        calls += 1
        if calls == 2:
            raise KeyboardInterrupt
        return A @ B.T

    model = cls(kernel=kernel, **settings)
    with pytest.raises(KeyboardInterrupt):
        model.fit(*data())
    assert unfitted(model)


# ---------------------------------------------------------------------------------------------- far from the origin
@pytest.mark.parametrize("multi_class", ["ovo", "ovr", "weston-watkins", "crammer-singer"])
def test_a_linear_machine_does_not_mind_an_offset(multi_class):
    X, y = three(90)
    settings = {"kernel": "linear", "tol": 1e-8, "multi_class": multi_class}
    near, far = SVC(**settings).fit(X, y), SVC(**settings).fit(X + 1e8, y)
    assert far.certificate_.holds
    assert audit(far, X + 1e8, y, tol=1e-6).holds
    assert far.certificate_.objective == pytest.approx(near.certificate_.objective, rel=1e-6)
    np.testing.assert_allclose(far.coef_, near.coef_, atol=1e-5 * np.abs(near.coef_).max())
    values, expected = (T @ model.coef_.T + model.intercept_ for T, model in ((X + 1e8, far), (X, near)))
    np.testing.assert_allclose(values, expected, atol=1e-5)
    if multi_class != "crammer-singer":  # which likes two equal scores
        np.testing.assert_array_equal(far.predict(X + 1e8), near.predict(X))


def test_a_linear_regression_does_not_mind_an_offset():
    X, y = amounts(90)
    near, far = SVR(kernel="linear", tol=1e-8).fit(X, y), SVR(kernel="linear", tol=1e-8).fit(X + 1e8, y)
    assert audit(far, X + 1e8, y, tol=1e-6).holds
    np.testing.assert_allclose(far.predict(X + 1e8), near.predict(X), atol=1e-5)


def test_what_rounding_hides_is_not_claimed():
    """Cubes of rows near 1e6 are about 1e36: their differences are lost, and with them any proof."""
    X = np.random.default_rng(0).normal(size=(300, 4))
    y = X @ [1.0, -1.0, 0.5, 0.0] > 0
    with pytest.warns(CertificateWarning, match="rounding in the objective"):
        model = SVC(kernel="poly", tol=1e-6).fit(X + 1e6, y)
    assert not model.certificate_.holds
    assert not audit(model, X + 1e6, y).holds
