"""LinearSVC and LinearSVR: known solutions, scikit-learn's, sources, sabotage."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import sparse
from sklearn import svm
from sklearn.datasets import load_diabetes, load_iris
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.preprocessing import scale

from certifit import DataError, HardMarginSVC, audit
from certifit.checkers.plain.hinges import PLAIN_HINGES, plain_rounded_hinge
from certifit.checkers.svm.linear_machines.linear_adapter import audit_linear_svc, audit_linear_svr
from certifit.exceptions import CertificateWarning
from certifit.losses import EpsilonInsensitive, HuberisedHinge, SquaredEpsilonInsensitive
from certifit.losses.hinges import HINGES
from tests.common.tuning import tuned
from tests.svm.linear.linear_cases import LOSSES, cancer, every_loss, free_svc, free_svr, noisy

RESIDUAL = {"epsilon_insensitive": EpsilonInsensitive, "squared_epsilon_insensitive": SquaredEpsilonInsensitive}
INTERCEPTS = [{}, {"penalize_intercept": True}, {"penalize_intercept": True, "intercept_scaling": 3.0}]
INTERCEPTS += [{"fit_intercept": False}]
every_intercept = pytest.mark.parametrize("intercept", INTERCEPTS, ids=str)


def penalty(model):
    if not model.fit_intercept or not model.penalize_intercept:
        return 0.5 * (model.coef_**2).sum()
    return 0.5 * (model.coef_**2).sum() + 0.5 * (model.intercept_**2).sum() / model.intercept_scaling**2


def value(model, X, y, w=1.0):
    """The objective with the losses of certifit.losses."""
    scores = np.atleast_2d(model.decision_function(X).T)
    labels = model.classes_[1:] if len(scores) == 1 else model.classes_
    signs = np.where(np.asarray(y) == labels[:, None], 1, -1)
    return penalty(model) + model.C * (w * LOSSES[model.loss].value(signs * scores)).sum()


# ------------------------------------------------------------------------------------------- known solutions
@every_loss
def test_two_points(loss):
    """x = ±1, y = ±1: min ½ β² + 2C φ(β); for the hinge β = min(1, 2C), for its square β = 4C / (1 + 4C)."""
    for C in (0.1, 0.3, 10.0):
        model = free_svc(C, loss=loss, tol=1e-12).fit([[-1.0], [1.0]], ["a", "b"])
        beta = np.linspace(0, 2, 2_000_001)
        best = beta[np.argmin(0.5 * beta**2 + 2 * C * LOSSES[loss].value(beta))]
        np.testing.assert_allclose(model.coef_, [[best]], atol=1e-6)
        np.testing.assert_allclose(model.intercept_, 0, atol=1e-9)
        assert model.predict([[-0.5], [0.5]]).tolist() == ["a", "b"]


def test_absolute_loss_without_columns_of_use_is_the_median():
    y = [1.0, 2.0, 10.0]
    model = free_svr(tol=1e-10).fit(np.zeros((3, 1)), y)
    np.testing.assert_allclose(model.intercept_, [2.0], rtol=1e-9)
    assert model.coef_.tolist() == [0.0]
    weighted = free_svr(tol=1e-10).fit(np.zeros((3, 1)), y, sample_weight=[1, 1, 5])
    np.testing.assert_allclose(weighted.intercept_, [10.0], rtol=1e-9)


# --------------------------------------------------------------------------------------------- scikit-learn
@pytest.mark.parametrize("C", [1e-3, 1.0, 100.0])
def test_hinge_with_a_free_intercept_is_libsvm(C):
    X, y = cancer()
    model, peer = free_svc(C, loss="hinge", tol=1e-9).fit(X, y), svm.SVC(C=C, kernel="linear", tol=1e-9).fit(X, y)
    np.testing.assert_allclose(model.coef_, peer.coef_, rtol=1e-4, atol=1e-5 * np.abs(peer.coef_).max())
    np.testing.assert_array_equal(model.predict(X), peer.predict(X))
    assert model.certificate_.bound <= value(model, X, y) * (1 + 1e-12)
    peer.loss, peer.penalize_intercept, peer.fit_intercept = "hinge", False, True
    assert model.certificate_.bound <= value(peer, X, y)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("scaling", [1.0, 4.0])
@pytest.mark.parametrize("data", [cancer, lambda: load_iris(return_X_y=True)], ids=["two classes", "three"])
def test_a_penalised_intercept_is_liblinear(loss, scaling, data):
    X, y = data()
    options = {"C": 0.5, "loss": loss, "intercept_scaling": scaling}
    model = free_svc(**options, penalize_intercept=True, tol=1e-11).fit(X, y)
    peer = svm.LinearSVC(**options, tol=1e-9, max_iter=10**6, dual=True, random_state=0).fit(X, y)
    np.testing.assert_allclose(model.coef_, peer.coef_, rtol=1e-3, atol=1e-4)
    peer.penalize_intercept = True
    assert model.certificate_.bound <= value(peer, X, y)
    assert value(model, X, y) <= value(peer, X, y) * (1 + 1e-11)
    assert audit_linear_svc(peer, X, y, None, 1e-4).holds


@pytest.mark.parametrize("loss", RESIDUAL)
@pytest.mark.parametrize("epsilon", [0.0, 20.0])
def test_regression_is_scikit_learns(loss, epsilon):
    X, y = load_diabetes(return_X_y=True)
    model = free_svr(epsilon=epsilon, C=10.0, loss=loss, penalize_intercept=True, tol=1e-10).fit(X, y)
    peer = svm.LinearSVR(epsilon=epsilon, C=10.0, loss=loss, tol=1e-10, max_iter=10**6, random_state=0).fit(X, y)
    np.testing.assert_allclose(model.predict(X), peer.predict(X), rtol=1e-3)
    losses = 10 * RESIDUAL[loss](epsilon).value(y - model.predict(X)).sum()
    np.testing.assert_allclose(model.certificate_.objective, losses + penalty(model), rtol=1e-12)
    assert audit_linear_svr(model, X, y, None, 1e-10).holds
    assert audit_linear_svr(peer, X, y, None, 1e-4).holds


def test_regression_with_a_free_intercept_is_libsvm():
    X, y = load_diabetes(return_X_y=True)
    model = free_svr(epsilon=10.0, C=10.0, tol=1e-10).fit(X, y)
    peer = svm.SVR(kernel="linear", epsilon=10.0, C=10.0, tol=1e-9).fit(X, y)
    np.testing.assert_allclose(model.coef_, peer.coef_[0], rtol=1e-6)  # the best intercept is not unique here
    found = audit_linear_svr(peer, X, y, None, 1e-8)
    assert found.holds
    np.testing.assert_allclose(model.certificate_.objective, found.objective, rtol=1e-9)


def test_audit_of_stochastic_gradients():
    """Their mean loss + alpha/2 |β|² is ours divided by C = 1 / (alpha n): as far from it as the objectives say."""
    X, y = cancer()
    alpha = 0.01
    peer = SGDClassifier(alpha=alpha, max_iter=1000, tol=1e-5, random_state=0).fit(X, y)
    C = 1 / (alpha * len(X))
    found, best = audit_linear_svc(peer, X, y, None, 1e-4), free_svc(C, loss="hinge", tol=1e-9).fit(X, y)
    peer.C, peer.penalize_intercept = C, False
    np.testing.assert_allclose(found.objective, value(peer, X, y), rtol=1e-12)
    assert not found.holds
    assert found.bound <= best.certificate_.objective
    assert found.objective - best.certificate_.objective <= found.gap


@pytest.mark.parametrize("class_weight", [None, "balanced"])
@pytest.mark.parametrize(("loss", "tol"), [("hinge", 1e-2), ("log_loss", 1e-4)])
def test_audit_of_stochastic_gradients_with_weights(loss, tol, class_weight):
    """They count rows, not weights, in their mean and their balance: only then are they as near as this."""
    X, y = cancer()
    w = 5 * np.random.default_rng(0).exponential(size=len(y))
    settings = {"alpha": 0.1, "max_iter": 500, "tol": None, "average": True, "random_state": 0}
    peer = SGDClassifier(loss=loss, class_weight=class_weight, **settings).fit(X, y, sample_weight=w)
    assert audit_linear_svc(peer, X, y, w, tol).holds
    peer.coef_ = 1.5 * peer.coef_
    assert not audit_linear_svc(peer, X, y, w, tol).holds


def test_log_losses_of_several_classes_are_added_up():
    """One class against the rest: objectives are those of scikit-learn's logistic regression, C = 1 / (alpha n)."""
    X, y = load_iris(return_X_y=True)
    peer = SGDClassifier(loss="log_loss", alpha=0.1, max_iter=50, tol=None, random_state=0).fit(X, y)
    found = audit_linear_svc(peer, X, y, None, 1e-4)
    eta = peer.decision_function(X) * np.where(y[:, None] == np.arange(3), 1, -1)
    expected = np.logaddexp(0, -eta).sum() + 0.5 * 0.1 * len(X) * np.square(peer.coef_).sum()
    np.testing.assert_allclose(found.objective, expected, rtol=1e-12)
    best, given = [LogisticRegression(C=1 / (0.1 * len(X)), tol=1e-9).fit(X, y == c) for c in range(3)], peer.coef_
    peer.coef_, peer.intercept_ = (np.stack([getattr(m, name)[0] for m in best]) for name in ("coef_", "intercept_"))
    near = audit_linear_svc(peer, X, y, None, 1e-4)
    assert near.holds
    assert found.bound <= near.objective
    assert near.scale == near.objective
    # Every machine has its own error: the radius sqrt(2 gap / λ) of its own gap.
    errors = np.array(found.parameter_error)[:, :4]
    assert errors.shape == given.shape
    assert (np.abs(given - peer.coef_) <= errors + np.array(near.parameter_error)[:, :4]).all()


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_what_rounding_hides_is_not_claimed(loss):
    """At such a C a slack of one rounding costs more than everything else."""
    X, y = load_iris(return_X_y=True)
    X, y = X[y < 2], y[y < 2]
    with pytest.warns(CertificateWarning, match="objective within"):
        model = free_svc(C=1e16, loss=loss).fit(X, y)
    assert not audit_linear_svc(model, X, y, None, 1e-4).holds
    widest = HardMarginSVC().fit(X, y)
    model.coef_, model.intercept_ = widest.coef_, widest.intercept_  # rows on the margin, up to rounding
    model.C = 1e16 if loss == "hinge" else 1e32  # the square of a rounding costs less
    found = audit_linear_svc(model, X, y, None, 1e-4)
    assert not found.holds
    assert any("rounding" in failure for failure in found.failures())


