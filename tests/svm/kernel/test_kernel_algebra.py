"""Kernels of SVC and SVR: their algebra, witnesses against what is none, compiled loops and their twins."""

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn import svm
from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel

from certifit import DataError, NoSolutionError
from certifit.checkers.svm.adapter import SvmAuditTuning
from certifit.checkers.svm.kernel_adapter import GramCheckTuning
from certifit.svm.kernel.kernels import RBF, Kernel, Linear, Polynomial, Sigmoid, is_psd, project
from certifit.svm.kernel.smo_loops import add_rows, solve_pairs, working_square
from certifit.svm.kernel.svc import SVC
from tests.common.catalogue import three, two
from tests.common.tuning import tuned
from tests.svm.kernel.svc_tables import audit

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
        SVC(kernel=kernel, gamma=1.0, indefinite="refuse").fit(table, y)
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


def test_a_function_on_more_rows_than_can_be_looked_at_claims_less():
    X, y = two()
    model = tuned(SVC(kernel=lambda A, B: A @ B.T), witness_rows=50).fit(X, y)
    checked = audit(model, X, y, tuning=SvmAuditTuning(gram=GramCheckTuning(sampled_rows=50)))
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
@pytest.mark.compiled
def test_compiled_loops_do_what_numpy_does(dtype):
    rng = np.random.default_rng(0)
    K, f, change = rng.normal(size=(7, 20)).astype(dtype), rng.normal(size=20), np.array([0.5, 0.0, -2.0])
    slots, columns = np.array([3, 0, 6]), np.array([1, 19, 4])
    np.testing.assert_array_equal(working_square(K, slots, columns), K[slots][:, columns])
    expected = f[5:15] + change @ K[slots, 5:15].astype(np.float64)
    np.testing.assert_allclose(add_rows(f, K, slots, change, 5, 15), expected, rtol=1e-13)
