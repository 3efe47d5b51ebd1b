"""What a user waits for because nothing is compiled yet: first fits of every estimator in fresh processes.

Every estimator is fitted at default settings to a small table, in a new process with an empty cache of compiled code,
and once more in the process after, which finds what the first compiled. All figures are processor seconds of the
process and its threads, so that other programs on the machine hardly move them. `certifit warm-up`, which compiles
all loops at once, is measured in the same way.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from sklearn.utils import all_estimators

from benchmarks.harness import Options
from benchmarks.reporting import Report, Table, as_number, say
from certifit.registry import ESTIMATORS

T, R = TypeVar("T"), TypeVar("R")
CLASSES = "X, y = load_iris(return_X_y=True)"
NUMBERS = "X, y = load_diabetes(return_X_y=True)"
TALL = "r = np.random.default_rng(0); y = r.integers(0, 3, 100_000); X = r.normal(size=(100_000, 10)) + y[:, None]"
REGRESSORS = ("Regressor", "Regression", "Ridge", "RidgeCV", "Lasso", "LassoCV", "ElasticNet", "ElasticNetCV", "SVR")
ARGUMENTS = {  # what an estimator cannot be made without
    "SequentialSelector": "certifit.LogisticRegression(), n_features_to_select=2",
    "SequentialFeatureSelector": "certifit.LogisticRegression(), n_features_to_select=2",
    "RecursiveElimination": "certifit.LogisticRegression(), n_features_to_select=2",
    "RFE": "certifit.LogisticRegression()",
    "RFECV": "certifit.LogisticRegression()",
    "SelectFromModel": "certifit.LogisticRegression()",
    "SelectKBest": "k=2",
    "SelectFeatures": "k=2",
    "Mixture": "'poisson'",
    "MLPClassifier": "max_iter=20",  # the loops are the same in every epoch
    "MLPRegressor": "max_iter=20",
    "ConvNetClassifier": "max_iter=5",
}
TABLES = {  # where neither table will do as it is
    "HardMarginSVC": f"{CLASSES}; X, y = X[:100], y[:100]",
    "CategoricalNB": f"{CLASSES}; X = np.floor(X)",
    "Mixture": f"{CLASSES}; X = np.floor(X)",
    "ConvNetClassifier": f"{CLASSES}; X = np.repeat(X, 4, axis=1)",
    "LocallyLinearEmbedding": f"{NUMBERS}",
    "TableClassifier": "X, y = certifit.datasets.penguins_table(), 'species'",
    "TableRegressor": "X = certifit.datasets.penguins_table(); X = X.filter(X['body_mass_g'].is_valid()); "
    "y = 'body_mass_g'",
}
LARGE = (  # where a long table takes other loops than a short one
    ("KMeans", "n_clusters=8, n_init=1, random_state=0", "float64"),
    ("KMeans", "n_clusters=8, n_init=1, random_state=0", "float32"),
    ("GaussianMixture", "n_components=3, random_state=0, max_iter=20", "float64"),
    ("LogisticRegression", "", "float64"),
    ("LinearSVC", "", "float64"),
    ("GaussianNB", "", "float64"),
    ("DecisionTreeClassifier", "", "float64"),
    ("DecisionTreeRegressor", "max_depth=6", "float64"),
    ("DecisionTreeRegressor", "criterion='absolute_error', max_depth=4", "float64"),
    ("RandomForestClassifier", "n_estimators=2", "float64"),
    ("RandomForestRegressor", "n_estimators=2, max_depth=6", "float64"),
    ("GradientBoostingRegressor", "n_estimators=2", "float64"),
    ("HistGradientBoostingClassifier", "max_iter=2", "float64"),
    ("AdaBoostClassifier", "n_estimators=2", "float64"),
)
# Seconds over a cached fit; seconds; ratio to scikit-learn; seconds.
LIMITS = {"small": 0.5, "large": 3.0, "import": 1.3, "warm-up": 30.0}

SCRIPT = """
import json, os, time, warnings
start = time.process_time()
{imports}
imported = time.process_time() - start
import numpy as np, certifit
from sklearn.datasets import load_diabetes, load_iris
{table}
warnings.simplefilter("ignore")
times = []
for _ in range({fits}):
    model = {model}
    start = time.process_time()
    model.fit(X, y)
    times.append(time.process_time() - start)
loops = sum(name.endswith(".nbc") for _, _, names in os.walk(os.environ["NUMBA_CACHE_DIR"]) for name in names)
print(json.dumps({{"import": imported, "fits": times, "loops": loops}}))
"""


@dataclass(frozen=True)
class ColdStart:
    """What one estimator's first fits took, in processor seconds."""

    name: str
    imported: float
    cold: float  # the first fit, with nothing compiled
    cached: float  # the first fit of the process after
    warm: float  # the second fit of a process
    loops: int  # that were compiled and kept

    @property
    def over(self) -> float:
        """What the missing compiled code costs."""
        return self.cold - self.cached


