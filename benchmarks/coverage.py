"""How often intervals hold the truth: simulated tables whose truth is known, and real ones that are split often.

    python -m benchmarks.coverage [--repetitions 200] [METHOD ...]    # measure, keep in results/coverage.json
    python -m benchmarks.coverage --write                             # write docs/evidence/coverage.md

The truth is the score on new rows of the model fitted to all rows (of a holdout: of the model that was tested).
Intervals claim 90 %. Of a real table rows are drawn with replacement, and all of its rows are the new ones.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.metrics import get_scorer
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier

from benchmarks.reporting import RESULTS, Table
from certifit.model_selection import ConformalClassifier, ConformalRegressor, assess, choose_setting

KEPT = RESULTS / "coverage.json"
PAGE = Path(__file__).parents[1] / "docs" / "evidence" / "coverage.md"
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
    "out-of-bag": {},
}
Rows = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class IntervalHit:
    """One interval, and the truth."""

    low: float
    high: float
    estimate: float
    truth: float
    way: str
    covers: str = "at least"  # what the library itself says of it


@dataclass(frozen=True)
class CoverageProblem:
    """A model, a metric, and rows to assess it on with new rows that say the truth."""

    title: str
    model: Any
    metric: str
    draw: Callable[[np.random.Generator], tuple[Rows, Rows]]
    methods: tuple[str, ...]
    grid: dict[str, Any] = field(default_factory=dict)  # of a search

    def intervals(self, method: str, rows: Rows, new: Rows, seed: int) -> Iterator[IntervalHit]:
        """Give the intervals of one table with their truth; of conformal prediction there is one for each new row."""
        if method.startswith("conformal"):
            yield from self._of_rows(method.removeprefix("conformal "), rows, new, seed)
            return
        score = get_scorer(self.metric)
        if method.startswith("choice"):
            halving = {"factor": 2, "min_resources": 30} if method.endswith("halving") else {}
            chosen = choose_setting(
                self.model, self.grid, *rows, metric=self.metric, n_splits=5, draws=200, random_state=seed, **halving
            )
            claim = chosen.claim
            yield IntervalHit(claim.low, claim.high, claim.corrected, score(chosen.estimator, *new), "percentiles")
            return
        found = assess(self.model, *rows, method=method, metrics=self.metric, random_state=seed, **METHODS[method])
        train = found.plan.splits[0][0] if method == "holdout" else np.arange(len(rows[1]))
        truth = score(clone(self.model).fit(rows[0][train], rows[1][train]), *new)
        one = found[self.metric]
        yield IntervalHit(one.low, one.high, one.estimate, truth, one.way, one.covers)

    def _of_rows(self, method: str, rows: Rows, new: Rows, seed: int) -> Iterator[IntervalHit]:
        some = new[0][:20], new[1][:20]
        if self.metric == "accuracy":
            model = ConformalClassifier(clone(self.model), method=method, random_state=seed).fit(*rows)
            sets = model.predict_set(some[0])
            for chosen, place in zip(sets, np.searchsorted(model.classes_, some[1]), strict=True):
                inside = 0.0 if chosen[place] else np.nan
                yield IntervalHit(0.0, float(chosen.sum()), 0.0, inside, "order statistic")
            return
        ends = (
            ConformalRegressor(clone(self.model), method=method, random_state=seed)
            .fit(*rows)
            .predict_interval(some[0])
        )
        for (low, high), target in zip(ends, some[1], strict=True):
            yield IntervalHit(low, high, (low + high) / 2, float(target), "order statistic")


def two_classes(rng: np.random.Generator, n: int = 100, n_new: int = 5_000) -> tuple[Rows, Rows]:
    """Return rows of two classes that differ by 0.7 in three of ten columns."""
    y = rng.integers(2, size=n + n_new)
    X = rng.normal(size=(n + n_new, 10))
    X[:, :3] += 0.7 * y[:, None]
    return (X[:n], y[:n]), (X[n:], y[n:])


def line(rng: np.random.Generator, n: int = 100, n_new: int = 5_000) -> tuple[Rows, Rows]:
    """Return rows of a linear model with errors that have heavier tails than the normal law."""
    X = rng.normal(size=(n + n_new, 10))
    y = X @ np.linspace(-1, 1, 10) + rng.standard_t(5, size=n + n_new)
    return (X[:n], y[:n]), (X[n:], y[n:])


def drawn(load: Callable[..., Any], n: int) -> Callable[[np.random.Generator], tuple[Rows, Rows]]:
    """Return how n rows of a table are drawn from it with replacement, and all of its rows.

    The table is what rows are drawn from, so that its own score is the truth and has no error: the rows that are
    left over of a small table would have nearly that of the interval itself.
    """
    X, y = load(return_X_y=True)

    def draw(rng: np.random.Generator) -> tuple[Rows, Rows]:
        rows, new = rng.integers(len(y), size=n), rng.permutation(len(y))
        return (X[rows], y[rows]), (X[new], y[new])

    return draw


# Methods that fit often are tried on half as many tables, and so are areas under curves.
DEAR = ("nested", "bootstrap", ".632", ".632+", "choice", "choice by halving")
SPLITS = ("holdout", "subsampling", "k-fold", "repeated", "leave-one-out", "nested", ".632+")
CONFORMAL = ("conformal split", "conformal cv+")
BAYES, SMOOTH = GaussianNB(), GaussianNB(var_smoothing=1e-2)
NEIGHBOURS, FOREST = KNeighborsClassifier(5), RandomForestClassifier(30, random_state=0)
DIGITS, DIABETES = drawn(load_digits, 200), drawn(load_diabetes, 150)
CHOICES = ("choice", "choice by halving")
ABSOLUTE = "neg_mean_absolute_error"
PROBLEMS = {
    "bayes": CoverageProblem(
        "simulated: two classes, 100 rows, GaussianNB", BAYES, "accuracy", two_classes,
        (*SPLITS, "bootstrap", ".632", *CONFORMAL),
    ),
    "bayes brier": CoverageProblem(
        "the same", BAYES, "neg_brier_score", two_classes, ("holdout", "k-fold", "nested")
    ),
    "bayes auc": CoverageProblem("the same", BAYES, "roc_auc", two_classes, ("holdout", "repeated")),
    "neighbours": CoverageProblem(
        "simulated: two classes, 100 rows, 5 neighbours", NEIGHBOURS, "accuracy", two_classes,
        ("holdout", "k-fold", "repeated", ".632+", *CHOICES), {"n_neighbors": [31, 21, 15, 11, 9, 7, 5, 3]},
    ),
    "forest": CoverageProblem(
        "simulated: two classes, 100 rows, 30 trees", FOREST, "accuracy", two_classes, ("out-of-bag",)
    ),
    "squares": CoverageProblem(
        "simulated: a line with heavy tails, 100 rows, LinearRegression", LinearRegression(), ABSOLUTE, line,
        (*SPLITS, *CONFORMAL),
    ),
    "squares r2": CoverageProblem("the same", LinearRegression(), "r2", line, ("holdout", "repeated")),
    "digits": CoverageProblem(
        "real: 200 rows drawn from 1797 digits, GaussianNB", SMOOTH, "accuracy", DIGITS, (*SPLITS, *CONFORMAL)
    ),
    "digits neighbours": CoverageProblem(
        "real: 200 rows drawn from 1797 digits, neighbours", NEIGHBOURS, "accuracy", DIGITS, ("choice",),
        {"n_neighbors": [25, 15, 9, 5, 3, 1]},
    ),
    "digits forest": CoverageProblem(
        "real: 200 rows drawn from 1797 digits, 30 trees", FOREST, "accuracy", DIGITS, ("out-of-bag",)
    ),
    "diabetes": CoverageProblem(
        "real: 150 rows drawn from 442 patients, Ridge", Ridge(0.1), ABSOLUTE, DIABETES, (*SPLITS[:5], *CONFORMAL)
    ),
    "diabetes r2": CoverageProblem("the same", Ridge(0.1), "r2", DIABETES, ("holdout", "repeated")),
}  # fmt: skip


def coverage(problem: CoverageProblem, method: str, repetitions: int) -> dict[str, Any]:
    """Return how often the interval held the truth, its mean width and the mean distance of the estimate."""
    rng, shares, widths, apart, said = np.random.default_rng(0), [], [], [], []
    start = time.process_time()
    for seed in range(repetitions):
        found = [*problem.intervals(method, *problem.draw(rng), seed)]
        shares.append(np.mean([hit.low <= hit.truth <= hit.high for hit in found]))
        widths.append(np.mean([hit.high - hit.low for hit in found]))
        said.append(found[0].covers)
        apart.append(np.mean([hit.estimate - hit.truth for hit in found]))
    return {
        "covered": float(np.mean(shares)), "error": float(np.std(shares) / np.sqrt(repetitions)),
        "repetitions": repetitions, "width": float(np.mean(widths)), "bias": float(np.mean(apart)),
        "way": found[0].way, "covers": max(said, key=said.count), "seconds": time.process_time() - start,
    }  # fmt: skip


def page(kept: dict[str, Any]) -> str:
    """Return the page of the documentation."""
    text = [
        "# How often intervals hold the truth\n",
        "`python -m benchmarks.coverage` measures, `python -m benchmarks.coverage --write` writes this page.",
        "Intervals claim 90 %. The truth is the score of the model fitted to all rows (of a holdout: of the model",
        "that was tested; of a choice: of the chosen one) on thousands of new rows; of real tables, from which",
        "rows are drawn with replacement, on the whole table, which has no error then. Of conformal prediction it",
        "is the target of a new row, and a width counts classes where it predicts these. A share over so many",
        "tables is itself known to ± one standard error only, which is given. What an interval claims is what the",
        "library itself says of it beside the score (`covers`): *at least* 90 % where it is exact for any number of",
        "rows, or conservative; *about* 90 % where a limit theorem holds with many rows; *perhaps less* where these",
        "are too few for one, or where too few members of a forest vote.",
        "",
    ]
    for name, problem in PROBLEMS.items():
        rows = []
        for method in problem.methods:
            found = kept.get(f"{name} {method}")
            if found is None:
                continue
            cells = f"{100 * found['covered']:.1f} ± {100 * found['error']:.1f} %", f"{found['width']:.3g}"
            bias = "" if method.startswith("conformal") else f"{found['bias']:+.2g}"
            claim = f"{found['covers']} 90 %" if found["covers"] != "perhaps less" else "perhaps less than 90 %"
            rows.append((method, found["way"], claim, *cells, bias, str(found["repetitions"])))
        if not rows:
            continue
        header = ("method", "interval", "claims", "covered", "mean width", "estimate - truth", "tables")
        text.append(Table(f"{problem.title}: {problem.metric}", header, rows).markdown())
    return "\n".join(text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("methods", nargs="*", help="all of them by default")
    parser.add_argument("--problems", nargs="*", default=[*PROBLEMS])
    parser.add_argument("--repetitions", type=int, default=200)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    if options.write:
        PAGE.write_text(page(json.loads(KEPT.read_text())), encoding="utf-8")
        return
    for name in options.problems:
        for method in options.methods or PROBLEMS[name].methods:
            if method in PROBLEMS[name].methods:
                slow = method in DEAR or PROBLEMS[name].metric == "roc_auc"
                found = coverage(PROBLEMS[name], method, options.repetitions // (2 if slow else 1))
                print(name, method, found, flush=True)
                kept = json.loads(KEPT.read_text()) if KEPT.exists() else {}
                kept[f"{name} {method}"] = found
                KEPT.write_text(json.dumps(kept, indent=1) + "\n")


if __name__ == "__main__":
    main()
