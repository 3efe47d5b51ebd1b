"""Histogram boosting: the same number of trees and leaves, judged by the log loss of rows that no one has seen."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.stats import rankdata

from benchmarks.datasets import Array, shape
from benchmarks.harness import Case, Contestant, Options
from benchmarks.peers import estimator

TREES, LEAVES = 100, 31


def boosting_tall(options: Options) -> Iterator[Case]:
    """As many rows and columns as the Higgs data have in the papers on boosting, with interactions and noise."""
    yield case("many rows", options.rows(1_000_000), 28, 1.0)


def boosting_small(_options: Options) -> Iterator[Case]:
    """Tables of so few rows that chance moves the quality of one by several per cent: means over twenty of them."""
    n, d = 1000, 20
    tables = [interactions(n + 20_000, d, seed) for seed in range(20)]
    words = (
        f"{TREES} trees of {LEAVES} leaves on each of {len(tables)} tables {n} x {d}, 255 bins; judged by the mean"
    )
    words += " area under ROC curves of 20,000 other rows, of which 0.2 points count as equal"
    fits = _on_all([contestants(X[:n], y[:n]) for X, y in tables])
    alike = _on_all([contestants(X[:n], y[:n], alike=True) for X, y in tables])
    judge = HeldOutRanking([(X[n:], y[n:]) for X, y in tables])
    # 0.2 points of an error of 18: on these tables equally good libraries are apart by half of it.
    yield Case("few rows, scikit-learn", words, fits[:2], judge, 0.002 / 0.18, 0.3)
    # What libraries do by default differs by more than that.
    words += "; leaves of at least 5 rows and a penalty of 1 on their values for all"
    yield Case("few rows, every library", words, alike, judge, 0.002 / 0.18, 1.0)


def _on_all(tables: list[list[Contestant]]) -> list[Contestant]:
    """Every library's contestants of all tables as one, whose model is the list of theirs."""

    def together(fits: tuple[Contestant, ...]) -> Contestant:
        return Contestant(fits[0].name, fits[0].module, lambda tol: [c.fit(tol) for c in fits])

    return [together(fits) for fits in zip(*tables, strict=True)]


def boosting_predict(options: Options) -> Iterator[Case]:
    """Probabilities of many rows, from trees that grew on fewer: fitting is no part of what is measured."""
    n, d, new = options.rows(100_000), 28, options.rows(1_000_000)
    X, y = interactions(n + new, d)
    words = f"{shape(X[n:])}, {TREES} trees of {LEAVES} leaves from {n} rows; judged by log loss of these rows"
    predicts = [_predictor(fit, X[n:]) for fit in contestants(X[:n], y[:n])]
    yield Case("predict_proba", words, predicts, LogLoss(y[n:]), 0.02, 0.7)


def _predictor(fit: Contestant, new: Array) -> Contestant:
    """Its first call fits too, the warm ones only predict."""
    fitted: list[Any] = []

    def predict(tol: float) -> Any:
        if not fitted:
            fitted.append(fit.fit(tol))
        return fitted[0].predict_proba(new)

    return Contestant(fit.name, fit.module, predict)


def case(name: str, n: int, d: int, target: float) -> Case:
    X, y = interactions(n + 20_000, d)
    words = f"{TREES} trees of {LEAVES} leaves on {shape(X[:n])}, 255 bins; judged by log loss on 20,000 other rows"
    # Trees that are as good differ by chance: 2 % of the log loss is less than 0.2 points of AUC here.
    return Case(name, words, contestants(X[:n], y[:n]), HeldOutLogLoss(X[n:], y[n:]), 0.02, target)


def interactions(n: int, d: int, seed: int = 0) -> tuple[Array, Array]:
    """Two classes by products, waves and sums of a few columns."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    score = X[:, 0] * X[:, 1] + X[:, 2] + np.sin(3 * X[:, 3]) + 0.5 * X[:, 4] * (X[:, 5] > 0)
    return X, (score + rng.normal(size=n) > 0).astype(np.int64)


def contestants(X: Array, y: Array, alike: bool = False) -> list[Contestant]:
    """Every library at its defaults, or `alike`: with the same smallest leaves and the same penalty."""
    ours: dict[str, Any] = {"max_iter": TREES, "max_leaf_nodes": LEAVES, "early_stopping": False}
    light: dict[str, Any] = {"n_estimators": TREES, "num_leaves": LEAVES, "learning_rate": 0.1, "verbose": -1}
    extreme: dict[str, Any] = {"n_estimators": TREES, "max_leaves": LEAVES, "max_depth": 0, "learning_rate": 0.1}
    extreme |= {"grow_policy": "lossguide", "tree_method": "hist", "max_bin": 255}
    if alike:
        ours |= {"min_samples_leaf": 5, "l2_regularization": 1.0, "random_state": 0}
        light |= {"min_child_samples": 5, "reg_lambda": 1.0}
        extreme |= {"min_child_weight": 5 / 4, "reg_lambda": 1.0}  # curvatures of 5 rows of either class alike
    return [
        estimator("certifit", "certifit.ensemble:HistGradientBoostingClassifier", X, y, **ours),
        estimator("scikit-learn", "sklearn.ensemble:HistGradientBoostingClassifier", X, y, **ours),
        estimator("LightGBM", "lightgbm:LGBMClassifier", X, y, **light),
        estimator("XGBoost", "xgboost:XGBClassifier", X, y, **extreme),
    ]


class HeldOutLogLoss:
    """The mean log loss of rows that no one was fitted on."""

    def __init__(self, X: Array, y: Array) -> None:
        self.X, self.y = X, y

    def __call__(self, model: Any) -> float:
        return LogLoss(self.y)(model.predict_proba(self.X))


class HeldOutRanking:
    """The mean of what areas under ROC curves are short of 1, of several models on rows that none was fitted on."""

    def __init__(self, tables: list[tuple[Array, Array]]) -> None:
        self.tables = tables

    def __call__(self, models: Any) -> float:
        scores = [model.predict_proba(X)[:, 1] for model, (X, _) in zip(models, self.tables, strict=True)]
        return float(np.mean([pairs_out_of_order(p, y) for p, (_, y) in zip(scores, self.tables, strict=True)]))


def pairs_out_of_order(scores: Array, y: Array) -> float:
    """The share of pairs of a 1 and a 0 in which the 0 has the higher score, ties by half."""
    ranks = rankdata(scores)
    ones = int(y.sum())
    return 1.0 - float(ranks[y == 1].sum() - ones * (ones + 1) / 2) / (ones * (len(y) - ones))


class LogLoss:
    """The mean log loss of probabilities."""

    def __init__(self, y: Array) -> None:
        self.y = y

    def __call__(self, p: Any) -> float:
        return float(-np.log(np.asarray(p, np.float64)[np.arange(len(self.y)), self.y]).mean())
