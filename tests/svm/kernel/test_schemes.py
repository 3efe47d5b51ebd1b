"""One-vs-rest beside one-vs-one, and kernels that are none, projected: against LIBSVM, by proofs, and by damage."""

import copy
import io

import numpy as np
import pytest
from rich.console import Console
from scipy import sparse
from sklearn import svm
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.preprocessing import StandardScaler

from certifit import CertificateWarning, DataError, ProgressBar, audit, load, save
from certifit.svm.kernel.expansion import expansion
from certifit.svm.kernel.kernels import RBF, Sigmoid, project, projected_gram
from certifit.svm.kernel.svc import SCHEMES, SVC
from certifit.svm.kernel.svr import SVR
from certifit.svm.kernel.training import TrainingRows
from tests.common.catalogue import amounts, three, two
from tests.common.tuning import tuned


def standard(load):
    X, y = load(return_X_y=True)
    return StandardScaler().fit_transform(X)[:500], y[:500]


# ---------------------------------------------------------------------------------------------- one-vs-rest
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
@pytest.mark.parametrize("load", [load_iris, load_wine, load_digits])
def test_each_machine_is_libsvms_for_its_class(load, kernel):
    X, y = standard(load)
    y = np.array([f"class {c}" for c in y])
    model = SVC(multi_class="ovr", kernel=kernel, tol=1e-6, C=0.5).fit(X, y)
    values, k = model.decision_function(X), len(model.classes_)
    assert values.shape == (len(X), k)
    assert model.dual_coef_.shape == (k, len(model.support_))
    assert model.support_kinds_.shape == model.slacks_.shape == (len(X), k)
    assert len(model.history_) == len(model.n_iter_) == k
    for i, c in enumerate(model.classes_):
        theirs = svm.SVC(kernel=kernel, gamma=model.gamma_, tol=1e-7, C=0.5).fit(X, y == c)
        np.testing.assert_allclose(values[:, i], theirs.decision_function(X), atol=5e-3)
    np.testing.assert_array_equal(model.predict(X), model.classes_[values.argmax(axis=1)])
    np.testing.assert_allclose(model.certificate_.objective, model.objective(X, y).total, rtol=1e-9)
    assert model.certificate_.holds
    assert audit(model, X, y).holds


def test_two_classes_have_one_machine_whatever_the_scheme():
    X, y = two()
    pair, rest = (SVC(multi_class=scheme).fit(X, y) for scheme in ("ovo", "ovr"))
    np.testing.assert_array_equal(pair.dual_coef_, rest.dual_coef_)
    np.testing.assert_array_equal(pair.decision_function(X), rest.decision_function(X))


def test_the_two_schemes_are_different_problems():
    X, y = three()
    pairs, rest = SVC().fit(X, y), SVC(multi_class="ovr").fit(X, y)
    renamed = copy.deepcopy(rest)
    renamed.multi_class = "ovo"
    with pytest.raises(DataError, match="dual_coef_ of shape"):
        audit(renamed, X, y)
    assert pairs.certificate_.objective != rest.certificate_.objective


@pytest.mark.parametrize("name", ["dual_coef_", "intercept_", "support_vectors_", "slacks_", "kkt_residuals_"])
def test_damage_to_one_machine_of_all_is_noticed(name):
    X, y = three()
    model = SVC(multi_class="ovr", tol=1e-8).fit(X, y)
    best = model.certificate_.objective
    hurt = np.array(getattr(model, name))
    hurt.flat[np.abs(hurt).argmax()] += 0.01
    setattr(model, name, hurt)
    checked = audit(model, X, y)
    assert not checked.holds
    assert checked.bound <= best * (1 + 1e-12)


def test_a_swap_of_two_machines_is_noticed():
    X, y = three()
    model = SVC(multi_class="ovr").fit(X, y)
    model.dual_coef_ = model.dual_coef_[[1, 0, 2]]
    assert not audit(model, X, y).holds


def test_kernel_rows_are_shared_by_the_machines_of_one_vs_rest(monkeypatch):
    made = []
    plain = TrainingRows.gram
    monkeypatch.setattr(TrainingRows, "gram", lambda *args: made.append(1) or plain(*args))
    X, y = three()
    SVC(multi_class="ovr").fit(X, y)
    assert len(made) == 1


