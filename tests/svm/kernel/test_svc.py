"""SVC and SVR: known solutions, LIBSVM's, weights, and the same answer from every source."""

import copy
from functools import partial
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import sparse
from sklearn import svm
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris, load_wine
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import StandardScaler

from certifit import DataError
from certifit.checkers.plain.best_intercepts import middle_of_best
from certifit.datasets import penguins_table
from certifit.svm.kernel.gram import KernelCache, gram_of
from certifit.svm.kernel.kernels import RBF
from certifit.svm.kernel.svc import SVC
from certifit.svm.kernel.svr import SVR
from certifit.svm.nu.nu_svm import NuSVC
from tests.common.catalogue import three, two
from tests.svm.kernel.svc_tables import audit, standard


# ------------------------------------------------------------------------------------------ closed forms
@pytest.mark.parametrize("a", [0.5, 1.0, 3.0])
def test_two_points(a):
    """x = ±a: the machine is f(x) = x / a, α = 1 / (2 a²), and the objective half of 1 / a²."""
    model = SVC(kernel="linear", C=1e3).fit([[a], [-a]], [1, 0])
    np.testing.assert_allclose(model.coef_, [[1 / a]], rtol=1e-9)
    np.testing.assert_allclose(model.intercept_, 0.0, atol=1e-12)
    np.testing.assert_allclose(np.abs(model.dual_coef_), 1 / (2 * a**2), rtol=1e-9)
    np.testing.assert_allclose(model.certificate_.objective, 1 / (2 * a**2), rtol=1e-9)
    assert model.support_kinds_.tolist() == ["margin", "margin"]


def test_two_points_with_a_small_c():
    """α = C = 0.1 where 1 / 2 would be best: f(x) = 0.2 x, slacks 0.8."""
    model = SVC(kernel="linear", C=0.1).fit([[1.0], [-1.0]], ["b", "a"])
    np.testing.assert_allclose(model.coef_, [[0.2]], rtol=1e-12)
    np.testing.assert_allclose(model.slacks_, 0.8, rtol=1e-12)
    np.testing.assert_allclose(model.certificate_.objective, 0.5 * 0.2**2 + 0.1 * 1.6, rtol=1e-12)
    assert model.support_kinds_.tolist() == ["non-margin", "non-margin"]


def test_exclusive_or():
    """Four corners and (1 + x·z)²: α = 1/8 each and |f|² = 1/2 (Cherkassky & Mulier, Learning from Data, 1998)."""
    X = np.array([[-1.0, -1.0], [-1.0, 1.0], [1.0, -1.0], [1.0, 1.0]])
    model = SVC(kernel="poly", degree=2, gamma=1.0, coef0=1.0, C=10.0).fit(X, [0, 1, 1, 0])
    np.testing.assert_allclose(model.dual_coef_, [[-1 / 8, -1 / 8, 1 / 8, 1 / 8]], atol=1e-12)
    np.testing.assert_allclose(model.intercept_, 0.0, atol=1e-12)
    np.testing.assert_allclose(model.certificate_.objective, 0.25, rtol=1e-12)
    np.testing.assert_allclose(model.decision_function(X), [-1, 1, 1, -1], atol=1e-12)


def test_a_line_inside_the_tube():
    """y = 2 x at x = ±1 with ε = 0.5: the flattest line within the tube has slope 1.5."""
    model = SVR(kernel="linear", C=100.0, epsilon=0.5).fit([[-1.0], [1.0]], [-2.0, 2.0])
    np.testing.assert_allclose(model.coef_, [[1.5]], rtol=1e-9)
    np.testing.assert_allclose(model.certificate_.objective, 0.5 * 1.5**2, rtol=1e-9)


