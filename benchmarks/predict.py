"""Answers for many rows: predict, or transform, of every estimator that scikit-learn has too.

Both are fitted to the same thousand rows at their defaults; then their calls for all rows alternate, after a first
call of each. Short calls are repeated, and begin after a pause and some calls that are not timed: threads of BLAS
keep a core busy for some hundredths of a second after their work, which would count against whoever comes next.
Ratios are of processor time. What has no answers for new rows is left out.
"""

from __future__ import annotations

import statistics
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from inspect import signature
from typing import Any

import numpy as np
from sklearn.base import is_classifier, is_regressor

from benchmarks.datasets import Array, binary_labels, tall_factors
from benchmarks.harness import Options
from benchmarks.reporting import Report, Table, as_number, say
from benchmarks.small_tables import NEEDED
from certifit.migration.counterparts import Counterpart, counterparts
from certifit.numerics.compiled.compiling import compiled_at_once


@dataclass(frozen=True)
class AnswerGoals:
    """How the tables are cut, and what is wanted of a line."""

    rows: int = 100_000
    columns: int = 20
    fitted_rows: int = 1000
    ratio: float = 1.0  # our processor time / scikit-learn's
    patience: float = 3.0  # seconds of a call after which it is not repeated
    quick: float = 0.03  # seconds: shorter calls are repeated within a turn
    pause: float = 0.12  # seconds of rest before a turn


@dataclass
class AnswerLine:
    """One method of both libraries and what its calls took, in seconds of a processor."""

    estimator: str
    method: str
    ours: list[float] = field(default_factory=list)
    theirs: list[float] = field(default_factory=list)

    @property
    def medians(self) -> tuple[float, float]:
        return statistics.median(self.ours), statistics.median(self.theirs)

    @property
    def ratio(self) -> float:
        ours, theirs = self.medians
        return ours / theirs


def predict(title: str, options: Options) -> Report:
    """Measure the answers of every pair of classes that `--peers` names, by default of all."""
    goals = AnswerGoals(rows=options.rows(AnswerGoals.rows))
    X = tall_factors(goals.rows, goals.columns)
    labels = binary_labels(X)
    with compiled_at_once(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = [
            _line(pair, X, labels, goals, options.repeat) for pair in counterparts() if _is_wanted(pair, options)
        ]
    lines = [line for line in found if line is not None]
    records = [
        {"estimator": line.estimator, "method": line.method, "cpu": line.medians, "ratio": line.ratio}
        for line in lines
    ]
    return Report(title, [_table(lines, goals)], {"lines": records, "goals": vars(goals)})


def _is_wanted(pair: Counterpart, options: Options) -> bool:
    named = not options.peers or any(part in f"{pair.room} {pair.name}" for part in options.peers)
    return pair.is_class and named and hasattr(pair.theirs, "fit")


def _line(pair: Counterpart, X: Array, labels: Array, goals: AnswerGoals, rounds: int) -> AnswerLine | None:
    """Fit both and time their answers; None where one of them has none, or refuses the table."""
    kinds = pair.ours, pair.theirs
    method = next((name for name in ("predict", "transform") if all(hasattr(kind, name) for kind in kinds)), "")
    if not method:
        return None
    say(f"{pair.name}.{method}")
    few, targets = X[:: len(X) // goals.fitted_rows], labels[:: len(X) // goals.fitted_rows]
    try:
        models = [_model(kind, targets) for kind in kinds]
        y = 0.1 + targets + np.abs(few[:, 0]) if is_regressor(models[1]) and not is_classifier(models[1]) else targets
        rows = _suited(pair.name, X)
        calls = [getattr(model.fit(_suited(pair.name, few), y), method) for model in models]
        first = [_seconds(call, rows) for call in calls]
    except (ValueError, TypeError, AttributeError) as error:
        say(f"left out: {str(error)[:200]}")
        return None
    line = AnswerLine(pair.name, method)
    if max(first) > goals.patience:
        line.ours, line.theirs = [first[0]], [first[1]]
        return line
    for turn in range(rounds):
        order = ((0, line.ours), (1, line.theirs))
        for i, times in order if turn % 2 == 0 else order[::-1]:
            times.append(_turn(calls[i], rows, goals))
    return line


def _turn(call: Callable[[Array], Any], rows: Array, goals: AnswerGoals) -> float:
    """Seconds of one call, by as many as take `quick`, after a pause and as many that are not timed."""
    time.sleep(goals.pause)
    once = _seconds(call, rows)
    count = max(1, round(goals.quick / max(once, 1e-6)))
    for _ in range(count - 1):
        call(rows)
    return sum(_seconds(call, rows) for _ in range(count)) / count


def _suited(name: str, X: Array) -> Array:
    """The table, as counts for models of counts, and one column where there may be no more."""
    if name in ("MultinomialNB", "ComplementNB", "CategoricalNB"):
        return np.clip(np.round(X + 1.0), 0.0, 2.0)
    return X[:, 0] if name == "IsotonicRegression" else X


def _model(kind: type, y: Array) -> Any:
    settings = dict(NEEDED.get(kind.__name__, lambda y: {})(y))
    if "random_state" in signature(kind).parameters:
        settings["random_state"] = 0
    return kind(**settings)


def _seconds(call: Callable[[Array], Any], rows: Array) -> float:
    start = time.process_time()
    call(rows)
    return time.process_time() - start


def _table(lines: list[AnswerLine], goals: AnswerGoals) -> Table:
    missed = sum(line.ratio > goals.ratio for line in lines)
    median = as_number(statistics.median(line.ratio for line in lines)) if lines else "none"
    note = (
        f"{goals.rows} x {goals.columns} rows, models of {goals.fitted_rows} rows; ratios of processor time, "
        f"median {median}, wanted {goals.ratio:g}; {missed} of {len(lines)} lines miss it."
    )
    rows = [
        [
            line.estimator, line.method, *(f"{1e3 * seconds:.3g}" for seconds in line.medians),
            as_number(line.ratio), "yes" if line.ratio <= goals.ratio else "no",
        ]
        for line in lines
    ]  # fmt: skip
    header = ["estimator", "method", "certifit, CPU ms", "scikit-learn", "ratio", "met"]
    return Table("answers for many rows, milliseconds of a processor", header, rows, note)
