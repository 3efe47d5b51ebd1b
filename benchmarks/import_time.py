"""What a user waits for before the first answer: imports, and first fits with and without compiled code at hand."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile

from benchmarks.harness import Options
from benchmarks.reporting import Report, Table, as_seconds, say

IMPORTS = {
    "numpy": "import numpy",
    "certifit": "import numpy, certifit",  # numpy too: certifit loads what it needs when it is needed
    "certifit, three estimators": "from certifit import KMeans, LogisticRegression, PCA",
    "scikit-learn, three estimators": "from sklearn.cluster import KMeans; from sklearn.decomposition import PCA; "
    "from sklearn.linear_model import LogisticRegression",
}
FITS = {  # class, parameters, data
    "PCA": ("PCA", "n_components=3", "X"),
    "KMeans": ("KMeans", "n_clusters=5, n_init=1, random_state=0", "X"),
    "LogisticRegression, two classes": ("LogisticRegression", "", "X, y % 2"),
    "LogisticRegression, three classes": ("LogisticRegression", "", "X, y"),
    # Where compiling takes long, small tables are what must not wait for it.
    "DecisionTreeClassifier, 500 x 20": ("DecisionTreeClassifier", "", "X[:500], y[:500]"),
    "RandomForestClassifier, 500 x 20": ("RandomForestClassifier", "", "X[:500], y[:500]"),
    "HistGradientBoostingClassifier, 500 x 20": ("HistGradientBoostingClassifier", "", "X[:500], y[:500] % 2"),
}
DATA = "import numpy as np; r = np.random.default_rng(0); X = r.normal(size=(2000, 20)); y = r.integers(0, 3, 2000)"
LIMITS = {"import": 0.3, "cold": 3.0, "next": 0.5}  # seconds: over numpy; first fit, nothing compiled; next process

Seconds = float | str  # a string says why there is no time


def import_time(title: str, options: Options) -> Report:
    imports = {name: fresh_import(code, options.repeat) for name, code in IMPORTS.items()}
    fits = {name: first_fits(*spec) for name, spec in FITS.items()}
    over = {k: difference(v, imports["numpy"]) for k, v in imports.items()}
    tables = [
        Table(
            "imports in a fresh process, medians",
            ["import", "time", "over numpy"],
            [[k, cell(v), cell(over[k], LIMITS["import"] if k == "certifit" else None)] for k, v in imports.items()],
            f"Target for `import certifit` over `import numpy`: {LIMITS['import']} s.",
        ),
        Table(
            "first fit of a process, 2000 x 20 but where a row says otherwise, imports not counted",
            ["model", "nothing compiled yet", "next process"],
            [[name, *(cell(f[key], LIMITS[key]) for key in ("cold", "next"))] for name, f in fits.items()],
            f"Targets: {LIMITS['cold']} s with nothing compiled, {LIMITS['next']} s in the next process.",
        ),
    ]
    return Report(title, tables, {"imports": imports, "fits": fits, "limits": LIMITS})


def fresh_import(code: str, repeat: int) -> Seconds:
    say(f"fresh process: {code}")
    times = [run_timed("import sys", code) for _ in range(repeat)]
    problem = next((t for t in times if isinstance(t, str)), None)
    return problem or statistics.median(t for t in times if isinstance(t, float))


def first_fits(cls: str, params: str, data: str) -> dict[str, Seconds]:
    """The first fit with an empty cache of compiled code, and the first fit of the process after."""
    say(f"first fit of {cls}({params})")
    before, code = f"from certifit import {cls}; {DATA}", f"{cls}({params}).fit({data})"
    with tempfile.TemporaryDirectory() as folder:
        return {key: run_timed(before, code, NUMBA_CACHE_DIR=folder) for key in ("cold", "next")}


def run_timed(before: str, code: str, **environment: str) -> Seconds:
    """Seconds that `code` takes in a new process, after `before`."""
    script = f"{before}; import time; start = time.perf_counter(); {code}; print(time.perf_counter() - start)"
    done = subprocess.run(
        [sys.executable, "-c", script], env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        return "failed: " + (done.stderr.strip().splitlines() or ["no message"])[-1][:300]
    return float(done.stdout.split()[-1])


def difference(a: Seconds, b: Seconds) -> Seconds:
    return "" if isinstance(a, str) or isinstance(b, str) else a - b


def cell(value: Seconds, limit: float | None = None) -> str:
    if isinstance(value, str):
        return value
    return as_seconds(value) + ("" if limit is None else ": met" if value <= limit else ": missed")
