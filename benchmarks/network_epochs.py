"""What one epoch of a network takes, beside PyTorch, JAX and scikit-learn: same layers, minibatches, Adam, float32.

An epoch is measured inside a fit, from the end of one to the end of the next, without the proof that ends every fit
of certifit. The least of several epochs counts, all libraries in turn, by the clock and by the processor's time.
"""

from __future__ import annotations

import math
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.neural_network import MLPClassifier as ScikitMLP
from threadpoolctl import ThreadpoolController

from benchmarks.datasets import Array, mnist
from benchmarks.harness import Options
from benchmarks.reporting import Report, Table, as_seconds, say
from certifit import ConvNetClassifier, MLPClassifier, config
from certifit.rows import thread_count

BATCH = 128
BLOCK = 512  # rows that certifit's predictions take at a time
PRODUCTS = "products alone"
Clock = tuple[float, float]  # seconds of the wall, and of the processor


class EpochClock:
    """A callback that notes when epochs end."""

    def __init__(self) -> None:
        self.ends: list[Clock] = []

    def setup(self, estimator: Any, context: Any) -> None: ...

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None: ...

    def on_fit_task_end(self, estimator: Any, context: Any) -> None:
        if context.task_name == "pass":
            self.ends.append(now())

    def teardown(self, estimator: Any, context: Any) -> None: ...


def now() -> Clock:
    return time.perf_counter(), time.process_time()


def network_epochs(title: str, options: Options) -> Report:
    """Epochs and predictions of three networks, the first and the last to be held against PyTorch."""
    X, y, words = mnist(options)
    X = X.astype(np.float32)
    rng = np.random.default_rng(0)
    small = rng.standard_normal((options.rows(10_000), 20)).astype(np.float32)
    of_small = (small[:, 0] * small[:, 1] + small[:, 2] > 0).astype(np.int64)
    # What is wanted of the time of every peer, or of PyTorch alone.
    cases: list[tuple[str, Array, Array, tuple[int, ...] | None, float, bool]] = [
        ("LeNet", X, y, None, 0.6, True),
        ("784-256-128-10", X, y, (256, 128), 1.0, False),
        ("20-45-45-2", small, of_small, (45, 45), 0.3, True),
    ]
    rows: list[list[str]] = []
    for name, table, labels, hidden, wanted, of_torch in cases:
        say(name)
        found = race(table, labels, hidden, options.repeat)
        ours, products = found.pop("certifit"), found.pop(PRODUCTS, None)
        for peer, theirs in found.items():
            pairs = zip(ours, theirs, strict=True)
            ratios = [f"{a[k] / b[k]:.2f}" for a, b in pairs for k in (0, 1)]
            cells = [as_seconds(one[k]) for one in (ours[0], theirs[0]) for k in (0, 1)]
            least = "" if products is None else f"{products[1][0] / theirs[1][0]:.2f}"
            aims = (str(wanted), "0.7") if peer == "PyTorch" or not of_torch else ("", "")
            rows.append([name, peer, *cells, *ratios[:2], aims[0], ratios[2], ratios[3], least, aims[1]])
    header = ["network", "peer", "epoch", "epoch, processor", "peer's epoch", "peer's, processor", "ratio",
              "ratio, processor", "wanted", "predict: ratio", "predict: processor", "its products alone",
              "wanted"]  # fmt: skip
    note = f"{thread_count()} threads each; the least of {max(3, options.repeat)} epochs, without certifit's proof. "
    note += "'Its products alone': NumPy's products of matrices of the same shapes, in the same blocks and threads, "
    note += "over the peer's whole prediction: no program that leaves these to the same BLAS can have a lower ratio. "
    note += f"Kernels of NumPy's BLAS: {blas_kernels()}."
    table_ = Table(f"{words}; minibatches of {BATCH}", header, rows, note)
    return Report(title, [table_], {"rows": rows}, ("certifit", "torch", "jax"))


