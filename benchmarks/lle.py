"""Locally linear embedding: the coordinates that local weights rebuild best, judged by their squared errors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.datasets import make_swiss_roll
from sklearn.neighbors import NearestNeighbors

from benchmarks.datasets import Array, mnist, shape
from benchmarks.harness import Case, Contestant, Options
from benchmarks.peers import estimator

QUALITY = 1e-4
NEIGHBOURS, COMPONENTS, REG = 12, 2, 1e-3


def lle_swiss_roll(options: Options) -> Iterator[Case]:
    X = make_swiss_roll(options.rows(10_000), random_state=0)[0]
    yield case("swiss roll", X, f"swiss roll {shape(X)}", target=0.3)


def lle_mnist(options: Options) -> Iterator[Case]:
    X = mnist(options)[0][: options.rows(10_000)]
    yield case("MNIST", X, f"MNIST, the first rows, {shape(X)}", target=0.5)


def case(name: str, X: Array, words: str, target: float) -> Case:
    what = f"{words}, {NEIGHBOURS} neighbours, {COMPONENTS} components, objective: squared errors of the coordinates"
    return Case(name, what, contestants(X), Roughness(X), QUALITY, target)


def contestants(X: Array) -> list[Contestant]:
    settings = {"n_neighbors": NEIGHBOURS, "n_components": COMPONENTS}
    return [
        estimator("certifit", "certifit.manifold.locally_linear:LocallyLinearEmbedding", X, **settings),
        estimator("scikit-learn", "sklearn.manifold:LocallyLinearEmbedding", X, random_state=0, **settings),
    ]


class Roughness:
    """|(I - W) Q|²: Q an orthonormal basis of the model's coordinates about their mean, W the barycentric weights."""

    def __init__(self, X: Array) -> None:
        n = len(X)
        near = NearestNeighbors(n_neighbors=NEIGHBOURS + 1).fit(X).kneighbors(X, return_distance=False)[:, 1:]
        weights = np.empty((n, NEIGHBOURS))
        for i in range(n):
            Z = X[near[i]] - X[i]
            G = Z @ Z.T
            v = np.linalg.solve(G + REG * np.trace(G) * np.eye(NEIGHBOURS), np.ones(NEIGHBOURS))
            weights[i] = v / v.sum()
        ends = np.arange(0, n * NEIGHBOURS + 1, NEIGHBOURS)
        self.F = sparse.eye_array(n) - sparse.csr_array((weights.ravel(), near.ravel(), ends), shape=(n, n))

    def __call__(self, model: Any) -> float:
        Y = np.asarray(model.embedding_, np.float64)
        Q = np.linalg.qr(Y - Y.mean(axis=0))[0]  # (n, k)
        return float(((self.F @ Q) ** 2).sum())
