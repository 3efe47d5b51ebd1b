"""Every estimator, one line each; the common tests loop over this list. A new estimator is a new line in CATALOGUE.

An entry says how to build the estimator small, what data it takes, which fitted attributes its certificate speaks of,
and which scikit-learn estimator solves the same problem.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pytest
from sklearn import cluster, decomposition, linear_model

from certifit import PCA, KMeans, LogisticRegression
from certifit.core import Estimator

CENTRES = np.array([[0.0, 5.0, -1.0, 2.0], [3.0, 5.0, -1.0, 2.0], [0.0, 8.0, 1.0, 2.0]])


def groups(n: int, k: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Overlapping groups of rows (n, 4) with unequal spreads and non-zero means, and their numbers."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % k
    X = CENTRES[y] + rng.normal(size=(n, 4)) * [2.0, 1.5, 1.0, 0.5]
    return X, y


def table(n: int = 150) -> tuple[np.ndarray, None]:
    return groups(n, 3)[0], None


def two(n: int = 150) -> tuple[np.ndarray, np.ndarray]:
    return groups(n, 2)


def three(n: int = 150) -> tuple[np.ndarray, np.ndarray]:
    return groups(n, 3)


@dataclass(frozen=True)
class Entry:
    cls: Callable[..., Estimator]
    params: dict[str, Any]
    data: Callable[..., tuple[np.ndarray, np.ndarray | None]]  # n -> X (n, 4), y
    audited: tuple[str, ...]  # the fitted attributes that the certificate speaks of
    peer: Callable[[], Any]  # scikit-learn's estimator of the same problem
    checked: dict[str, Any] = field(
        default_factory=dict
    )  # settings for scikit-learn's checks, which bring their data

    def make(self, **params: Any) -> Any:
        return self.cls(**{**self.params, **params})

    def fit(self, n: int = 150, **params: Any) -> Any:
        return self.make(**params).fit(*self.data(n))

    def has(self, param: str) -> bool:
        return param in self.make().get_params()

    def __str__(self) -> str:
        words = [f"{k}={v}" for k, v in self.params.items() if np.isscalar(v) or v is None]
        return f"{self.cls.__name__}({', '.join(words)}) on {self.data.__name__}"


SPECTRAL = ("components_", "mean_", "explained_variance_")
CLUSTERS = ("cluster_centers_", "labels_")
LINEAR = ("coef_", "intercept_")
LBFGS = {"solver": "lbfgs"}
pca, kmeans = decomposition.PCA, cluster.KMeans
logit = partial(linear_model.LogisticRegression, solver="newton-cholesky", tol=1e-10, max_iter=1000)

CATALOGUE = [
    Entry(PCA, {"n_components": 2}, table, SPECTRAL, partial(pca, 2)),
    Entry(PCA, {"svd_solver": "full", "whiten": True}, table, SPECTRAL, partial(pca, 4), {"whiten": True}),
    Entry(KMeans, {"n_clusters": 3, "init": CENTRES}, table, CLUSTERS, partial(kmeans, 3, init=CENTRES)),
    Entry(LogisticRegression, {}, two, LINEAR, logit),
    Entry(LogisticRegression, {}, three, LINEAR, logit),
    Entry(LogisticRegression, {**LBFGS, "C": 0.1}, three, LINEAR, partial(logit, C=0.1), LBFGS),
    Entry(LogisticRegression, {"penalty": None}, two, LINEAR, partial(logit, C=np.inf)),
]  # fmt: skip

every_estimator = pytest.mark.parametrize("entry", CATALOGUE, ids=str)


def every_with(param: str) -> Any:
    """For the estimators that have this parameter."""
    return pytest.mark.parametrize("entry", [e for e in CATALOGUE if e.has(param)], ids=str)


def unfitted(model: Any) -> bool:
    """Nothing is left of any fit, not even half of one."""
    return not [name for name in vars(model) if name.endswith("_") and not name.startswith("__")]
