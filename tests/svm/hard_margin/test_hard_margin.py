"""HardMarginSVC: closed forms, linear programs that say whether there is a hyperplane, LIBSVM, proofs, bad input."""

import copy
import pickle
import warnings
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import linprog
from sklearn import svm
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.metrics.pairwise import rbf_kernel

from certifit import CertificateWarning, DataError, NoSolutionError
from certifit.checkers.svm import hard_margin as certificates
from certifit.checkers.svm.hard_margin_adapter import audit_hard_margin
from certifit.exceptions import InseparableWarning
from certifit.svm.hard_margin.hard_margin import HardMarginSVC
from certifit.svm.hard_margin.nearest_points import NearestPointTuning
from certifit.svm.hard_margin.two_classes import HardMarginTuning
from certifit.svm.hard_margin.vector_spaces import ColumnSpace
from certifit.svm.kernel.kernels import RBF
from tests.common.catalogue import unfitted

HardOnly = partial(HardMarginSVC, ridge=0.0)
CORNERS = np.array([[-1.0, -1.0], [-1.0, 1.0], [1.0, -1.0], [1.0, 1.0]])


def audit(model, X, y, w=None, **tuning):
    return audit_hard_margin(model, X, y, w, model.tol, **tuning)


def tuned_machine(tuning, **params):
    """A HardMarginSVC with other numbers to steer its solver by."""
    model = HardMarginSVC(**params)
    model._hull_tuning = tuning
    return model


def apart(n=80, d=3, k=2, gap=0.6, seed=0):
    """Classes in slabs across a direction, with a gap between them."""
    rng = np.random.default_rng(seed)
    X, v = rng.normal(size=(n, d)), np.ones(d) / np.sqrt(d)
    y = np.searchsorted(np.linspace(-0.7, 0.7, k + 1)[1:-1], X @ v)
    return X + gap * np.outer(y, v), y


def overlapping(n=60, d=3, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)), rng.integers(0, 2, n)


# ------------------------------------------------------------------------------------------ closed forms
@pytest.mark.parametrize("a", [1e-9, 0.5, 3.0, 1e9])
def test_two_points(a):
    """x = ±a: f(x) = x / a, α = 1 / (2 a²), margin a."""
    model = HardMarginSVC().fit([[a], [-a]], ["right", "left"])
    np.testing.assert_allclose(model.coef_, [[1 / a]], rtol=1e-12)
    np.testing.assert_allclose(model.intercept_, 0.0, atol=1e-12)
    np.testing.assert_allclose(model.margin_, a, rtol=1e-12)
    np.testing.assert_allclose(model.dual_coef_, [[-1 / (2 * a**2), 1 / (2 * a**2)]], rtol=1e-12)
    np.testing.assert_allclose(model.certificate_.objective, 1 / (2 * a**2), rtol=1e-12)
    assert model.predict([[2 * a], [-a / 2]]).tolist() == ["right", "left"]


def test_a_square():
    """Two sides of a square: the plane half way, although no α is the only one."""
    model = HardMarginSVC().fit(CORNERS, [0, 0, 1, 1])
    np.testing.assert_allclose(model.coef_, [[1.0, 0.0]], atol=1e-12)
    np.testing.assert_allclose(model.decision_function(CORNERS), [-1, -1, 1, 1], atol=1e-12)
    np.testing.assert_allclose(np.abs(model.dual_coef_).sum(), 1.0, rtol=1e-12)  # Σ α = |f|²


def test_three_support_vectors():
    """(0, 0) and (2, 0) against (1, 2): the base of a triangle and its tip, f = y - 1, α = 1/4, 1/4, 1/2."""
    model = HardMarginSVC().fit([[0.0, 0.0], [2.0, 0.0], [1.0, 2.0], [1.0, 5.0]], [0, 0, 1, 1])
    np.testing.assert_allclose(model.coef_, [[0.0, 1.0]], atol=1e-12)
    np.testing.assert_allclose(model.intercept_, [-1.0], atol=1e-12)
    np.testing.assert_allclose(model.dual_coef_, [[-0.25, -0.25, 0.5]], atol=1e-12)
    assert model.support_.tolist() == [0, 1, 2]
    assert model.n_support_.tolist() == [2, 1]
    assert model.support_kinds_.tolist() == ["margin", "margin", "margin", "none"]