def test_unknown_schemes_and_contradictions_are_refused():
    X, y = three()
    with pytest.raises(DataError, match=r"multi_class='ovx'; wanted one of 'ovo', 'ovr', 'weston"):
        SVC(multi_class="ovx").fit(X, y)
    with pytest.raises(DataError, match="values of pairs"):
        SVC(multi_class="ovr", decision_function_shape="ovo").fit(X, y)


@pytest.mark.parametrize("k", [2, 3, 5])
@pytest.mark.parametrize("name", ["ovo", "ovr"])
def test_packed_coefficients_come_back(name, k):
    rng, scheme = np.random.default_rng(0), SCHEMES[name if k > 2 else "ovo"]
    code = np.sort(np.arange(20) % k)
    beta = rng.normal(size=(20, len(scheme.sides(k))))
    for i, (first, second) in enumerate(scheme.sides(k)):
        beta[(code != first) & (code != second) & (second is not None), i] = 0.0
    np.testing.assert_array_equal(scheme.unpack(scheme.pack(beta, code, k), code, k), beta)


@pytest.mark.parametrize("scheme", ["ovo", "ovr"])
def test_one_bar_shows_the_total_of_all_machines(scheme):
    X, y = three()
    screen = io.StringIO()
    model = SVC(multi_class=scheme).set_callbacks(ProgressBar(Console(file=screen, width=150, force_terminal=True)))
    model.fit(X, y)
    last = screen.getvalue().split("\r")[-1]
    assert last.count("SVC rounds") == 1
    assert f"objective {model.certificate_.objective:.6g}" in last


def test_gaps_told_on_the_way_are_those_of_all_machines():
    """They begin at 1 with no machine begun, never rise much, and end at the certificate's."""
    seen = []

    class Listen:
        max_propagation_depth = 1

        def setup(self, estimator, context): ...
        def teardown(self, estimator, context): ...
        def on_fit_task_begin(self, estimator, context): ...

        def on_fit_task_end(self, estimator, context):
            step = getattr(context, "step", None)
            if step is not None:
                seen.append((step.objective, step.gain))

    X, y = three()
    model = SVC(tol=1e-6).set_callbacks(Listen()).fit(X, y)
    best = model.certificate_.objective
    objectives, gaps = np.array(seen).T
    np.testing.assert_allclose(gaps[0], 1.0)
    assert gaps[-1] < 1e-6
    assert (objectives * (1 - gaps) <= best * (1 + 1e-9)).all()  # true at every moment
    np.testing.assert_allclose(objectives[-1], best, rtol=1e-9)


# ------------------------------------------------------------------------------------------ projected kernels
def indefinite(A, B):
    return np.tanh(A @ B.T)


def test_projection_keeps_the_positive_part():
    """Of [[1, 2], [2, 1]], eigenvalues 3 and -1: P = 3 vv' and the projection is vv', v = (1, 1) / √2."""
    found = projected_gram([[1.0, 2.0], [2.0, 1.0]])
    np.testing.assert_allclose(found.gram, [[1.5, 1.5], [1.5, 1.5]], atol=1e-12)
    np.testing.assert_allclose(found.onto, [[0.5, 0.5], [0.5, 0.5]], atol=1e-12)
    assert "-1 to 3" in found.words


@pytest.mark.parametrize("data", [two, three, amounts])
@pytest.mark.parametrize("form", ["precomputed", "callable", "sigmoid", "sparse"])
def test_projected_models_are_those_of_the_projected_matrix(form, data):
    """On the rows of the fit their values are those of kernel='precomputed' with the projected matrix."""
    X, y = data(60)
    cls = SVR if data is amounts else SVC
    table, kernel = {
        "precomputed": (indefinite(X, X), "precomputed"),
        "callable": (X, indefinite),
        "sigmoid": (X, "sigmoid"),
        "sparse": (sparse.csr_array(X), Sigmoid(1.0)),
    }[form]
    model = cls(kernel=kernel, gamma=1.0, indefinite="project", tol=1e-8).fit(table, y)
    P = project(indefinite(X, X))
    given = cls(kernel="precomputed", tol=1e-8).fit(P, y)
    use = "predict" if cls is SVR else "decision_function"
    np.testing.assert_allclose(getattr(model, use)(table), getattr(given, use)(P), atol=1e-5)
    assert model.certificate_.kind == "optimal"
    assert model.certificate_.holds
    assert "became 0" in model.certificate_.facts["kernel"]
    checked = audit(model, table, y)
    assert checked.holds
    np.testing.assert_allclose(checked.objective, model.certificate_.objective, rtol=1e-9)
    np.testing.assert_allclose(model.objective(table, y).total, model.certificate_.objective, rtol=1e-9)


