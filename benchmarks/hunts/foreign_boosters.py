"""Foreign boosters: LightGBM's, XGBoost's and scikit-learn's sums of trees with random settings, on random tables.

What a library fitted must hold, and not hold for other targets; a column that is proved to rise must not fall between
random rows, and one that is refuted must fall between the two rows, by the library's own answers. Libraries that are
not installed are left out.
"""

from __future__ import annotations

import warnings
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

from benchmarks.datasets import Array
from benchmarks.hunts.cases import Hunt, HuntCase
from benchmarks.hunts.random_tables import decades, pick
from certifit import audit, prove_monotone
from certifit.checkers.tree.sums.read_model import own_scores

LIBRARIES = tuple(name for name in ("lightgbm", "xgboost", "sklearn.ensemble") if find_spec(name.partition(".")[0]))


def try_booster(case: HuntCase) -> None:
    rng, library = case.rng, pick(case.rng, *LIBRARIES)
    n, d = int(rng.integers(30, 300)), int(rng.integers(1, 5))
    X = rng.normal(size=(n, d)) * 10.0 ** rng.integers(-3, 4, d)
    X = X.round(int(rng.integers(0, 4))) if rng.random() < 0.5 else X
    score = X[:, 0] / (np.abs(X[:, 0]).max() or 1.0) * 3 + rng.normal(size=n)
    if library != "sklearn.ensemble" and rng.random() < 0.4:
        X[rng.random(X.shape) < 0.1] = np.nan
    classes = bool(rng.random() < 0.5)
    y = (score > np.median(score)).astype(int) if classes else score
    weight = rng.uniform(0.1, 3.0, n) if rng.random() < 0.3 else None
    model = _model(rng, library, d, classes)
    case.count(f"{library} fitted")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y, sample_weight=weight)
        found = audit(model, X, y, weight)
        case.note(found)
        if not found.holds:
            case.find("an honest booster does not hold", model, str(found))
        other = 1 - y if classes else y + rng.normal(size=n)
        # A constant may be the best answer for other targets too.
        told = "values of leaves not checked" not in found.facts and np.ptp(own_scores(model, X)) > 0
        if told and audit(model, X, other, weight).holds:
            case.find("a booster holds for other targets", model, f"{n} rows of {d} columns")
        _try_monotone(case, model, X, int(rng.integers(d)))


def _model(rng: np.random.Generator, library: str, d: int, classes: bool) -> Any:
    kind = "Classifier" if classes else "Regressor"
    trees, depth = int(rng.integers(1, 40)), int(rng.integers(1, 5))
    rate, penalty = float(rng.uniform(0.05, 0.5)), decades(rng, -3, 1) if rng.random() < 0.5 else 0.0
    ways = [int(way) for way in rng.integers(-1, 2, d)] if rng.random() < 0.3 else None
    shared = {"n_estimators": trees, "max_depth": depth, "learning_rate": rate}
    module: Any = import_module(library)
    if library == "lightgbm":
        few = {"min_child_samples": int(rng.integers(1, 20)), "verbose": -1, "n_jobs": 1, "reg_lambda": penalty}
        return getattr(module, f"LGBM{kind}")(**shared, **few, monotone_constraints=ways)
    if library == "xgboost":
        few = {"n_jobs": 1, "reg_lambda": penalty, "tree_method": pick(rng, "exact", "hist")}
        return getattr(module, f"XGB{kind}")(**shared, **few, monotone_constraints=tuple(ways) if ways else None)
    return getattr(module, f"GradientBoosting{kind}")(**shared, random_state=0)


def _try_monotone(case: HuntCase, model: Any, X: Array, column: int) -> None:
    answer = prove_monotone(model, column, max_boxes=20_000)
    case.count(f"monotone: {answer.verdict}")
    if answer.verdict == "no" and answer.rows is not None:
        before, after = (float(own_scores(model, row[None])[0, 0]) for row in answer.rows)
        if not after < before + 1e-6 * (1 + abs(before)):
            case.find("two rows do not refute what they should", model, f"{answer.rows} {before} {after}")
    if answer.verdict == "yes":
        rows = X[case.rng.integers(len(X), size=400)]
        moved = rows.copy()
        moved[:, column] += np.abs(case.rng.normal(size=400)) * (np.nanstd(X[:, column]) + 1e-9)
        fall = float(
            (own_scores(model, rows) - own_scores(model, moved))[~np.isnan(rows[:, column])].max(initial=0.0)
        )
        if fall > 1e-5:
            case.find("a column proved to rise falls", model, f"column {column} by {fall}")


FOREIGN_BOOSTERS = Hunt(
    "foreign_boosters",
    "Foreign boosters",
    "LightGBM, XGBoost and scikit-learn's gradient boosting: honest fits hold, others do not, rising columns rise",
    try_booster,
    20.0,
)
