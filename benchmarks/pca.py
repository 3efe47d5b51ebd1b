"""PCA: the subspace that leaves the least variance out, judged by that variance."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.datasets import Array, mnist, shape, tall_factors
from benchmarks.harness import Case, Contestant, Options
from benchmarks.peers import estimator

QUALITY = 1e-6


def pca_mnist(options: Options) -> Iterator[Case]:
    X, _, words = mnist(options)
    for dtype in ("float64", "float32"):
        yield case(dtype, np.ascontiguousarray(X, dtype), 50, words, target=1.0)


def pca_tall(options: Options) -> Iterator[Case]:
    X = tall_factors(options.rows(2_000_000), 50)
    yield case("float64", X, 10, f"correlated Gaussian columns {shape(X)}", target=0.9)


def case(name: str, X: Array, k: int, words: str, target: float) -> Case:
    judge = LeftOut(X)
    what = f"{words}, {k} components, objective: variance left out"
    return Case(name, what, contestants(X, k), judge, QUALITY, target, lambda: (judge.optimum(k), 0.0))


def contestants(X: Array, k: int) -> list[Contestant]:
    stock = "sklearn.decomposition:PCA"
    return [
        estimator("certifit", "certifit.models.pca:PCA", X, n_components=k),
        estimator("scikit-learn auto", stock, X, n_components=k),
        estimator("scikit-learn covariance_eigh", stock, X, n_components=k, svd_solver="covariance_eigh"),
        estimator("scikit-learn randomized", stock, X, n_components=k, svd_solver="randomized", random_state=0),
        estimator("scikit-learn-intelex auto", "sklearnex.decomposition:PCA", X, n_components=k),
        estimator(
            "scikit-learn-intelex covariance_eigh",
            "sklearnex.decomposition:PCA",
            X,
            n_components=k,
            svd_solver="covariance_eigh",
        ),
    ]


class LeftOut:
    """tr S - tr(Q'SQ): Q an orthonormal basis of the model's components, S the covariance in float64."""

    def __init__(self, X: Array) -> None:
        mean = X.mean(axis=0, dtype=np.float64)
        S = np.zeros((X.shape[1], X.shape[1]))
        for start in range(0, len(X), 65_536):
            Z = X[start : start + 65_536].astype(np.float64) - mean
            S += Z.T @ Z
        self.S = S / len(X)  # (d, d)

    def __call__(self, model: Any) -> float:
        Q = np.linalg.qr(np.asarray(model.components_, np.float64).T)[0]  # (d, k)
        return float(np.trace(self.S) - np.sum(Q * (self.S @ Q)))

    def optimum(self, k: int) -> float:
        return float(np.linalg.eigvalsh(self.S)[:-k].sum())
