"""Dask clusters that lose a worker or their scheduler in the middle of a fit."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.faults.trials import Fault, FaultFinding, Trial

ROWS, COLUMNS = 20_000, 8
MOST_SECONDS = 600  # until a worker is there, on a busy machine
WORKER_SECONDS = 30  # until a worker is there in the place of one that was killed
MOST_ATTEMPTS = 20  # to lose a worker or a scheduler before the fit ends


def _table() -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(ROWS, COLUMNS))
    X[: ROWS // 2] += 1.5
    return X, (X[:, 0] + rng.normal(size=ROWS) > 0.7).astype(int)


def _models() -> dict[str, Callable[[], Any]]:
    import certifit

    return {
        "mixture": lambda: certifit.GaussianMixture(3, random_state=0, tol=1e-6, max_iter=40),
        "logistic": lambda: certifit.LogisticRegression(),
        "clusters": lambda: certifit.KMeans(4, random_state=0, n_init=1, max_iter=5),
        "forest": lambda: certifit.RandomForestClassifier(10, max_depth=6, random_state=0),
    }


@contextmanager
def _cluster() -> Iterator[tuple[Any, Any]]:
    import dask
    from distributed import Client, LocalCluster

    options = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": ":0"}
    quiet = {"distributed.worker.daemon": False, "logging.distributed": "critical"}
    with dask.config.set({**quiet, "distributed.comm.timeouts.connect": "5s"}):
        cluster = LocalCluster(**options, silence_logs=50)
        client = Client(cluster)
        try:
            yield cluster, client
        finally:
            with suppress(Exception):
                client.close(timeout=5)
            with suppress(Exception):
                cluster.close(timeout=5)


@contextmanager
def _apart() -> Iterator[Callable[[], None]]:
    """A scheduler and a worker in programs of their own; what is given takes the scheduler away."""
    from distributed import Client

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    host, port = address.split(":")
    calls = (["scheduler", "--host", host, "--port", port], ["worker", address, "--nthreads", "1", "--no-nanny"])
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    programs = [subprocess.Popen([sys.executable, "-m", "dask", *call, "--no-dashboard"], **quiet) for call in calls]
    client = None
    try:
        client = Client(address, timeout=MOST_SECONDS)
        client.wait_for_workers(1, timeout=MOST_SECONDS)
        yield programs[0].kill
    finally:
        for program in programs:
            program.kill()
            program.wait()
        if client is not None:
            with suppress(Exception):
                client.close(timeout=1)


def _lazy(X: Any, y: Any) -> tuple[Any, Any]:
    import dask.array as da

    return da.from_array(X, chunks=(4096, -1)), da.from_array(y, chunks=4096)


def _bits(model: Any) -> bytes:
    names = sorted(name for name, value in vars(model).items() if isinstance(value, np.ndarray))
    return b"".join(getattr(model, name).tobytes() for name in names if getattr(model, name).dtype != object)


def _bits_and_seconds(make: Callable[[], Any], X: Any, y: Any) -> tuple[bytes, float]:
    begin = time.monotonic()
    model = make().fit(*_lazy(X, y))
    return _bits(model), time.monotonic() - begin


def _kill(victim: int, killed: list[float]) -> None:
    """End a program at once, and note when."""
    os.kill(victim, signal.SIGKILL)
    killed.append(time.monotonic())


@contextmanager
def lost_workers(_: Path) -> Iterator[Trial]:
    """Kill a worker at a random moment of a fit; it must end with the bits of a fit in one piece.

    The cluster starts another worker in its place, which is waited for before the next trial; where none comes within
    `WORKER_SECONDS`, Dask gave up starting it, and another cluster takes over.
    """
    X, y = _table()
    models = _models()
    whole: dict[str, bytes] = {}
    longest: dict[str, float] = {}
    with ExitStack() as stack, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        client = stack.enter_context(_cluster())[1]

        def wait_for_workers() -> None:
            nonlocal client
            try:
                client.wait_for_workers(2, timeout=WORKER_SECONDS)
            except TimeoutError:
                stack.close()
                client = stack.enter_context(_cluster())[1]
                client.wait_for_workers(2, timeout=MOST_SECONDS)

        for name in models:
            models[name]().fit(*_lazy(X, y))  # loads loops
            whole[name], longest[name] = _bits_and_seconds(models[name], X, y)

        def trial(rng: np.random.Generator) -> str:
            name = str(rng.choice(list(models)))
            for _ in range(MOST_ATTEMPTS):
                wait_for_workers()
                there = list(client.run(os.getpid, on_error="ignore").values())  # one may be lost just now
                if not there:
                    continue
                victim = there[rng.integers(len(there))]
                killed: list[float] = []
                late = threading.Timer(float(rng.uniform(0, 0.8)) * longest[name], _kill, (victim, killed))
                late.start()
                found, seconds = _bits_and_seconds(models[name], X, y)
                end = time.monotonic()
                late.cancel()
                if found != whole[name]:
                    raise FaultFinding(f"{name}: other bits")
                if killed and killed[0] < end:
                    return "killed, same bits"
                longest[name] = seconds
            raise FaultFinding(f"{name}: no worker was killed in {MOST_ATTEMPTS} fits")

        yield trial


@contextmanager
def lost_schedulers(folder: Path) -> Iterator[Trial]:
    """kill -9 the scheduler during a fit with a checkpoint: words at once, and the same call goes on elsewhere."""
    import certifit

    X, y = _table()
    models = _models()
    whole = {name: _bits(make().fit(*_lazy(X, y))) for name, make in models.items()}
    path = folder / "fit.ckpt"

    def trial(rng: np.random.Generator) -> str:
        name = str(rng.choice(list(models)))
        path.unlink(missing_ok=True)
        end = "the fit was faster"
        with _apart() as kill, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            killed: list[float] = []
            late = threading.Timer(float(rng.uniform(0, 3)), lambda: (kill(), killed.append(time.monotonic())))
            late.start()
            try:
                models[name]().fit(*_lazy(X, y), checkpoint=path)
            except certifit.DataError as error:
                end = "said so within 10 s, went on with the checkpoint: same bits"
                if time.monotonic() - killed[0] > 10 or "\n" in str(error):
                    raise FaultFinding(f"{name}: {time.monotonic() - killed[0]:.0f} s until {error}") from error
            except Exception as error:
                raise FaultFinding(f"{name}: {type(error).__name__}: {str(error)[:150]}") from error
            late.cancel()
        if _bits(models[name]().fit(*_lazy(X, y), checkpoint=path)) != whole[name]:  # on the threads of this machine
            raise FaultFinding(f"{name}: other bits")
        return end

    yield trial


LOST_WORKERS = Fault("lost_workers", "a Dask worker killed during a fit", 200, lost_workers)
LOST_SCHEDULERS = Fault("lost_schedulers", "the Dask client loses its scheduler during a fit", 50, lost_schedulers)
