"""Checkpoints that are damaged, or made by somebody who wants to do harm."""

from __future__ import annotations

import hashlib
import json
import pickle
import tracemalloc
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np

from benchmarks.faults.trials import Fault, FaultFinding, Trial
from certifit.files.pass_log import _head_digest

MOST_MEMORY = 300_000_000  # bytes that reading a hostile file may take


class FitStopped(Exception):
    """As good as a program that is killed."""


class InterruptedFit(NamedTuple):
    """What a fit left behind that was stopped, and what it would have found."""

    fit: Callable[[Path], Any]
    files: dict[str, bytes]  # by what comes after the checkpoint's name
    bits: bytes


def _interrupted_fits(folder: Path) -> list[InterruptedFit]:
    import certifit

    X = np.random.default_rng(0).normal(size=(200, 4))
    y = (X[:, 0] + X[:, 1] ** 2 > 0.5).astype(int)
    few = {"max_iter": 8, "random_state": 0, "hidden_layer_sizes": (3,)}
    fits: list[Callable[[Path], Any]] = [
        lambda path: certifit.LogisticRegression().fit(X, y, checkpoint=path).coef_,
        lambda path: certifit.GaussianMixture(2).fit(X, checkpoint=path).means_,  # draws a seed, and keeps it
        lambda path: certifit.KMeans(3).fit(X, checkpoint=path).cluster_centers_,
        lambda path: certifit.RandomForestClassifier(5).fit(X, y, checkpoint=path).predict_proba(X),
        lambda path: certifit.RobustPCA(tol=1e-2).fit(X[:40], checkpoint=path).low_rank_,
        lambda path: certifit.MLPClassifier(solver="adam", checkpoint=path, **few).fit(X, y).coefs_[0],
    ]
    return [_interrupted(fit, folder / "begun.ckpt") for fit in fits]


def _interrupted(fit: Callable[[Path], Any], path: Path) -> InterruptedFit:
    from certifit.files import checkpoint, pass_log

    written = 0

    def stopping(write: Callable[..., Any]) -> Callable[..., Any]:
        def stop(*arguments: Any) -> None:
            nonlocal written
            write(*arguments)
            written += 1
            if written == 2:  # the shortest of these fits makes three passes
                raise FitStopped

        return stop

    often = checkpoint.CheckpointTuning(seconds=0.0, share=np.inf)
    with (
        patch.object(pass_log.PassLog, "_append", stopping(pass_log.PassLog._append)),
        patch.object(pass_log.KeptLoop, "note", stopping(pass_log.KeptLoop.note)),
        patch.object(checkpoint.Checkpoint, "write", stopping(checkpoint.Checkpoint.write)),
        patch.object(checkpoint.Checkpoint, "due", True),
        patch.object(pass_log.KeptLoop, "tuning", often),
        suppress(FitStopped),
    ):
        _quietly(fit, path)
    files = {there.name[len(path.name) :]: there.read_bytes() for there in path.parent.glob(path.name + "*")}
    assert files, "the fit was not stopped"
    return InterruptedFit(fit, files, _quietly(fit, path))


def _quietly(fit: Callable[[Path], Any], path: Path) -> bytes:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.asarray(fit(path)).tobytes()


