"""Gaussian mixtures: the same EM iterations from the same start, judged by the mean negative log-likelihood.

And posterior probabilities; and what missing entries cost, one EM step beside one on complete rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
from scipy.special import logsumexp
from sklearn.mixture import GaussianMixture as Reference

from benchmarks.datasets import Array, overlapping_clusters, shape
from benchmarks.harness import Case, Contestant, Options
from benchmarks.missing_entries import cost_of_missing, with_missing
from benchmarks.peers import estimator
from benchmarks.reporting import Report
from certifit.mixture.em import EMPoint, MixtureEM
from certifit.mixture.gaussian.gaussian_mixture import GaussianMixture
from certifit.rows import Rows, as_rows

ITERATIONS = 10
QUALITY = 1e-6  # of the objective: the two libraries regularise covariances differently, by 1e-6 of a variance


def mixture_tall(options: Options) -> Iterator[Case]:
    X = overlapping_clusters(options.rows(200_000), 16, 16)
    words = f"16 overlapping Gaussians {shape(X)}"
    yield from cases(X, 16, words, {"full": 0.13, "diag": 0.22})
    yield posteriors(X, 16, words, 0.3)


def mixture_wide(options: Options) -> Iterator[Case]:
    X = overlapping_clusters(options.rows(100_000), 64, 64)
    yield from cases(X, 64, f"64 overlapping Gaussians {shape(X)}", {"full": 0.4})


def cases(X: Array, k: int, words: str, targets: dict[str, float]) -> Iterator[Case]:
    what = f"{words}, k = {k}, {ITERATIONS} iterations from the same start, objective: mean negative log-likelihood"
    for kind, target in targets.items():
        params = {**start(X, k, kind), "max_iter": ITERATIONS, "tol": 0.0}
        contestants = [
            estimator("certifit", "certifit.mixture.gaussian.gaussian_mixture:GaussianMixture", X, **params),
            estimator("scikit-learn", "sklearn.mixture:GaussianMixture", X, **params),
        ]
        yield Case(kind, what, contestants, partial(surprise, X, kind), QUALITY, target)


def start(X: Array, k: int, kind: str) -> dict[str, Any]:
    """k rows as means, and the columns' own variances."""
    rows = np.random.default_rng(0).choice(len(X), k, replace=False)
    P = np.diag(1 / X.var(axis=0))
    precisions = np.broadcast_to(P, (k, *P.shape)) if kind == "full" else np.tile(np.diag(P), (k, 1))
    given = {"weights_init": np.full(k, 1 / k), "means_init": X[rows], "precisions_init": precisions}
    return {"n_components": k, "covariance_type": kind, "reg_covar": 1e-6, **given}


def surprise(X: Array, kind: str, model: Any) -> float:
    """Mean negative log-likelihood, component by component."""
    C = np.asarray(model.covariances_, np.float64)
    total = 0.0
    for first in range(0, len(X), 16_384):
        piece = X[first : first + 16_384]
        joint = np.empty((len(model.means_), len(piece)))
        for j, m in enumerate(model.means_):
            L = np.linalg.cholesky(C[j] if kind == "full" else np.diag(C[j]))
            y = np.linalg.solve(L, (piece - m).T)
            joint[j] = np.log(model.weights_[j]) - 0.5 * (y**2).sum(axis=0) - np.log(np.diag(L)).sum()
        total -= float(logsumexp(joint, axis=0).sum())
    return total / len(X) + X.shape[1] * float(np.log(2 * np.pi)) / 2


def posteriors(X: Array, k: int, words: str, target: float) -> Case:
    """predict_proba of the same mixture."""
    start_at = start(X, k, "full")
    ours, theirs = (cls(**start_at, max_iter=1).fit(X[: 100 * k]) for cls in (GaussianMixture, Reference))
    for name in ("weights_", "means_", "covariances_"):
        setattr(theirs, name, getattr(ours, name))
    theirs.precisions_cholesky_ = ours.precisions_cholesky_

    def of(model: Any) -> Any:
        return lambda _: SimpleNamespace(R=model.predict_proba(X))

    contestants = [
        Contestant("certifit", "certifit", of(ours)),
        Contestant("scikit-learn", "sklearn.mixture", of(theirs)),
    ]
    what = f"{words}, posterior probabilities of {k} full components, objective: their mean square"
    return Case("predict_proba", what, contestants, _mean_square, QUALITY, target)


def _mean_square(model: Any) -> float:
    return float((model.R**2).mean())


# ------------------------------------------------------------------------------------------ missing entries
def mixture_missing(title: str, options: Options) -> Report:
    X = overlapping_clusters(options.rows(100_000), 16, 16)
    reports = []
    for kind in ("full", "diag"):
        at = EMPoint(GaussianMixture(16, covariance_type=kind, tol=1.0).fit(X)._at())
        tables = {name: as_rows(data, missing=True) for name, data in with_missing(X, 5).items()}
        steps = {name: partial(one_step, rows, at) for name, rows in tables.items()}
        reports.append(cost_of_missing(title, f"one EM step, {shape(X)}, 16 {kind} components", steps, options))
    full, diag = reports
    return Report(title, [*full.tables, *diag.tables], {**full.data, "diag": diag.data})


def one_step(rows: Rows, at: EMPoint) -> float:
    em = MixtureEM(rows)
    return em.update(at, em.measure(at)).objective
