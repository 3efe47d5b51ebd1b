"""Linear machines of many rows begin where the linear solver ends."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.svm import SVC as TheirSVC

from certifit import SVC, SVR, audit


def table(n=2500, d=5):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d)) + 100.0
    score = X @ rng.normal(size=d)
    return X, score - score.mean() + 0.5 * rng.normal(size=n)


@pytest.mark.parametrize("of", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("C", [1e-3, 1.0, 1e3])
def test_no_round_is_left_and_scikit_learn_finds_the_same_machine(of, C):
    X, score = table()
    X, y = of(X - 100.0), (score > 0).astype(int)
    model = SVC(kernel="linear", C=C).fit(X, y)
    assert model.n_iter_.tolist() == [0]
    assert model.certificate_.holds
    assert model.certificate_.gap < 1e-6 * model.certificate_.objective
    assert audit(model, X, y).holds
    if C == 1.0:  # theirs takes long for a large C
        theirs = TheirSVC(kernel="linear", C=C, tol=1e-7).fit(X, y)
        dense = [np.asarray(getattr(m.coef_, "toarray", lambda m=m: m.coef_)()) for m in (model, theirs)]
        np.testing.assert_allclose(*dense, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(model.intercept_, theirs.intercept_, rtol=1e-4, atol=1e-5)
        assert len(np.setxor1d(model.support_, theirs.support_)) <= 2


def test_weights_and_several_classes_and_numbers():
    X, score = table()
    w = np.random.default_rng(1).uniform(size=len(X)) * (np.arange(len(X)) % 4 > 0)
    y = np.digitize(score, [-1.0, 1.0])
    model = SVC(kernel="linear", multi_class="ovr", class_weight="balanced").fit(X, y, sample_weight=np.r_[w])
    assert model.certificate_.holds
    assert audit(model, X, y, sample_weight=w).holds
    tube = SVR(kernel="linear", epsilon=0.3).fit(X, score)
    assert tube.n_iter_ == 0
    assert tube.certificate_.gap < 1e-6 * tube.certificate_.objective
    assert audit(tube, X, score).holds


def test_a_start_that_ran_out_of_time_is_no_worse_than_none():
    X, score = table()
    y = (score > 0).astype(int)
    with pytest.warns(match="max_time"):
        model = SVC(kernel="linear", max_time=1e-6).fit(X, y)
    assert model.certificate_.objective <= 1.01 * 2 * min(y.sum(), (1 - y).sum())  # that of no slope at all
