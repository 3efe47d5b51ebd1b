"""Checkpoints: after any interruption, kill -9 among them, the same call ends with the same bits."""

import json
import signal
import subprocess
import sys
import warnings

import numpy as np
import pytest
from sklearn.datasets import load_iris

from certifit import CertificateWarning, ConvNetClassifier, DataError, MLPClassifier, MLPRegressor
from certifit.files.checkpoint import Checkpoint, CheckpointTuning, table_digest
from certifit.neural_network.training import full_batch
from certifit.rows import as_rows

X, Y = load_iris(return_X_y=True)
FIT = {"hidden_layer_sizes": (5,), "batch_size": 32, "max_iter": 6, "random_state": 0, "learning_rate": "cosine"}
ALWAYS = CheckpointTuning(seconds=0.0, share=np.inf)


class Often(MLPClassifier):
    """Written down after every minibatch."""

    _tuning = ALWAYS


class StopAfter:
    """A callback that interrupts the fit after some epochs."""

    def __init__(self, epochs, error=KeyboardInterrupt):
        self.left, self.error = epochs, error

    def setup(self, estimator, context): ...

    def on_fit_task_begin(self, estimator, context): ...

    def on_fit_task_end(self, estimator, context):
        if context.task_name == "pass":
            self.left -= 1
            if self.left == 0:
                raise self.error

    def teardown(self, estimator, context): ...


def interrupted(model, epochs=3):
    with pytest.raises(KeyboardInterrupt):
        model.set_callbacks(StopAfter(epochs)).fit(X, Y)
    return model.set_callbacks()


def same(one, other):
    pairs = zip((*one.coefs_, *one.intercepts_), (*other.coefs_, *other.intercepts_), strict=True)
    states = one.training_state_.checksum == other.training_state_.checksum
    return states and one.loss_curve_ == other.loss_curve_ and all((a == b).all() for a, b in pairs)


KILLED = """
import os, signal, sys
from sklearn.datasets import load_iris
import certifit
from certifit.files.checkpoint import Checkpoint, CheckpointTuning
certifit.MLPClassifier._tuning = CheckpointTuning(0.0, float("inf"))
write, left = Checkpoint.write, 13
def killed(self, *what):
    global left
    write(self, *what)
    left -= 1
    if not left:
        os.kill(os.getpid(), signal.SIGKILL)
Checkpoint.write = killed
certifit.MLPClassifier((5,), batch_size=32, max_iter=6, random_state=0, learning_rate="cosine",
                       checkpoint=sys.argv[1]).fit(*load_iris(return_X_y=True))
"""


def test_a_killed_fit_goes_on_with_the_same_bits(tmp_path):
    """kill -9 after the thirteenth minibatch of five in each epoch: in the middle of the third."""
    path = tmp_path / "fit.ckpt"
    ended = subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False)
    assert ended.returncode == -signal.SIGKILL
    assert [p.name for p in tmp_path.iterdir()] == ["fit.ckpt"]
    whole = MLPClassifier(**FIT).fit(X, Y)
    model = MLPClassifier(**FIT, checkpoint=path)
    seen = []
    model.set_callbacks(Passes(seen)).fit(X, Y)
    assert len(seen) == 4
    assert same(model, whole)
    assert not path.exists()


class Passes(StopAfter):
    def __init__(self, seen):
        self.seen = seen

    def on_fit_task_end(self, estimator, context):
        if context.task_name == "pass":
            self.seen.append(context)


@pytest.mark.parametrize(
    "more",
    [
        {"early_stopping": True, "validation_fraction": 0.3, "learning_rate_init": 0.05},
        {"solver": "sgd", "learning_rate": "adaptive", "n_iter_no_change": 1, "tol": 0.1, "max_iter": 12},
        {"random_state": None},
    ],
)
def test_an_interrupted_fit_goes_on(tmp_path, more):
    """Best weights of validation, patience and rate go on too; without a seed, the one that was drawn."""
    settings = {**FIT, **more}
    model = interrupted(Often(**settings, checkpoint=tmp_path / "fit.ckpt"))
    seed = Checkpoint(tmp_path / "fit.ckpt", {}).read().numbers["seed"]
    model.fit(X, Y)
    assert model.training_state_.seed == seed
    if settings["random_state"] is not None:
        assert same(model, MLPClassifier(**settings).fit(X, Y))


def test_images_moved_and_dropped_out_go_on(tmp_path):
    images, y = np.random.default_rng(0).uniform(size=(60, 5, 5)), np.arange(60) % 3
    settings = {"layers": [("conv", 2, 3), "relu", ("dropout", 0.3)], "shifts": 1, "max_iter": 4, "random_state": 0}

    class OftenToo(ConvNetClassifier):
        _tuning = ALWAYS

    model = OftenToo(**settings, checkpoint=str(tmp_path / "fit.ckpt")).set_callbacks(StopAfter(2))
    with pytest.raises(KeyboardInterrupt):
        model.fit(images, y)
    assert same(model.set_callbacks().fit(images, y), ConvNetClassifier(**settings).fit(images, y))


def test_what_was_reached_is_kept_by_a_smaller_max_iter(tmp_path):
    """Two epochs and four minibatches were done: these weights, with a certificate, whatever the schedule."""
    path = tmp_path / "fit.ckpt"
    interrupted(Often(**FIT, checkpoint=path), 3)
    params = Checkpoint(path, {}).read().arrays["params"]
    model = Often(**{**FIT, "max_iter": 2}, checkpoint=path).fit(X, Y)
    np.testing.assert_array_equal(np.concatenate([W.ravel() for W in model.coefs_]), params[: -5 - 3])
    assert model.training_state_.steps == 14
    assert model.n_iter_ == 2
    assert model.certificate_.holds


