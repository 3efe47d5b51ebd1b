"""The tabular preset of networks on ten bundled tables: accuracy in cross-validation, beside two usual models."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn import datasets
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import StratifiedKFold
from sklearn.neural_network import MLPClassifier as ScikitMLP
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.datasets import Array
from benchmarks.harness import Options
from benchmarks.reporting import Report, Table, say
from certifit import MLPClassifier
from certifit.datasets import load_penguins

FOLDS = 5
PUBLISHED = Path(__file__).parents[1] / "tests" / "published" / "data"


def network_tables(title: str, options: Options) -> Report:
    """Mean accuracies; wanted: at least scikit-learn's network's, and at most a point less than boosting's."""
    makers: dict[str, Any] = {
        "certifit, preset='tabular'": lambda: MLPClassifier(preset="tabular", random_state=0),
        "scikit-learn's network, scaled": lambda: make_pipeline(StandardScaler(), ScikitMLP(random_state=0)),
        "histogram boosting": lambda: HistGradientBoostingClassifier(random_state=0),
    }
    rows: list[list[str]] = []
    found: list[list[float]] = []
    tables = bundled_tables()
    for name, (X, y) in [*tables.items()][: options.rows(len(tables))]:
        say(name)
        found.append([accuracy(maker, X, y) for maker in makers.values()])
        rows.append([f"{name} {X.shape[0]} x {X.shape[1]}", *(f"{share:.2%}" for share in found[-1])])
    means = np.mean(found, axis=0)
    rows.append(["mean", *(f"{share:.2%}" for share in means)])
    note = "Accuracy, the mean of five stratified folds (seed 0). "
    note += "One preset for all, whose settings were tried on these tables."
    table = Table("ten tables of scikit-learn and of this repository", ["table", *makers], rows, note)
    return Report(title, [table], {"rows": rows, "means": means.tolist()}, ("certifit",))


def accuracy(maker: Any, X: Array, y: Array) -> float:
    """The share of rows that a model without them classifies rightly."""
    found = []
    for learnt, held in StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(X, y):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found.append(maker().fit(X[learnt], y[learnt]).score(X[held], y[held]))
    return float(np.mean(found))


def bundled_tables() -> dict[str, tuple[Array, Array]]:
    """Ten tables of numbers with their classes; words are indicators, and rows with holes are left out."""
    found = {
        name: getattr(datasets, f"load_{name}")(return_X_y=True)
        for name in ("iris", "wine", "breast_cancer", "digits")
    }
    X, y = datasets.load_diabetes(return_X_y=True)
    found["diabetes above the median"] = X, (y > np.median(y)).astype(int)
    penguins = load_penguins().dropna()
    for target in ("species", "sex", "island"):
        found[f"penguins' {target}"] = _numbers(penguins, target)
    found["low birth weight"] = _numbers(pd.read_csv(PUBLISHED / "low_birth_weight.csv"), "low")
    X, y = datasets.load_svmlight_file(str(PUBLISHED / "heart_scale.svmlight"))
    found["heart"] = X.toarray(), y.astype(int)
    return found


def _numbers(frame: pd.DataFrame, target: str) -> tuple[Array, Array]:
    columns = pd.get_dummies(frame.drop(columns=target)).to_numpy(dtype=float)
    return columns, pd.factorize(frame[target])[0]
