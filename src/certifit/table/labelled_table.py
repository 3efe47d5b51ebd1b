"""The rows of a table that can be learnt from: columns, targets and weights, and how the columns are encoded."""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sklearn.utils.validation import column_or_1d

from certifit.exceptions import DataError
from certifit.rows import Array, ArrayRows
from certifit.rows.checks import check_weights, refuse_weights
from certifit.rows.sources.streamed import is_number
from certifit.table.columns import Column, encode_columns, pick
from certifit.table.learning.exact_moments import ExactMoments
from certifit.table.learning.learn_columns import learn_columns
from certifit.table.reading import as_table, has_names
from certifit.table.targets import (
    FamilyChoice,
    Task,
    TaskChoice,
    choose_family,
    choose_task,
    class_labels,
    quantities,
)
from certifit.table.text.holes import with_holes, without_words
from certifit.table.text.numbers import is_number_reading
from certifit.table.text.readings import find_reading, read_text

READING = ("keep", "categorical", "missing_words", "dates")  # settings of how columns are read


@dataclass(frozen=True)
class LabelledTable:
    """Rows with a target and a positive weight."""

    table: pa.Table  # the columns that are neither target nor weight
    y: Array  # (n,) labels, or numbers
    w: Array | None  # (n,) row weights
    unlabelled: int  # rows left out because their target is missing
    named: bool  # whether the columns came with names of their own
    choice: TaskChoice  # whether y are classes or a quantity, and why
    target: str | None = None  # name of the target column
    weight: str | None = None  # name of the weight column
    weightless: int = 0  # rows left out because their weight is 0
    keep: tuple[str, ...] = ()  # columns to use though they only tell the rows apart
    categorical: tuple[str, ...] = ()  # columns of numbers that are categories
    missing_words: tuple[str, ...] = ()  # that stand for missing entries, beside the usual ones
    dates: tuple[str, ...] = ()  # columns of text to read as dates, with "=format" where it is known

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """What becomes of every column, learnt once from these rows."""
        return learn_columns(self.table, self.weights, self.keep, self.categorical, self.dates)

    @property
    def n_rows(self) -> int:
        """How many rows are learnt from."""
        return len(self.y)

    @property
    def column_names(self) -> list[str]:
        """Names of the columns that are neither target nor weight."""
        return self.table.column_names

    @property
    def reading(self) -> dict[str, Any]:
        """How columns are read, as a table model takes it."""
        return {name: getattr(self, name) for name in READING}

    @property
    def total_weight(self) -> float:
        """Σ w."""
        found = ExactMoments(0)
        found.add(self.weights, self.weights)
        return found.weight

    @property
    def labels(self) -> Array:
        """(k,) the different labels."""
        return np.unique(self.y)

    @property
    def label_counts(self) -> tuple[Array, Array]:
        """(k,) the different labels, and (k,) how many rows have each."""
        labels, counts = np.unique(self.y, return_counts=True)
        return labels, counts

    @property
    def spread(self) -> tuple[float, float, float]:
        """The smallest, the median and the largest of a quantity."""
        return float(self.y.min()), float(np.median(self.y)), float(self.y.max())

    @property
    def has_numeric_target(self) -> bool:
        """Whether the target are numbers, so that they may be classes or a quantity."""
        return self.y.dtype.kind in "iuf"

    def choose_family(self) -> FamilyChoice:
        """The family of a quantity."""
        return choose_family(self.y, self.weights)

    @property
    def weights(self) -> Array:
        """(n,) row weights, 1 where none were given."""
        return np.ones(len(self.y)) if self.w is None else self.w

    def encode(self) -> EncodedRows:
        """The rows as numbers, by the encoding learnt from these rows."""
        return self.encode_as(self.columns)

    def encode_as(self, columns: tuple[Column, ...]) -> EncodedRows:
        """The rows as numbers, by another encoding."""
        X, features, _ = encode_columns(columns, self.table)
        return EncodedRows(X, self, features)

    def read_again(self, **reading: Any) -> LabelledTable:
        """The same rows, with columns read in another way."""
        return self if reading == self.reading else replace(self, **reading)


class LabelledRows:
    """What rows of an encoded table have beside their numbers."""

    data: Any  # the labelled rows that they come from
    features: list[str]  # names of the columns of numbers

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """SHA-256 of the rows, labels and weights."""


