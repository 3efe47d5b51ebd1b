"""k-means: the same twenty Lloyd iterations from the same centres, judged by the sum of squared distances."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np

from benchmarks.datasets import Array, mnist, overlapping_clusters, shape
from benchmarks.harness import Case, Contestant, Options
from benchmarks.peers import cannot, estimator

ITERATIONS = 20
# In float32 a row between two centres may go either way. One iteration fewer costs 1e-5 or more here: it would show.
QUALITY = {"float64": 1e-6, "float32": 5e-6}


def kmeans_mnist(options: Options) -> Iterator[Case]:
    X, _, words = mnist(options)
    yield from cases(X, 10, words, {"float64": 0.58, "float32": 0.77})


def kmeans_tall(options: Options) -> Iterator[Case]:
    X = overlapping_clusters(options.rows(1_000_000), 16, 64)
    yield from cases(X, 64, f"64 overlapping Gaussians {shape(X)}", {"float64": 0.6, "float32": 0.72})


def kmeans_many(options: Options) -> Iterator[Case]:
    X = overlapping_clusters(options.rows(500_000), 32, 256)
    yield from cases(X, 256, f"256 overlapping Gaussians {shape(X)}", {"float64": 0.6, "float32": 0.6})


def cases(X: Array, k: int, words: str, targets: dict[str, float]) -> Iterator[Case]:
    start = np.random.default_rng(0).choice(len(X), k, replace=False)
    what = f"{words}, k = {k}, {ITERATIONS} iterations from the same {k} rows, objective: sum of squared distances"
    for dtype, target in targets.items():
        Z = np.ascontiguousarray(X, dtype)
        judge = Inertia(Z)
        yield Case(dtype, what, contestants(Z, Z[start]), judge, QUALITY[dtype], target)


def contestants(X: Array, centres: Array) -> list[Contestant]:
    params: dict[str, Any] = {"n_clusters": len(centres), "init": centres, "n_init": 1, "tol": 0.0}
    params["max_iter"] = ITERATIONS
    single = X.dtype == np.float32
    return [
        estimator("certifit", "certifit.cluster.kmeans:KMeans", X, **params),
        estimator("scikit-learn lloyd", "sklearn.cluster:KMeans", X, **params),
        estimator("scikit-learn elkan", "sklearn.cluster:KMeans", X, **params, algorithm="elkan"),
        estimator("scikit-learn-intelex", "sklearnex.cluster:KMeans", X, **params),
        faiss_kmeans(X, centres) if single else cannot("faiss", "faiss", "float32 only"),
    ]


def faiss_kmeans(X: Array, centres: Array) -> Contestant:
    def fit(_: float) -> Any:
        import faiss

        k, d = centres.shape
        model = faiss.Kmeans(
            d, k, niter=ITERATIONS, max_points_per_centroid=len(X), min_points_per_centroid=1
        )  # without these it fits a sample
        model.train(X, init_centroids=centres)
        return SimpleNamespace(cluster_centers_=model.centroids)

    return Contestant("faiss", "faiss", fit)


class Inertia:
    """Sum of squared distances to the nearest centre, in float64."""

    def __init__(self, X: Array) -> None:
        self.X = X

    def __call__(self, model: Any) -> float:
        centres = np.asarray(model.cluster_centers_, np.float64)  # (k, d)
        total = 0.0
        for start in range(0, len(self.X), 16_384):
            X = self.X[start : start + 16_384].astype(np.float64)
            nearest = np.argmin((centres**2).sum(axis=1) - 2.0 * X @ centres.T, axis=1)
            total += float(((X - centres[nearest]) ** 2).sum())
        return total
