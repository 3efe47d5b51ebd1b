"""Programs that are killed during a fit and during a save.

Programs are forked from one that has loaded everything already (multiprocessing's fork server): a trial costs what
its fits cost.
"""

from __future__ import annotations

import multiprocessing
import os
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.faults.trials import Fault, FaultFinding, Trial

ROWS = {"kernel": 2500, "pursuit": 800, "outliers": 2500}  # of the others 20,000
MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "mixture": ("GaussianMixture", {"n_components": 4, "random_state": 0, "tol": 1e-9, "max_iter": 60}),
    "clusters": ("KMeans", {"n_clusters": 8, "random_state": 0}),
    "logistic": ("LogisticRegression", {"penalty": "l1", "C": 0.05}),
    "poisson": ("PoissonRegressor", {}),
    "machine": ("LinearSVC", {"loss": "hinge"}),
    "forest": ("RandomForestClassifier", {"n_estimators": 40, "max_depth": 6, "random_state": 0}),
    "boosting": ("HistGradientBoostingClassifier", {"max_iter": 30, "random_state": 0}),
    "kernel": ("SVC", {"kernel": "poly", "C": 10.0, "cache_size": 20}),
    "outliers": ("OneClassSVM", {"nu": 0.2, "cache_size": 20}),
    "pursuit": ("RobustPCA", {"tol": 1e-9}),
}
MOST_SECONDS = 600.0  # that any program may take on a busy machine
MOST_ATTEMPTS = 20  # to kill a fit before it ends


@cache
def fork_server() -> Any:
    """A program that has made every fit once, and forks itself when asked to."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["benchmarks.faults.preloaded"])
    return context


def fitted_digest_of(path: str, name: str, begins: Callable[[], object] = bool) -> str:
    """Fit with a checkpoint, and return the hash of all fitted arrays."""
    import certifit
    from certifit.files.checkpoint import CheckpointTuning
    from certifit.files.pass_log import KeptLoop
    from certifit.table.portfolio.digest import fitted_digest

    KeptLoop.tuning = CheckpointTuning(seconds=0.02, share=1.0)  # small fits: no second passes
    X = np.random.default_rng(0).normal(size=(ROWS.get(name, 20_000), 10))
    y = (X[:, 0] + np.random.default_rng(1).normal(size=len(X)) > 0).astype(int)
    kind, params = MODELS[name]
    model = getattr(certifit, kind)(**params)
    warnings.simplefilter("ignore")
    begins()
    return fitted_digest(model.fit(X, y, checkpoint=path))


def fit_and_tell(path: str, name: str, sender: Any) -> None:
    """Fit in a program of its own, which says when it begins and what it found."""
    sender.send(fitted_digest_of(path, name, lambda: sender.send("begins")))


def save_forever(path: str, sender: Any) -> None:
    """Save a model over and over, in the place of the last one."""
    import certifit

    model = certifit.load(path)
    sender.send("begins")
    while True:
        certifit.save(model, path)


def _until_killed(task: Callable[..., None], limit: float, *arguments: str) -> tuple[str, float]:
    """What a program sends, and how long after it began; nothing where it is killed with -9 at that limit."""
    context = fork_server()
    receiver, sender = context.Pipe(duplex=False)
    program = context.Process(target=task, args=(*arguments, sender))
    program.start()
    sender.close()
    found = ""
    try:
        if not receiver.poll(MOST_SECONDS):
            raise FaultFinding(f"{task.__name__} {arguments[1:]}: did not begin in {MOST_SECONDS:.0f} s")
        receiver.recv()
        begin = time.monotonic()
        if receiver.poll(limit):
            found = receiver.recv()
            seconds = time.monotonic() - begin
            program.join(MOST_SECONDS)
    except EOFError:
        raise FaultFinding(f"{task.__name__} {arguments[1:]}: ended without a word") from None
    finally:
        program.kill()
        program.join()
        receiver.close()
    return found, seconds if found else limit


@contextmanager
def killed_fits(folder: Path) -> Iterator[Trial]:
    """Kill a fit with a checkpoint at random moments, one to three times; it ends with the bits of a whole one."""
    whole: dict[str, str] = {}
    longest: dict[str, float] = {}
    for name in MODELS:
        whole[name], longest[name] = _fit(folder, name, MOST_SECONDS)

    def trial(rng: np.random.Generator) -> str:
        name = str(rng.choice(list(MODELS)))
        asked, kills = int(rng.integers(1, 4)), 0
        for _ in range(MOST_ATTEMPTS):
            found, seconds = _fit(folder, name, float(rng.uniform(0, 0.8)) * longest[name])
            kills += 1
            if found:  # it was faster than its kill, and left no checkpoint: the next one begins anew
                kills, longest[name] = 0, seconds
                _same(name, kills, found, whole[name])
            if kills == asked:
                break
        _same(name, kills, _fit(folder, name, MOST_SECONDS)[0], whole[name])
        return f"killed {kills} time{'s' * (kills != 1)}, same bits"

    yield trial


def _same(name: str, kills: int, found: str, whole: str) -> None:
    if found != whole:
        raise FaultFinding(f"{name}: other bits after {kills} kills ({found})")


def _fit(folder: Path, name: str, limit: float) -> tuple[str, float]:
    """The hash of all arrays of a fit and its seconds; nothing and the limit where it was killed then."""
    path = folder / f"{name}.ckpt"
    found, seconds = _until_killed(fit_and_tell, limit, str(path), name)
    if found and path.exists():
        raise FaultFinding(f"{name}: the checkpoint of a complete fit is still there")
    return found, seconds


@contextmanager
def killed_saves(folder: Path) -> Iterator[Trial]:
    """Kill a program that saves a model over and over; the file must be whole."""
    import certifit

    path = folder / "model.certifit"
    X = np.random.default_rng(0).normal(size=(20_000, 20))
    certifit.save(certifit.SVC().fit(X[:2000], X[:2000, 0] > 0), path)
    content = path.read_bytes()

    def trial(rng: np.random.Generator) -> str:
        _until_killed(save_forever, float(rng.uniform(0, 0.5)), str(path))
        if path.read_bytes() != content:
            raise FaultFinding("a file that is neither the old nor the new one")
        for left in folder.glob(".*.tmp"):  # a program that is killed cannot clean up
            os.unlink(left)
        return "the file is whole"

    yield trial


KILLED_FITS = Fault("killed_fits", "kill -9 during a fit with a checkpoint", 100, killed_fits)
KILLED_SAVES = Fault("killed_saves", "kill -9 during a save", 100, killed_saves)
