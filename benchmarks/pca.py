"""PCA: the subspace that leaves the least variance out, judged by that variance."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.datasets import Array, mnist, shape, sparse_counts, tall_factors
from benchmarks.harness import Case, Contestant, Options
from benchmarks.peers import estimator

QUALITY = 1e-6
ROUGH = 1e-3  # what scikit-learn's randomised solver reaches


def pca_mnist(options: Options) -> Iterator[Case]:
    X, _, words = mnist(options)
    for dtype in ("float64", "float32"):
        yield case(dtype, np.ascontiguousarray(X, dtype), 50, words, target=1.0)


def pca_tall(options: Options) -> Iterator[Case]:
    X = tall_factors(options.rows(2_000_000), 50)
    yield case("float64", X, 10, f"correlated Gaussian columns {shape(X)}", target=0.9)


def pca_randomised(options: Options) -> Iterator[Case]:
    X, _, words = mnist(options)
    for dtype in ("float64", "float32"):
        Z = np.ascontiguousarray(X, dtype)
        judge, random = LeftOut(Z), {"n_components": 50, "svd_solver": "randomized", "random_state": 0}
        peers = [
            estimator("certifit randomized", "certifit.decomposition.pca.pca:PCA", Z, **random),
            estimator("scikit-learn randomized", "sklearn.decomposition:PCA", Z, **random),
        ]
        what = f"{words}, 50 components, objective: variance left out"
        yield Case(dtype, what, peers, judge, ROUGH, 0.35, lambda judge=judge: (judge.optimum(50), 0.0))


def svd_sparse(options: Options) -> Iterator[Case]:
    X = sparse_counts(options.rows(100_000), 50_000)
    words, k = f"CSR {X.shape[0]} x {X.shape[1]} with {X.nnz} entries", 50
    for name, centred, ours, theirs in (
        (
            "TruncatedSVD",
            False,
            "certifit.decomposition.pca.truncated_svd:TruncatedSVD",
            "sklearn.decomposition:TruncatedSVD",
        ),
        ("PCA", True, "certifit.decomposition.pca.pca:PCA", "sklearn.decomposition:PCA"),
    ):
        how = "svd_solver" if centred else "algorithm"
        peers = [
            estimator("certifit", ours, X, n_components=k, random_state=0),
            estimator("scikit-learn arpack", theirs, X, n_components=k, random_state=0, **{how: "arpack"}),
        ]
        if not centred:  # scikit-learn's randomised PCA would make sparse rows dense
            peers.append(estimator("scikit-learn randomized", theirs, X, n_components=k, random_state=0))
        what = f"{words}, {k} components, objective: mean square left out"
        yield Case(name, what, peers, SparseLeftOut(X, centred), ROUGH, 0.8)


def case(name: str, X: Array, k: int, words: str, target: float) -> Case:
    judge = LeftOut(X)
    what = f"{words}, {k} components, objective: variance left out"
    return Case(name, what, contestants(X, k), judge, QUALITY, target, lambda: (judge.optimum(k), 0.0))


def contestants(X: Array, k: int) -> list[Contestant]:
    stock = "sklearn.decomposition:PCA"
    return [
        estimator("certifit", "certifit.decomposition.pca.pca:PCA", X, n_components=k),
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


class SparseLeftOut:
    """The same without forming S: tr S less the mean square of the codes about their mean (or about zero)."""

    def __init__(self, X: Any, centred: bool) -> None:
        self.X, self.centred = X, centred
        mean = np.ravel(X.mean(axis=0)) if centred else np.zeros(X.shape[1])
        self.total = float(X.multiply(X).sum() / X.shape[0] - mean @ mean)

    def __call__(self, model: Any) -> float:
        Q = np.linalg.qr(np.asarray(model.components_, np.float64).T)[0]  # (d, k)
        Z = self.X @ Q
        return self.total - float((Z.var(axis=0) if self.centred else (Z**2).mean(axis=0)).sum())
