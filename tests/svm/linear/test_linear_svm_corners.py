"""LinearSVC and LinearSVR at the edges: extreme weights and scales, rounding, settings and models refused."""

import numpy as np
import pytest
from scipy import sparse
from sklearn import svm
from sklearn.datasets import load_iris
from sklearn.linear_model import SGDClassifier

from certifit import DataError, audit
from certifit.checkers.svm.linear_machines.linear_adapter import audit_linear_svc, audit_linear_svr
from certifit.exceptions import CertificateWarning
from certifit.svm.linear.linear_svm import LinearSVC, LinearSVR
from tests.svm.linear.linear_cases import LOSSES, every_loss, free_svc, free_svr, noisy


@every_loss
@pytest.mark.parametrize("C", [1e-10, 1e5, 1e10])
@pytest.mark.parametrize("separable", [True, False])
def test_any_C(loss, C, separable):
    X, y = noisy()
    model = free_svc(C, loss=loss).fit(X, (X[:, 0] > 1).astype(int) if separable else y)
    assert model.certificate_.holds
    if separable and C > 1:
        assert model.score(X, X[:, 0] > 1) == 1


@every_loss
def test_columns_of_any_scale(loss):
    X, y = noisy()
    model = free_svc(loss=loss).fit(X * [1e6, 1e-6, 1, 1e3, 1e-3] + [1e8, 0, 0, 1e5, 0], y)
    assert model.certificate_.holds
    assert model.score(X * [1e6, 1e-6, 1, 1e3, 1e-3] + [1e8, 0, 0, 1e5, 0], y) > 0.7


@every_loss
def test_rows_with_both_labels_cancel(loss):
    X, y = noisy()
    model = free_svc(loss=loss).fit(np.vstack([X, X]), np.append(y, 1 - y))
    np.testing.assert_allclose(model.coef_, 0, atol=1e-9)
    np.testing.assert_allclose(model.certificate_.objective, 2 * len(X) * LOSSES[loss].value(0.0), rtol=1e-9)


@every_loss
def test_classes_of_very_unequal_weight(loss):
    X, y = load_iris(return_X_y=True)
    model = free_svc(loss=loss, class_weight={0: 1000, 1: 1e-4, 2: 1e-4}).fit(X, y)
    assert model.certificate_.holds


@every_loss
@pytest.mark.parametrize("n", [300, 200_000])
def test_rows_of_very_unequal_weight(loss, n):
    """Few rows have nearly all the weight; in the long table some rows stand for all in the first Hessians."""
    X, y = noisy(n, d=25 if n > 300 else 5)
    model = free_svc(loss=loss).fit(X, y, sample_weight=np.random.default_rng(1).exponential(size=n) ** 6)
    assert model.certificate_.holds


def test_a_small_table_of_weights_of_eight_decades():
    """The solver's own dual point leaves a gap of 7 %, which the checker closes."""
    X = [
        [0.267094794582121, 1.409308499006231, -1.9593760411481023, -1.4855596261920865],
        [1.6971162908187654, -1.5793320062085903, 0.5764762452341924, 2.3748131131962875],
        [-1.6725232073228964, 0.41702146515709587, -1.8330315220301168, -0.6363093002763848],
        [1.189216547915073, 0.9907690376635617, -2.833941897435027, -0.9973266493790808],
        [1.5352399593716486, -0.7224228387075868, -0.39907017110629284, 1.0603668419151315],
    ]
    y = [0.0006110017566340415, -0.002358015929868308, 0.00035171627754217595, 0.001534914319472781, -0.00121141515]
    w = [5888.454470787375, 6.683614805948268, 0.00015257809051872462, 2.566893324244186, 0.004400960349280439]
    model = free_svr().fit(X, y, w)
    assert model.certificate_.holds
    assert audit_linear_svr(model, X, y, w, 1e-4).objective == pytest.approx(model.certificate_.objective, rel=1e-12)


