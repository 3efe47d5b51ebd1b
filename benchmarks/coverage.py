"""How often intervals hold the truth: simulated tables whose truth is known, and real ones that are split often.

    python -m benchmarks.coverage [--repetitions 200] [METHOD ...]    # measure, keep in results/coverage.json
    python -m benchmarks.coverage --write                             # write docs/evidence/coverage.md

The truth is the score on new rows of the model fitted to all rows (of a holdout: of the model that was tested).
Intervals claim 90 %. Of a real table rows are drawn with replacement, and all of its rows are the new ones. Several
of these commands may run at once.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from scipy.signal import lfilter
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import load_diabetes, load_digits, load_wine
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.metrics import get_scorer
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier

from benchmarks.reporting import RESULTS, Table
from certifit.model_selection import (
    ConformalClassifier,
    ConformalRegressor,
    TimeHoldout,
    assess,
    choose_setting,
    compare_models,
)

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
    "latest rows": {},
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
    members: int = 0  # rows of a group, one after the other; 0: rows are no groups

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
            claim, less = chosen.claim, any("may cover less often" in note for note in chosen.plan.notes)
            ends = claim.low, claim.high, claim.corrected, score(chosen.estimator, *new)
            way = "none" if claim.refused else "percentiles"
            yield IntervalHit(*ends, way, "perhaps less" if less else "at least")
            return
        options = dict(METHODS[method])
        if self.members:
            options["groups"] = np.arange(len(rows[1])) // self.members
        way = TimeHoldout(0.25) if method == "latest rows" else method
        found = assess(self.model, *rows, method=way, metrics=self.metric, random_state=seed, **options)
        train = found.plan.splits[0][0] if len(found.plan.splits) == 1 else np.arange(len(rows[1]))
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


def far_apart(rng: np.random.Generator, n: int = 100, n_new: int = 20_000) -> tuple[Rows, Rows]:
    """Return rows of two classes that differ by 2.2 in three of five columns: three in a hundred are wrong."""
    y = rng.integers(2, size=n + n_new)
    X = rng.normal(size=(n + n_new, 5))
    X[:, :3] += 2.2 * y[:, None]
    return (X[:n], y[:n]), (X[n:], y[n:])


def line(rng: np.random.Generator, n: int = 100, n_new: int = 5_000) -> tuple[Rows, Rows]:
    """Return rows of a linear model with errors that have heavier tails than the normal law."""
    X = rng.normal(size=(n + n_new, 10))
    y = X @ np.linspace(-1, 1, 10) + rng.standard_t(5, size=n + n_new)
    return (X[:n], y[:n]), (X[n:], y[n:])


# Tables whose rows are no independent draws, or too few for a limit theorem.


def outliers(rng: np.random.Generator, n: int = 100, n_new: int = 100_000) -> tuple[Rows, Rows]:
    """Return rows of a linear model whose errors have a variance, but no fourth moment."""
    X = rng.normal(size=(n + n_new, 5))
    y = X @ np.linspace(-1, 1, 5) + rng.standard_t(3, size=n + n_new)
    return (X[:n], y[:n]), (X[n:], y[n:])


def copies(rng: np.random.Generator) -> tuple[Rows, Rows]:
    """Return 30 rows of two classes, five times each."""
    (X, y), new = two_classes(rng, 30)
    return (np.repeat(X, 5, axis=0), np.repeat(y, 5)), new


def series(rng: np.random.Generator, n: int = 200, n_new: int = 20_000) -> tuple[Rows, Rows]:
    """Return rows in time order, whose errors are nearly those of the row before."""
    X = rng.normal(size=(n + n_new, 3))
    errors = lfilter([1.0], [1.0, -0.95], rng.normal(size=n + n_new + 200))[200:]
    y = X @ np.array([1.0, 0.0, -1.0]) + errors
    return (X[:n], y[:n]), (X[n:], y[n:])


def grouped(rng: np.random.Generator, n: int = 10, n_new: int = 300) -> tuple[Rows, Rows]:
    """Return ten groups of ten rows, which share most of what they are."""
    group = np.repeat(np.arange(n + n_new), 10)
    X = rng.normal(size=(n + n_new, 5))[group] + 0.3 * rng.normal(size=(len(group), 5))
    y = X @ np.linspace(-1, 1, 5) + rng.normal(size=n + n_new)[group] + 0.5 * rng.normal(size=len(group))
    return (X[: 10 * n], y[: 10 * n]), (X[10 * n :], y[10 * n :])


def rare_class(rng: np.random.Generator, n: int = 200, n_new: int = 10_000) -> tuple[Rows, Rows]:
    """Return rows of which eight in a hundred are of the second class."""
    y = np.concatenate([np.arange(n) < 16, rng.random(n_new) < 0.08]).astype(int)
    X = rng.normal(size=(n + n_new, 5)) + 1.5 * y[:, None] * (np.arange(5) < 2)
    order = rng.permutation(n)
    return (X[:n][order], y[:n][order]), (X[n:], y[n:])


def drawn(load: Callable[..., Any], n: int) -> Callable[[np.random.Generator], tuple[Rows, Rows]]:
    """Return how n rows of a table are drawn from it with replacement, and all of its rows.

    The table is what rows are drawn from, so that its own score is the truth and has no error: the rows that are
    left over of a small table would have nearly that of the interval itself. Each entry is moved by about a billionth
    of its column's spread: rows drawn twice are independent draws here, and not to be taken for copies.
    """
    X, y = load(return_X_y=True)
    spread = 1e-9 * X.std(axis=0)

    def draw(rng: np.random.Generator) -> tuple[Rows, Rows]:
        rows, new = rng.integers(len(y), size=n), rng.permutation(len(y))
        return (X[rows] + spread * rng.normal(size=(n, X.shape[1])), y[rows]), (X[new], y[new])

    return draw


# Methods that fit often are tried on half as many tables, and so are areas under curves.
DEAR = ("nested", "bootstrap", ".632", ".632+", "choice", "choice by halving")
SPLITS = ("holdout", "subsampling", "k-fold", "repeated", "leave-one-out", "nested", ".632+")
CONFORMAL = ("conformal split", "conformal cv+")
BAYES, SMOOTH = GaussianNB(), GaussianNB(var_smoothing=1e-2)
NEIGHBOURS, FOREST = KNeighborsClassifier(5), RandomForestClassifier(30, random_state=0)
DIGITS, DIABETES = drawn(load_digits, 200), drawn(load_diabetes, 150)
CHOICES = ("choice", "choice by halving")
ABSOLUTE, SQUARED = "neg_mean_absolute_error", "neg_mean_squared_error"
PROBLEMS = {
    "bayes": CoverageProblem(
        "simulated: two classes, 100 rows, GaussianNB", BAYES, "accuracy", two_classes,
        (*SPLITS, "bootstrap", ".632", *CONFORMAL),
    ),
    "bayes brier": CoverageProblem(
        "the same", BAYES, "neg_brier_score", two_classes, ("holdout", "k-fold", "nested")
    ),
    "bayes auc": CoverageProblem("the same", BAYES, "roc_auc", two_classes, ("holdout", "repeated")),
    "far apart": CoverageProblem(
        "simulated: two classes far apart, 100 rows, GaussianNB", BAYES, "accuracy", far_apart,
        ("holdout", "subsampling", "k-fold", "repeated", "leave-one-out"),
    ),
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
    "wine": CoverageProblem(
        "real: 100 rows drawn from 178 wines, GaussianNB", BAYES, "accuracy", drawn(load_wine, 100),
        ("holdout", "k-fold", "repeated", "leave-one-out"),
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
    "outliers": CoverageProblem(
        "hostile: errors without a fourth moment, 100 rows, LinearRegression", LinearRegression(), SQUARED, outliers,
        ("holdout", "k-fold", "repeated", "leave-one-out", ".632+"),
    ),
    "copies": CoverageProblem(
        "hostile: 30 rows, five times each, GaussianNB", BAYES, "accuracy", copies, ("holdout", "k-fold", "repeated")
    ),
    "series": CoverageProblem(
        "hostile: 200 rows in time order with like errors, LinearRegression", LinearRegression(), ABSOLUTE, series,
        ("holdout", "latest rows", "k-fold"),
    ),
    "groups": CoverageProblem(
        "hostile: ten groups of ten rows, Ridge", Ridge(1.0), ABSOLUTE, grouped, ("k-fold", "repeated"), members=10
    ),
    "rare": CoverageProblem(
        "hostile: 16 of 200 rows in the second class, GaussianNB", BAYES, "accuracy", rare_class,
        ("holdout", "k-fold", "repeated"),
    ),
    "rare auc": CoverageProblem("the same", BAYES, "roc_auc", rare_class, ("k-fold", "repeated")),
    "rare f1": CoverageProblem("the same", BAYES, "f1", rare_class, ("k-fold", "repeated")),
}  # fmt: skip


def coverage(problem: CoverageProblem, method: str, repetitions: int) -> dict[str, Any]:
    """Return how often the interval held the truth, its mean width and the mean distance of the estimate.

    Where the library gives no interval, it is counted as refused: shares and widths are of the tables that have one.
    """
    rng, shares, widths, apart, said, ways = np.random.default_rng(0), [], [], [], [], []
    start = time.process_time()
    for seed in range(repetitions):
        found = [*problem.intervals(method, *problem.draw(rng), seed)]
        apart.append(np.mean([hit.estimate - hit.truth for hit in found]))
        if found[0].way == "none":
            continue
        shares.append(np.mean([hit.low <= hit.truth <= hit.high for hit in found]))
        widths.append(np.mean([hit.high - hit.low for hit in found]))
        said.append(found[0].covers)
        ways.append(found[0].way)
    given = len(shares)
    counted = {
        "covered": float(np.mean(shares)), "error": float(np.std(shares) / np.sqrt(given)),
        "width": float(np.mean(widths)), "way": ways[0], "covers": max(said, key=said.count),
    } if given else {}  # fmt: skip
    return {
        **counted, "repetitions": repetitions, "refused": repetitions - given, "bias": float(np.mean(apart)),
        "seconds": time.process_time() - start,
    }  # fmt: skip


class OfColumns(ClassifierMixin, BaseEstimator):
    """A classifier that sees some of the columns."""

    def __init__(self, model: Any = None, columns: Any = None) -> None:
        self.model, self.columns = model, columns

    def fit(self, X: np.ndarray, y: np.ndarray) -> OfColumns:
        self.model_ = clone(self.model).fit(X[:, self.columns], y)
        self.classes_ = self.model_.classes_
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        return self.model_.predict(X[:, self.columns])


TESTS: dict[str, dict[str, Any]] = {"corrected t": {}, "5x2cv F": {}, "McNemar": {}}


def false_verdicts(test: str, n: int, repetitions: int) -> dict[str, Any]:
    """Return how often two models that are as good as each other by symmetry are told apart, at 5 %."""
    rng, told = np.random.default_rng(0), []
    pair = {"first": OfColumns(GaussianNB(), slice(0, 5)), "second": OfColumns(GaussianNB(), slice(5, 10))}
    for seed in range(repetitions):
        y = rng.integers(2, size=n)
        X = rng.normal(size=(n, 10)) + 0.5 * y[:, None]
        told.append("better" in compare_models(pair, X, y, test=test, random_state=seed).pairs[0].verdict)
    share = float(np.mean(told))
    return {
        "share": share, "error": float(np.sqrt(share * (1 - share) / repetitions)), "repetitions": repetitions
    }  # fmt: skip


def verdict_table(kept: dict[str, Any]) -> str:
    """Return the table of false verdicts."""
    rows = [
        (test, str(n), f"{100 * found['share']:.1f} ± {100 * found['error']:.1f} %", str(found["repetitions"]))
        for test in TESTS
        for n in (40, 100)
        if (found := kept.get(f"verdicts {test} {n}"))
    ]
    title = (
        "Two models that are alike: how often `compare_models` tells them apart at 5 % (of 5x2cv F the comparison "
        "says that it does so more often)"
    )
    return Table(title, ("test", "rows", "told apart", "tables"), rows).markdown() if rows else ""


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
        "are too few for one, where groups are few, or where too few members of a forest vote. Tables called hostile",
        "break what intervals rest on. Where tested rows are seen to be no independent draws, the library gives no",
        "interval and says why: *refused* counts such tables, and the share covered is of all others.",
        "",
    ]
    for name, problem in PROBLEMS.items():
        rows = []
        for method in problem.methods:
            found = kept.get(f"{name} {method}")
            if found is None:
                continue
            rows.append((method, *_cells(method, found)))
        if not rows:
            continue
        header = ("method", "interval", "claims", "covered", "mean width", "estimate - truth", "tables", "refused")
        text.append(Table(f"{problem.title}: {problem.metric}", header, rows).markdown())
    text.append(verdict_table(kept))
    return "\n".join(text)


def _cells(method: str, found: dict[str, Any]) -> tuple[str, ...]:
    """Return the cells of a line of the page after its method."""
    bias = "" if method.startswith("conformal") else f"{found['bias']:+.2g}"
    tables = str(found["repetitions"]), str(found["refused"])
    if "covered" not in found:
        return "none", "no interval", "", "", bias, *tables
    claim = f"{found['covers']} 90 %" if found["covers"] != "perhaps less" else "perhaps less than 90 %"
    covered = f"{100 * found['covered']:.1f} ± {100 * found['error']:.1f} %"
    return found["way"], claim, covered, f"{found['width']:.3g}", bias, *tables


def keep(name: str, found: dict[str, Any]) -> None:
    """Print a measurement and keep it."""
    print(name, found, flush=True)
    with KEPT.open("a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # another of these commands may be about to write
        file.seek(0)
        kept = json.loads(file.read() or "{}")
        file.seek(0)
        file.truncate()
        file.write(json.dumps({**kept, name: found}, indent=1, sort_keys=True) + "\n")


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
        if name == "verdicts":
            continue
        for method in options.methods or PROBLEMS[name].methods:
            if method in PROBLEMS[name].methods:
                slow = method in DEAR or PROBLEMS[name].metric == "roc_auc"
                found = coverage(PROBLEMS[name], method, options.repetitions // (2 if slow else 1))
                keep(f"{name} {method}", found)
    if "verdicts" in options.problems or options.problems == [*PROBLEMS]:
        for test in TESTS:
            for n in (40, 100):
                keep(f"verdicts {test} {n}", false_verdicts(test, n, options.repetitions))


if __name__ == "__main__":
    main()