def cold_start(title: str, options: Options) -> Report:
    names = [entry.name for entry in ESTIMATORS if not options.peers or entry.name in options.peers]
    small = at_once(lambda name: measure(name, ARGUMENTS.get(name, ""), table_of(name)), names)
    tall = [one for one in LARGE if options.shrink == 1 and one[0] in names]
    large = at_once(
        lambda one: measure(one[0], one[1], f"{TALL}; X = X.astype(np.{one[2]})", "{}({}) {}".format(*one)), tall
    )
    tables = [
        as_table("first fits of small tables (iris, diabetes)", small, LIMITS["small"]),
        as_table("first fits of 100,000 x 10 numbers", large, LIMITS["large"]),
        imports_table(names, options.repeat),
    ]
    data: dict[str, Any] = {"small": [vars(one) for one in small], "large": [vars(one) for one in large]}
    if not options.peers and options.shrink == 1:
        data["warm-up"] = warm_up()
        tables.append(
            Table(
                "`certifit warm-up` with nothing compiled",
                ["processor seconds", "loops compiled"],
                [[as_number(data["warm-up"]["cpu"]), str(data["warm-up"]["loops"])]],
                f"Target: {LIMITS['warm-up']:g} s.",
            )
        )
    return Report(title, tables, {**data, "limits": LIMITS}, page="cold_start.md")


def at_once(f: Callable[[T], R], things: Sequence[T]) -> list[R]:
    """Call f of each, on as many processors as there are: what is measured is processor time of fresh processes."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return [*pool.map(f, things)]


def table_of(name: str) -> str:
    return TABLES.get(name, NUMBERS if name.endswith(REGRESSORS) and name != "LogisticRegression" else CLASSES)


def measure(name: str, arguments: str, table: str, label: str = "") -> ColdStart:
    """Fit twice in a process with nothing compiled, and once in the process after."""
    code = {"imports": f"from certifit import {name}", "table": table, "model": f"{name}({arguments})"}
    with tempfile.TemporaryDirectory() as folder:
        first, second = (run_child(SCRIPT.format(fits=n, **code), NUMBA_CACHE_DIR=folder) for n in (2, 2))
    found = ColdStart(
        label or name, second["import"], first["fits"][0], second["fits"][0], second["fits"][1], first["loops"]
    )
    over = f"{found.over:.2f} more; {found.loops} loops compiled"
    say(f"first fit of {found.name}: {found.cold:.2f}, in the next process {found.cached:.2f}: {over}")
    return found


def warm_up() -> dict[str, float]:
    """Compile every loop once, and return the processor seconds that it takes and the number of loops."""
    say("warm-up")
    with tempfile.TemporaryDirectory() as folder:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        command = [sys.executable, "-c", "from certifit.cli import main; main()", "warm-up"]
        environment = {**os.environ, "NUMBA_CACHE_DIR": folder, "OPENBLAS_NUM_THREADS": "1"}
        subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        loops = sum(1 for _ in Path(folder).rglob("*.nbc"))
    return {"cpu": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, "loops": loops}


def run_child(script: str, **environment: str) -> Any:
    """What a new process writes, as JSON."""
    # Bytecode is kept: what is parsed anew in every process says nothing of an installed package.
    surroundings = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "", **environment}
    done = subprocess.run(
        [sys.executable, "-c", script], env=surroundings, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def as_table(caption: str, found: list[ColdStart], limit: float) -> Table:
    ordered = sorted(found, key=lambda one: -one.over)
    missed = sum(one.over > limit for one in found)
    header = ["model", "nothing compiled yet", "next process", "difference", "second fit", "loops compiled"]
    return Table(
        caption,
        header,
        [
            [one.name, *(as_number(x) for x in (one.cold, one.cached, one.over, one.warm)), str(one.loops)]
            for one in ordered
        ],
        f"Processor seconds. Target for the difference: {limit:g}; {missed} of {len(found)} are above it.",
    )


def imports_table(names: list[str], repeat: int) -> Table:
    """The import of an estimator beside that of scikit-learn's class of the same name, least of several."""
    theirs = {name: cls.__module__ for name, cls in all_estimators()}

    def of_both(name: str) -> list[float]:
        modules = ("certifit", theirs[name].partition("._")[0])
        lines = [f"from {module} import {name}" for module in modules]
        found = [min(run_child(SCRIPT_OF_IMPORT.format(line=line)) for _ in range(repeat)) for line in lines]
        say(f"import of {name}: {found[0]:.2f}, scikit-learn's {found[1]:.2f}")
        return found

    shared = [name for name in names if name in theirs]
    rows = [
        (ours / other, [name, *(as_number(x) for x in (ours, other, ours / other))])
        for name, (ours, other) in zip(shared, at_once(of_both, shared), strict=True)
    ]
    missed = sum(ratio > LIMITS["import"] for ratio, _ in rows)
    return Table(
        "imports in a fresh process",
        ["class", "certifit", "scikit-learn", "ratio"],
        [row for _, row in sorted(rows, key=lambda pair: -pair[0])],
        f"Processor seconds, least of {repeat}. Target: {LIMITS['import']:g}; {missed} of {len(rows)} miss it.",
    )


SCRIPT_OF_IMPORT = "import time; start = time.process_time(); {line}; print(time.process_time() - start)"
