"""Robust PCA: |L|_* + lam |X - L|_1 of a low-rank table with gross errors, judged by that sum.

Neither scikit-learn nor its accelerators have it. The peer is the method most others implement, written out here: the
inexact augmented Lagrangian of Lin, Chen & Ma (2010), whose penalty grows at every step.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np

from benchmarks.datasets import Array, shape
from benchmarks.harness import Case, Contestant, Options
from benchmarks.peers import estimator

QUALITY = 1e-6
CERTIFIT = "certifit.decomposition.robust.robust_pca:RobustPCA"


def robust_pca(options: Options) -> Iterator[Case]:
    """Rank 10 and 25, one entry in twenty and one in ten wrong."""
    n = options.rows(2000)
    for rank, share in ((10, 0.05), (25, 0.1)):
        yield case(corrupted(n, min(n, 500), rank, share), rank, share)


def corrupted(n: int, d: int, rank: int, share: float, seed: int = 0) -> Array:
    """A product of Gaussian factors (entries of variance 1) with a share of its entries off by up to 5."""
    rng = np.random.default_rng(seed)
    L = rng.normal(size=(n, rank)) @ rng.normal(size=(rank, d)) / math.sqrt(rank)
    return L + (rng.random((n, d)) < share) * rng.uniform(-5.0, 5.0, size=(n, d))


def case(X: Array, rank: int, share: float) -> Case:
    judge = Objective(X)
    what = f"{shape(X)} of rank {rank}, {share:.0%} of the entries wrong, objective: |L|_* + |X - L|_1 / √n"
    contestants = [
        estimator("certifit", CERTIFIT, X, center=False),
        Contestant(
            "inexact augmented Lagrangian (NumPy)",
            "numpy",
            lambda tol: inexact(X, judge.lam, tol),
            tuple(10.0**-e for e in range(3, 9)),
        ),
    ]
    return Case(f"rank {rank}", what, contestants, judge, QUALITY, 1.0, judge.optimum)


def inexact(X: Array, lam: float, tol: float) -> Any:
    """Stops when |X - L - S| <= tol |X|; what is left then goes to S."""
    length = np.linalg.norm(X, 2)
    Y = X / max(length, np.abs(X).max() / lam)
    S, L = np.zeros_like(X), np.zeros_like(X)
    mu = 1.25 / length
    for _ in range(1000):
        U, sigma, V = np.linalg.svd(X - S + Y / mu, full_matrices=False)
        kept = int((sigma > 1 / mu).sum())
        L = (U[:, :kept] * (sigma[:kept] - 1 / mu)) @ V[:kept]
        B = X - L + Y / mu
        S = np.sign(B) * np.maximum(np.abs(B) - lam / mu, 0.0)
        rest = X - L - S
        Y = Y + mu * rest
        mu = min(1.5 * mu, 1e7 / length)
        if np.linalg.norm(rest) <= tol * np.linalg.norm(X):
            break
    return SimpleNamespace(low_rank_=L)


class Objective:
    """|L|_* + lam |X - L|_1 of a model's low-rank part."""

    def __init__(self, X: Array) -> None:
        self.X, self.lam = X, 1 / math.sqrt(max(X.shape))

    def __call__(self, model: Any) -> float:
        L = model.low_rank_
        return float(np.linalg.svd(L, compute_uv=False).sum() + self.lam * np.abs(self.X - L).sum())

    def optimum(self) -> tuple[float, float]:
        """The best known value and the relative gap that a dual point proves for it."""
        from certifit.decomposition.robust.robust_pca import RobustPCA

        proof = RobustPCA(center=False, tol=1e-8).fit(self.X).certificate_
        return proof.objective, proof.relative_gap
