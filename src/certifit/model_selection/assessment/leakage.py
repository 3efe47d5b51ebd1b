"""Signs that a test is too easy: equal rows on both sides of a border, and single columns that tell the target."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from certifit.core import Certificate
from certifit.model_selection.assessment.held_out import AssessedProblem
from certifit.rows import Array, Rows


@dataclass(frozen=True)
class LeakageTuning:
    """When a column is suspicious."""

    most_rows: int = 1_000  # that columns are looked at in
    fewest_rows: int = 40
    bins: int = 32  # of about equally many rows
    explained: float = 0.98  # of what a constant answer leaves open
    most_columns: int = 1_000
    most_named: int = 5


def leakage_notes(
    problem: AssessedProblem, splits: Certificate | None, tuning: LeakageTuning = LeakageTuning()
) -> tuple[str, ...]:
    """Return what is suspicious, in words."""
    notes = [] if splits is None else [f"faulty splits: {failure}" for failure in splits.failures()]
    equal = 0 if splits is None else int(float(splits.facts.get("tested rows equal to a fitted row", 0)))
    if equal:
        notes.append(f"{equal} tested rows equal a fitted row in every column, which makes the test too easy")
    found = telling_columns(problem, tuning)
    if found:
        named = ", ".join(f"{name} ({100 * share:.1f} %)" for name, share in found[: tuning.most_named])
        more = f" and {len(found) - tuning.most_named} more" if len(found) > tuning.most_named else ""
        notes.append(
            f"alone, {named}{more} nearly determines the target: is it known when a prediction is needed, or does it "
            f"follow from the target?"
        )
    return tuple(notes)


def telling_columns(problem: AssessedProblem, tuning: LeakageTuning = LeakageTuning()) -> list[tuple[str, float]]:
    """Return columns that alone tell nearly all about the target, with the share that each explains."""
    n = len(problem.y)
    if n < tuning.fewest_rows or sparse.issparse(problem.X):
        return []
    rows = np.unique(np.linspace(0, n - 1, min(n, tuning.most_rows)).astype(int))
    # In no order that the table may have: every other row of a shuffle is left out to be told.
    rows = np.random.default_rng(0).permutation(rows)
    y = problem.y[rows]
    target = np.unique(y, return_inverse=True)[1] if problem.classes is not None else y.astype(np.float64)
    found = []
    for name, values in columns_at(problem.X, rows, tuning.most_columns):
        share = told_by_column(values, target, problem.classes is not None, tuning.bins)
        if share >= tuning.explained:
            found.append((name, share))
    return sorted(found, key=lambda pair: -pair[1])


def columns_at(X: Any, rows: Array, most: int) -> list[tuple[str, Array]]:
    """Return the first columns of a table by name, at some of its rows (m,)."""
    if isinstance(X, Rows):
        some = X.take(np.sort(rows))
        names = some.names if some.names is not None else [f"column {j}" for j in range(some.n_features)]
        places = np.argsort(np.argsort(rows))
        return [(str(name), np.asarray(some.X[:, j])[places]) for j, name in enumerate(names[:most])]
    if hasattr(X, "iloc"):
        return [(str(name), np.asarray(X.iloc[rows, place])) for place, name in enumerate(X.columns[:most])]
    table = np.asarray(X, dtype=object if isinstance(X, list | tuple) else None)
    if table.ndim != 2:
        return []
    return [(f"column {j}", table[rows, j]) for j in range(min(table.shape[1], most))]


def told_by_column(values: Array, target: Array, classes: bool, bins: int) -> float:
    """Return the share of what is open about a target (m,) that one column, cut into bins, tells on rows left out.

    Half of the rows say what each bin means; the others are told. The target is numbers of classes, or numbers.

    >>> x = np.random.default_rng(0).permutation(800)
    >>> y = (x >= 400).astype(int)
    >>> told_by_column(x, y, True, 32), told_by_column(x % 7, y, True, 32) < 0.5
    (1.0, True)
    """
    bin_of = _bins(values, bins)
    known, told, size = bin_of[::2], bin_of[1::2], int(bin_of.max()) + 1
    if classes:
        kinds = int(target.max()) + 1
        counts = np.bincount(known * kinds + target[::2], minlength=size * kinds).reshape(size, kinds)
        usual = counts.sum(axis=0).argmax()
        said = np.where(counts.any(axis=1), counts.argmax(axis=1), usual)[told]
        wrong, wrong_by_usual = np.mean(said != target[1::2]), np.mean(target[1::2] != usual)
    else:
        rows = np.bincount(known, minlength=size)
        sums = np.bincount(known, target[::2], minlength=size)
        level = target[::2].mean()
        said = np.where(rows > 0, sums / np.maximum(rows, 1), level)[told]
        wrong, wrong_by_usual = np.mean((said - target[1::2]) ** 2), np.mean((target[1::2] - level) ** 2)
    return float(1 - wrong / wrong_by_usual) if wrong_by_usual > 0 else 0.0


def _bins(values: Array, bins: int) -> Array:
    """Return the bin of each value (m,): a kind of its own where there are few, else one of equally many rows."""
    if values.dtype.kind not in "biuf":
        values = np.array([str(value) for value in values.tolist()])
        return np.unique(values, return_inverse=True)[1]
    ordered = np.sort(values)
    if 1 + np.count_nonzero(ordered[1:] != ordered[:-1]) <= bins:
        return np.unique(values, return_inverse=True)[1]
    known = ordered[~np.isnan(ordered)] if values.dtype.kind == "f" else ordered
    edges = known[np.arange(1, bins) * len(known) // bins] if len(known) else known
    bin_of = np.searchsorted(edges, values, side="right")
    # Missing entries have a bin of their own: what is only known of one class tells it.
    return np.where(np.isnan(values), len(edges) + 1, bin_of) if values.dtype.kind == "f" else bin_of
