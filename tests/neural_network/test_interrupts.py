"""Ctrl-C ends a training within a chunk of a minibatch, and what was learnt is kept."""

import signal
import threading

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris

from certifit import ConvNetClassifier, MLPClassifier, MLPRegressor, audit
from certifit.exceptions import DataError
from certifit.neural_network.layers import batch_norm
from certifit.neural_network.layers.batch_norm import MomentTuning
from certifit.neural_network.training import chunks, slopes
from certifit.neural_network.training.chunks import TrainingTuning
from certifit.neural_network.training.slopes import MinibatchSlopes

X, Y = load_iris(return_X_y=True)
FIT = {"hidden_layer_sizes": (5,), "batch_size": 32, "max_iter": 8, "random_state": 0, "n_iter_no_change": np.inf}


@pytest.fixture
def control_c():
    """Python's own answer to Ctrl-C, which pytest may have replaced."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


class InterruptAfter:
    """A callback that interrupts a fit when it has made so many passes."""

    def __init__(self, passes):
        self.left = passes

    def setup(self, estimator, context): ...

    def on_fit_task_begin(self, estimator, context): ...

    def on_fit_task_end(self, estimator, context):
        if context.task_name == "pass":
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt

    def teardown(self, estimator, context): ...


def interrupted(model, passes, X=X, Y=Y, words="was interrupted after"):
    with pytest.raises(KeyboardInterrupt, match=words):
        model.set_callbacks(InterruptAfter(passes)).fit(X, Y)
    return model.set_callbacks()


def test_weights_stay_and_training_goes_on_with_the_same_bits():
    model = interrupted(MLPClassifier(**FIT), 3, words="after 3 whole epochs; its weights are those of that moment")
    assert model.n_iter_ == 3
    assert "nothing is proved" in model.certificate_.claim
    assert not hasattr(model, "loss_")
    found = audit(model, X, Y)
    assert found.kind == "exact"
    assert found.holds
    for _ in range(5):
        model.partial_fit(X, Y)
    whole = MLPClassifier(**FIT).fit(X, Y)
    for one, other in zip(model.coefs_, whole.coefs_, strict=True):
        np.testing.assert_array_equal(one, other)
    assert model.loss_ == whole.loss_


def test_a_network_without_its_loss_is_refused_where_it_was_not_interrupted():
    model = MLPClassifier(**FIT).fit(X, Y)
    del model.loss_
    with pytest.raises(DataError, match="a MLPClassifier without loss_"):
        audit(model, X, Y)


def test_best_weights_of_validation_are_kept():
    settings = {**FIT, "early_stopping": True, "learning_rate_init": 0.5}
    model = interrupted(MLPClassifier(**settings), 6, words="those with the best validation score")
    assert model.best_validation_score_ == max(model.validation_scores_)
    known = MLPClassifier(**{**settings, "max_iter": 1 + int(np.argmax(model.validation_scores_))}).fit(X, Y)
    np.testing.assert_array_equal(model.coefs_[0], known.coefs_[0])


def test_lbfgs_and_images_and_amounts_are_kept_too():
    model = interrupted(MLPClassifier((5,), solver="lbfgs", random_state=0), 4, words="to go on, use fit with warm_")
    assert model.score(X, Y) > 0.3
    images = np.random.default_rng(0).uniform(size=(60, 4, 4))
    layers = [("conv", 2, 3), "batch_norm", "relu"]
    net = interrupted(ConvNetClassifier(layers, max_iter=5, random_state=0), 2, images, np.arange(60) % 3)
    assert net.predict(images).shape == (60,)
    assert audit(net, images, np.arange(60) % 3).holds
    amounts = interrupted(MLPRegressor(**{"loss": "huber", **FIT}), 2, X, X[:, 0])
    assert amounts.n_features_in_ == 4


def test_an_interrupted_partial_fit_changes_nothing(monkeypatch):
    model = MLPClassifier(**FIT).fit(X, Y)
    before = [W.copy() for W in model.coefs_]
    monkeypatch.setattr(chunks, "measure_rows", _raising)
    with pytest.raises(KeyboardInterrupt):
        model.partial_fit(X, Y)
    assert model.certificate_.holds
    for one, other in zip(model.coefs_, before, strict=True):
        np.testing.assert_array_equal(one, other)


def _raising(*_):
    raise KeyboardInterrupt


@pytest.mark.usefixtures("control_c")
def test_control_c_ends_a_large_minibatch_between_its_chunks(monkeypatch):
    """Of eight chunks of the third minibatch two are done, and none of its slopes are taken."""
    calls, real = [], chunks.measure_rows

    def counted(*arguments):
        calls.append(threading.current_thread().name)
        if len(calls) == 18:
            signal.raise_signal(signal.SIGINT)
        return real(*arguments)

    monkeypatch.setattr(chunks, "measure_rows", counted)
    monkeypatch.setattr(slopes, "thread_count", lambda: 1)
    monkeypatch.setattr(MinibatchSlopes.__init__, "__defaults__", (TrainingTuning(least_rows=1, least_work=0.0),))
    model = MLPClassifier(**{**FIT, "batch_size": 50})
    with pytest.raises(KeyboardInterrupt, match="after 0 whole epochs"):
        model.fit(X, Y)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert len(calls) == 18
    assert model.training_state_.steps == 2
    assert audit(model, X, Y).holds


@pytest.mark.usefixtures("control_c")
def test_control_c_waits_for_a_portion_of_a_chunk_alone(monkeypatch):
    """One chunk of 150 rows in portions of 10: nothing after the portion in which the interrupt came."""
    sizes, real = [], chunks.measure_rows

    def counted(*arguments):
        sizes.append(len(arguments[4]))
        if len(sizes) == 15 + 4:
            signal.raise_signal(signal.SIGINT)
        return real(*arguments)

    monkeypatch.setattr(chunks, "measure_rows", counted)
    tuning = TrainingTuning(least_rows=10, portion_products=0)
    monkeypatch.setattr(MinibatchSlopes.__init__, "__defaults__", (tuning,))
    model = MLPClassifier(**{**FIT, "batch_size": 150})
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y)
    assert sizes == [10] * 19
    assert model.training_state_.steps == 1


@pytest.mark.parametrize(
    "model", [MLPClassifier(**FIT), MLPClassifier((5,), solver="lbfgs", alpha=3.0, max_iter=2000, random_state=0)]
)
def test_an_interrupt_of_the_proof_keeps_the_weights(monkeypatch, model):
    known = clone(model).fit(X, Y)
    with monkeypatch.context() as patched:
        patched.setattr(type(model), "_proof", _raising)
        with pytest.raises(KeyboardInterrupt, match="was interrupted after"):
            model.fit(X, Y)
    np.testing.assert_array_equal(model.coefs_[0], known.coefs_[0])
    assert model.certificate_.kind == "unproved"
    assert audit(model, X, Y).holds


@pytest.mark.usefixtures("control_c")
def test_an_interrupt_while_validation_rows_are_scored_is_answered_at_once(monkeypatch):
    calls, real = [], MLPClassifier._score_of

    def counted(*arguments):
        calls.append(0)
        if len(calls) == 3:
            signal.raise_signal(signal.SIGINT)
            raise AssertionError("the interrupt waited")
        return real(*arguments)

    monkeypatch.setattr(MLPClassifier, "_score_of", counted)
    model = MLPClassifier(**{**FIT, "early_stopping": True})
    with pytest.raises(KeyboardInterrupt, match="after 2 whole epochs; its weights are those with the best"):
        model.fit(X, Y)
    assert len(model.validation_scores_) == len(model.loss_curve_) == 2


def test_moments_of_an_interrupted_fit_may_be_of_some_rows_and_say_so(monkeypatch):
    """Of many rows they would take long; going on has those of all."""
    images, y = np.random.default_rng(0).uniform(size=(600, 4, 4)), np.arange(600) % 3
    fit = {"layers": [("conv", 2, 3), "batch_norm", "relu"], "max_iter": 3, "random_state": 0}
    monkeypatch.setattr(batch_norm.moment_rows, "__defaults__", (MomentTuning(products=0.0),))
    net = interrupted(ConvNetClassifier(learning_rate="constant", **fit), 2, images, y)
    assert "moments_ are those of 256 of the rows alone" in net.certificate_.claim
    assert net.predict(images).shape == (600,)
    assert not audit(net, images, y).holds
    net.partial_fit(images, y)
    whole = ConvNetClassifier(learning_rate="constant", **fit).fit(images, y)
    np.testing.assert_array_equal(net.moments_[0], whole.moments_[0])
    assert net.certificate_.holds
