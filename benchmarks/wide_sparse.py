"""L1 penalties on sparse rows of a hundred thousand columns, as texts are: Lasso and logistic regression."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import expit

from benchmarks.datasets import Array
from benchmarks.harness import Case, Options
from benchmarks.logistic import grid
from benchmarks.peers import estimator

OURS = "certifit.linear_model"


def wide_sparse(options: Options) -> Iterator[Case]:
    X, eta = word_rows(options.rows(10_000), options.rows(100_000))
    rng = np.random.default_rng(6)
    y = eta + 0.3 * rng.standard_normal(len(eta))
    labels = (rng.random(len(eta)) < expit(3.0 * eta)).astype(np.int64)
    size = f"{X.shape[0]:,} x {X.shape[1]:,}".replace(",", " ")
    data = f"{size} CSR rows like texts, {X.nnz / X.shape[0]:.0f} entries each"
    for share in (10, 100):
        yield lasso_case(X, y, share, data)
    for share in (10, 30, 100):  # the last has 3,500 coefficients that are not 0
        yield logistic_case(X, labels, share, data)


def word_rows(n: int, d: int, seed: int = 5) -> tuple[Any, Array]:
    """Texts of about eighty words by Zipf's law, weighted by rarity, of length 1 (n, d), and their scores (n,)."""
    rng = np.random.default_rng(seed)
    share = np.cumsum(1.0 / (np.arange(d) + 20.0))
    lengths = np.maximum(5, (80 * rng.lognormal(0.0, 0.6, n)).astype(np.int64))
    words = np.searchsorted(share / share[-1], rng.random(lengths.sum())).astype(np.int32)
    X = sparse.csr_array(
        (np.ones(len(words)), words, np.append(0, np.cumsum(lengths)).astype(np.int32)), shape=(n, d)
    )
    X.sum_duplicates()
    rarity = np.log(n / np.maximum(np.bincount(X.indices, minlength=d), 1.0))
    X.data = (1.0 + np.log(X.data)) * rarity[X.indices]
    X.data /= np.repeat(np.sqrt(X.multiply(X).sum(axis=1)), np.diff(X.indptr))
    truth = np.zeros(d)
    truth[(d * rng.random(300) ** 4).astype(np.int64)] = rng.standard_normal(300)
    eta = X @ truth
    return X, (eta - eta.mean()) / eta.std()


def lasso_case(X: Any, y: Array, share: int, data: str) -> Case:
    """An intercept is free."""
    n = len(y)
    alpha = float(np.abs(X.T @ (y - y.mean())).max()) / n / share

    def objective(model: Any) -> float:
        coef = np.ravel(model.coef_)
        away = y - X @ coef - float(np.ravel(model.intercept_)[0])
        return float(away @ away) / (2 * n) + alpha * float(np.abs(coef).sum())

    contestants = [
        estimator("certifit", f"{OURS}:Lasso", X, y, alpha=alpha, tols=grid(1, 8, 2)),
        estimator("certifit, default tol", f"{OURS}:Lasso", X, y, alpha=alpha),
        estimator("celer", "celer:Lasso", X.tocsc(), y, alpha=alpha, max_iter=200, tols=grid(2, 8, 2)),
        estimator("skglm", "skglm:Lasso", X.tocsc(), y, alpha=alpha, tols=grid(2, 8, 2)),
        estimator(
            "scikit-learn",
            "sklearn.linear_model:Lasso",
            X.tocsc(),
            y,
            alpha=alpha,
            max_iter=10_000,
            tols=grid(2, 8, 2),
        ),
    ]
    what = f"{data}; alpha 1/{share} of the largest useful one, free intercept, mean squares / 2 + alpha |coef|₁"
    return Case(
        f"Lasso, 1/{share}", what, contestants, objective, 1e-6, 1.0, proved(tight("Lasso", X, y, alpha=alpha))
    )


def logistic_case(X: Any, y: Array, share: int, data: str) -> Case:
    """Without an intercept, which celer's has not."""
    C = share / float(np.abs(X.T @ (y - 0.5)).max())
    alpha = 1.0 / (C * len(y))

    def objective(model: Any) -> float:
        coef = np.ravel(model.coef_)
        eta = X @ coef
        return float((np.logaddexp(0.0, eta) - y * eta).sum()) + float(np.abs(coef).sum()) / C

    ours: dict[str, Any] = {"penalty": "l1", "C": C, "fit_intercept": False}
    skglm: dict[str, Any] = {"alpha": alpha, "fit_intercept": False}
    contestants = [
        estimator("certifit", f"{OURS}:LogisticRegression", X, y, **ours, tols=grid(1, 8, 2)),
        estimator("certifit, default tol", f"{OURS}:LogisticRegression", X, y, **ours),
        estimator("celer", "celer:LogisticRegression", X.tocsc(), y, C=C, max_iter=200, tols=grid(2, 7, 2)),
        estimator("skglm", "skglm:SparseLogisticRegression", X.tocsc(), y, **skglm, tols=grid(4, 7, 2)),
        estimator(
            "scikit-learn liblinear", "sklearn.linear_model:LogisticRegression", X, y, C=C, l1_ratio=1.0,
            fit_intercept=False, solver="liblinear", max_iter=10_000, tols=grid(1, 6, 2),
        ),
    ]  # fmt: skip
    what = f"{data}; penalty 1/{share} of the largest useful one, no intercept, log-loss + |coef|₁ / C"
    best = proved(tight("LogisticRegression", X, y, **ours))
    return Case(f"logistic, 1/{share}", what, contestants, objective, 1e-6, 1.0, best)


def tight(name: str, X: Any, y: Array, **params: Any) -> Callable[[], Any]:
    """Our solution to a gap of 1e-9; its certificate, from the checker, says how far it is from the optimum."""

    def fit() -> Any:
        import certifit

        model = getattr(certifit, name)(**params, tol=1e-9).fit(X, y)
        return certifit.audit(model, X, y), 1.0 if name == "LogisticRegression" else len(y)

    return fit


def proved(fit: Callable[[], Any]) -> Callable[[], tuple[float, float]]:
    @cache
    def optimum() -> tuple[float, float]:
        found, unit = fit()
        return found.objective / unit, found.gap / found.objective

    return optimum