def test_exclusive_or():
    """Four corners and (1 + x·z)²: α = 1/8 each and |f|² = 1/2 (Cherkassky & Mulier, Learning from Data, 1998)."""
    model = HardMarginSVC(kernel="poly", degree=2, gamma=1.0, coef0=1.0).fit(CORNERS, [0, 1, 1, 0])
    np.testing.assert_allclose(model.dual_coef_, [[-1 / 8, -1 / 8, 1 / 8, 1 / 8]], atol=1e-12)
    np.testing.assert_allclose(model.margin_, np.sqrt(2), rtol=1e-12)
    with pytest.raises(AttributeError, match="linear"):
        _ = model.coef_


def test_a_circle_in_a_circle():
    """(x·z)² sees x₁², √2 x₁x₂, x₂²: circles of radius 1 and ½ have centres (½, 0, ½) and a quarter of it."""
    angle = np.arange(16) * np.pi / 4
    X = np.column_stack([np.cos(angle), np.sin(angle)]) * np.repeat([1.0, 0.5], 8)[:, None]
    model = HardMarginSVC(kernel="poly", degree=2, gamma=1.0).fit(X, np.repeat([1, 0], 8))
    np.testing.assert_allclose(model.margin_, (1 - 0.25) / np.sqrt(8), rtol=1e-12)
    np.testing.assert_allclose(model.decision_function([[0.0, np.sqrt(0.625)]]), 0.0, atol=1e-12)  # half way between


def test_two_points_with_a_ridge():
    """x = ±1: the objective f²/2 + (1 - f)² / ridge is least at f = 2 / (2 + ridge)."""
    model = HardMarginSVC(ridge=0.5).fit([[1.0], [-1.0]], [1, 0])
    np.testing.assert_allclose(model.coef_, [[0.8]], rtol=1e-12)
    np.testing.assert_allclose(model.slacks_, 0.2, rtol=1e-12)
    np.testing.assert_allclose(model.certificate_.objective, 0.32 + 0.08, rtol=1e-12)
    np.testing.assert_allclose(model.objective([[1.0], [-1.0]], [1, 0]).total, 0.4, rtol=1e-12)


# -------------------------------------------------------------------------------- others solve it as well
@pytest.mark.parametrize(
    ("params", "data"),
    [
        ({}, lambda: (load_iris().data, load_iris().target == 0)),
        ({}, lambda: apart(60, 4)),
        ({}, lambda: apart(20, 40)),
        ({"kernel": "rbf", "gamma": 2.0}, overlapping),
        ({}, lambda: apart(90, 2, k=3)),
    ],
)
def test_libsvm_with_a_huge_c_agrees(params, data):
    X, y = data()
    mine = HardMarginSVC(**params).fit(X, y)
    theirs = svm.SVC(**{"kernel": "linear", **params}, C=1e6, tol=1e-7).fit(X, y)
    np.testing.assert_allclose(mine.decision_function(X), theirs.decision_function(X), atol=2e-5)
    np.testing.assert_array_equal(mine.predict(X), theirs.predict(X))
    assert mine.dual_coef_.shape[0] == theirs.dual_coef_.shape[0]
    assert audit(mine, X, y).holds
    assert audit(mine, X, y).relative_gap < 1e-9
    # a bound is one for everybody: the sum over pairs of half the squared norms of LIBSVM, which nearly separates
    assert mine.certificate_.bound <= np.abs(theirs.dual_coef_).sum() / 2 * (1 + 1e-6)
    assert mine.score(X, y) == 1.0


