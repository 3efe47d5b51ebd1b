"""Small tables, which searches fit thousands of times: every estimator that scikit-learn has too, at its defaults.

Both libraries' calls alternate in one process, after a first call of each. Ratios are of processor time: it is what a
search pays that keeps every core busy, and other programs disturb it least. A turn begins when no thread of the
process works any more: those of BLAS and OpenMP keep a core busy for some hundredths of a second after their work,
which would count against whoever comes next.
"""

from __future__ import annotations

import statistics
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from inspect import signature
from typing import Any

import numpy as np
from sklearn import datasets
from sklearn.base import is_classifier, is_outlier_detector, is_regressor
from sklearn.linear_model import LogisticRegression, Ridge

from benchmarks.datasets import Array
from benchmarks.harness import Options
from benchmarks.reporting import Report, Table, as_number, say
from certifit.migration.counterparts import Counterpart, counterparts
from certifit.numerics.compiled.compiling import compiled_at_once


@dataclass(frozen=True)
class Goals:
    """What is wanted of a line, and of all lines together."""

    line: float = 2.0  # our time / scikit-learn's, or
    fixed: float = 1e-3  # seconds that a fit may take longer
    fixed_answer: float = 1e-4  # seconds that an answer may take longer
    median: float = 1.0  # of all ratios


@dataclass(frozen=True)
class Timing:
    """How often calls are timed."""

    rounds: int = 5  # of both libraries in turn
    quick: float = 0.01  # seconds: shorter calls are repeated within a round
    patience: float = 3.0  # seconds of a first call after which one round is enough
    glance: float = 0.004  # seconds of rest in which threads are seen at work
    glances: int = 50  # at most, before a turn


@dataclass
class Line:
    """One call of both libraries, and what it took: seconds of a processor, and seconds on the clock."""

    estimator: str
    table: str
    call: str  # fit, predict of one row, or of the table
    ours: list[tuple[float, float]] = field(default_factory=list)
    theirs: list[tuple[float, float]] = field(default_factory=list)

    @property
    def cpu(self) -> tuple[float, float]:
        ours, theirs = (statistics.median(cpu for cpu, _ in times) for times in (self.ours, self.theirs))
        return ours, theirs

    @property
    def wall(self) -> tuple[float, float]:
        ours, theirs = (statistics.median(wall for _, wall in times) for times in (self.ours, self.theirs))
        return ours, theirs

    @property
    def ratio(self) -> float:
        ours, theirs = self.cpu
        return ours / theirs

    def met(self, goals: Goals) -> bool:
        ours, theirs = self.cpu
        return self.ratio <= goals.line or ours - theirs <= (
            goals.fixed if self.call == "fit" else goals.fixed_answer
        )


TABLES: dict[str, Callable[..., tuple[Array, Array]]] = {
    "iris": datasets.load_iris,
    "breast cancer": datasets.load_breast_cancer,
    "digits": datasets.load_digits,
    "diabetes": datasets.load_diabetes,
}
# Where a default would not fit the table, or there is none.
NEEDED: dict[str, Callable[[Array], dict[str, Any]]] = {
    **dict.fromkeys(("KMeans", "MiniBatchKMeans"), lambda y: {"n_clusters": len(set(y))}),
    **dict.fromkeys(("GaussianMixture", "BayesianGaussianMixture"), lambda y: {"n_components": len(set(y))}),
    **dict.fromkeys(("NuSVC",), lambda y: {"nu": 0.1}),
    "SelectKBest": lambda y: {"k": 2},
    **dict.fromkeys(
        ("SelectFromModel", "RFE", "RFECV", "SequentialFeatureSelector"),
        lambda y: {"estimator": LogisticRegression(max_iter=5000) if len(set(y)) < 11 else Ridge()},
    ),
}
# Where digits take scikit-learn or both more than ten seconds: folds, many small trees, or a search over columns.
SMALLEST_ONLY = (
    "AdaBoostClassifier",
    "BaggingClassifier",
    "GradientBoostingClassifier",
    "HistGradientBoostingClassifier",
    "LogisticRegressionCV",
    "RFE",
    "RFECV",
    "SequentialFeatureSelector",
    "ConvNetClassifier",
)


def small_tables(title: str, options: Options) -> Report:
    """Measure fits and answers of every pair of classes that `--peers` names, by default of all."""
    goals, timing = Goals(), Timing(rounds=options.repeat)
    with compiled_at_once():  # what plain twins of loops take before these are compiled is for `cold_start` to say
        lines = [line for pair in counterparts() if _is_wanted(pair, options) for line in _lines(pair, timing)]
    tables = [_table(call, [line for line in lines if line.call == call], goals) for call in _CALLS]
    records = [
        {
            "estimator": line.estimator, "table": line.table, "call": line.call, "cpu": line.cpu, "wall": line.wall,
            "ratio": line.ratio, "met": line.met(goals),
        }
        for line in lines
    ]  # fmt: skip
    return Report(title, tables, {"lines": records, "goals": vars(goals)})