def test_new_rows_are_projected_alike():
    """f(x) = k(x, rows) U 1{λ > 0} U' β, in plain NumPy."""
    X, y = two(60)
    Z = X[:7] + 0.3
    model = SVC(kernel=indefinite, indefinite="project").fit(X, y)
    values, U = np.linalg.eigh(indefinite(X, X))
    beta = np.zeros(60)
    beta[model.support_] = model.dual_coef_[0]
    expected = indefinite(Z, X) @ U @ np.diag(values > 1e-10) @ U.T @ beta + model.intercept_
    np.testing.assert_allclose(model.decision_function(Z), expected, atol=1e-9)
    given = SVC(kernel="precomputed", indefinite="project").fit(indefinite(X, X), y)
    np.testing.assert_allclose(given.decision_function(indefinite(Z, X)), expected, atol=1e-7)


def test_projected_models_with_weights_probabilities_and_files(tmp_path):
    X, y = three(60)
    w = np.arange(60) // 3 % 3
    model = SVC(kernel="sigmoid", gamma=1.0, indefinite="project", probability=True).fit(X, y, w)
    p = model.predict_proba(X)
    np.testing.assert_array_equal(p.argmax(axis=1), model.predict(X))
    assert audit(model, X, y, w).holds
    save(model, tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model").predict_proba(X), p)
    for name in ("expansion_", "expansion_coef_"):
        hurt = copy.deepcopy(model)
        setattr(hurt, name, getattr(model, name) * 1.001)
        assert not audit(hurt, X, y, w).holds


def test_a_kernel_that_needs_no_projection_gets_none():
    X, y = two(60)
    model = SVC(kernel=lambda A, B: A @ B.T, indefinite="project").fit(X, y)
    assert not hasattr(model, "expansion_")
    assert SVC(indefinite="project").fit(X, y).certificate_.facts["kernel"].endswith("by construction")


def test_projection_has_its_limits():
    X, y = two(60)
    with pytest.raises(DataError, match=r"60 rows; wanted at most 50"):
        tuned(SVC(kernel=indefinite, indefinite="project"), projected_rows=50).fit(X, y)
    with pytest.raises(DataError, match=r"indefinite='ignore'; wanted one of 'warn', 'refuse', 'project'"):
        SVC(indefinite="ignore").fit(X, y)


# -------------------------------------------------------------------------------------- values at other rows
def test_float32_rows_have_values_close_to_those_of_float64():
    X, _ = three()
    beta = np.random.default_rng(0).normal(size=(len(X), 2))
    single = X.astype(np.float32)
    exact = RBF(0.1)(single, single) @ beta
    np.testing.assert_allclose(expansion(RBF(0.1), single, beta)(single), exact, atol=1e-4)
    np.testing.assert_allclose(expansion(RBF(0.1), single, beta, float64=True)(single), exact, atol=1e-11)
    steep = 1e6 * beta  # errors would be as large
    np.testing.assert_allclose(expansion(RBF(0.1), single, steep)(single), 1e6 * exact, atol=1e-4)
    far = np.array([[1e4, 0.0, 0.0, 0.0]], np.float32)
    np.testing.assert_array_equal(expansion(RBF(0.1), single, beta)(far), 0.0)


@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly"])
def test_fitted_on_dense_used_on_sparse_and_the_other_way_round(kernel):
    X, y = three(60)
    thin = sparse.csr_array(X)
    dense = SVC(kernel=kernel, tol=1e-8).fit(X, y)
    np.testing.assert_allclose(dense.decision_function(thin), dense.decision_function(X), atol=1e-9)
    other = SVC(kernel=kernel, tol=1e-8).fit(thin, y)
    np.testing.assert_allclose(other.decision_function(X), other.decision_function(thin), atol=1e-9)


def test_out_of_time_returns_machines_for_every_class():
    X, y = three()
    with pytest.warns(CertificateWarning):
        model = SVC(multi_class="ovr", max_time=0.0).fit(X, y)
    assert model.intercept_.shape == (3,)
    assert audit(model, X, y).bound <= SVC(multi_class="ovr").fit(X, y).certificate_.objective