@pytest.mark.parametrize("cls", [SVC, svm.SVC])
def test_no_slack_at_all(cls):
    """C=inf: (0, 0) and (2, 0) are the nearest rows of the two classes, so f = x₁ - 1."""
    X, y = np.array([[0.0, 0.0], [0.0, 3.0], [2.0, 0.0], [5.0, 1.0]]), np.array([0, 0, 1, 1])
    model = cls(kernel="linear", C=float("inf"), tol=1e-6).fit(X, y)
    np.testing.assert_allclose(model.coef_, [[1.0, 0.0]], atol=1e-5)
    np.testing.assert_allclose(model.intercept_, [-1.0], atol=1e-5)
    assert not audit(model, X, [0, 1, 0, 1]).holds
    if cls is SVC:
        assert audit(model, X, y).holds
        assert model.certificate_.objective == pytest.approx(0.5)
        flat = SVR(kernel="linear", C=np.inf, epsilon=0.5).fit([[-1.0], [1.0]], [-2.0, 2.0])
        np.testing.assert_allclose(flat.coef_, [[1.5]], rtol=1e-9)
        with pytest.raises(DataError, match="C=inf"):
            SVR(kernel="linear", C=np.inf, epsilon=0.0).fit([[-1.0], [0.0], [1.0]], [0.0, 1.0, 0.0])


def test_a_coefficient_at_the_limit_of_an_infinite_price_is_found():
    """Overlapping rows fitted at C=1e10 and then said to be of C=inf."""
    X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([0, 1, 0, 1])
    model = SVC(kernel="linear", C=1e10).fit(X, y)
    assert audit(model, X, y).holds
    model.C = np.inf
    assert not audit(model, X, y).holds


@pytest.mark.parametrize(
    ("cls", "words"),
    [(SVC, "all samples with positive weights"), (NuSVC, "nu is infeasible")],
)
def test_weights_that_leave_one_class(cls, words):
    with pytest.raises(DataError, match=words), pytest.warns(UserWarning, match="negative weight"):
        cls(kernel="linear").fit([[0.0], [1.0], [2.0]], [0, 1, 1], sample_weight=[-1.0, 1.0, 1.0])


def test_the_best_intercept_beats_every_other():
    rng = np.random.default_rng(0)
    for _ in range(50):
        t, y, C = rng.normal(size=9), rng.choice([-1.0, 1.0], 9), rng.integers(1, 4, 9).astype(float)
        y[:2] = [-1.0, 1.0]
        loss = [C @ np.maximum(y * (t - b), 0.0) for b in (middle_of_best(t, y, C), *t)]
        assert loss[0] <= min(loss) + 1e-12


# ------------------------------------------------------------------------------ LIBSVM through scikit-learn
def digits(first, second):
    """Two of the digits."""
    X, y = load_digits(return_X_y=True)
    here = (y == first) | (y == second)
    return X[here], y[here]


def measured_penguins():
    """Penguins of three species, without those whose measurements are missing."""
    table = penguins_table()
    names = ["bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g"]
    X = np.column_stack([table[name].to_numpy(zero_copy_only=False).astype(float) for name in names])
    known = np.isfinite(X).all(axis=1)
    return X[known], table["species"].to_numpy(zero_copy_only=False)[known].astype(str)


