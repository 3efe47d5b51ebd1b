"""How close the bound over networks of any width comes, at penalties that cross-validation chooses."""

from __future__ import annotations

import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn import datasets
from sklearn.model_selection import KFold, StratifiedKFold, cross_val_score

from benchmarks.datasets import Array
from benchmarks.harness import Options
from benchmarks.reporting import Report, Table, as_seconds, say
from certifit import MLPClassifier, MLPRegressor, any_width_bound
from certifit.datasets import load_penguins

PENALTIES = (0.1, 0.3, 1.0, 3.0, 10.0)
PUBLISHED = Path(__file__).parents[1] / "tests" / "published" / "data"


def network_bounds(title: str, options: Options) -> Report:
    """The ratio of objective and bound on five small problems; wanted: at most 2."""
    rows: list[list[str]] = []
    problems = five_problems()
    for name, (X, y) in [*problems.items()][: options.rows(len(problems))]:
        say(name)
        scores = {alpha: held_out(network(y, alpha), X, y) for alpha in PENALTIES}
        alpha = max(scores, key=scores.__getitem__)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = network(y, alpha).fit(X, y)
        begin = time.process_time()
        found = any_width_bound(model, X, y)
        cells = [f"{alpha:g}", f"{scores[alpha]:.4f}", f"{found.objective:.5f}", f"{found.bound:.5f}"]
        rows.append([f"{name} {X.shape[0]} x {X.shape[1]}", *cells, f"{found.ratio:.3f}",
                     as_seconds(time.process_time() - begin)])  # fmt: skip
        say("  ".join(rows[-1]))
    header = ["problem", "alpha", "held-out score", "objective", "bound", "ratio", "processor time"]
    note = "30 ReLUs by L-BFGS; alpha by five folds: log loss of classes, R² of amounts. Wanted: at most 2."
    return Report(title, [Table("five small problems", header, rows, note)], {"rows": rows}, ("certifit",))


def network(y: Array, alpha: float) -> Any:
    settings = {"hidden_layer_sizes": (30,), "solver": "lbfgs", "alpha": alpha, "max_iter": 600, "random_state": 0}
    return MLPClassifier(**settings) if y.dtype.kind in "iu" else MLPRegressor(**settings)


def held_out(model: Any, X: Array, y: Array) -> float:
    """The mean score of rows that the network has not seen."""
    classes = y.dtype.kind in "iu"
    folds = (StratifiedKFold if classes else KFold)(5, shuffle=True, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return float(cross_val_score(model, X, y, cv=folds, scoring="neg_log_loss" if classes else "r2").mean())


def five_problems() -> dict[str, tuple[Array, Array]]:
    """Columns of unit variance; classes are whole numbers, amounts have unit variance."""
    faithful = pd.read_csv(PUBLISHED / "old_faithful.csv").to_numpy(dtype=float)
    penguins = load_penguins().dropna()
    measures = penguins[["bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g"]]
    rng = np.random.default_rng(0)
    x = rng.uniform(-2, 2, (100, 1))
    found = {
        "noisy sine": (x, np.sin(2 * x[:, 0]) + 0.2 * rng.normal(size=100)),
        "Old Faithful's waiting": (faithful[:, :1], faithful[:, 1]),
        "two moons": datasets.make_moons(200, noise=0.25, random_state=0),
        "iris": datasets.load_iris(return_X_y=True),
        "penguins' species": (measures.to_numpy(dtype=float), pd.factorize(penguins["species"])[0]),
    }
    return {name: (_scaled(X), y if y.dtype.kind in "iu" else _scaled(y)) for name, (X, y) in found.items()}


def _scaled(values: Array) -> Array:
    return np.asarray((values - values.mean(axis=0)) / values.std(axis=0))