def blas_kernels() -> str:
    """What processor the BLAS of NumPy takes this one for."""
    known = [one for one in ThreadpoolController().info() if one["user_api"] == "blas"]
    return ", ".join(sorted({f"{one['internal_api']} {one['version']} for {one['architecture']}" for one in known}))


def race(X: Array, y: Array, hidden: tuple[int, ...] | None, rounds: int) -> dict[str, tuple[Clock, Clock]]:
    """The least times of an epoch and of predicting all rows, for every library that has such a network."""
    runners: dict[str, Iterator[tuple[Clock, Callable[[], Any]]]] = {"certifit": _ours(X, y, hidden)}
    if hidden is not None:
        runners["scikit-learn"] = _scikit(X, y, hidden)
    if find_spec("torch"):
        runners["PyTorch"] = _torch(X, y, hidden)
    if find_spec("jax") and hidden is not None:
        runners["JAX"] = _jax(X, y, hidden)
    if hidden is not None:
        runners[PRODUCTS] = _products(X, y, hidden)
    least: dict[str, tuple[Clock, Clock]] = {}
    for _ in range(max(3, rounds)):
        for name, runner in runners.items():
            epoch, predict = next(runner)
            begin = now()
            predict()
            answer = tuple(b - a for a, b in zip(begin, now(), strict=True))
            before = least.get(name, ((np.inf, np.inf), (np.inf, np.inf)))
            pairs = zip(before, (epoch, answer), strict=True)
            least[name] = tuple((min(a[0], b[0]), min(a[1], b[1])) for a, b in pairs)  # type: ignore[assignment]
    return least


def _ours(X: Array, y: Array, hidden: tuple[int, ...] | None) -> Iterator[tuple[Clock, Callable[[], Any]]]:
    common: dict[str, Any] = {"batch_size": BATCH, "max_iter": 3, "random_state": 0, "learning_rate_init": 0.001}
    while True:
        model = (
            MLPClassifier(hidden, **common)
            if hidden is not None
            else ConvNetClassifier(image_shape=(28, 28), learning_rate="constant", **common)
        )
        clock = EpochClock()
        with warnings.catch_warnings(), config(certify="audit"):
            warnings.simplefilter("ignore")
            model.set_callbacks(clock)
            model.fit(X, y)
        ends = clock.ends
        spans = [tuple(b - a for a, b in zip(*pair, strict=True)) for pair in pairwise(ends)]
        yield (min(s[0] for s in spans), min(s[1] for s in spans)), lambda model=model: model.predict(X)


def _products(X: Array, y: Array, hidden: tuple[int, ...]) -> Iterator[tuple[Clock, Callable[[], Any]]]:
    """The products of matrices that a prediction consists of, and nothing else: no epochs."""
    rng, sizes = np.random.default_rng(0), (X.shape[1], *hidden, int(y.max()) + 1)
    weights = [rng.standard_normal(shape).astype(np.float32) for shape in pairwise(sizes)]
    spaces = threading.local()

    def multiply(start: int) -> None:
        if not hasattr(spaces, "arrays"):
            spaces.arrays = [np.empty((BLOCK, units), np.float32) for units in sizes[1:]]
        part = X[start : start + BLOCK]
        for W, space in zip(weights, spaces.arrays, strict=True):
            part = np.matmul(part, W, out=space[: len(part)])

    starts, pool, blas = range(0, len(X), BLOCK), ThreadPoolExecutor(thread_count()), ThreadpoolController()

    def answer() -> None:
        with blas.limit(limits=1):
            list(pool.map(multiply, starts) if X.size > 1 << 20 else map(multiply, starts))

    while True:
        yield (math.inf, math.inf), answer


def _scikit(X: Array, y: Array, hidden: tuple[int, ...]) -> Iterator[tuple[Clock, Callable[[], Any]]]:
    model = ScikitMLP(hidden, batch_size=BATCH, random_state=0)
    model.partial_fit(X[:BATCH], y[:BATCH], classes=np.unique(y))
    while True:
        begin = now()
        model.partial_fit(X, y)
        wall, cpu = now()
        yield (wall - begin[0], cpu - begin[1]), lambda: model.predict(X)