class EncodedRows(LabelledRows, ArrayRows):
    """Labelled rows as numbers, with the table they come from."""

    def __init__(self, X: Array, data: LabelledTable, features: list[str]) -> None:
        super().__init__(X, data.y, data.w)
        self.data, self.features = data, features

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the rows, labels and weights."""
        return fingerprint(self.X, self.data.y, self.data.w)


def labelled_table(
    X: Any,
    y: Any = None,
    sample_weight: Any = None,
    *,
    task: Task | Literal["auto"] = "classification",
    **reading: Collection[str],
) -> LabelledTable:
    """Split a table into columns, target and weights; leave out rows without a target or with weight 0.

    `reading` are names of columns to `keep`, of `categorical` ones and of `dates`, and `missing_words`.
    """
    read = {name: tuple(values) for name, values in reading.items()}
    if isinstance(X, LabelledTable):
        return as_labelled(X, y, sample_weight, task, read)
    table = without_words(as_table(X), read.get("missing_words", ()))
    if table.num_rows == 0:
        raise DataError(got="a table with no rows", wanted="at least one row")
    named = [name for name in (y, sample_weight) if isinstance(name, str)]
    target = pick(table, y, "target column") if isinstance(y, str) else _target_array(y, table.num_rows)
    w = _weights(table, sample_weight)
    features = table.drop_columns(named)
    known = pc.is_valid(target).to_numpy(zero_copy_only=False)
    keep_rows = known if w is None else known & (w > 0)
    if not keep_rows.any():
        raise DataError(got="a target that is missing in every row", wanted="rows with a label")
    if not keep_rows.all():
        features, target = features.filter(keep_rows), target.filter(keep_rows)
        w = None if w is None else w[keep_rows]
    amounts = _amounts(target) if task != "classification" else target
    choice = choose_task(amounts) if task == "auto" else TaskChoice(task, "as asked")
    target = amounts if choice.task == "regression" else target
    values = class_labels(target) if choice.task == "classification" else quantities(target)
    roles = [name if isinstance(name, str) else None for name in (y, sample_weight)]
    weightless = int((known & ~keep_rows).sum())
    return LabelledTable(
        features, values, w, int((~known).sum()), has_names(X), choice, roles[0], roles[1], weightless, **read
    )


def as_labelled(data: Any, y: Any, sample_weight: Any, task: str, read: dict[str, tuple[str, ...]]) -> Any:
    """Labelled rows again, for a model that may keep other columns."""
    if y is not None or sample_weight is not None:
        raise DataError(got="y or sample_weight beside labelled rows", wanted="labelled rows that carry their own")
    if task not in ("auto", data.choice.task):
        raise DataError(got=f"rows labelled for {data.choice.task}", wanted=f"rows labelled for {task}")
    return data.read_again(**{**data.reading, **read})


def _target_array(y: Any, n_rows: int) -> pa.Array:
    if y is None:
        raise DataError(
            got="no target: this estimator requires y to be passed, but the target y is None",
            wanted="the name of the target column or an array of labels",
        )
    y = column_or_1d(y, warn=True)
    if len(y) != n_rows:
        raise DataError(got=f"{len(y)} labels for {n_rows} rows", wanted="one label for each row")
    try:
        return pa.array(y, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise DataError(got=f"labels of mixed types ({error})", wanted="all text or all numbers") from error


def _amounts(target: pa.ChunkedArray) -> pa.ChunkedArray:
    """A target of text that is read as numbers, such as $1,234; any other as it is."""
    if not any(is_text(target.type) for is_text in (pa.types.is_string, pa.types.is_large_string)):
        return target
    text = with_holes(target.cast(pa.string()))
    reading = find_reading(text) if text.null_count == 0 else ""
    return read_text(text, reading) if is_number_reading(reading) else target


def _weights(table: pa.Table, sample_weight: Any) -> Array | None:
    if isinstance(sample_weight, str):
        name, column = sample_weight, pick(table, sample_weight, "weight column")
        if not is_number(column.type):
            refuse_weights(name, column.type)
        if column.null_count:
            raise DataError(
                got=f"{column.null_count} missing weight(s) in column {sample_weight!r}",
                wanted="a weight for every row",
                fix="Set them to 0 to leave those rows out.",
            )
        sample_weight = column.cast(pa.float64(), safe=False).to_numpy()
        if not np.isfinite(sample_weight).all():
            row = int(np.flatnonzero(~np.isfinite(sample_weight))[0])
            raise DataError(
                got=f"the weight {sample_weight[row]:g} in row {row} of column {name!r}",
                wanted="a finite weight of at least 0",
            )
    return check_weights(sample_weight, table.num_rows)


def fingerprint(X: Array, y: Array, w: Array | None) -> str:
    """SHA-256 of encoded rows, labels and weights."""
    digest = hashlib.sha256(repr((X.shape, y.dtype.str)).encode())
    for part in (X, y, np.ones(0) if w is None else w):
        digest.update(np.ascontiguousarray(part).data)
    return digest.hexdigest()