# ------------------------------------------------------------------------------------- objective, certificate
@every_loss
@every_intercept
@pytest.mark.parametrize("classes", [2, 3])
def test_the_objective_is_the_one_written_down_and_proved(loss, intercept, classes):
    X, y = load_iris(return_X_y=True)
    X, y = X[y < classes + (classes == 2)], y[y < classes + (classes == 2)]
    y = y % classes
    w = np.random.default_rng(0).exponential(size=len(X))
    model = free_svc(0.7, loss=loss, tol=1e-10, **intercept).fit(X, y, sample_weight=w)
    assert model.certificate_.holds
    np.testing.assert_allclose(model.certificate_.objective, value(model, X, y, w), rtol=1e-12)
    np.testing.assert_allclose(model.objective(X, y, w).total, value(model, X, y, w), rtol=1e-12)
    checked = audit_linear_svc(model, X, y, w, 1e-10)
    assert checked.holds
    assert checked.bound <= model.certificate_.objective * (1 + 1e-12)
    assert model.certificate_.bound <= checked.objective * (1 + 1e-12)


@every_loss
@every_intercept
@pytest.mark.parametrize("change", [-1.0, 1.02])
def test_sabotage_is_noticed(loss, intercept, change):
    X, y = noisy()
    model = free_svc(loss=loss, **intercept).fit(X, y)
    best = model.certificate_.objective
    for name in ("coef_", "intercept_"):
        saved = getattr(model, name)
        if not saved.any():
            continue
        hurt = saved.copy()
        hurt.flat[np.abs(hurt).argmax()] *= change
        setattr(model, name, hurt)
        found = audit_linear_svc(model, X, y, None, 1e-6)
        assert not found.holds, name
        assert found.bound <= best * (1 + 1e-12)
        setattr(model, name, saved)
    if not model.fit_intercept:
        model.intercept_ = np.array([0.1])
        assert not audit_linear_svc(model, X, y, None, 1e-4).holds