_CALLS = ("fit", "answer for one row", "answer for the table")


def _is_wanted(pair: Counterpart, options: Options) -> bool:
    named = not options.peers or any(part in f"{pair.room} {pair.name}" for part in options.peers)
    return pair.is_class and named and hasattr(pair.theirs, "fit")


def _lines(pair: Counterpart, timing: Timing) -> Iterator[Line]:
    for table in _tables_for(pair):
        X, y = TABLES[table](return_X_y=True)
        models = [_model(kind, y) for kind in (pair.ours, pair.theirs)]
        say(f"{pair.name} on {table}")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                yield _timed(Line(pair.name, table, "fit"), [partial(m.fit, X, y) for m in models], timing)
            except (ValueError, np.linalg.LinAlgError) as error:
                say(f"left out: {error}")  # one of the two refuses the table, as scikit-learn's QDA does digits
                continue
            answers = [getattr(m, "predict", None) or getattr(m, "transform", None) for m in models]
            if all(answers):
                for call, rows in (("answer for one row", X[:1]), ("answer for the table", X)):
                    yield _timed(Line(pair.name, table, call), [partial(f, rows) for f in answers if f], timing)


def _tables_for(pair: Counterpart) -> tuple[str, ...]:
    kind = pair.theirs
    estimator = kind(**NEEDED[pair.name](TABLES["iris"](return_X_y=True)[1])) if pair.name in NEEDED else kind()
    if is_regressor(estimator) and not is_outlier_detector(estimator):
        return ("diabetes",)
    if pair.name in SMALLEST_ONLY:
        return ("iris",)
    return ("iris", "breast cancer", "digits") if is_classifier(estimator) else ("iris", "digits")


def _model(kind: type, y: Array) -> Any:
    settings = dict(NEEDED.get(kind.__name__, lambda y: {})(y))
    if "random_state" in signature(kind).parameters:
        settings["random_state"] = 0
    return kind(**settings)


def _timed(line: Line, calls: list[Callable[[], Any]], timing: Timing) -> Line:
    """Call both once, then in turns; the first call compiles, loads and fills caches."""
    first = [_seconds(call, 1) for call in calls]
    again = [_seconds(call, 1) for call in calls]
    repeats = [max(1, round(timing.quick / max(wall, 1e-6))) for _, wall in again]
    rounds = 1 if max(wall for _, wall in first) > timing.patience else timing.rounds
    for turn in range(rounds):
        order = ((0, line.ours), (1, line.theirs))
        for i, times in order if turn % 2 == 0 else order[::-1]:
            _wait_for_threads(timing)
            times.append(_seconds(calls[i], repeats[i]))
    return line


def _wait_for_threads(timing: Timing) -> None:
    """Rest until no thread of this process works."""
    for _ in range(timing.glances):
        before = time.process_time()
        time.sleep(timing.glance)
        if time.process_time() - before < 0.1 * timing.glance:
            return


def _seconds(call: Callable[[], Any], repeats: int) -> tuple[float, float]:
    """Return the seconds of a processor and on the clock that one call takes, on average."""
    cpu, wall = time.process_time(), time.perf_counter()
    for _ in range(repeats):
        call()
    return (time.process_time() - cpu) / repeats, (time.perf_counter() - wall) / repeats


def _table(call: str, lines: list[Line], goals: Goals) -> Table:
    ratios = [line.ratio for line in lines]
    missed = sum(not line.met(goals) for line in lines)
    over = goals.fixed if call == "fit" else goals.fixed_answer
    median = as_number(statistics.median(ratios)) if ratios else "none"
    note = (
        f"Ratios of processor time; median {median}, wanted {goals.median:g}. A line is met at a ratio of "
        f"{goals.line:g}, or where the difference is at most {1e3 * over:g} ms; {missed} of {len(lines)} are missed."
    )
    rows = [
        [
            line.estimator, line.table, *(f"{1e3 * seconds:.3g}" for seconds in (*line.cpu, *line.wall)),
            as_number(line.ratio), "yes" if line.met(goals) else "no",
        ]
        for line in lines
    ]  # fmt: skip
    header = ["estimator", "table", "certifit, CPU ms", "scikit-learn", "certifit, wall ms", "scikit-learn",
              "ratio", "met"]  # fmt: skip
    return Table(f"{call}, milliseconds", header, rows, note)