@pytest.mark.parametrize(
    ("params", "data"),
    [
        ({"kernel": "rbf", "gamma": 2.0}, partial(overlapping, 200)),  # nearly every row a support vector
        ({"kernel": "rbf", "gamma": 0.5}, partial(overlapping, 120)),  # kernel values next to dependent
        ({"kernel": "poly", "degree": 2, "coef0": 1.0}, partial(apart, 150)),  # more rows than dimensions
        ({}, partial(apart, 150, 12, gap=0.1)),
        ({"kernel": "rbf", "ridge": 0.1}, partial(overlapping, 200)),
    ],
)
def test_many_rows_at_a_time_find_what_single_ones_do(params, data):
    """Wolfe's method (1976), two rows a step, is the reference."""
    X, y = data()
    mine = HardMarginSVC(**params).fit(X, y)
    few = NearestPointTuning(first_batch=2, most_batch=2)
    slow = tuned_machine(HardMarginTuning(hulls=few), **params).fit(X, y)
    assert mine.certificate_.holds
    assert mine.n_iter_[0] < slow.n_iter_[0]
    np.testing.assert_allclose(mine.margin_, slow.margin_, rtol=1e-7)
    np.testing.assert_allclose(mine.decision_function(X), slow.decision_function(X), atol=1e-5)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_every_row_twice_is_the_same_problem(kernel):
    X, y = apart(150)
    once = HardMarginSVC(kernel=kernel, gamma=1.0).fit(X, y)
    twice = HardMarginSVC(kernel=kernel, gamma=1.0).fit(np.repeat(X, 2, axis=0), np.repeat(y, 2))
    np.testing.assert_allclose(twice.margin_, once.margin_, rtol=1e-10)
    assert twice.certificate_.holds
    assert len(np.unique(twice.support_ // 2)) == len(twice.support_)  # one of the two is enough


def test_steep_kernels_of_different_formulas_miss_one_by_rounding_only():
    """exp(-5 |x - z|²) from two orders of summation differs by more than a product of matrices does."""
    X, y = load_iris(return_X_y=True)
    model = HardMarginSVC(kernel="rbf", gamma=5.0).fit(X, y)
    assert model.certificate_.holds
    assert audit(model, X, y).holds


def separable(X, y):
    """Whether y (x·v + b) >= 1 has a solution, by scipy's linear programs."""
    A = -(2.0 * y - 1)[:, None] * np.column_stack([X, np.ones(len(X))])
    return linprog(np.zeros(A.shape[1]), A_ub=A, b_ub=-np.ones(len(X)), bounds=(None, None)).status == 0


def test_linear_programs_agree_on_which_classes_can_be_separated():
    rng, verdicts = np.random.default_rng(0), []
    for _ in range(100):
        n, d = rng.integers(4, 12), rng.integers(1, 5)
        X = rng.integers(-3, 4, size=(n, d)).astype(float)  # whole numbers: many rows in line, many that touch
        y = np.append([0, 1], rng.integers(0, 2, n - 2))
        verdicts.append(separable(X, y))
        if verdicts[-1]:
            model = HardMarginSVC().fit(X, y)
            assert model.certificate_.holds
            assert audit(model, X, y).holds
            assert model.score(X, y) == 1.0
        else:
            with pytest.raises(NoSolutionError) as caught:
                HardOnly().fit(X, y)
            assert caught.value.certificate.proved
            assert meet_exactly(X, y, caught.value.certificate.witness)
    assert 20 < sum(verdicts) < 80


def meet_exactly(X, y, witness):
    """The two combinations in exact arithmetic: for whole numbers, shares are simple fractions but for rounding."""
    points = []
    for rows, shares, label in ((*witness[:2], 1), (*witness[2:], 0)):
        exact = [Fraction(share).limit_denominator(10**5) for share in shares]
        assert sum(exact) == 1
        assert min(exact) >= 0
        assert (y[np.array(rows, int)] == label).all()
        points.append(
            [sum(s * int(X[int(i), j]) for i, s in zip(rows, exact, strict=True)) for j in range(X.shape[1])]
        )
    return points[0] == points[1]


# ------------------------------------------------------------------------------------------- no solution
def test_rows_that_overlap_are_proved_to():
    X, y = overlapping()
    model = HardOnly()
    with pytest.raises(NoSolutionError, match=r"cannot be separated: a convex combination of rows .* SVC") as caught:
        model.fit(X, y)
    assert unfitted(model)
    certificate = caught.value.certificate
    assert (certificate.kind, certificate.claim, certificate.proved) == (
        "impossible",
        certificates.HullClaim.MEET,
        True,
    )
    first, p, second, q = map(np.array, certificate.witness)
    np.testing.assert_allclose(p @ X[first.astype(int)], q @ X[second.astype(int)], atol=1e-14)
    again = pickle.loads(pickle.dumps(caught.value))
    assert again.certificate.to_dict() == certificate.to_dict()


def test_hulls_that_touch_in_a_point_say_no_more_than_that():
    """(1/3, 1/3, …) is in both hulls, and no inner point of either: a shift by rounding would part them."""
    X = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [1 / 3, 1 / 3, 0.0], [1 / 3, 1 / 3, 2.0]])
    with pytest.raises(NoSolutionError, match="or only by a margin that rounding hides") as caught:
        HardOnly().fit(X, [0, 0, 0, 1, 1])
    assert caught.value.certificate.proved
    assert caught.value.certificate.claim == certificates.HullClaim.TOUCH


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array, lambda X: X.astype(np.float32)])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_the_same_row_in_two_classes_is_named(make, kernel):
    X, y = apart(40, 2)
    X, y = np.vstack([X, X[7], X[11]]), np.append(y, [y[7], 1 - y[11]])
    with pytest.raises(
        NoSolutionError, match=r"row (11|41) of class [01] and row (11|41) of class [01], .* same"
    ) as found:
        HardOnly(kernel=kernel).fit(make(X), y)
    rows = {int(found.value.certificate.witness[i][0]) for i in (0, 2)}
    assert rows == {11, 41}
    assert found.value.certificate.proved
    w = np.ones(42)
    w[41] = 0.0  # without weight it is not there
    assert HardMarginSVC(kernel=kernel).fit(make(X), y, w).certificate_.holds