PROBLEMS = {
    "iris rbf": (load_iris, {}),
    "iris linear": (load_iris, {"kernel": "linear"}),
    "iris poly": (load_iris, {"kernel": "poly", "degree": 2, "coef0": 1.0}),
    "wine rbf": (load_wine, {"C": 0.3}),
    "wine balanced": (load_wine, {"class_weight": "balanced", "gamma": "auto"}),
    "cancer rbf C=100": (load_breast_cancer, {"C": 100.0, "gamma": 0.01}),
    "cancer weighted": (load_breast_cancer, {"class_weight": {0: 3.0}, "C": 0.1}),
    "digits 3 and 8": (partial(digits, 3, 8), {}),
    "digits 1 and 7": (partial(digits, 1, 7), {"kernel": "poly", "C": 10.0}),
    "penguins": (measured_penguins, {"C": 2.0}),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_libsvm_agrees(name):
    """Ten problems, both solved to 1e-6: the same predictions, and six digits of the objective."""
    load, params = PROBLEMS[name]
    X, y = load(return_X_y=True) if "load" in getattr(load, "__name__", "") else load()
    X = StandardScaler().fit_transform(X)
    mine, theirs = SVC(tol=1e-6, **params).fit(X, y), svm.SVC(tol=1e-6, **params).fit(X, y)
    np.testing.assert_array_equal(mine.predict(X), theirs.predict(X))
    np.testing.assert_allclose(mine.decision_function(X), theirs.decision_function(X), atol=2e-3)
    checked, other = audit(mine, X, y), audit(theirs, X, y, tol=1e-4)
    assert checked.holds
    assert other.holds
    np.testing.assert_allclose(checked.bound, other.bound, rtol=1e-6)  # the dual objective, which LIBSVM prints
    assert checked.bound <= other.objective * (1 + 1e-12)  # bounds are bounds for everybody
    assert other.bound <= checked.objective * (1 + 1e-12)
    assert len(np.setxor1d(mine.support_, theirs.support_)) <= 2  # a coefficient may be 0 or nearly so
    assert np.abs(mine.n_support_ - theirs.n_support_).max() <= 1
    assert len(mine.dual_coef_) == len(theirs.dual_coef_)


@pytest.mark.parametrize(
    "params", [{"C": 100.0}, {"kernel": "linear", "epsilon": 10.0}, {"C": 50.0, "epsilon": 20.0}]
)
def test_libsvm_regression_agrees(params):
    X, y = standard(load_diabetes)
    mine, theirs = SVR(tol=1e-6, **params).fit(X, y), svm.SVR(tol=1e-6, **params).fit(X, y)
    np.testing.assert_allclose(mine.predict(X), theirs.predict(X), atol=0.02 * y.std())
    checked, other = audit(mine, X, y), audit(theirs, X, y, tol=1e-4)
    assert checked.holds
    assert other.holds
    np.testing.assert_allclose(checked.objective, other.objective, rtol=1e-6)


@pytest.mark.parametrize("shape", ["ovr", "ovo"])
def test_ten_classes(shape):
    X, y = load_digits(return_X_y=True)
    X, y = X[:600], np.array([f"digit {i}" for i in y[:600]])
    mine = SVC(decision_function_shape=shape, tol=1e-6).fit(X, y)
    theirs = svm.SVC(decision_function_shape=shape, tol=1e-6).fit(X, y)
    np.testing.assert_allclose(mine.decision_function(X), theirs.decision_function(X), atol=1e-4)
    np.testing.assert_array_equal(mine.predict(X), theirs.predict(X))
    assert mine.support_kinds_.shape == mine.slacks_.shape == (600, 45)
    assert audit(mine, X, y).holds


def test_ties_are_broken_where_asked():
    X, y = standard(load_wine)
    model = SVC(break_ties=True, C=0.01).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), model.classes_[model.decision_function(X).argmax(axis=1)])
    with pytest.raises(DataError, match="break_ties"):
        model.set_params(decision_function_shape="ovo").predict(X)


# ------------------------------------------------------------------------------------------------- weights
def test_weights_are_repeated_rows():
    X, y = three()
    times = np.arange(len(X)) // 3 % 3
    keep = times > 0
    weighted = SVC(tol=1e-9).fit(np.where(keep[:, None], X, 1e6), y, sample_weight=times)
    repeated = SVC(tol=1e-9).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    np.testing.assert_allclose(weighted.decision_function(X), repeated.decision_function(X), atol=1e-6)
    np.testing.assert_allclose(weighted.gamma_, repeated.gamma_, rtol=1e-12)
    assert audit(weighted, np.where(keep[:, None], X, 1e6), y, times).holds
    assert (weighted.support_kinds_[~keep] == "none").all()


def test_scikit_learn_with_weights_passes():
    X, y = three()
    w = np.random.default_rng(0).exponential(size=len(X))
    theirs = svm.SVC(gamma=0.1, class_weight="balanced", tol=1e-6).fit(X, y, w)
    assert audit(theirs, X, y, w, tol=1e-4).holds
    assert not audit(theirs, X, y, tol=1e-4).holds  # without them it is another problem


def test_a_look_alike_passes():
    """Another library's machine: scikit-learn's attributes, and no more of them than the mathematics needs."""
    X, y = three()
    found = svm.SVC(tol=1e-6).fit(X, y)
    names = ("support_", "support_vectors_", "dual_coef_", "intercept_", "classes_")
    settings = {"kernel": "rbf", "C": 1.0, "gamma": "scale"}
    alike = SimpleNamespace(**settings, **{name: getattr(found, name) for name in names})
    assert audit(alike, X, y, tol=1e-4).holds
    alike.C = 1.1
    assert not audit(alike, X, y, tol=1e-4).holds


