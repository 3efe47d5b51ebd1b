"""The compiled loops of logistic regression against plain NumPy twins."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.special import expit, log_expit, log_softmax, softmax

from certifit.losses.softmax_loops import binary_rows, softmax_rows

pytestmark = pytest.mark.compiled
SCORES = st.floats(-1e3, 1e3) | st.sampled_from([-1e3, -745.2, -40.0, -1e-8, -0.0, 0.0, 1e-300, 36.8, 709.9, 1e3])
WEIGHTS = st.floats(0, 100) | st.sampled_from([0.0, 1.0, 1e-300])


def binary_twin(eta, y, w):
    eta = eta.astype(np.float64)
    margin = np.where(y > 0, eta, -eta)
    r = w * np.where(y > 0, -expit(-margin), expit(-margin))
    h = w * expit(eta) * expit(-eta)
    return -(w * log_expit(margin)).sum(), margin[w > 0].min(initial=np.inf), r, h


def softmax_twin(eta, y, w):
    eta, rows = eta.astype(np.float64), np.arange(len(eta))
    P = softmax(eta, axis=1)
    R = w[:, None] * P
    own = np.arange(eta.shape[1]) == y[:, None]
    R[rows, y] = -w * np.where(own, 0.0, P).sum(axis=1)
    rivals = np.where(own, -np.inf, eta).max(axis=1)
    loss = -(w * log_softmax(eta, axis=1)[rows, y]).sum()
    return loss, (eta[rows, y] - rivals)[w > 0].min(initial=np.inf), P, R


def check_binary(eta, y, w, rtol=1e-13):
    r, h = np.full(len(w), np.nan), np.full(len(w), np.nan)
    loss, margin = binary_rows(eta, y, w, r, h)
    want = binary_twin(eta, y, w)
    np.testing.assert_allclose([loss, margin], want[:2], rtol=rtol)
    np.testing.assert_allclose(r, want[2], rtol=rtol, atol=1e-306)  # the twin's own probabilities underflow there
    np.testing.assert_allclose(h, want[3], rtol=rtol, atol=1e-306)


def check_softmax(eta, y, w, rtol=1e-12):
    P, R = np.full(eta.shape, np.nan), np.full(eta.shape, np.nan)
    loss, margin = softmax_rows(eta, y, w, P, R)
    want = softmax_twin(eta, y, w)
    # SciPy's log_softmax rounds near probability 1 to eps, absolutely; ours does not
    np.testing.assert_allclose(loss, want[0], rtol=rtol, atol=1e-15 * w.sum())
    np.testing.assert_allclose(margin, want[1], rtol=rtol)
    np.testing.assert_allclose(P, want[2], rtol=rtol, atol=1e-320)
    np.testing.assert_allclose(R, want[3], rtol=rtol, atol=1e-320)


@st.composite
def rows(draw, classes):
    n, k = draw(st.integers(1, 12)), draw(classes)
    eta = draw(arrays(np.float64, (n, k) if k > 1 else n, elements=SCORES))
    y = draw(arrays(np.int32, n, elements=st.integers(0, max(k, 2) - 1)))
    return eta, y, draw(arrays(np.float64, n, elements=WEIGHTS))


@given(rows(st.just(1)))
def test_binary_rows(data):
    check_binary(*data)


@given(rows(st.integers(2, 6)))
def test_softmax_rows(data):
    check_softmax(*data)


@pytest.mark.parametrize(("dtype", "rtol"), [(np.float32, 1e-5), (np.float64, 1e-12)])
def test_many_rows_of_either_float(dtype, rtol):
    """Scores in float32 are worked on in float32, and summed in float64."""
    rng = np.random.default_rng(0)
    y, w = rng.integers(0, 2, 1000).astype(np.int32), rng.exponential(size=1000)
    check_binary((5 * rng.normal(size=1000)).astype(dtype), y, w, rtol)
    check_softmax((5 * rng.normal(size=(1000, 7))).astype(dtype), rng.integers(0, 7, 1000).astype(np.int32), w, rtol)


def test_tiny_losses_keep_their_digits():
    """log(1 + exp(-40)) = exp(-40) to 1e-17, far below eps beside 1."""
    one, y, out = np.ones(1), np.zeros(1, np.int32), np.empty((1, 3))
    loss, _ = softmax_rows(np.array([[40.0, 0.0, -50.0]]), y, one, out, np.empty((1, 3)))
    np.testing.assert_allclose(loss, np.exp(-40.0), rtol=1e-12)
    loss, _ = binary_rows(np.array([-40.0]), y, one, np.empty(1), np.empty(1))
    np.testing.assert_allclose(loss, np.exp(-40.0), rtol=1e-12)


def test_two_classes_are_softmax_with_scores_zero_and_eta():
    rng = np.random.default_rng(1)
    eta, y, w = 3 * rng.normal(size=50), rng.integers(0, 2, 50).astype(np.int32), rng.exponential(size=50)
    r, h, P, R = np.empty(50), np.empty(50), np.empty((50, 2)), np.empty((50, 2))
    loss, margin = binary_rows(eta, y, w, r, h)
    loss2, margin2 = softmax_rows(np.column_stack([np.zeros(50), eta]), y, w, P, R)
    np.testing.assert_allclose([loss, margin], [loss2, margin2], rtol=1e-14)
    np.testing.assert_allclose(r, R[:, 1], rtol=1e-12)
    np.testing.assert_allclose(h, w * P[:, 0] * P[:, 1], rtol=1e-12)


def test_margin_ignores_rows_without_weight():
    eta, y, w = np.array([-5.0, 2.0]), np.array([1, 1], np.int32), np.array([0.0, 1.0])
    assert binary_rows(eta, y, w, np.empty(2), np.empty(2))[1] == 2.0
    scores = np.array([[9.0, 0.0, 0.0], [0.0, 2.0, 1.0]])
    assert softmax_rows(scores, y, w, np.empty((2, 3)), np.empty((2, 3)))[1] == 1.0