def test_the_pair_of_classes_is_named():
    X, y = apart(60, 2, k=3)
    X[y == 2] = X[y == 1][: (y == 2).sum()].mean(axis=0)
    with pytest.raises(NoSolutionError, match="classes 'b' and 'c'"):
        HardOnly().fit(X, np.array(["a", "b", "c"])[y])


def test_sparse_rows_with_many_columns_are_judged_by_their_inner_products():
    X, y = apart()
    wide = partial(tuned_machine, HardMarginTuning(dense_columns=2))
    np.testing.assert_allclose(wide().fit(sparse.csr_array(X), y).coef_, HardMarginSVC().fit(X, y).coef_, rtol=1e-9)
    with pytest.raises(NoSolutionError, match="rounding") as caught:
        wide(ridge=0.0).fit(sparse.csr_array(overlapping()[0]), overlapping()[1])
    assert caught.value.certificate.proved


def test_a_margin_of_the_kernel_that_rounding_hides():
    """A flat kernel: all rows nearly the same, so that no margin is left above rounding."""
    X, y = overlapping()
    with pytest.raises(NoSolutionError, match="rounding hides") as caught:
        HardOnly(kernel="rbf", gamma=1e-4).fit(X, y)
    assert caught.value.certificate.proved


@pytest.mark.parametrize("damage", ["share", "sum", "row"])
def test_a_wrong_witness_does_not_hold(damage):
    X, y = overlapping()
    with pytest.raises(NoSolutionError) as caught:
        HardOnly().fit(X, y)
    first, p, second, q = map(np.array, caught.value.certificate.witness)
    rows, share = np.append(first, second).astype(int), np.append(p, q)
    sign = np.repeat([1.0, -1.0], [len(p), len(q)])
    everyone = np.arange(len(X))
    witness = partial(certificates.HullWitness, sign=sign)
    check = partial(certificates.meeting_certificate, X=X, members=everyone, kernel=None, names=everyone)
    assert check(witness(rows=rows, share=share)).proved
    if damage == "share":
        share[:2] += [-1.1 * share[0], 1.1 * share[0]]
    elif damage == "sum":
        share *= 1.001
    else:
        rows[0] = np.setdiff1d(np.flatnonzero(y == 1), rows)[0]
    assert not check(witness(rows=rows, share=share)).proved


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_classes_that_overlap_get_a_ridge_by_themselves(make, kernel):
    """The pair that can be separated keeps its margin; the other gets the machine of the ridge that is stated."""
    X, y = apart(60, 2, k=3)
    X[np.flatnonzero(y == 2)[0]] = X[np.flatnonzero(y == 1)[0]]
    model = HardMarginSVC(kernel=kernel)
    with pytest.warns(InseparableWarning, match=r"class [12], which are the same.*ridge=") as told:
        model.fit(make(X), y)
    assert told[0].message.certificate.proved
    again = pickle.loads(pickle.dumps(told[0].message))
    assert (str(again), again.certificate.kind) == (str(told[0].message), "impossible")
    part = X[y > 0]
    mean = ((part - part.mean(axis=0)) ** 2).sum(axis=1).mean() if kernel == "linear" else 1.0
    np.testing.assert_allclose(model.ridge_, [0.0, 0.0, 1e-3 * mean], rtol=1e-12)
    assert model.certificate_.holds
    assert audit(model, make(X), y).holds
    gamma = {} if kernel == "linear" else {"gamma": model.gamma_}
    one = HardMarginSVC(kernel=kernel, ridge=model.ridge_[2], **gamma).fit(make(X[y > 0]), y[y > 0])
    sure = model.set_params(decision_function_shape="ovo").decision_function(X)[:, 2]
    np.testing.assert_allclose(np.abs(sure), np.abs(one.decision_function(make(X))), rtol=1e-6, atol=1e-9)
    for wrong in ([1e-9, 0.0, model.ridge_[2]], [0.0, 0.0, 1.1 * model.ridge_[2]], [0.0, 0.0, 0.0]):
        other = copy.deepcopy(model)
        other.ridge_ = np.array(wrong)
        assert not audit(other, make(X), y).holds