def test_a_wrong_dual_is_noticed():
    X, y = noisy()
    model = tuned(free_svc(loss="hinge"), newton_columns=2).fit(X, y)
    assert model.dual_coef_.shape == (1, len(X))
    assert audit_linear_svc(model, X, y, None, 1e-4).holds
    best, model.coef_ = model.certificate_.objective, 1.05 * model.coef_
    model.dual_coef_ = 3 * model.dual_coef_  # out of its limits: a bound all the same
    found = audit_linear_svc(model, X, y, None, 1e-4)
    assert not found.holds
    assert found.bound <= best


@every_loss
def test_out_of_passes_the_proved_gap_is_true(loss):
    X, y = cancer()
    best = free_svc(loss=loss, tol=1e-10).fit(X, y).certificate_.objective
    for passes in range(1, 5):
        with pytest.warns(CertificateWarning):
            model = free_svc(loss=loss, max_iter=passes).fit(X, y)
        assert model.n_iter_ <= passes
        c = model.certificate_
        assert 0 <= c.objective - best * (1 - 1e-9) <= c.gap + 1e-9 * best
        np.testing.assert_allclose(c.objective, value(model, X, y), rtol=1e-11)


def test_a_new_loss_needs_a_line_in_losses_and_one_in_the_checker(monkeypatch):
    monkeypatch.setitem(HINGES, "narrow_hinge", HuberisedHinge(0.1))
    X, y = noisy()
    model = free_svc(loss="narrow_hinge", tol=1e-9).fit(X, y)
    np.testing.assert_allclose(
        model.certificate_.objective,
        penalty(model) + HuberisedHinge(0.1).value(np.where(y == 1, 1, -1) * model.decision_function(X)).sum(),
    )
    with pytest.raises(DataError, match="loss='narrow_hinge'"):
        audit(model, X, y)
    monkeypatch.setitem(PLAIN_HINGES, "narrow_hinge", plain_rounded_hinge(0.1))
    assert audit(model, X, y, tol=1e-9).holds


