"""SVC and SVR: closed forms, LIBSVM's answers, proofs that notice damage, kernels that are none, bad input."""

import copy
import pickle
from functools import partial
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from catalogue import amounts, three, two, unfitted
from scipy import sparse
from sklearn import svm
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris, load_wine
from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel
from sklearn.preprocessing import StandardScaler

from certifit import CertificateWarning, DataError, NoSolutionError
from certifit.auditing.svc import audit_svc, audit_svr
from certifit.data import load_penguins
from certifit.kernels.smo import add_rows, solve_pairs, working_square
from certifit.models.svc import SVC
from certifit.models.svm_kernels import RBF, Kernel, Linear, Polynomial, Sigmoid, is_psd, project
from certifit.models.svm_rows import Cache, gram_of
from certifit.models.svr import SVR
from certifit.solvers.smo import best_intercept, descend


def standard(load):
    X, y = load(return_X_y=True)
    return StandardScaler().fit_transform(X), y


def audit(model, X, y, w=None, tol=None):
    check = audit_svr if hasattr(model, "epsilon") and "SVR" in type(model).__name__ else audit_svc
    return check(model, X, y, w, model.tol if tol is None else tol)


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


def test_the_best_intercept_beats_every_other():
    rng = np.random.default_rng(0)
    for _ in range(50):
        t, y, C = rng.normal(size=9), rng.choice([-1.0, 1.0], 9), rng.integers(1, 4, 9).astype(float)
        y[:2] = [-1.0, 1.0]
        loss = [C @ np.maximum(y * (t - b), 0.0) for b in (best_intercept(t, y, C), *t)]
        assert loss[0] <= min(loss) + 1e-12


# ------------------------------------------------------------------------------ LIBSVM through scikit-learn
def digits(first, second):
    """Two of the digits."""
    X, y = load_digits(return_X_y=True)
    here = (y == first) | (y == second)
    return X[here], y[here]


def measured_penguins():
    """Penguins of three species, without those whose measurements are missing."""
    table = load_penguins()
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


# -------------------------------------------------------------------------------------------------- proofs
FITTED = {
    "two classes": (SVC, {}, two),
    "three classes": (SVC, {"C": 0.5}, three),
    "regression": (SVR, {"epsilon": 0.5}, amounts),
}
every_kind = pytest.mark.parametrize("kind", FITTED)


def fitted(kind, **params):
    cls, settings, data = FITTED[kind]
    X, y = data()
    return cls(**{"tol": 1e-8, **settings, **params}).fit(X, y), X, y


@every_kind
def test_fit_and_checker_agree(kind):
    model, X, y = fitted(kind)
    checked = audit(model, X, y)
    assert model.certificate_.holds
    assert checked.holds
    assert model.certificate_.kind == checked.kind == "optimal"
    np.testing.assert_allclose(model.certificate_.objective, checked.objective, rtol=1e-10)
    np.testing.assert_allclose(model.certificate_.objective, model.objective(X, y).total, rtol=1e-10)


def test_the_checker_works_in_any_parts(monkeypatch):
    model, X, y = fitted("three classes")
    whole = audit(model, X, y)
    for name in ("BLOCK", "VALUES"):
        monkeypatch.setattr(f"certifit.certificates.kernel_values.{name}", 40)
    np.testing.assert_allclose(audit(model, X, y).objective, whole.objective, rtol=1e-12)


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
        model, X, y = fitted(kind, max_iter=1)
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
    cache = Cache(gram_of(X, RBF(0.1), single=False), 16 * 60 * 8 / 1e6)
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
    assert audit(thin, sparse.csr_array(X), y).holds


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


# ------------------------------------------------------------------------------------------------- kernels
KERNELS = [
    Linear(),
    RBF(0.3),
    Polynomial(2, 0.5, 1.0),
    RBF(0.1) + Linear(),
    2.0 * RBF(0.1) * Linear(),
    (0.1 * Linear()).exp(),
    1.0 + RBF(1.0) * RBF(2.0),
]


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_kernels_made_of_kernels_are_kernels(kernel):
    X = np.random.default_rng(0).normal(size=(40, 3))
    assert kernel.valid
    G = kernel(X, X)
    assert is_psd((G + G.T) / 2)
    np.testing.assert_allclose(kernel(sparse.csr_array(X), sparse.csr_array(X)), G, rtol=1e-9, atol=1e-12)
    y = X[:, 0] * X[:, 1] > 0
    model = SVC(kernel=kernel).fit(X, y)
    assert model.certificate_.kind == "optimal"
    assert audit(model, X, y).holds


def test_kernels_are_what_scikit_learn_says():
    X = np.random.default_rng(0).normal(size=(20, 3))
    np.testing.assert_allclose(RBF(0.3)(X, X[:5]), rbf_kernel(X, X[:5], gamma=0.3), rtol=1e-12)
    expected = polynomial_kernel(X, degree=2, gamma=0.5, coef0=1.0)
    np.testing.assert_allclose(Polynomial(2, 0.5, 1.0)(X, X), expected, rtol=1e-12)
    np.testing.assert_allclose((RBF(1.0) * RBF(2.0))(X, X), RBF(3.0)(X, X), rtol=1e-12)
    np.testing.assert_allclose(Sigmoid(0.5, 0.1)(X, X), np.tanh(0.5 * X @ X.T + 0.1), rtol=1e-12)
    assert not any(
        k.valid for k in (Sigmoid(), RBF(-1.0), Polynomial(2, 1.0, -1.0), -1.0 * Linear(), Sigmoid().exp())
    )
    assert isinstance(pickle.loads(pickle.dumps(RBF(1.0) + 2.0)), Kernel)
    with pytest.raises(DataError, match="a kernel or a number"):
        RBF() + "x"