def test_a_ridge_other_than_the_one_set_is_noticed():
    X, y = overlapping()
    model = HardMarginSVC(ridge=0.5).fit(X, y)
    assert audit(model, X, y).holds
    model.ridge = 0.6
    assert not audit(model, X, y).holds


def test_many_rows_that_overlap_are_refused():
    X, y = overlapping()
    with pytest.raises(NoSolutionError):
        tuned_machine(HardMarginTuning(most_softened_rows=10)).fit(X, y)


# ------------------------------------------------------------------------------------------ small margins
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("margin", [1e-3, 1e-7, 1e-10])
def test_a_tiny_margin_is_found(margin, turned):
    """Two parallel planes 2 · margin apart: inner products alone would lose a margin below 1e-8."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), np.arange(60) % 2
    X[:, 2] = margin * (2 * y - 1)
    X = X @ np.linalg.qr(rng.normal(size=(3, 3)))[0] if turned else X
    model = HardMarginSVC().fit(X, y)
    np.testing.assert_allclose(model.margin_, margin, rtol=1e-15 / margin + 1e-12)
    assert model.certificate_.holds
    assert audit(model, X, y).holds
    assert model.score(X, y) == 1.0


def test_what_rounding_hides_is_not_claimed():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), np.arange(60) % 2
    X[:, 2] = 1e-13 * (2 * y - 1)
    with pytest.warns(CertificateWarning, match="rounding in the objective"):
        model = HardMarginSVC().fit(X, y)
    assert model.score(X, y) == 1.0


# -------------------------------------------------------------------------------------------------- proofs
FITTED = {
    "linear": ({}, apart),
    "three classes": ({}, lambda: apart(90, 2, k=3)),
    "rbf": ({"kernel": "rbf"}, apart),
    "ridge": ({"ridge": 0.1}, overlapping),
    "rbf ridge": ({"kernel": "rbf", "ridge": 0.5}, overlapping),
}
every_kind = pytest.mark.parametrize("kind", FITTED)


def fitted(kind):
    params, data = FITTED[kind]
    X, y = data()
    return HardMarginSVC(**params).fit(X, y), X, y


@every_kind
def test_fit_and_checker_agree(kind):
    model, X, y = fitted(kind)
    checked = audit(model, X, y)
    assert model.certificate_.holds
    assert checked.holds
    assert model.certificate_.kind == checked.kind == "optimal"
    for again in (checked.objective, model.objective(X, y).total):
        np.testing.assert_allclose(again, model.certificate_.objective, rtol=1e-10)
    if model.ridge == 0:
        code = np.searchsorted(model.classes_, y)
        values = model.set_params(decision_function_shape="ovo").decision_function(X).reshape(len(X), -1)
        for column, (i, j) in enumerate([(1, 0)] if values.shape[1] == 1 else [(0, 1), (0, 2), (1, 2)]):
            np.testing.assert_allclose(
                [values[code == i, column].min(), -values[code == j, column].max()], 1, rtol=1e-9
            )


def test_the_checker_works_in_any_parts():
    """A few entries at a time; and a kernel of very wide rows, whose further columns are 0 and change nothing."""
    model, X, y = fitted("linear")
    parts = audit(model, X, y, tuning=certificates.HardMarginCheckTuning(block_entries=40))
    np.testing.assert_allclose(parts.objective, audit(model, X, y).objective, rtol=1e-12)
    wide = np.hstack([X, np.zeros((len(X), 100_000))])
    whole, parts = (audit(HardMarginSVC(kernel="rbf", gamma=0.3).fit(Z, y), Z, y) for Z in (X, wide))
    np.testing.assert_allclose(parts.objective, whole.objective, rtol=1e-12)


DAMAGE = {  # factors of the entry that is largest, and of the others
    "drop": (0.0, 1.0),
    "negate": (-1.0, 1.0),
    "scale": (1.001, 1.001),
    "unbalance": (1.01, 0.995),
}


@every_kind
@pytest.mark.parametrize("damage", DAMAGE)
def test_sabotage_is_noticed(kind, damage):
    model, X, y = fitted(kind)
    names = [
        "dual_coef_",
        "intercept_",
        "support_vectors_",
        "margin_",
        *(["coef_"] if model.kernel == "linear" else []),
    ]
    for name in names:
        broken, (largest, others) = copy.deepcopy(model), DAMAGE[damage]
        hurt = getattr(broken, name)
        hurt[...] = (
            np.where(np.arange(hurt.size).reshape(hurt.shape) == np.abs(hurt).argmax(), largest, others) * hurt
        )
        checked = audit(broken, X, y)
        assert not checked.holds, name
        assert checked.failures(), name
        assert checked.bound <= model.certificate_.objective * (1 + 1e-12), name
    for name in ("n_support_", "support_codes_"):
        broken = copy.deepcopy(model)
        getattr(broken, name).flat[0] += 1
        assert not audit(broken, X, y).holds, name
    for name in ("slacks_", "kkt_residuals_"):
        broken = copy.deepcopy(model)
        getattr(broken, name).flat[0] += 1.0
        assert not audit(broken, X, y).holds, name


def test_bounds_are_honest_for_any_coefficients():
    """Whatever the coefficients, the bound is no larger than the best objective, nor is the objective smaller."""
    X, y = apart()
    model, rng = HardMarginSVC().fit(X, y), np.random.default_rng(0)
    best = model.certificate_.objective
    for size in 10.0 ** np.arange(-6, 3):
        rough = copy.deepcopy(model)
        rough.dual_coef_ = model.dual_coef_ + size * rng.normal(size=model.dual_coef_.shape)
        rough.coef_ = model.coef_ + size * rng.normal(size=model.coef_.shape)
        checked = audit(rough, X, y)
        assert checked.bound <= best * (1 + 1e-12)
        assert checked.objective >= best * (1 - 1e-12)
        assert not checked.holds


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_stopping_early_says_what_is_proved(kernel):
    X, y = apart(200, 5, gap=0.2)
    best = HardMarginSVC(kernel=kernel).fit(X, y).certificate_.objective
    for max_iter in (0, 2, 5):
        with pytest.warns(CertificateWarning):
            model = HardMarginSVC(kernel=kernel, max_iter=max_iter).fit(X, y)
        assert not model.certificate_.holds
        assert not audit(model, X, y).holds
        assert model.certificate_.bound <= best * (1 + 1e-12)
        assert model.certificate_.objective >= best * (1 - 1e-12)  # infinite while a row is on the wrong side
        np.testing.assert_allclose(model.objective(X, y).total, model.certificate_.objective, rtol=1e-9)


# -------------------------------------------------------------------------------------------------- inputs
def test_any_form_of_the_same_rows():
    X, y = apart()
    X = X.astype(np.float32).astype(np.float64)
    model = HardMarginSVC().fit(X, y)
    for other in (X.astype(np.float32), sparse.csr_array(X), np.asfortranarray(X)):
        again = HardMarginSVC().fit(other, y)
        np.testing.assert_allclose(again.coef_, model.coef_, rtol=1e-9)
        np.testing.assert_allclose(again.decision_function(other), model.decision_function(X), rtol=1e-6, atol=1e-6)
        assert audit(again, other, y).holds


def test_kernel_values_callables_and_precomputed_are_the_same_problem():
    X, y = overlapping()
    K = rbf_kernel(X, gamma=2.0)
    named = HardMarginSVC(kernel="rbf", gamma=2.0).fit(X, y)
    given = HardMarginSVC(kernel="precomputed").fit(K, y)
    called = HardMarginSVC(kernel=RBF(2.0)).fit(X, y)
    foreign = HardMarginSVC(kernel=lambda A, B: rbf_kernel(A, B, gamma=2.0)).fit(X, y)
    small = HardMarginSVC(kernel="rbf", gamma=2.0, cache_size=0.001).fit(X, y)  # 16 rows: fewer than support vectors
    for model, table in ((named, X), (given, K), (called, X), (foreign, X), (small, X)):
        np.testing.assert_allclose(model.decision_function(table), named.decision_function(X), atol=1e-9)
        assert audit(model, table, y).holds
    assert len(named.support_) > 16


def test_offsets_and_scales_change_nothing_else():
    X, y = apart()
    X = np.round(X * 2**20) / 2**20  # so that adding 2^27 loses nothing
    plain = HardMarginSVC().fit(X, y)
    for Z, factor in ((X + 2.0**27, 1.0), (X * 1e-9, 1e-9), (X * 1e150, 1e150)):
        model = HardMarginSVC().fit(Z, y)
        np.testing.assert_allclose(model.margin_, factor * plain.margin_, rtol=1e-9)
        np.testing.assert_allclose(model.decision_function(Z), plain.decision_function(X), atol=1e-5)
        assert audit(model, Z, y).holds


def test_weights_leave_rows_out_or_make_no_difference():
    X, y = apart()
    rng = np.random.default_rng(1)
    w = rng.integers(0, 3, len(X)).astype(float)
    for params in ({}, {"ridge": 0.3}):
        weighted = HardMarginSVC(**params).fit(X, y, w)
        repeated = np.repeat(np.arange(len(X)), w.astype(int))
        again = HardMarginSVC(**params).fit(X[repeated], y[repeated])
        np.testing.assert_allclose(weighted.coef_, again.coef_, rtol=1e-9)
        np.testing.assert_allclose(weighted.certificate_.objective, again.certificate_.objective, rtol=1e-9)
        assert audit(weighted, X, y, w).holds
    np.testing.assert_array_equal(HardMarginSVC().fit(X, y, w).coef_, HardMarginSVC().fit(X, y, 7 * w).coef_)


def test_rows_many_times_over():
    """Copies of rows, and rows in line with others, are nothing to stumble over."""
    X, y = CORNERS[np.arange(80) % 4], np.array([0, 0, 1, 1])[np.arange(80) % 4]
    X = np.vstack([X, 0.5 * X[:40] + 0.5 * X[4:44]])
    model = HardMarginSVC().fit(X, np.append(y, y[:40]))
    np.testing.assert_allclose(model.coef_, [[1.0, 0.0]], atol=1e-12)
    assert model.certificate_.holds


def test_the_ridge_is_the_squared_hinge():
    """½ |f|² + Σ ξ² / (2 ridge) is LinearSVC's squared hinge with C = 1 / (2 ridge), but for its held intercept."""
    X, y = overlapping()
    X = np.vstack([X, -X])
    y = np.append(y, 1 - y)  # symmetric, so that the best intercept is 0
    mine = HardMarginSVC(ridge=0.5).fit(X, y)
    theirs = svm.LinearSVC(C=1.0, loss="squared_hinge", dual=False, tol=1e-10, fit_intercept=False).fit(X, y)
    np.testing.assert_allclose(mine.coef_, theirs.coef_, rtol=1e-6)
    np.testing.assert_allclose(mine.intercept_, 0.0, atol=1e-9)


