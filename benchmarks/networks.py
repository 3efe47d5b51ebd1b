"""Networks on MNIST: the same layers, minibatches and epochs, judged by the log loss of the rows they learnt from."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import binomtest

from benchmarks.datasets import Array, mnist
from benchmarks.harness import Case, Contestant, Options
from benchmarks.peers import estimator
from benchmarks.reporting import Report, Table, as_seconds, say
from examples.mnist import read_idx

QUALITY = 0.25  # minibatches are drawn in different orders
EPOCHS, BATCH = 2, 128
HIDDEN = (256, 128)
WIDE = [
    ("conv", 16, 5, 1, 2), ("max_pool", 2), "relu", ("conv", 32, 5), ("max_pool", 2), "relu",
    ("dense", 120), "relu", ("dense", 84), "relu",
]  # LeNet-5 with more channels  # fmt: skip
MOVED = {
    "layers": WIDE, "image_shape": (28, 28), "max_iter": 12, "shifts": 2, "rotations": 10.0,
    "learning_rate": "warm_up", "learning_rate_init": 0.003, "label_smoothing": 0.05,
}  # fmt: skip


def networks_mnist(options: Options) -> Iterator[Case]:
    X, y, words = mnist(options)
    X = X.astype(np.float32)
    judge = NetworkLogLoss(X, y)
    common = {"max_iter": EPOCHS, "batch_size": BATCH, "random_state": 0}
    fits = [
        estimator("certifit", "certifit:MLPClassifier", X, y, hidden_layer_sizes=HIDDEN, **common),
        estimator("scikit-learn", "sklearn.neural_network:MLPClassifier", X, y, hidden_layer_sizes=HIDDEN, **common),
        Contestant("PyTorch", "torch", lambda _: torch_network(X, y, convolutional=False)),
    ]
    what = f"{words}, {EPOCHS} epochs of {BATCH} rows, objective: log loss"
    yield Case("784-256-128-10 perceptron", what, fits, judge, QUALITY, 1.0)
    rate = {"learning_rate": "constant", "learning_rate_init": 0.001}
    fits = [
        estimator("certifit", "certifit:ConvNetClassifier", X, y, image_shape=(28, 28), **common, **rate),
        Contestant("PyTorch", "torch", lambda _: torch_network(X, y, convolutional=True)),
    ]
    yield Case("LeNet", what, fits, judge, QUALITY, 0.6)


def networks_quality(title: str, options: Options) -> Report:
    """Errors on MNIST's 10,000 test images, and what training took."""
    X, y, words = mnist(options)
    held = mnist_test(options)
    X_test, y_test = held if held is not None else (X[::6], y[::6])
    X, X_test = X.astype(np.float32), X_test.astype(np.float32)
    common = {"learning_rate": "cosine", "learning_rate_init": 0.002, "batch_size": 128, "random_state": 0}
    models = {
        "LeNet, 12 epochs": ("certifit:ConvNetClassifier", {"image_shape": (28, 28), "max_iter": 12}, 0.99),
        **{
            f"LeNet of 16 and 32 channels with moved images, 12 epochs, seed {seed}": (
                "certifit:ConvNetClassifier",
                {**MOVED, "random_state": seed},
                0.994,
            )
            for seed in (0, 1, 2)
        },
        "784-256-128-10 perceptron, 15 epochs": (
            "certifit:MLPClassifier",
            {"hidden_layer_sizes": HIDDEN, "solver": "adamw", "alpha": 0.05, "max_iter": 15},
            0.982,
        ),
    }
    rows: list[list[str]] = []
    for name, (where, own, wanted) in models.items():
        say(name)
        wall, cpu = time.perf_counter(), time.process_time()
        model = estimator("certifit", where, X, y, **{**common, **own}).fit(math.nan)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        right = int((model.predict(X_test) == y_test).sum())
        low, high = binomtest(right, len(y_test)).proportion_ci(0.95, "exact")
        cell = f"{right / len(y_test):.2%} ({low:.2%} to {high:.2%})"
        rows.append([name, cell, f"{wanted:.1%}", as_seconds(wall), as_seconds(cpu)])
    note = (
        "Accuracy with its exact 95 % interval (Clopper & Pearson); times are of whole fits with their certificates."
    )
    if held is None:
        note += " Without MNIST's files these are rows that training saw."
    header = ["network", "accuracy", "wanted", "time", "processor time"]
    return Report(title, [Table(words, header, rows, note)], {"rows": rows}, ("certifit",))


def mnist_test(options: Options) -> tuple[Array, Array] | None:
    """MNIST's test images and digits, where its files are."""
    asked = options.mnist or os.environ.get("CERTIFIT_MNIST")
    if not asked:
        return None
    X = read_idx(Path(asked) / "t10k-images-idx3-ubyte.gz").reshape(-1, 784) / 255.0
    return X, read_idx(Path(asked) / "t10k-labels-idx1-ubyte.gz").astype(np.int64)


class NetworkLogLoss:
    """Mean negative log-probability of the true class, in float64."""

    def __init__(self, X: Array, y: Array) -> None:
        self.X, self.y = X, y

    def __call__(self, model: Any) -> float:
        p = np.asarray(model.predict_proba(self.X), dtype=np.float64)[np.arange(len(self.y)), self.y]
        return -float(np.log(np.maximum(p, 1e-300)).mean())


class TorchModel:
    """A network of PyTorch with scikit-learn's method."""

    def __init__(self, network: Any) -> None:
        self.network = network

    def predict_proba(self, X: Array) -> Array:
        import torch

        with torch.no_grad():
            return torch.softmax(self.network(torch.from_numpy(X)), dim=1).numpy()


def torch_network(X: Array, y: Array, convolutional: bool) -> TorchModel:
    """The same layers and the same optimiser in PyTorch."""
    import torch
    from torch import nn

    torch.manual_seed(0)
    if convolutional:
        network = nn.Sequential(
            nn.Unflatten(1, (1, 28, 28)), nn.Conv2d(1, 6, 5, padding=2), nn.MaxPool2d(2), nn.ReLU(),
            nn.Conv2d(6, 16, 5), nn.MaxPool2d(2), nn.ReLU(), nn.Flatten(),
            nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10),
        )  # fmt: skip
    else:
        sizes = (784, *HIDDEN)
        hidden = [part for a, b in zip(sizes, HIDDEN, strict=False) for part in (nn.Linear(a, b), nn.ReLU())]
        network = nn.Sequential(*hidden, nn.Linear(HIDDEN[-1], 10))
    table, labels = torch.from_numpy(X), torch.from_numpy(y)
    optimiser, loss = torch.optim.Adam(network.parameters()), nn.CrossEntropyLoss()
    for _ in range(EPOCHS):
        for index in torch.randperm(len(table)).split(BATCH):
            optimiser.zero_grad()
            loss(network(table[index]), labels[index]).backward()
            optimiser.step()
    return TorchModel(network)
