"""A fit that is killed goes on where it was, and ends with the bits that it would have had."""

import hashlib
import json
import os
import signal
import subprocess
import sys
import textwrap
import warnings

import numpy as np
import pytest

from certifit import (
    SVC,
    GaussianMixture,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    KMeans,
    LogisticRegression,
    MLPClassifier,
    PoissonRegressor,
    RandomForestClassifier,
    RobustPCA,
)
from certifit.exceptions import DataError
from certifit.files import pass_log
from certifit.files.checkpoint import CheckpointTuning
from tests.common.catalogue import CATALOGUE, Entry, two
from tests.common.test_estimator import Raises

FIRST = [next(e for e in CATALOGUE if e.cls is cls) for cls in dict.fromkeys(e.cls for e in CATALOGUE)]


class Killed(Exception):
    """As good as a program that ends: nothing after the last record is written."""


def records(monkeypatch, most=10**9):
    """Count the passes that are written, and the times that a loop says where it stands; fail after some."""
    written, write, note = [], pass_log.PassLog._append, pass_log.KeptLoop.note

    def add(size):
        written.append(size)
        if len(written) == most:
            raise Killed

    def counted(self, asked, answer):
        write(self, asked, answer)
        add(len(answer))

    def noted(self, state):
        note(self, state)
        add(self.path.stat().st_size)

    monkeypatch.setattr(pass_log.PassLog, "_append", counted)
    monkeypatch.setattr(pass_log.KeptLoop, "note", noted)
    monkeypatch.setattr(pass_log.KeptLoop, "tuning", CheckpointTuning(seconds=0.0, share=np.inf))
    return written


def bits(model):
    """All arrays of a fitted model, as bytes."""
    named = {name: value for name, value in vars(model).items() if isinstance(value, np.ndarray)}
    return {name: value.tobytes() for name, value in named.items() if value.dtype != object}


