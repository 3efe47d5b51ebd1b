"""The tables that are fitted: MNIST where it is at hand, and synthetic ones of known shape."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from benchmarks.harness import Options
from examples.mnist import read_idx

Array = NDArray[Any]


def mnist(options: Options) -> tuple[Array, Array, str]:
    """Training images (60000, 784) as pixels / 255 in float64, their digits, and what they are in words.

    Read from --mnist, else CERTIFIT_MNIST; without either, a stand-in of the same shape.
    """
    asked, n = options.mnist or os.environ.get("CERTIFIT_MNIST"), options.rows(60_000)
    if asked:
        X = read_idx(Path(asked) / "train-images-idx3-ubyte.gz").reshape(-1, 784)[:n]
        y, words = read_idx(Path(asked) / "train-labels-idx1-ubyte.gz")[:n], "MNIST"
    else:
        X, y = digits_like(n)
        words = "synthetic stand-in for MNIST (set CERTIFIT_MNIST to the folder of its IDX files)"
    return X / 255.0, y.astype(np.int64), f"{words} {shape(X)}"


def digits_like(n: int, seed: int = 0) -> tuple[Array, Array]:
    """Ten noisy classes of smooth 28 x 28 images with dark, partly constant borders, as uint8 pixels (n, 784)."""
    rng = np.random.default_rng(seed)
    grid = (np.arange(28) - 13.5) / 7.0
    waves = np.array([np.cos(k * grid) for k in range(4)] + [np.sin(k * grid) for k in range(1, 5)])  # (8, 28)
    smooth = np.einsum("ai,bj->abij", waves, waves).reshape(64, 784)
    window = np.clip(1.6 * np.exp(-(grid[:, None] ** 2 + grid**2) / 2.0) - 0.25, 0.0, 1.0).ravel()
    y = rng.integers(0, 10, n)
    factors = rng.normal(size=(10, 64))[y] + 0.9 * rng.normal(size=(n, 64))  # (n, 64)
    return np.clip(40.0 * (factors @ smooth) * window, 0.0, 255.0).astype(np.uint8), y


def tall_factors(n: int, d: int, seed: int = 1) -> Array:
    """(n, d) float64: correlated columns of falling scale, away from the origin, plus noise."""
    rng = np.random.default_rng(seed)
    mix = np.linalg.qr(rng.normal(size=(d, d)))[0] * (0.85 ** np.arange(d))[:, None]
    X = rng.standard_normal((n, d)) @ mix
    X += 0.05 * rng.standard_normal((n, d))
    X += rng.normal(size=d)
    return X


def overlapping_clusters(n: int, d: int, k: int, seed: int = 2) -> Array:
    """(n, d) float64 from k Gaussians of unequal size that overlap, so that Lloyd's loop has work to do."""
    rng = np.random.default_rng(seed)
    centres = 1.5 * rng.normal(size=(k, d))
    X = centres[rng.choice(k, n, p=rng.dirichlet(np.full(k, 3.0)))]
    X += rng.standard_normal((n, d))
    return X


def sparse_counts(n: int, d: int, seed: int = 4) -> Any:
    """CSR rows of fifty entries each, the first columns used most, as words are in documents."""
    rng = np.random.default_rng(seed)
    columns = (d * rng.random(50 * n) ** 3).astype(np.int64)
    X = sparse.csr_array((rng.random(50 * n), (np.repeat(np.arange(n), 50), columns)), shape=(n, d))
    X.sum_duplicates()
    return X


def binary_labels(X: Array, seed: int = 3) -> Array:
    """0 / 1 drawn from a logistic model on the columns of X, about a third of them ones."""
    rng = np.random.default_rng(seed)
    eta = X @ (rng.normal(size=X.shape[1]) / (X.std(axis=0) * np.sqrt(X.shape[1])))
    return (rng.random(len(X)) < 1.0 / (1.0 + np.exp(1.0 - 2.0 * (eta - eta.mean())))).astype(np.int64)


def shape(X: Array) -> str:
    return f"{len(X):,}".replace(",", " ") + f" x {X.shape[1]}"