@pytest.mark.parametrize("form", ["precomputed", "callable", "sigmoid"])
def test_what_is_no_kernel_is_refused_with_a_witness(form):
    X, y = two(60)
    G = np.tanh(X @ X.T)
    table, kernel = {"precomputed": (G, form), "callable": (X, Sigmoid()), "sigmoid": (X, form)}[form]
    with pytest.raises(NoSolutionError, match="not positive semidefinite") as caught:
        SVC(kernel=kernel, gamma=1.0).fit(table, y)
    (v,) = caught.value.certificate.witness
    assert np.array(v) @ G @ np.array(v) < 0
    model = SVC(kernel="precomputed").fit(project(G), y)
    assert model.certificate_.kind == "optimal"
    assert model.certificate_.holds


def test_precomputed_is_the_same_problem():
    X, y = three()
    G = rbf_kernel(X, gamma=0.1)
    given, plain = SVC(kernel="precomputed", tol=1e-8).fit(G, y), SVC(gamma=0.1, tol=1e-8).fit(X, y)
    np.testing.assert_allclose(given.decision_function(G), plain.decision_function(X), atol=1e-5)
    np.testing.assert_allclose(given.objective(G, y).total, plain.objective(X, y).total, rtol=1e-8)
    assert audit(given, G, y).holds
    w = np.arange(len(X)) % 3
    weighted = SVC(kernel="precomputed", tol=1e-8).fit(G, y, w)
    np.testing.assert_allclose(
        weighted.decision_function(G), SVC(gamma=0.1, tol=1e-8).fit(X, y, w).decision_function(X), atol=1e-5
    )
    theirs = svm.SVC(kernel="precomputed").fit(G, y)
    assert audit(theirs, G, y, tol=1e-3).holds


def test_a_function_on_more_rows_than_can_be_looked_at_claims_less(monkeypatch):
    for module in ("certifit.models.svm_machine", "certifit.auditing.kernels"):
        monkeypatch.setattr(f"{module}.SAMPLE", 50)
    X, y = two()
    model = SVC(kernel=lambda A, B: A @ B.T).fit(X, y)
    checked = audit(model, X, y)
    for found in (model.certificate_, checked):
        assert found.kind == "stationary"
        assert found.holds
        assert np.isnan(found.bound)
        assert found.facts["kernel"] == "not refuted on 50 of 150 rows"


def test_scikit_learns_sigmoid_gets_no_bound():
    X, y = two()
    found = audit(svm.SVC(kernel="sigmoid", gamma=1.0).fit(X, y), X, y, tol=1e-3)
    assert found.kind == "stationary"
    assert found.facts["kernel"].startswith("not positive semidefinite")


# ------------------------------------------------------------------------------------------ numba and NumPy
def test_pairs_find_the_minimum_that_projected_gradients_find():
    """Their optimality conditions, in plain NumPy."""
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(30, 4))
    K, y = Z @ Z.T, np.where(np.arange(30) % 2, 1.0, -1.0)
    alpha, t, C = np.zeros(30), y.copy(), np.full(30, 0.5)
    steps = solve_pairs(K, y, t, alpha, C, 1e-10, 100_000)
    assert 0 < steps < 100_000
    assert ((alpha >= 0) & (alpha <= C)).all()
    np.testing.assert_allclose(y @ alpha, 0.0, atol=1e-12)
    np.testing.assert_allclose(t, y - K @ (y * alpha), atol=1e-10)
    rise, fall = np.where(y > 0, alpha < C, alpha > 0), np.where(y > 0, alpha > 0, alpha < C)
    assert t[rise].max() - t[fall].min() <= 1e-9


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_kernels_do_what_numpy_does(dtype):
    rng = np.random.default_rng(0)
    K, f, change = rng.normal(size=(7, 20)).astype(dtype), rng.normal(size=20), np.array([0.5, 0.0, -2.0])
    slots, columns = np.array([3, 0, 6]), np.array([1, 19, 4])
    np.testing.assert_array_equal(working_square(K, slots, columns), K[slots][:, columns])
    expected = f[5:15] + change @ K[slots, 5:15].astype(np.float64)
    np.testing.assert_allclose(add_rows(f, K, slots, change, 5, 15), expected, rtol=1e-13)


# ----------------------------------------------------------------------------------------------- bad input
BAD = {
    "C=0": ({"C": 0}, "C=0"),
    "C=inf": ({"C": np.inf}, "C=inf"),
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
    "C below 0": ({"C": -1.0}, "C=-1.0; wanted a finite number above 0"),
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
    descend(K, y, t, alpha, np.ones(12))
    np.testing.assert_allclose(y * alpha, best, atol=1e-8)
    np.testing.assert_allclose(t, 3.0, atol=1e-8)
    C = np.where(np.arange(12) < 4, y * start + 1e-3, 1.0)
    alpha = y * start
    descend(K, y, linear - K @ start, alpha, C)
    assert ((alpha >= 0) & (alpha <= C)).all()
    assert ((alpha == 0) | (alpha == C)).any()
    np.testing.assert_allclose(y @ alpha, 0.0, atol=1e-12)
    values = [0.5 * z @ K @ z - linear @ z for z in (best, y * alpha, start)]
    assert values[0] < values[1] < values[2]
    alpha = np.array([0.5, 0.5])
    descend(np.array([[1.0, 2.0], [2.0, 1.0]]), np.array([1.0, -1.0]), np.array([1.0, 0.0]), alpha, np.ones(2))
    assert alpha.tolist() == [0.5, 0.5]  # no kernel matrix: left to pairs


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