BAD = {
    "ridge": ({"ridge": -1.0}, "ridge=-1.0"),
    "infinite ridge": ({"ridge": np.inf}, "ridge=inf"),
    "shape": ({"decision_function_shape": "all"}, "decision_function_shape='all'"),
    "kernel": ({"kernel": "cubic"}, "kernel='cubic'"),
    "gamma": ({"gamma": -1.0}, "gamma=-1.0"),
    "cache": ({"cache_size": 0}, "cache_size=0"),
    "tol": ({"tol": -1}, "tol=-1"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_settings(name):
    params, got = BAD[name]
    with pytest.raises(DataError, match=got.replace(".", r"\.")):
        HardMarginSVC(**params).fit(*apart())


def test_one_class_missing_entries_and_shapes_are_refused():
    X, y = apart()
    with pytest.raises(DataError, match="one class"):
        HardMarginSVC().fit(X, np.zeros(len(X)))
    with pytest.raises(DataError, match="square"):
        HardMarginSVC(kernel="precomputed").fit(X, y)
    with pytest.raises(ValueError, match="NaN"):
        HardMarginSVC().fit(np.where(X > 2, np.nan, X), y)
    with pytest.raises(DataError, match="shape"):
        HardMarginSVC(kernel=lambda A, B: np.ones(len(A) + len(B))).fit(X, y)
    with pytest.raises(NoSolutionError, match="not positive semidefinite"):
        HardMarginSVC(kernel="sigmoid", gamma=5.0, coef0=-1.0).fit(X, y)


def test_it_is_the_same_again():
    X, y = apart(60, 2, k=3)
    model = HardMarginSVC().fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = pickle.loads(pickle.dumps(clone(model).fit(X, y)))
    np.testing.assert_array_equal(again.coef_, model.coef_)
    np.testing.assert_array_equal(again.dual_coef_, model.dual_coef_)


def test_rows_whose_squared_distances_vanish_are_refused():
    with pytest.raises(DataError, match="vanish"):
        HardMarginSVC().fit([[4e-162], [-4e-162]], [0, 1])


def test_a_margin_that_is_nothing_but_rounding_is_said_to_be():
    """The kernel's values are 1e9 and the ridge 6e-3: rounding in |f|² is more than |f|² itself."""
    x = np.array([15372.6, -5124.9, 18197.3, -9411.9, -6196.4, -6123.1, 49450.9])
    X, y = np.column_stack([x, x]), np.array([1, 0, 0, 0, 0, 0, 0])
    with pytest.warns(CertificateWarning, match="rounding in a margin"):
        model = HardMarginSVC(kernel="poly", degree=1, coef0=1.0, gamma="auto", ridge=0.00643).fit(X, y)
    assert np.isfinite(model.margin_).all()
    assert not audit(model, X, y).holds


def test_sparse_rows_far_from_zero_are_told_apart_as_dense_ones_are():
    # |x|² + |z|² - 2 x·z has no digit of distances of 1e-6 at 4516 left: the kernel is taken from differences.
    X = 4516.686 + 1e-6 * np.array([[1.0], [9.0], [2.0], [8.0], [5.0]])
    y = [0, 0, 0, 0, 1]
    dense, thin = (HardMarginSVC(kernel="rbf").fit(form(X), y) for form in (np.asarray, sparse.csr_array))
    np.testing.assert_allclose(thin.decision_function(X), dense.decision_function(X), rtol=1e-9)
    np.testing.assert_array_equal(thin.predict(sparse.csr_array(X)), y)
    assert audit(thin, sparse.csr_array(X), y).holds


def far_classes(gap):
    """Classes in columns whose spread is tiny beside their size, and very different between columns."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(38, 4)) * [1e-6, 1e6, 10.0, 1e-2] + [9e9, 6e5, 5e7, 3e10]
    y = np.arange(38) % 2
    X[:, 1] += gap * 1e6 * y
    return X, y


@pytest.mark.parametrize("gap", [0.0, 8.0])
def test_sparse_rows_far_from_zero_are_judged_as_dense_ones(gap):
    X, y = far_classes(gap)
    if gap:
        dense, rows = HardMarginSVC().fit(X, y), HardMarginSVC().fit(sparse.csr_array(X), y)
        assert dense.certificate_.holds
        assert rows.certificate_.holds
        np.testing.assert_allclose(rows.margin_, dense.margin_, rtol=1e-6)
        return
    for table in (X, sparse.csr_array(X)):
        with pytest.raises(NoSolutionError) as error:
            HardOnly().fit(table, y)
        assert error.value.certificate.proved


def test_a_distance_lost_in_rounding_is_no_proof(monkeypatch):
    """Where neither a margin nor a common point can be shown, neither is claimed."""
    monkeypatch.setattr(ColumnSpace, "rounding", lambda self, square: np.inf)
    with pytest.raises(DataError, match="neither a margin nor a point that they share"):
        HardOnly().fit([[0.0, 0.0], [0.0, 1.0], [2.0, 0.0]], [0, 0, 1])
