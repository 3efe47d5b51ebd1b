"""`python -m benchmarks.table_quality`: `certifit.fit` against boosting that was tuned, on public tables.

    python -m benchmarks.table_quality --budget 60s            # measures what is not on record yet, then all tables
    python -m benchmarks.table_quality iris diabetes --again   # these anew, whatever is on record
    python -m benchmarks.table_quality --peers                 # peers alone, which take no budget of time
    python -m benchmarks.table_quality --budget 60s --show     # what is on record, nothing measured
    python -m benchmarks.table_quality --budget 60s --processor-time    # on a machine that does other work too

Each table is cut at random into 70 % to learn from and 30 % to test: once, or three times where it has few rows, as
a single cut of those says little (in one of `engel` two rows are a third of the variance). scikit-learn's
HistGradientBoosting and, where it is installed, LightGBM are tuned by random trials on folds of the first part and
fitted to all of it; `certifit.fit` has the first part and its budget. The score is accuracy or R² on the second part,
in points (0 to 100). With --processor-time the budget is of seconds of the processor, counted over all threads: on a
machine with nothing else to do such a run takes at most as long by the clock. Tables are those that come with
scikit-learn, statsmodels, vega-datasets and certifit, as far as these are installed. Every measurement is kept in
results/table_quality.json.
"""

from __future__ import annotations

import argparse
import importlib
import json
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.metrics import accuracy_score, r2_score
from sklearn.model_selection import RandomizedSearchCV, train_test_split

import certifit
import certifit.table.portfolio.clock as portfolio_clock
import certifit.table.portfolio.contest as portfolio_contest


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


def _hourly(name: str) -> pd.DataFrame:
    """Temperatures of every hour of a year; the hour has a column of its own, as boosting is told days only."""
    frame = _vega(name)
    return frame.assign(hour=frame["date"].dt.hour)


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
    PublicTable("stocks", "price", lambda: _vega("stocks")),
    PublicTable("seattle_hours", "temp", lambda: _hourly("seattle_temps")),
    PublicTable("sf_hours", "temp", lambda: _hourly("sf_temps")),
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


class Cut(NamedTuple):
    """A table in two parts."""

    table: PublicTable
    seed: int
    classes: bool
    train: pd.DataFrame
    test: pd.DataFrame

    def score(self, answers: Any) -> float:
        """Accuracy or R² of answers for the second part, in points."""
        judge = accuracy_score if self.classes else r2_score
        return 100 * float(judge(self.test[self.table.target], answers))


def cut_table(table: PublicTable, seed: int) -> Cut:
    """70 % to learn from and 30 % to test, class by class."""
    frame = table.load().dropna(subset=[table.target]).reset_index(drop=True)
    classes = not pd.api.types.is_numeric_dtype(frame[table.target])
    strata = frame[table.target] if classes else None
    return Cut(table, seed, classes, *train_test_split(frame, test_size=0.3, random_state=seed, stratify=strata))


def cut_seeds(table: PublicTable, few_rows: int = 2_000, few_cuts: int = 3) -> range:
    """The seeds of a table's cuts."""
    return range(few_cuts if len(table.load()) < few_rows else 1)


@contextmanager
def counting(processor_time: bool) -> Iterator[Callable[[], float]]:
    """The clock that budgets are counted by, for as long as this lasts."""
    if not processor_time:
        yield time.monotonic
        return
    clock = SimpleNamespace(monotonic=time.process_time)
    with patch.object(portfolio_clock, "time", clock), patch.object(portfolio_contest, "time", clock):
        yield time.process_time


def measure_ours(cut: Cut, budget: str, processor_time: bool) -> tuple[Contestant, str]:
    """Our score, and what was chosen."""
    task = "auto" if cut.classes else "regression"
    with counting(processor_time) as clock:
        began = clock()
        ours = certifit.fit(cut.train, cut.table.target, budget=budget, seed=cut.seed, task=task)
        taken = clock() - began
    answers = ours.predict(cut.test.drop(columns=cut.table.target))
    return Contestant("certifit", cut.score(answers), taken), ours.search_.winner.label


def measure_peers(cut: Cut, trials: int) -> Iterator[Contestant]:
    """The scores of boosting that was tuned."""
    target = cut.table.target
    whole = for_boosting(pd.concat([cut.train, cut.test]).drop(columns=target))
    X, X_test = whole.iloc[: len(cut.train)], whole.iloc[len(cut.train) :]
    for name, model, seconds in tuned_peers(X, cut.train[target], cut.classes, trials, cut.seed):
        yield Contestant(name, cut.score(model.predict(X_test)), seconds)


