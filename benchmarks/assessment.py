"""What assessments cost, in fits of the model that is assessed, by CPU time.

    python -m benchmarks.assessment [NAME ...]     # all of them by default: prints, keeps in results/assessment.json

Times are those of the process (`time.process_time`), the best of several, with one thread for BLAS.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegressionCV as ScikitLogisticCV
from threadpoolctl import threadpool_limits

from benchmarks.reporting import RESULTS
from certifit import GaussianNB, LinearRegression, LogisticRegression, LogisticRegressionCV, Ridge
from certifit.model_selection import assess, bootstrap_coefficients

KEPT = RESULTS / "assessment.json"


def seconds(work: Callable[[], Any], times: int) -> float:
    """Return the least CPU time of several runs."""
    found = []
    for _ in range(times):
        start = time.process_time()
        work()
        found.append(time.process_time() - start)
    return min(found)


def table(n: int, d: int = 20) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return normal columns, two classes by a noisy linear rule, and a noisy linear target."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    line = X @ np.linspace(-1, 1, d) + rng.normal(size=n)
    return X, (line > 0).astype(int), line


def in_fits(model: Any, X: Any, y: Any, work: Callable[[], Any], times: int = 15) -> dict[str, float]:
    """Return the CPU seconds of a fit and of some work, run in turn, and how many fits that is."""
    work()
    model.fit(X, y)
    pairs = [(seconds(lambda: model.fit(X, y), 1), seconds(work, 1)) for _ in range(times)]
    fit, found = min(pair[0] for pair in pairs), min(pair[1] for pair in pairs)
    return {"fit": fit, "seconds": found, "fits": found / fit}


def bayes(method: str) -> dict[str, float]:
    X, y, _ = table(100_000)
    return in_fits(GaussianNB(), X, y, lambda: assess(GaussianNB(), X, y, method=method))


def ridge(method: str) -> dict[str, float]:
    X, _, y = table(100_000)
    metrics = "neg_mean_squared_error"
    return in_fits(Ridge(), X, y, lambda: assess(Ridge(), X, y, method=method, metrics=metrics))


def replicates() -> dict[str, float]:
    X, _, y = table(100_000)
    work = partial(bootstrap_coefficients, LinearRegression(), X, y, n_replicates=1000)
    found = in_fits(LinearRegression(), X, y, work, 4)
    # What no way around the product of 1000 x 100,000 weights and 231 products of columns can be below.
    weights, products = np.ones((1000, 1000)), np.ones((231, 1000))
    floor = 100 * seconds(lambda: weights @ products.T, 20)
    return {**found, "one float64 product": floor, "that product in fits": floor / found["fit"]}


def logistic_rows() -> dict[str, float]:
    X, y, _ = table(2_000)
    return in_fits(LogisticRegression(), X, y, lambda: assess(LogisticRegression(), X, y, method="leave-one-out"))


def cancer() -> tuple[np.ndarray, np.ndarray]:
    """Return the 569 cases of Wisconsin, columns in units of their spread."""
    X, y = load_breast_cancer(return_X_y=True)
    return (X - X.mean(axis=0)) / X.std(axis=0), y


def logistic_search(X: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """Ours against scikit-learn's, whose tolerance is set so that its objective is as near to the minimum."""
    ours = LogisticRegressionCV()
    ours.fit(X, y)
    theirs = ScikitLogisticCV(tol=1e-6, max_iter=1000, scoring="accuracy", l1_ratios=(0,), use_legacy_attributes=True)
    pairs = [(seconds(lambda: ours.fit(X, y), 1), seconds(lambda: theirs.fit(X, y), 1)) for _ in range(8)]
    found = {"seconds": min(pair[0] for pair in pairs), "scikit-learn": min(pair[1] for pair in pairs)}
    return {**found, "ratio": found["seconds"] / found["scikit-learn"]}


# By name: what is measured, and what is wanted of it.
MEASURED: dict[str, tuple[Callable[[], dict[str, float]], str]] = {
    "bayes leave-one-out": (lambda: bayes("leave-one-out"), "5 fits"),
    "bayes 10-fold": (lambda: bayes("k-fold"), "2.5 fits"),
    "ridge leave-one-out": (lambda: ridge("leave-one-out"), "5 fits"),
    "ridge 10-fold": (lambda: ridge("k-fold"), "2.5 fits"),
    "1000 replicates of least squares": (replicates, "20 fits"),
    "logistic leave-one-out": (logistic_rows, "40 fits"),
    "LogisticRegressionCV": (lambda: logistic_search(*table(2_000)[:2]), "0.3 of scikit-learn's"),
    "LogisticRegressionCV 500x50": (lambda: logistic_search(*table(500, 50)[:2]), "0.3 of scikit-learn's"),
    "LogisticRegressionCV 10,000x10": (lambda: logistic_search(*table(10_000, 10)[:2]), "0.3 of scikit-learn's"),
    "LogisticRegressionCV breast cancer": (lambda: logistic_search(*cancer()), "0.3 of scikit-learn's"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("names", nargs="*", default=[*MEASURED])
    for name in parser.parse_args().names:
        measure, wanted = MEASURED[name]
        with threadpool_limits(1):
            found = {**measure(), "wanted": wanted}
        print(name, found, flush=True)
        kept = json.loads(KEPT.read_text()) if KEPT.exists() else {}
        KEPT.write_text(json.dumps({**kept, name: found}, indent=1) + "\n")


if __name__ == "__main__":
    main()