# -------------------------------------------------------------------------------------------------- weights
@every_loss
def test_weights_are_repetitions_and_zeros_absences(loss):
    X, y = noisy()
    w = np.arange(len(X)) % 3
    weighted = free_svc(loss=loss, tol=1e-11).fit(np.where(w[:, None] > 0, X, 1e6), y, sample_weight=w)
    repeated = free_svc(loss=loss, tol=1e-11).fit(np.repeat(X, w, axis=0), np.repeat(y, w))
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(weighted.certificate_.objective, repeated.certificate_.objective, rtol=1e-10)


def test_class_weights_multiply_row_weights():
    X, y = load_iris(return_X_y=True)
    w = np.linspace(1, 2, len(X))
    a = free_svc(class_weight={0: 2.0, 1: 0.5}, tol=1e-11).fit(X, y, sample_weight=w)
    b = free_svc(tol=1e-11).fit(X, y, sample_weight=w * np.array([2.0, 0.5, 1.0])[y])
    np.testing.assert_allclose(a.coef_, b.coef_, rtol=1e-6)
    assert audit_linear_svc(a, X, y, w, 1e-10).holds


# ------------------------------------------------------------------------------------------- sources, types
@every_loss
def test_parquet_and_csr_give_the_same(loss, tmp_path):
    X, y = noisy(3000)
    X[np.abs(X) < 0.5] = 0
    model = free_svc(loss=loss, tol=1e-10).fit(X, y)
    names = [f"x{j}" for j in range(X.shape[1])]
    pq.write_table(pa.table({**dict(zip(names, X.T, strict=True)), "y": y}), tmp_path / "t.parquet")
    from_file = free_svc(loss=loss, tol=1e-10).fit(str(tmp_path / "t.parquet"), "y")
    np.testing.assert_allclose(from_file.coef_, model.coef_, rtol=1e-9)
    csr = free_svc(loss=loss, tol=1e-10).fit(sparse.csr_array(X), y)
    np.testing.assert_allclose(csr.coef_, model.coef_, rtol=1e-4, atol=1e-6)
    assert audit_linear_svc(csr, sparse.csr_array(X), y, None, 1e-8).holds


@pytest.mark.parametrize("loss", ["hinge", "huberised_hinge"])
def test_a_long_table_starts_from_some_rows(loss):
    X, y = noisy(30_000)
    model = free_svc(loss=loss).fit(X, y)
    assert model.certificate_.holds
    assert audit_linear_svc(model, X, y, None, 1e-4).holds
    assert model.n_iter_ <= 8


@every_loss
@every_intercept
@pytest.mark.parametrize("form", [np.asarray, np.float32, sparse.csr_array])
def test_dual_ascent_gives_the_same_objective(loss, intercept, form):
    """What wide tables are solved by, on a narrow one."""
    X, y = load_iris(return_X_y=True)
    X = form(scale(X))
    newton = free_svc(loss=loss, tol=1e-10, **intercept).fit(X, y)
    model = tuned(free_svc(loss=loss, tol=1e-6, max_iter=2000, **intercept), newton_columns=2).fit(X, y)
    best = newton.certificate_.objective
    assert model.certificate_.holds
    assert best * (1 - 1e-9) <= model.certificate_.objective <= best * (1 + 1e-6)
    assert model.certificate_.bound <= best * (1 + 1e-9)
    assert audit_linear_svc(model, X, y, None, 1e-5).holds


def test_dual_ascent_for_regression():
    X, y = load_diabetes(return_X_y=True)
    X = scale(X)
    newton = free_svr(epsilon=5.0, tol=1e-10).fit(X, y)
    model = tuned(free_svr(epsilon=5.0, tol=1e-5), newton_columns=2).fit(X, y)
    assert model.certificate_.holds
    np.testing.assert_allclose(model.certificate_.objective, newton.certificate_.objective, rtol=1e-5)
    assert audit_linear_svr(model, X, y, None, 1e-5).holds
