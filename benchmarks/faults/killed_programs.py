"""Programs that are killed during a fit and during a save."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.faults.trials import Fault, FaultFinding

FIT = """
import sys, numpy as np, certifit
from certifit.files.checkpoint import CheckpointTuning
from certifit.files.pass_log import KeptLoop
KeptLoop.tuning = CheckpointTuning(seconds=0.02, share=1.0)  # small fits: no second passes
path, name = sys.argv[1:]
X = np.random.default_rng(0).normal(size=({"kernel": 2500, "pursuit": 800, "outliers": 2500}.get(name, 20_000), 10))
y = (X[:, 0] + np.random.default_rng(1).normal(size=len(X)) > 0).astype(int)
model = {
    "mixture": lambda: certifit.GaussianMixture(4, random_state=0, tol=1e-9, max_iter=60),
    "clusters": lambda: certifit.KMeans(8, random_state=0),
    "logistic": lambda: certifit.LogisticRegression(penalty="l1", C=0.05),
    "poisson": lambda: certifit.PoissonRegressor(),
    "machine": lambda: certifit.LinearSVC(loss="hinge"),
    "forest": lambda: certifit.RandomForestClassifier(40, max_depth=6, random_state=0),
    "boosting": lambda: certifit.HistGradientBoostingClassifier(max_iter=30, random_state=0),
    "kernel": lambda: certifit.SVC(kernel="poly", C=10.0, cache_size=20),
    "outliers": lambda: certifit.OneClassSVM(nu=0.2, cache_size=20),
    "pursuit": lambda: certifit.RobustPCA(tol=1e-9),
}[name]()
import warnings
warnings.simplefilter("ignore")
print("begins", flush=True)
model.fit(X, y, checkpoint=path)
from certifit.table.portfolio.digest import fitted_digest
print(fitted_digest(model))
"""
NAMES = (
    "mixture", "clusters", "logistic", "poisson", "machine", "forest", "boosting", "kernel", "outliers", "pursuit",
)  # fmt: skip


def killed_fits(folder: Path) -> Callable[[np.random.Generator], str]:
    """Kill a fit with a checkpoint at random moments, up to three times; it ends with the bits of a whole one."""
    whole: dict[str, str] = {}
    longest: dict[str, float] = {}
    for name in NAMES:
        _fit(folder, name, None)  # compiles
        begin = time.monotonic()
        whole[name] = _fit(folder, name, None)
        longest[name] = time.monotonic() - begin

    def trial(rng: np.random.Generator) -> str:
        name = str(rng.choice(NAMES))
        kills = 0
        for _ in range(3):
            if _fit(folder, name, float(rng.uniform(0, longest[name]))) == "killed":
                kills += 1
            else:
                break
        if (found := _fit(folder, name, None)) != whole[name]:
            raise FaultFinding(f"{name}: other bits after {kills} kills ({found})")
        return f"killed {kills} times, same bits"

    return trial


def _fit(folder: Path, name: str, limit: float | None) -> str:
    """The hash of all arrays of a fit; 'killed' where it took longer than the limit after it began."""
    path = folder / f"{name}.ckpt"
    with subprocess.Popen(
        [sys.executable, "-c", FIT, str(path), name], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as program:
        assert program.stdout is not None
        program.stdout.readline()
        try:
            found, said = program.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            program.kill()
            program.communicate()
            return "killed"
    if program.returncode != 0:
        raise FaultFinding(f"{name}: the fit ended with {said.strip().splitlines()[-1:]}")
    if path.exists():
        raise FaultFinding(f"{name}: the checkpoint of a complete fit is still there")
    return found.strip()


SAVE = """
import sys, numpy as np, certifit
path = sys.argv[1]
model = certifit.load(path)
print("begins", flush=True)
while True:
    certifit.save(model, path)
"""


def killed_saves(folder: Path) -> Callable[[np.random.Generator], str]:
    """Kill a program that saves a model over and over; the file must be whole."""
    import certifit

    path = folder / "model.certifit"
    X = np.random.default_rng(0).normal(size=(20_000, 20))
    certifit.save(certifit.SVC().fit(X[:2000], X[:2000, 0] > 0), path)
    content = path.read_bytes()

    def trial(rng: np.random.Generator) -> str:
        with subprocess.Popen([sys.executable, "-c", SAVE, str(path)], stdout=subprocess.PIPE) as program:
            assert program.stdout is not None
            program.stdout.readline()
            time.sleep(float(rng.uniform(0, 0.5)))
            program.kill()
        if path.read_bytes() != content:
            raise FaultFinding("a file that is neither the old nor the new one")
        for left in folder.glob(".*.tmp"):  # a program that is killed cannot clean up
            os.unlink(left)
        return "the file is whole"

    return trial


KILLED_FITS = Fault("killed_fits", "kill -9 during a fit with a checkpoint", 100, killed_fits)
KILLED_SAVES = Fault("killed_saves", "kill -9 during a save", 100, killed_saves)
