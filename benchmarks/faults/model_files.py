"""Model files that are damaged, hostile, or have no room on the disk."""

from __future__ import annotations

import hashlib
import io
import json
import resource
import tracemalloc
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.faults.trials import Fault, FaultFinding, Trial

MOST_MEMORY = 300_000_000  # bytes that reading a hostile file may take


def _some_models(folder: Path) -> list[Path]:
    import certifit

    X = np.random.default_rng(0).normal(size=(200, 4))
    y = (X[:, 0] > 0).astype(int)
    models = [
        certifit.LogisticRegression().fit(X, y),
        certifit.PCA(2).fit(X),
        certifit.KMeans(3, random_state=0).fit(X),
        certifit.SVC().fit(X, y),
        certifit.RandomForestClassifier(5, random_state=0).fit(X, y),
        certifit.GaussianMixture(2, random_state=0).fit(X),
    ]
    paths = []
    for model in models:
        paths.append(folder / f"{type(model).__name__}.certifit")
        certifit.save(model, paths[-1])
    return paths


@contextmanager
def flipped_bits(folder: Path) -> Iterator[Trial]:
    """Flip bits of a model file; whatever is loaded must be the model that was saved."""
    contents = [path.read_bytes() for path in _some_models(folder)]
    damaged = folder / "damaged.certifit"

    def trial(rng: np.random.Generator) -> str:
        content = bytearray(contents[rng.integers(len(contents))])
        for place in rng.integers(8 * len(content), size=rng.integers(1, 4)):
            content[place // 8] ^= 1 << (place % 8)
        if rng.random() < 0.2:
            content = content[: rng.integers(len(content))]
        damaged.write_bytes(content)
        return _refused(damaged)

    yield trial


@contextmanager
def hostile_models(folder: Path) -> Iterator[Trial]:
    """Change what a model file says, and its checksum with it: a clear refusal, or a model, in bounded memory."""
    paths = _some_models(folder)
    hostile = folder / "hostile.certifit"

    def trial(rng: np.random.Generator) -> str:
        members = _members(paths[rng.integers(len(paths))])
        HOSTILE[rng.integers(len(HOSTILE))](members, rng)
        payload = io.BytesIO()
        with zipfile.ZipFile(payload, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in members.items():
                archive.writestr(name, content)
        digest = hashlib.sha256(payload.getbuffer()).hexdigest()
        hostile.write_bytes(f"certifit-model 1 {digest}\n".encode() + payload.getvalue())
        return _refused(hostile, may_load=True)

    yield trial


def _refused(path: Path, may_load: bool = False) -> str:
    """Load a file that is not what was saved."""
    import certifit

    tracemalloc.start()
    try:
        certifit.load(path)
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
            raise FaultFinding(f"{most / 1e6:.0f} MB to read {path.stat().st_size} bytes")
    if not may_load:
        raise FaultFinding("a damaged file was loaded")
    return "loaded: the change means something"


def _members(path: Path) -> dict[str, bytes]:
    content = path.read_bytes()
    with zipfile.ZipFile(io.BytesIO(content[content.index(b"\n") + 1 :])) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


# ------------------------------------------------------------------------------------------------ hostile changes
def _change_bytes_of_words(members: dict[str, bytes], rng: np.random.Generator) -> None:
    words = bytearray(members["model.json"])
    for place in rng.integers(len(words), size=3):
        words[place] = rng.integers(32, 127)
    members["model.json"] = bytes(words)


def _change_a_value(members: dict[str, bytes], rng: np.random.Generator) -> None:
    """Put something else in a random place of the document."""
    document = json.loads(members["model.json"])
    places: list[tuple[Any, Any]] = []

    def walk(value: Any) -> None:
        for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
            places.append((value, key))
            walk(value[key])

    walk(document)
    holder, key = places[rng.integers(len(places))]
    others = (None, -1, 10**30, "x" * 1000, [], {}, {"array": 10**9}, {"estimator": "os.system", "params": {}}, 1e308)
    holder[key] = others[rng.integers(len(others))]
    members["model.json"] = json.dumps(document).encode()


def _nest_deeply(members: dict[str, bytes], rng: np.random.Generator) -> None:
    depth = int(10 ** rng.uniform(2, 6))
    members["model.json"] = b'{"model": ' + b'{"list": [' * depth + b"]}" * depth + b"}"


def _declare_a_huge_array(members: dict[str, bytes], rng: np.random.Generator) -> None:
    arrays = [name for name in members if name.endswith(".npy")]
    size = int(10 ** rng.uniform(6, 17))
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({size},), }}".ljust(117) + "\n"
    members[arrays[rng.integers(len(arrays))]] = b"\x93NUMPY\x01\x00" + (118).to_bytes(2, "little") + header.encode()