@every_loss
def test_more_columns_than_rows(loss):
    X = np.random.default_rng(0).normal(size=(40, 200))
    y = np.arange(40) % 3
    model = free_svc(loss=loss).fit(X, y)
    assert model.certificate_.holds
    assert audit_linear_svc(model, X, y, None, 1e-4).holds


def test_what_is_too_large_is_refused():
    X, y = noisy()
    with pytest.raises(DataError, match="overflow"):
        free_svc().fit(1e200 * X, y)


@pytest.mark.parametrize("regression", [False, True])
@pytest.mark.parametrize(
    "settings", [{"C": 0.0}, {"C": -1.0}, {"C": np.inf}, {"loss": "log"}, {"intercept_scaling": 0.0}], ids=str
)
def test_bad_settings(settings, regression):
    X, y = noisy()
    with pytest.raises(DataError, match="wanted"):
        (LinearSVR if regression else LinearSVC)(**settings).fit(X, y)


def test_negative_epsilon():
    with pytest.raises(DataError, match="epsilon"):
        free_svr(epsilon=-1.0).fit(*noisy())


def test_audit_says_what_it_cannot_read():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(DataError, match="kernel"):
        audit_linear_svc(kernel_machine(), X, y, None, 1e-4)
    with pytest.raises(DataError, match="loss"):
        audit_linear_svc(SGDClassifier(loss="epsilon_insensitive").fit(X, y), X, y, None, 1e-4)
    with pytest.raises(DataError, match="machines"):
        audit_linear_svc(svm.SVC(kernel="linear").fit(X, y), X, y, None, 1e-4)  # one against one


def kernel_machine():
    """One that has coefficients all the same."""
    found = {
        "kernel": "rbf",
        "C": 1.0,
        "coef_": np.zeros((3, 4)),
        "intercept_": np.zeros(3),
        "classes_": np.arange(3),
    }
    return type("SVC", (), found)()


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_sparse_columns_far_from_zero(loss):
    """A free intercept absorbs an offset, whatever the form of the rows: against the same dense rows near zero."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 3)), np.arange(200) % 2
    X += y[:, None]
    near = free_svc(loss=loss, tol=1e-9).fit(X, y)
    far = free_svc(loss=loss, tol=1e-9).fit(sparse.csr_array(X + 1e6), y)
    np.testing.assert_allclose(far.coef_, near.coef_, atol=1e-4)
    assert far.n_iter_ <= 2 * near.n_iter_ + 2
    assert far.certificate_.holds


@pytest.mark.parametrize(
    "model", [free_svc(loss="hinge"), free_svc(), free_svc(multi_class="crammer-singer"), free_svr()]
)
def test_what_rounding_the_intercept_hides_is_not_claimed(model):
    """Far from 0 the intercept makes up for coef · mean and has no digits left for the margin."""
    X, y = load_iris(return_X_y=True)
    near, far = X[:, :3] + 1e8, X[:, :3] + 1e13
    model.fit(near, y)
    assert model.certificate_.holds
    assert audit(model, near, y).holds
    with pytest.warns(CertificateWarning):
        model.fit(far, y)
    assert not audit(model, far, y).holds


@pytest.mark.parametrize("columns", [3, 2100])
def test_of_many_best_intercepts_the_middle_one_is_kept(columns):
    """A tube so wide that many intercepts cost nothing; by either solver."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, columns)), np.linspace(-1.0, 2.0, 20)
    model = free_svr(epsilon=5.0, penalize_intercept=False).fit(X, y)
    np.testing.assert_allclose(model.coef_, 0, atol=1e-12)
    np.testing.assert_allclose(model.intercept_, [0.5], atol=1e-9)  # the middle of [2 - 5, -1 + 5]
    assert audit(model, X, y).holds
    model.intercept_ = model.intercept_ + 0.01
    found = audit(model, X, y)
    assert found.objective < 1e-12
    assert not found.holds
