"""How often intervals of `assess` hold the truth: simulated tables whose truth is known, and a real one split often.

    python -m benchmarks.coverage [--repetitions 400] [METHOD ...]    # measure, keep in results/coverage.json
    python -m benchmarks.coverage --write                             # write docs/coverage.md

The truth is the score on new rows of the model fitted to all rows (of a holdout: of the model that was tested).
Intervals claim 90 %. A real table is thinned to some of its rows, and the others are the new ones.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.linear_model import LinearRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier

from benchmarks.reporting import RESULTS, Table
from certifit.model_selection import assess

KEPT = RESULTS / "coverage.json"
PAGE = Path(__file__).parents[1] / "docs" / "coverage.md"
METHODS: dict[str, dict[str, Any]] = {
    "holdout": {},
    "subsampling": {},
    "k-fold": {},
    "repeated": {},
    "nested": {"n_splits": 5, "n_repeats": 4},
    "leave-one-out": {},
    "bootstrap": {"n_splits": 50},
    ".632": {"n_splits": 50},
    ".632+": {"n_splits": 50},
}
# What the library itself says of the intervals of a method: these may cover more often than they claim.
CONSERVATIVE = ("holdout", "k-fold", "leave-one-out", "bootstrap", ".632", ".632+")

Rows = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class CoverageProblem:
    """A model, a metric, and rows to assess it on with new rows that say the truth."""

    title: str
    model: Any
    metric: str
    draw: Callable[[np.random.Generator], tuple[Rows, Rows]]
    methods: tuple[str, ...] = tuple(METHODS)

    def truth(self, train: Rows, new: Rows) -> float:
        """Return the score on new rows."""
        said = clone(self.model).fit(*train).predict(new[0])
        if self.metric == "accuracy":
            return float(np.mean(said == new[1]))
        return -float(np.mean(np.abs(said - new[1])))


def two_classes(rng: np.random.Generator, n: int = 100, n_new: int = 10_000) -> tuple[Rows, Rows]:
    """Return rows of two classes that differ by 0.7 in three of ten columns."""
    y = rng.integers(2, size=n + n_new)
    X = rng.normal(size=(n + n_new, 10))
    X[:, :3] += 0.7 * y[:, None]
    return (X[:n], y[:n]), (X[n:], y[n:])


def line(rng: np.random.Generator, n: int = 100, n_new: int = 10_000) -> tuple[Rows, Rows]:
    """Return rows of a linear model with errors that have heavier tails than the normal law."""
    X = rng.normal(size=(n + n_new, 10))
    y = X @ np.linspace(-1, 1, 10) + rng.standard_t(5, size=n + n_new)
    return (X[:n], y[:n]), (X[n:], y[n:])


def digits(rng: np.random.Generator, n: int = 200) -> tuple[Rows, Rows]:
    """Return 200 of 1797 images of digits, and the others."""
    X, y = load_digits(return_X_y=True)
    order = rng.permutation(len(y))
    return (X[order[:n]], y[order[:n]]), (X[order[n:]], y[order[n:]])


PROBLEMS = {
    "bayes": CoverageProblem("two classes, 100 rows, GaussianNB", GaussianNB(), "accuracy", two_classes),
    "squares": CoverageProblem(
        "a line, 100 rows, LinearRegression", LinearRegression(), "neg_mean_absolute_error", line
    ),
    "digits": CoverageProblem(
        "200 of 1797 digits, GaussianNB", GaussianNB(var_smoothing=1e-2), "accuracy", digits,
        ("holdout", "subsampling", "k-fold", "repeated", "leave-one-out", "bootstrap"),
    ),
    "neighbours": CoverageProblem(
        "two classes, 100 rows, 5 neighbours", KNeighborsClassifier(5), "accuracy", two_classes,
        ("holdout", "subsampling", "k-fold", "repeated"),
    ),
}  # fmt: skip


def coverage(problem: CoverageProblem, method: str, repetitions: int) -> dict[str, Any]:
    """Return how often the interval held the truth, its mean width and the mean distance of the estimate."""
    rng, hits, widths, apart = np.random.default_rng(0), 0, [], []
    start = time.process_time()
    for seed in range(repetitions):
        rows, new = problem.draw(rng)
        found = assess(
            problem.model, *rows, method=method, metrics=problem.metric, random_state=seed, **METHODS[method]
        )  # fmt: skip
        claim = found[problem.metric]
        train = found.plan.splits[0][0] if method == "holdout" else np.arange(len(rows[1]))
        score = problem.truth((rows[0][train], rows[1][train]), new)
        hits += claim.low <= score <= claim.high
        widths.append(claim.high - claim.low)
        apart.append(claim.estimate - score)
    return {
        "covered": hits / repetitions, "repetitions": repetitions, "width": float(np.mean(widths)),
        "bias": float(np.mean(apart)), "seconds": time.process_time() - start,
    }  # fmt: skip


def page(kept: dict[str, Any]) -> str:
    """Return the page of the documentation."""
    text = [
        "# How often intervals hold the truth\n",
        "`python -m benchmarks.coverage` measures, `python -m benchmarks.coverage --write` writes this page.",
        "Intervals of `assess` claim 90 %. The truth is the score on thousands of new rows of the model fitted to",
        "all rows (of a holdout: of the model that was tested). A share over so many tables is itself known to ± one",
        "standard error only, which is given. *At least* marks intervals that the library itself calls exact for any",
        "number of rows, or conservative: they may cover more often than they claim. The others claim to cover about",
        "as often as they say.",
        "",
    ]
    for name, problem in PROBLEMS.items():
        rows = []
        for method in problem.methods:
            found = kept.get(f"{name} {method}")
            if found is None:
                continue
            share, n = found["covered"], found["repetitions"]
            error = np.sqrt(share * (1 - share) / n)
            claim = "at least 90 %" if method in CONSERVATIVE else "about 90 %"
            cells = f"{100 * share:.1f} ± {100 * error:.1f} %", f"{found['width']:.3f}", f"{found['bias']:+.4f}"
            rows.append((method, claim, *cells, str(n)))
        if not rows:
            continue
        header = ("method", "claims", "covered", "mean width", "estimate - truth", "tables")
        text.append(Table(f"{problem.title}: {problem.metric}", header, rows).markdown())
    return "\n".join(text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("methods", nargs="*", help="all of them by default")
    parser.add_argument("--problems", nargs="*", default=[*PROBLEMS])
    parser.add_argument("--repetitions", type=int, default=400)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    if options.write:
        PAGE.write_text(page(json.loads(KEPT.read_text())), encoding="utf-8")
        return
    for name in options.problems:
        for method in options.methods or PROBLEMS[name].methods:
            if method in PROBLEMS[name].methods:
                found = coverage(PROBLEMS[name], method, options.repetitions)
                print(name, method, found, flush=True)
                kept = json.loads(KEPT.read_text()) if KEPT.exists() else {}
                kept[f"{name} {method}"] = found
                KEPT.write_text(json.dumps(kept, indent=1) + "\n")


if __name__ == "__main__":
    main()