def _change_the_shape(members: dict[str, bytes], rng: np.random.Generator) -> None:
    arrays = [name for name in members if name.endswith(".npy")]
    content = io.BytesIO()
    shapes = ((0,), (1,), (3, 0), (2, 2, 2), (1000,), ())
    np.save(content, np.zeros(shapes[rng.integers(len(shapes))], (np.float64, np.int8, "U3")[rng.integers(3)]))
    members[arrays[rng.integers(len(arrays))]] = content.getvalue()


def _add_a_bomb(members: dict[str, bytes], rng: np.random.Generator) -> None:
    """A member that unpacks to four hundred megabytes."""
    arrays = [name for name in members if name.endswith(".npy")]
    size = 4 * 10**8 // 8
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({size},), }}".ljust(117) + "\n"
    members[arrays[rng.integers(len(arrays))]] = (
        b"\x93NUMPY\x01\x00" + (118).to_bytes(2, "little") + header.encode() + bytes(8 * size)
    )


def _point_elsewhere(members: dict[str, bytes], _: np.random.Generator) -> None:
    members["../../../tmp/certifit-was-here"] = b"x"
    document = json.loads(members["model.json"])
    document["model"] = {"array": "../../etc/passwd"}
    members["model.json"] = json.dumps(document).encode()


HOSTILE: tuple[Callable[[dict[str, bytes], np.random.Generator], None], ...] = (
    *(_change_bytes_of_words, _change_a_value, _change_a_value, _change_a_value, _change_the_shape) * 3,
    _nest_deeply,
    _declare_a_huge_array,
    _add_a_bomb,
    _point_elsewhere,
)


@contextmanager
def full_disks(folder: Path) -> Iterator[Trial]:
    """Let files grow to so many bytes only, during a save and during a fit with a checkpoint."""
    import certifit

    saved = _some_models(folder)[0]
    before = saved.read_bytes()
    X = np.random.default_rng(0).normal(size=(200, 4))
    path = folder / "fit.ckpt"
    straight = certifit.GaussianMixture(2, random_state=0).fit(X)

    def trial(rng: np.random.Generator) -> str:
        limit = int(rng.integers(len(before)))
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
        try:
            _must_fail(lambda: certifit.save(straight, saved))
            _must_fail(lambda: certifit.GaussianMixture(2, random_state=0).fit(X, checkpoint=path))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        if saved.read_bytes() != before or list(folder.glob(".*.tmp")):
            raise FaultFinding("something half-written is left")
        again = certifit.GaussianMixture(2, random_state=0).fit(X, checkpoint=path)
        if again.means_.tobytes() != straight.means_.tobytes():
            raise FaultFinding("other bits after a full disk")
        return "said so; the old file is whole, the fit went on"

    yield trial


def _must_fail(action: Callable[[], object]) -> None:
    try:
        action()
    except OSError:
        return
    raise FaultFinding("a full disk went unnoticed")


FLIPPED_BITS = Fault("flipped_bits", "bits flipped in model files, files cut short", 10_000, flipped_bits)
HOSTILE_MODELS = Fault("hostile_models", "model files with other contents, checksum and all", 1000, hostile_models)
FULL_DISKS = Fault("full_disks", "no room on the disk, for models and checkpoints", 100, full_disks)