def test_other_fits_are_refused(tmp_path):
    path = tmp_path / "fit.ckpt"
    interrupted(Often(**FIT, checkpoint=path))
    before = path.read_bytes()
    with pytest.raises(DataError, match="a fit with other rows; wanted the checkpoint of this very fit, or no file"):
        Often(**FIT, checkpoint=path).fit(X + 1, Y)
    with pytest.raises(DataError, match="a fit with other rows"):
        Often(**FIT, checkpoint=path).fit(X, Y, sample_weight=np.arange(150))
    with pytest.raises(DataError, match="a fit with other alpha"):
        Often(**FIT, checkpoint=path, alpha=0.1).fit(X, Y)
    with pytest.raises(DataError, match="a fit with other layers and other hidden_layer_sizes"):
        Often(**{**FIT, "hidden_layer_sizes": (6,)}, checkpoint=path).fit(X, Y)
    with pytest.raises(DataError, match="a fit with other model"):
        MLPRegressor(checkpoint=path).fit(X, Y)
    with pytest.raises(DataError, match=r"max_iter=9 for a checkpoint of a fit with max_iter=6.*'cosine' falls"):
        Often(**{**FIT, "max_iter": 9}, checkpoint=path).fit(X, Y)
    assert path.read_bytes() == before


@pytest.mark.parametrize("damage", ["cut", "flip", "other"])
def test_damaged_files_are_refused(tmp_path, damage):
    path = tmp_path / "fit.ckpt"
    Checkpoint(path, {"rows": "a"}).write({"steps": 3}, {"params": np.arange(4.0)})
    content = bytearray(path.read_bytes())
    if damage == "flip":
        content[-3] ^= 1
    path.write_bytes({"cut": content[:-5], "flip": content, "other": b"PK..."}[damage])
    with pytest.raises(DataError, match=r"no checkpoint that|does not match its checksum"):
        Checkpoint(path, {"rows": "a"}).read()


def test_a_checkpoint_holds_what_was_written(tmp_path):
    file = Checkpoint(tmp_path / "c", {"rows": "a"})
    assert file.read() is None
    arrays = {"a": np.array([[1.5, np.inf]], np.float32), "b": np.zeros(0), "c": np.array(7)}
    file.write({"n": 3}, arrays)
    found = file.read()
    assert found.numbers == {"n": 3}
    for name, array in arrays.items():
        assert found.arrays[name].dtype == array.dtype
        np.testing.assert_array_equal(found.arrays[name], array)
    file.remove()
    assert file.read() is None


def test_rows_are_known_by_every_number():
    w = np.ones(150)
    first = table_digest(as_rows(X, Y, w, target="classes"))
    assert first == table_digest(as_rows(X.copy(), Y, w, target="classes"))
    for k, (x, y, v) in enumerate([(X, Y, w)] * 3):
        changed = [x.copy(), y.copy(), v.copy()]
        changed[k].flat[-1] += 1
        assert table_digest(as_rows(*changed, target="classes")) != first


LBFGS = {"hidden_layer_sizes": (5,), "solver": "lbfgs", "alpha": 1.0, "max_iter": 40, "random_state": 0}


@pytest.mark.parametrize("seed", [0, None])
def test_lbfgs_goes_on_without_measuring_again(tmp_path, monkeypatch, seed):
    """Passes on record are taken again from it; a point that is not on record is measured."""
    measured, whole = [], full_batch.full_slopes
    monkeypatch.setattr(full_batch, "full_slopes", lambda *a: measured.append(1) or whole(*a))
    settings = {**LBFGS, "random_state": seed}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CertificateWarning)  # 40 steps are too few
        if seed is not None:
            wanted = MLPClassifier(**settings).fit(X, Y)
            every = len(measured)
        del measured[:]
        model = interrupted(Often(**settings, checkpoint=tmp_path / "fit.ckpt"), 5)
        kept = Checkpoint(tmp_path / "fit.ckpt", {}).read().arrays
        assert len(kept["values"]) == len(measured)
        model.fit(X, Y)
    assert not (tmp_path / "fit.ckpt").exists()
    if seed is not None:
        assert len(measured) == every
        assert all((a == b).all() for a, b in zip(model.coefs_, wanted.coefs_, strict=True))
        assert [mark.objective for mark in model.history_] == [mark.objective for mark in wanted.history_]
    assert model.history_[0].objective == kept["values"][0]


def test_a_record_of_other_points_is_dropped(tmp_path):
    """A file whose points another version of SciPy would not ask for is of no use, and does no harm."""
    path = tmp_path / "fit.ckpt"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CertificateWarning)
        model = interrupted(Often(**LBFGS, checkpoint=path), 20)
        file = Checkpoint(path, {})
        kept = dict(file.read().arrays)
        marks = kept["marks"].copy()
        marks[7:] += 1
        words = json.loads(path.read_bytes().split(b"\n")[1])["fit"]
        Checkpoint(path, words).write(
            {}, {**kept, "marks": marks, "values": kept["values"] * (marks == kept["marks"])}
        )
        wanted = MLPClassifier(**LBFGS).fit(X, Y)
        assert all((a == b).all() for a, b in zip(model.fit(X, Y).coefs_, wanted.coefs_, strict=True))


def test_a_checkpoint_is_a_path():
    with pytest.raises(DataError, match="checkpoint=3; wanted the path of a file or None"):
        MLPClassifier(checkpoint=3).fit(X, Y)
