"""`python -m benchmarks.table_quality`: `certifit.fit` against boosting that was tuned, on public tables.

    python -m benchmarks.table_quality --budget 60s            # all tables
    python -m benchmarks.table_quality iris diabetes --trials 30

Each table is cut once into 70 % to learn from and 30 % to test. scikit-learn's HistGradientBoosting and, where it is
installed, LightGBM are tuned by random trials on folds of the first part and fitted to all of it; `certifit.fit` has
the first part and its budget. The score is accuracy or R² on the second part, in points (0 to 100). Tables are those
that come with scikit-learn, statsmodels, vega-datasets and certifit, as far as these are installed.
"""

from __future__ import annotations

import argparse
import importlib
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.metrics import accuracy_score, r2_score
from sklearn.model_selection import RandomizedSearchCV, train_test_split

import certifit


class PublicTable(NamedTuple):
    """A table and its target."""

    name: str
    target: str
    load: Callable[[], pd.DataFrame]


class Contestant(NamedTuple):
    """What one of them scored on rows that it has not seen, in points."""

    name: str
    score: float
    seconds: float


def _sklearn(name: str) -> pd.DataFrame:
    found = getattr(importlib.import_module("sklearn.datasets"), f"load_{name}")(as_frame=True)
    return found.frame


def _classes(name: str) -> pd.DataFrame:
    frame = _sklearn(name)
    return frame.assign(target="class " + frame["target"].astype(str))


def _statsmodels(name: str, target: str = "", drop: tuple[str, ...] = ()) -> pd.DataFrame:
    data = importlib.import_module("statsmodels.api").datasets
    frame = getattr(data, name).load_pandas().data.drop(columns=list(drop))
    return frame.assign(**{target: "c" + frame[target].astype(int).astype(str)}) if target else frame


def _affairs() -> pd.DataFrame:
    frame = _statsmodels("fair")
    return frame.assign(affairs=np.where(frame["affairs"] > 0, "some", "none"))


def _vega(name: str, drop: tuple[str, ...] = ()) -> pd.DataFrame:
    return getattr(importlib.import_module("vega_datasets").data, name)().drop(columns=list(drop))


def _penguins() -> pd.DataFrame:
    return pd.read_csv(importlib.import_module("certifit.datasets").penguins_path())


TABLES = (
    PublicTable("iris", "target", lambda: _classes("iris")),
    PublicTable("wine", "target", lambda: _classes("wine")),
    PublicTable("breast_cancer", "target", lambda: _classes("breast_cancer")),
    PublicTable("digits", "target", lambda: _classes("digits")),
    PublicTable("penguins", "species", _penguins),
    PublicTable("penguins_sex", "sex", _penguins),
    PublicTable("anes96", "vote", lambda: _statsmodels("anes96", "vote")),
    PublicTable("fair", "affairs", _affairs),
    PublicTable("modechoice", "choice", lambda: _statsmodels("modechoice", "choice", ("individual",))),
    PublicTable("cars_origin", "Origin", lambda: _vega("cars", ("Name",))),
    PublicTable("weather", "weather", lambda: _vega("seattle_weather")),
    PublicTable("diabetes", "target", lambda: _sklearn("diabetes")),
    PublicTable("penguins_mass", "body_mass_g", _penguins),
    PublicTable("fair_years", "yrs_married", lambda: _statsmodels("fair")),
    PublicTable("randhie", "mdvis", lambda: _statsmodels("randhie")),
    PublicTable("engel", "foodexp", lambda: _statsmodels("engel")),
    PublicTable("star98", "NABOVE", lambda: _statsmodels("star98")),
    PublicTable("grunfeld", "invest", lambda: _statsmodels("grunfeld")),
    PublicTable("macrodata", "unemp", lambda: _statsmodels("macrodata")),
    PublicTable("cars_mpg", "Miles_per_Gallon", lambda: _vega("cars", ("Name",))),
    PublicTable("weather_temperature", "temp_max", lambda: _vega("seattle_weather")),
    PublicTable("barley", "yield", lambda: _vega("barley")),
)