@contextmanager
def flipped_checkpoints(folder: Path) -> Iterator[Trial]:
    """Flip bits of a checkpoint or cut it; the same call refuses it in words, or ends with the same bits."""
    fits = _interrupted_fits(folder)

    def trial(rng: np.random.Generator) -> str:
        one = fits[rng.integers(len(fits))]
        name = sorted(one.files)[rng.integers(len(one.files))]
        content = bytearray(one.files[name])
        head = min(len(content), 600) if rng.random() < 0.5 else len(content)  # which says of which fit it is
        for place in rng.integers(8 * head, size=rng.integers(1, 4)):
            content[place // 8] ^= 1 << (place % 8)
        if rng.random() < 0.2:
            content = content[: rng.integers(len(content))]
        return _gone_on(one, folder, one.files | {name: bytes(content)}, same_bits=True)

    yield trial


@contextmanager
def hostile_checkpoints(folder: Path) -> Iterator[Trial]:
    """Put something else into a checkpoint, hashes and all: words or a fit, in bounded memory, and no code is run."""
    fits = _interrupted_fits(folder)

    def trial(rng: np.random.Generator) -> str:
        one = fits[rng.integers(len(fits))]
        content = one.files[""]
        change = (_other_head, _other_answer)[int(rng.integers(2)) if content.startswith(b"certifit-passes") else 0]
        end = _gone_on(one, folder, one.files | {"": change(content, rng)}, same_bits=False)
        if (folder / "ran").exists():
            raise FaultFinding("code of a checkpoint was run")
        return end

    yield trial


def _gone_on(one: InterruptedFit, folder: Path, files: dict[str, bytes], same_bits: bool) -> str:
    """How the same call ends with these files."""
    import certifit

    path = folder / "begun.ckpt"
    for there in folder.glob(path.name + "*"):
        there.unlink()
    for name, content in files.items():
        Path(f"{path}{name}").write_bytes(content)
    tracemalloc.start()
    try:
        bits = _quietly(one.fit, path)
    except certifit.DataError as error:
        if len(str(error)) > 1000:
            raise FaultFinding(f"a refusal of {len(str(error))} characters") from error
        return "refused"
    except (Exception, RecursionError, MemoryError) as error:
        raise FaultFinding(f"{type(error).__name__} instead of words: {str(error)[:100]}") from error
    finally:
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        if most > MOST_MEMORY:
            raise FaultFinding(f"{most / 1e6:.0f} MB to read {sum(map(len, files.values()))} bytes")
    if same_bits and bits != one.bits:
        raise FaultFinding("other bits")
    return "same bits" if bits == one.bits else "went on: the change means something"


def _other_head(content: bytes, rng: np.random.Generator) -> bytes:
    """Another second line: nested, huge, or of other kinds; the first has the hash where there is one."""
    first, _, rest = content.partition(b"\n")
    line, _, records = rest.partition(b"\n")
    head = json.loads(line)
    key = list(head)[rng.integers(len(head))]
    others = (
        None,
        -1,
        10**400,
        "x" * 1000,
        [],
        {},
        [["a", "<f8", [10**15]]],
        [["a", "<f8", [-1]]],
        [["a", "O", [1]]],
    )
    choice = rng.integers(len(others) + 2)
    head[key] = others[choice] if choice < len(others) else "DEEP"
    deep = b'{"a": ' * 200_000 + b"1" + b"}" * 200_000 if choice == len(others) else b"1e999"
    if key != "hash" and "hash" in head:
        with suppress(Exception):
            head["hash"] = _head_digest(dict(head["fit"]), int(head["seed"]))
    body = json.dumps(head).encode().replace(b'"DEEP"', deep) + b"\n" + records
    if first.startswith(b"certifit-checkpoint"):
        first = b" ".join([*first.split(b" ")[:2], hashlib.sha256(body).hexdigest().encode()])
    return first + b"\n" + body


class _RunsCode:
    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (Path("ran"),)


def _other_answer(content: bytes, rng: np.random.Generator) -> bytes:
    """Another answer to the first question."""
    start = content.index(b"\n", content.index(b"\n") + 1) + 1
    asked = content[start + 40 : start + 72]
    huge = b"\x80\x04cnumpy._core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(I%d\ntC\x01btR." % 10**14
    answers = (
        pickle.dumps(_RunsCode()), pickle.dumps(None), pickle.dumps([1, "a"]), b"", b"\x80\x04.", rng.bytes(40), huge,
        b"\x80\x04" + b"(" * 100_000 + b"l.", b"\x80\x04" + b"]" * 300_000 + b"a" * 299_999 + b".",
        b"\x80\x04ccertifit.core.sums\nSums\n)R.", b"\x80\x04ccertifit.cli.app\napp\n.",
        b"\x80\x04ccertifit\nLogisticRegression\n)R.", pickle.dumps(np.zeros((2, 3))), pickle.dumps(10**400),
    )  # fmt: skip
    body = asked + answers[rng.integers(len(answers))]
    return content[:start] + len(body).to_bytes(8, "little") + hashlib.sha256(body).digest() + body


FLIPPED_CHECKPOINTS = Fault(
    "flipped_checkpoints", "bits flipped in checkpoints, checkpoints cut short", 1000, flipped_checkpoints
)
HOSTILE_CHECKPOINTS = Fault(
    "hostile_checkpoints", "checkpoints with other contents, hashes and all", 300, hostile_checkpoints
)