class Record:
    """What was measured, by table and cut, in a file that several runs may write to in turn."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def _read(self) -> dict[str, Any]:
        return json.loads(self.path.read_text()) if self.path.exists() else {}

    def of(self, table: str, seed: int) -> dict[str, Any]:
        """What is known of a cut."""
        found: dict[str, Any] = self._read().get(f"{table} cut {seed}", {"peers": {}, "certifit": {}})
        return found

    def keep(self, table: str, seed: int, kind: str, setting: str, found: Any) -> None:
        """Add a measurement to what the file holds by now."""
        whole, known = self._read(), self.of(table, seed)
        known[kind][setting] = found
        whole[f"{table} cut {seed}"] = known
        self.path.write_text(json.dumps(whole, indent=1, sort_keys=True) + "\n")


def measure(table: PublicTable, seed: int, asked: argparse.Namespace, record: Record) -> None:
    """Measure what is not known of a cut, or what was asked for again."""
    known, cut = record.of(table.name, seed), cut_table(table, seed)
    word = f"{asked.trials} trials"
    if word not in known["peers"]:
        found = {one.name: one._asdict() for one in measure_peers(cut, asked.trials)}
        record.keep(table.name, seed, "peers", word, found)
    if not asked.peers and (asked.again or asked.budget not in known["certifit"]):
        ours, chosen = measure_ours(cut, asked.budget, asked.processor_time)
        how = {"chosen": chosen, "seconds of": "the processor" if asked.processor_time else "the clock"}
        record.keep(table.name, seed, "certifit", asked.budget, ours._asdict() | how)


def show(table: PublicTable, asked: argparse.Namespace, record: Record) -> float | None:
    """Print a line for each cut, and return how far we are behind the better peer, on average over the cuts."""
    behind = []
    for seed in cut_seeds(table, few_cuts=asked.cuts):
        known = record.of(table.name, seed)
        ours, peers = known["certifit"].get(asked.budget), known["peers"].get(f"{asked.trials} trials")
        if ours is None or peers is None:
            continue
        behind.append(max(peer["score"] for peer in peers.values()) - ours["score"])
        scores = "  ".join(
            f"{one['name']} {one['score']:6.2f} ({one['seconds']:.0f} s)" for one in (ours, *peers.values())
        )
        print(f"{table.name:<20} {seed} {scores}  behind {behind[-1]:6.2f}  {ours['chosen']}", flush=True)
    return float(np.mean(behind)) if behind else None


def main() -> None:
    """Measure, and print how far we are behind the better peer: each cut, the median table, and those beyond 0.5."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", nargs="*", help="names of tables; all by default")
    parser.add_argument("--budget", default="60s")
    parser.add_argument("--trials", type=int, default=30)
    parser.add_argument("--cuts", type=int, default=3, help="of a table with few rows")
    parser.add_argument("--peers", action="store_true", help="measure peers alone")
    parser.add_argument("--again", action="store_true", help="measure certifit anew")
    parser.add_argument("--processor-time", action="store_true", help="count the budget in seconds of the processor")
    parser.add_argument("--show", action="store_true", help="measure nothing")
    asked = parser.parse_args()
    record, behind = Record(Path(__file__).parent / "results" / "table_quality.json"), {}
    for table in TABLES:
        if asked.tables and table.name not in asked.tables:
            continue
        try:
            seeds = cut_seeds(table, few_cuts=asked.cuts)
        except ImportError as error:
            print(f"{table.name}: left out ({error})")
            continue
        for seed in seeds if not asked.show else ():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                measure(table, seed, asked, record)
        points = show(table, asked, record)
        if points is not None:
            behind[table.name] = points
    if behind:
        within = sum(points <= 0.5 for points in behind.values())
        print(f"median behind the better peer: {np.median([*behind.values()]):.2f} points, tables' means over cuts;")
        print(f"{within} of {len(behind)} within 0.5; farther behind:")
        for name, points in sorted(behind.items(), key=lambda pair: -pair[1]):
            if points > 0.5:
                print(f"  {name} {points:.2f}")


if __name__ == "__main__":
    main()