def _torch(X: Array, y: Array, hidden: tuple[int, ...] | None) -> Iterator[tuple[Clock, Callable[[], Any]]]:
    import torch
    from torch import nn

    torch.set_num_threads(thread_count())
    classes = int(y.max()) + 1
    if hidden is None:
        network = nn.Sequential(
            nn.Unflatten(1, (1, 28, 28)), nn.Conv2d(1, 6, 5, padding=2), nn.MaxPool2d(2), nn.ReLU(),
            nn.Conv2d(6, 16, 5), nn.MaxPool2d(2), nn.ReLU(), nn.Flatten(),
            nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10),
        )  # fmt: skip
    else:
        sizes = (X.shape[1], *hidden)
        parts = [part for a, b in zip(sizes, hidden, strict=False) for part in (nn.Linear(a, b), nn.ReLU())]
        network = nn.Sequential(*parts, nn.Linear(hidden[-1], classes))
    table, labels = torch.from_numpy(X), torch.from_numpy(y)
    optimiser, loss = torch.optim.Adam(network.parameters()), nn.CrossEntropyLoss()

    def predict() -> Any:
        with torch.no_grad():  # in pieces that fit the cache, which is faster than all at once
            return torch.cat([network(part).argmax(dim=1) for part in table.split(1024)])

    while True:
        begin = now()
        for index in torch.randperm(len(table)).split(BATCH):
            optimiser.zero_grad()
            loss(network(table[index]), labels[index]).backward()
            optimiser.step()
        wall, cpu = now()
        yield (wall - begin[0], cpu - begin[1]), predict


def _jax(X: Array, y: Array, hidden: tuple[int, ...]) -> Iterator[tuple[Clock, Callable[[], Any]]]:
    import jax
    import jax.numpy as jnp

    classes = int(y.max()) + 1
    sizes, rng = (X.shape[1], *hidden, classes), np.random.default_rng(0)
    params = [
        (jnp.asarray(rng.normal(size=(a, b), scale=1 / np.sqrt(a)), jnp.float32), jnp.zeros(b, jnp.float32))
        for a, b in pairwise(sizes)
    ]

    def scores(params: Any, x: Any) -> Any:
        for W, b in params[:-1]:
            x = jax.nn.relu(x @ W + b)
        return x @ params[-1][0] + params[-1][1]

    def loss(params: Any, x: Any, labels: Any) -> Any:
        return -jnp.take_along_axis(jax.nn.log_softmax(scores(params, x)), labels[:, None], axis=1).mean()

    @jax.jit
    def step(state: Any, x: Any, labels: Any) -> Any:
        params, mean, square, t = state
        slopes = jax.grad(loss)(params, x, labels)
        mean = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, mean, slopes)
        square = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, square, slopes)
        rate = 0.001 * jnp.sqrt(1 - 0.999 ** (t + 1)) / (1 - 0.9 ** (t + 1))
        params = jax.tree.map(lambda p, m, v: p - rate * m / (jnp.sqrt(v) + 1e-8), params, mean, square)
        return params, mean, square, t + 1

    zeros = jax.tree.map(jnp.zeros_like, params)
    state, answer = (params, zeros, zeros, 0), jax.jit(lambda p, x: scores(p, x).argmax(axis=1))
    state = step(state, X[:BATCH], y[:BATCH])
    while True:
        begin = now()
        order = rng.permutation(len(X))
        for k in range(0, len(X) - BATCH + 1, BATCH):
            index = order[k : k + BATCH]
            state = step(state, X[index], y[index])
        jax.block_until_ready(state)
        wall, cpu = now()
        yield (wall - begin[0], cpu - begin[1]), lambda state=state: jax.block_until_ready(answer(state[0], X))