# -------------------------------------------------------------------------------------- same answer, same bits
@pytest.mark.parametrize("params", [{}, {"kernel": "poly", "degree": 2}, {"C": 50.0}])
def test_any_number_of_threads_gives_the_same_bits(params, threads):
    X, y = two(2500)
    seen = []
    for n in (1, 2, 3):
        threads(n)
        seen.append(SVC(**params).fit(X, y))
    for model in seen[1:]:
        assert model.dual_coef_.tobytes() == seen[0].dual_coef_.tobytes()
        assert model.certificate_ == seen[0].certificate_
        np.testing.assert_array_equal(model.decision_function(X[:50]), seen[0].decision_function(X[:50]))


def test_a_small_cache_changes_the_time_only():
    X, y = two(700)
    small, large = SVC(cache_size=0.2, tol=1e-7).fit(X, y), SVC(tol=1e-7).fit(X, y)
    np.testing.assert_allclose(small.decision_function(X), large.decision_function(X), atol=1e-4)
    assert small.certificate_.holds


def test_the_cache_keeps_what_was_used_last():
    X, _ = two(60)
    cache = KernelCache(gram_of(X, RBF(0.1), single=False), 16 * 60 * 8 / 1e6)
    expected = rbf_kernel(X, gamma=0.1)
    assert len(cache.kept) == 16
    rng = np.random.default_rng(0)
    for _ in range(40):
        rows = rng.choice(60, 10)
        np.testing.assert_allclose(cache.kept[cache.fetch(rows)], expected[rows], rtol=1e-12)
    filled = []
    cache.gram.fill = lambda out, slots, rows: filled.append(rows)
    cache.fetch(rows)
    assert not filled


@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly"])
def test_sparse_rows(kernel):
    X, y = standard(load_iris)
    X = np.where(np.abs(X) > 0.5, X, 0.0)
    dense, thin = (SVC(kernel=kernel, tol=1e-8).fit(A, y) for A in (X, sparse.csr_array(X)))
    np.testing.assert_allclose(thin.gamma_, dense.gamma_, rtol=1e-12)
    np.testing.assert_allclose(thin.decision_function(sparse.csr_array(X)), dense.decision_function(X), atol=1e-5)
    assert sparse.issparse(thin.support_vectors_)
    assert sparse.issparse(thin.dual_coef_)
    assert not sparse.issparse(dense.dual_coef_)
    if kernel == "linear":
        np.testing.assert_allclose(thin.coef_.toarray(), dense.coef_, atol=1e-5)
        with pytest.raises(ValueError, match="read-only"):
            thin.coef_.data[:] = 0.0
    assert audit(thin, sparse.csr_array(X), y).holds
    wrong = copy.deepcopy(thin)
    wrong.dual_coef_ = wrong.dual_coef_ * 1.1
    assert not audit(wrong, sparse.csr_array(X), y).holds


def test_far_from_the_origin_and_very_small():
    X, y = two()
    X = np.round(X * 2**20) / 2**20  # so that adding 2^27 loses nothing
    plain = SVC(tol=1e-8).fit(X, y).decision_function(X)
    far, small = SVC(tol=1e-8).fit(X + 2.0**27, y), SVC(tol=1e-8).fit(X * 1e-9, y)
    np.testing.assert_allclose(far.decision_function(X + 2.0**27), plain, atol=1e-5)
    np.testing.assert_allclose(small.decision_function(X * 1e-9), plain, atol=1e-5)
    assert audit(far, X + 2.0**27, y).holds


def test_from_parquet(tmp_path):
    X, y = three()
    names = ["a", "b", "c", "d"]
    table = pa.table({**dict(zip(names, X.T, strict=True)), "kind": y})
    pq.write_table(table, tmp_path / "t.parquet")
    model = SVC().fit(tmp_path / "t.parquet", "kind")
    np.testing.assert_array_equal(model.dual_coef_, SVC().fit(X, y).dual_coef_)


@pytest.mark.parametrize("model", [SVC(), SVR(), NuSVC()], ids=str)
def test_fit_and_audit_leave_out_rows_of_negative_weight(model):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 2)), np.arange(30) % 2
    w = np.where(np.arange(30) < 3, -1.0, 1.0)
    with pytest.warns(UserWarning, match=r"negative weight \(3\)"):
        model.fit(X, y, sample_weight=w)
    assert audit(model, X, y, w).holds