GRID: dict[str, dict[str, Any]] = {
    "HistGradientBoosting": {
        "learning_rate": [0.02, 0.05, 0.1, 0.2],
        "max_iter": [50, 100, 200],
        "max_leaf_nodes": [4, 8, 16, 31, 63],
        "min_samples_leaf": [5, 10, 20, 50],
        "l2_regularization": [0.0, 0.1, 1.0, 10.0],
        "max_features": [0.5, 0.8, 1.0],
    },
    "LightGBM": {
        "learning_rate": [0.02, 0.05, 0.1, 0.2],
        "n_estimators": [50, 100, 200],
        "num_leaves": [4, 8, 16, 31, 63],
        "min_child_samples": [5, 10, 20, 50],
        "reg_lambda": [0.0, 0.1, 1.0, 10.0],
        "colsample_bytree": [0.5, 0.8, 1.0],
    },
}


def for_boosting(frame: pd.DataFrame) -> pd.DataFrame:
    """Text as categories, dates as days: what both libraries take."""
    out = frame.copy()
    for name in out:
        if pd.api.types.is_datetime64_any_dtype(out[name]):
            out[name] = (out[name] - pd.Timestamp(0)).dt.days
        elif not pd.api.types.is_numeric_dtype(out[name]):
            out[name] = out[name].astype("category")
    return out


def tuned_peers(X: pd.DataFrame, y: Any, classes: bool, trials: int, seed: int) -> Iterator[tuple[str, Any, float]]:
    """Each peer, tuned by random trials on three folds and fitted to all rows, with the seconds that took."""
    makers = {"HistGradientBoosting": HistGradientBoostingClassifier if classes else HistGradientBoostingRegressor}
    try:
        lightgbm = importlib.import_module("lightgbm")
        makers["LightGBM"] = lightgbm.LGBMClassifier if classes else lightgbm.LGBMRegressor
    except ImportError:
        pass
    for name, maker in makers.items():
        quiet = {"verbose": -1, "n_jobs": 1} if name == "LightGBM" else {"categorical_features": "from_dtype"}
        model = maker(random_state=seed, **quiet)
        scoring = "accuracy" if classes else "r2"
        began = time.process_time()
        found = RandomizedSearchCV(model, GRID[name], n_iter=trials, cv=3, scoring=scoring, random_state=seed)
        yield name, found.fit(X, y), time.process_time() - began


def compare(table: PublicTable, budget: str, trials: int, seed: int) -> tuple[list[Contestant], str]:
    """Scores on the rows left out, ours first, and what we chose."""
    frame = table.load().dropna(subset=[table.target]).reset_index(drop=True)
    classes = not pd.api.types.is_numeric_dtype(frame[table.target])
    strata = frame[table.target] if classes else None
    train, test = train_test_split(frame, test_size=0.3, random_state=seed, stratify=strata)
    score = accuracy_score if classes else r2_score
    truth, X_test = test[table.target], test.drop(columns=table.target)
    began = time.process_time()
    ours = certifit.fit(train, table.target, budget=budget, seed=seed, task="auto" if classes else "regression")
    found = [Contestant("certifit", 100 * score(truth, ours.predict(X_test)), time.process_time() - began)]
    X = for_boosting(frame.drop(columns=table.target))
    for name, model, seconds in tuned_peers(X.loc[train.index], train[table.target], classes, trials, seed):
        found.append(Contestant(name, 100 * score(truth, model.predict(X.loc[test.index])), seconds))
    return found, ours.search_.winner.label


def main() -> None:
    """Print a line for each table, and the median of how far we are behind the better peer."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", nargs="*", help="names of tables; all by default")
    parser.add_argument("--budget", default="60s")
    parser.add_argument("--trials", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    behind = []
    for table in TABLES:
        if asked.tables and table.name not in asked.tables:
            continue
        try:
            table.load()
        except ImportError as error:
            print(f"{table.name}: left out ({error})")
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found, chosen = compare(table, asked.budget, asked.trials, asked.seed)
        ours, *peers = found
        behind.append(max(peer.score for peer in peers) - ours.score)
        scores = "  ".join(f"{one.name} {one.score:6.2f} ({one.seconds:.0f} s)" for one in found)
        print(f"{table.name:<20} {scores}  behind {behind[-1]:6.2f}  {chosen}", flush=True)
    if behind:
        within = sum(points <= 0.5 for points in behind)
        print(f"median behind the better peer: {np.median(behind):.2f} points; {within} of {len(behind)} within 0.5")


if __name__ == "__main__":
    main()