@pytest.mark.parametrize("entry", FIRST, ids=str)
def test_a_killed_fit_ends_with_the_same_bits(entry: Entry, tmp_path, monkeypatch):
    X, y = entry.data()
    file, straight = tmp_path / "fit.ckpt", entry.fitted()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with monkeypatch.context() as patch:
            all_passes = records(patch)
            assert bits(entry.make().fit(X, y, checkpoint=file)) == bits(straight)
            assert not os.listdir(tmp_path)
        if not all_passes:  # one matrix that is decomposed, or a network, which has its own tests
            assert entry.cls.__name__ in ("KernelPCA", "MLPClassifier", "MLPRegressor", "ConvNetClassifier")
            return
        half = -(-len(all_passes) // 2)
        with monkeypatch.context() as patch:
            records(patch, half)
            with pytest.raises(Killed):
                entry.make().fit(X, y, checkpoint=file)
        with monkeypatch.context() as patch:
            rest = records(patch)
            assert bits(entry.make().fit(X, y, checkpoint=file)) == bits(straight)
    assert len(rest) == len(all_passes) - half


def test_machines_after_one_that_was_killed(tmp_path, monkeypatch):
    """What a machine stood at is not the answer of the next: those of folds are asked the same."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    y, file = (X[:, 0] + rng.normal(size=40) > 0).astype(int), tmp_path / "fit.ckpt"
    straight = bits(SVC(probability=True).fit(X, y))
    for most in (2, 4, 9):
        with monkeypatch.context() as patch:
            records(patch, most)
            with pytest.raises(Killed):
                SVC(probability=True).fit(X, y, checkpoint=file)
        assert bits(SVC(probability=True).fit(X, y, checkpoint=file)) == straight


def test_where_a_loop_stands_is_read_as_a_whole_or_not_at_all(tmp_path, monkeypatch):
    X, file = np.random.default_rng(0).normal(size=(30, 6)), tmp_path / "fit.ckpt"
    with monkeypatch.context() as patch:
        records(patch, 5)
        with pytest.raises(Killed):
            RobustPCA(tol=1e-2).fit(X, checkpoint=file)
    first, loop, straight = file.read_bytes(), tmp_path / "fit.ckpt.loop", bits(RobustPCA(tol=1e-2).fit(X))
    whole = loop.read_bytes()
    for place in (20, len(whole) // 2):
        for content in (whole[:place], whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :]):
            file.write_bytes(first)
            loop.write_bytes(content)
            assert bits(RobustPCA(tol=1e-2).fit(X, checkpoint=file)) == straight
    file.unlink(missing_ok=True)
    loop.write_bytes(whole)  # of a fit whose passes are gone
    with monkeypatch.context() as patch:
        steps = records(patch)
        assert bits(RobustPCA(tol=1e-2).fit(X, checkpoint=file)) == straight
    assert len(steps) > 5


def test_a_program_that_is_killed(tmp_path):
    script = textwrap.dedent("""
        import sys, os, signal
        import numpy as np
        from certifit import GaussianMixture
        from certifit.files import pass_log
        X = np.random.default_rng(0).normal(size=(200, 3))
        write, left = pass_log.PassLog._append, [7]
        def die(self, asked, answer):
            write(self, asked, answer)
            left[0] -= 1
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)
        pass_log.PassLog._append = die
        GaussianMixture(2).fit(X, checkpoint=sys.argv[1])
    """)
    file = tmp_path / "fit.ckpt"
    X = np.random.default_rng(0).normal(size=(200, 3))
    killed = subprocess.run([sys.executable, "-c", script, str(file)], capture_output=True)
    assert killed.returncode == -signal.SIGKILL
    seed = json.loads(file.read_bytes().split(b"\n")[1])["seed"]  # none is given: the one drawn is used again
    assert bits(GaussianMixture(2).fit(X, checkpoint=file)) == bits(GaussianMixture(2, random_state=seed).fit(X))


def killed_fit(file, monkeypatch, make=LogisticRegression):
    X, y = two()
    with monkeypatch.context() as patch:
        records(patch, 2)
        with pytest.raises(Killed):
            make().fit(X, y, checkpoint=file)
    return X, y


def test_other_rows_and_settings_are_refused(tmp_path, monkeypatch):
    file = tmp_path / "fit.ckpt"
    X, y = killed_fit(file, monkeypatch)
    with pytest.raises(DataError, match="other rows"):
        LogisticRegression().fit(X + 1, y, checkpoint=file)
    with pytest.raises(DataError, match="other C"):
        LogisticRegression(C=2).fit(X, y, checkpoint=file)
    with pytest.raises(DataError, match="other model and other"):
        PoissonRegressor().fit(X, y, checkpoint=file)
    assert LogisticRegression(max_iter=7, n_jobs=1).fit(X, y, checkpoint=file).certificate_.holds  # it goes further


def test_a_file_that_is_damaged(tmp_path, monkeypatch):
    file = tmp_path / "fit.ckpt"
    X, y = killed_fit(file, monkeypatch)
    whole, straight = file.read_bytes(), LogisticRegression().fit(X, y)
    start = whole.index(b"\n", whole.index(b"\n") + 1) + 1  # behind the lines that say of which fit it is
    for place in range(start, len(whole), 61):  # a record that is not what was written is not there
        file.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        assert bits(LogisticRegression().fit(X, y, checkpoint=file)) == bits(straight)
    for cut in (start, start + 5, len(whole) - 1):
        file.write_bytes(whole[:cut])
        assert bits(LogisticRegression().fit(X, y, checkpoint=file)) == bits(straight)
    for content in (b"", b"other\n", whole[: start - 4]):
        file.write_bytes(content)
        with pytest.raises(DataError, match="checkpoint"):
            LogisticRegression().fit(X, y, checkpoint=file)


def test_no_code_is_run_by_reading(tmp_path, monkeypatch):
    file = tmp_path / "fit.ckpt"
    X, y = killed_fit(file, monkeypatch)
    whole, command = file.read_bytes(), b"cos\nsystem\n(S'touch " + bytes(tmp_path / "ran") + b"'\ntR."
    start = whole.index(b"\n", whole.index(b"\n") + 1) + 1
    body = whole[start + 8 + pass_log.DIGEST :][: pass_log.DIGEST] + command  # an answer to the first question
    file.write_bytes(whole[:start] + len(body).to_bytes(8, "little") + hashlib.sha256(body).digest() + body)
    with pytest.raises(DataError, match="answers that no fit gives"):
        LogisticRegression().fit(X, y, checkpoint=file)
    assert not (tmp_path / "ran").exists()


def test_what_cannot_be_kept(tmp_path):
    X, y = two()
    with pytest.raises(DataError, match="random_state=0, say"):
        KMeans(2, random_state=np.random.RandomState(0)).fit(X, checkpoint=tmp_path / "fit.ckpt")
    with pytest.raises(DataError, match="path of a file"):
        LogisticRegression().fit(X, y, checkpoint=3)
    with pytest.raises(FileNotFoundError):
        LogisticRegression().fit(X, y, checkpoint=tmp_path / "none" / "fit.ckpt")
    assert os.listdir(tmp_path) == []


def test_a_drawn_seed_is_drawn_once(tmp_path, monkeypatch):
    file = tmp_path / "fit.ckpt"
    X, y = killed_fit(file, monkeypatch, lambda: RandomForestClassifier(12))
    first, model = file.read_bytes(), RandomForestClassifier(12)
    one = bits(model.fit(X, y, checkpoint=file).trees_)
    file.write_bytes(first)
    assert bits(model.fit(X, y, checkpoint=file).trees_) == one
    assert model.random_state is None


@pytest.mark.parametrize(
    "make",
    [
        lambda: HistGradientBoostingClassifier(max_iter=8, early_stopping=True, n_iter_no_change=9, random_state=0),
        lambda: GradientBoostingClassifier(n_estimators=8, subsample=0.5, random_state=0),
    ],
)
def test_trees_of_boosting_are_grown_once(make, tmp_path, monkeypatch):
    X, y = two()
    file, straight = tmp_path / "fit.ckpt", make().fit(X, y)
    with monkeypatch.context() as patch:
        every = records(patch)
        make().fit(X, y, checkpoint=file)
    assert len(every) >= 8
    assert every.count(0) <= 1  # all but the bins can be read back
    with monkeypatch.context() as patch:
        records(patch, 5)
        with pytest.raises(Killed):
            make().fit(X, y, checkpoint=file)
    with monkeypatch.context() as patch:
        rest = records(patch)
        model = make().fit(X, y, checkpoint=file)
    assert len(rest) == len(every) - 5
    assert bits(model.trees_) == bits(straight.trees_)


def test_networks_write_down_where_they_stand_themselves(tmp_path):
    """A fit that its callback interrupts leaves the file of minibatches, from which the same call goes on."""
    file, (X, y) = tmp_path / "fit.ckpt", two()
    model = MLPClassifier((4,), max_iter=6, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        straight = model.fit(X, y).coefs_
        model._tuning = CheckpointTuning(seconds=0.0, share=1.0)
        stop = MLPClassifier((4,), max_iter=6, random_state=0).set_callbacks(Raises("end", 4))
        stop._tuning = model._tuning
        with pytest.raises(KeyboardInterrupt):
            stop.fit(X, y, checkpoint=file)
        assert file.read_bytes().startswith(b"certifit-checkpoint ")
        again = model.fit(X, y, checkpoint=file).coefs_
    assert [one.tobytes() for one in again] == [one.tobytes() for one in straight]
    assert model.checkpoint is None
    assert not file.exists()
