"""The columns of a mixed table (numbers, dates, yes/no, categories) as columns of numbers.

Each `Column` is learnt from the training rows (`table.learning`) and says in words what it does. A missing entry
is never an error: it takes the column's mean, and where training had missing entries a 0/1 column "… is missing" lets
the model learn what they mean.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from certifit.exceptions import DataError
from certifit.rows import Array
from certifit.rows.named_columns import nearest_names
from certifit.table.text.holes import is_hole, with_holes
from certifit.table.text.readings import read_text

Kind = Literal["number", "date", "yes/no", "category", "missing or not", "left out"]


@dataclass(frozen=True)
class Surprise:
    """Values of a column that training did not see."""

    column: str
    kind: Literal["category", "missing"]
    count: int
    words: str  # what they are, and what becomes of them

    def __str__(self) -> str:
        return f"{self.count} value(s) of {self.column!r} are {self.words}"


def add_up(surprises: Collection[Surprise]) -> list[Surprise]:
    """One surprise for each column and kind: the values of several blocks together."""
    total: dict[tuple[str, str], Surprise] = {}
    for new in surprises:
        old = total.get((new.column, new.kind))
        total[new.column, new.kind] = new if old is None else replace(old, count=old.count + new.count)
    return [*total.values()]


@dataclass(frozen=True)
class Column:
    """What was found in one column of a table and what becomes of it."""

    name: str
    type: str  # as stored in the table
    kind: Kind
    done: str  # in words
    missing: int = 0  # entries
    distinct: int = 0
    centre: float = 0.0  # subtracted from a number
    scale: float = 1.0  # then divided by
    fill: float = 0.0  # what a missing entry becomes, after scaling
    categories: tuple[str, ...] = ()
    marks_missing: bool = False  # a last 0/1 column says in which rows it is missing
    identifies: bool = False  # left out because it tells the rows apart; it can be kept
    reading: str = ""  # how text is read as numbers or dates (`table.text`); empty: as it is

    def is_like(self, other: Column, close: float = 1e-9) -> bool:
        """Whether both do the same to a column, up to rounding; how its values are stored does not matter."""
        rounded = {name: getattr(other, name) for name in ("type", "centre", "scale", "fill")}
        same = replace(self, **rounded) == other
        return same and all(
            abs(mine - theirs) <= close * (abs(theirs) + abs(other.scale))
            for mine, theirs in ((self.centre, other.centre), (self.scale, other.scale), (self.fill, other.fill))
        )

    @property
    def features(self) -> list[str]:
        """Names of the columns of numbers it becomes."""
        if self.kind == "left out":
            return []
        if self.kind == "category":
            names = [f"{self.name}={c}" for c in self.categories]
        else:
            names = [self.name] if self.kind != "missing or not" else []
        return names + ([f"{self.name} is missing"] if self.marks_missing else [])

    def encode(self, values: pa.ChunkedArray, start: int = 0) -> tuple[Array, list[Surprise]]:
        """(n, len(features)) numbers, and what training did not see; the first row is number `start` of its table."""
        surprises = []
        out = np.zeros((len(values), len(self.features)))
        if self.kind == "category":
            words, place = self._different_words(values)
            code = _to_numpy(pc.fill_null(pc.index_in(words, pa.array(self.categories, pa.string())), -1))[place]
            missing = _to_numpy(pc.is_null(words))[place]
            row = np.flatnonzero(code >= 0)
            out[row, code[row]] = 1.0
            unseen = np.flatnonzero((code < 0) & ~missing)
            if len(unseen):
                first = words[int(place[unseen[0]])].as_py()
                words = (
                    f"categories that training did not see (the first: {first!r}); they count as none of the known"
                )
                surprises.append(Surprise(self.name, "category", len(unseen), words))
        else:
            if self.reading:
                values = read_text(
                    with_holes(as_text(self.name, values)) if is_text(values) else values, self.reading
                )
            x = as_numbers(self.name, values, self.kind, start)
            missing = np.isnan(x)
            if self.kind != "missing or not":
                with np.errstate(over="ignore"):
                    out[:, 0] = np.where(missing, self.fill, (x - self.centre) / self.scale)
        if self.marks_missing:
            out[:, -1] = missing
        elif missing.any():
            filled = "count as no category" if self.kind == "category" else "take the training mean"
            words = f"missing, none was in training; they {filled}"
            surprises.append(Surprise(self.name, "missing", int(missing.sum()), words))
        return out, surprises

    def _different_words(self, values: pa.ChunkedArray) -> tuple[pa.ChunkedArray, Array]:
        """The different words of a column of text, with null last, and (n,) the place of each row's among them."""
        coded = as_text(self.name, values).combine_chunks().dictionary_encode()
        words = pa.chunked_array([pa.concat_arrays([coded.dictionary, pa.nulls(1, pa.string())])])
        if not any(is_hole(category) for category in self.categories):
            words = with_holes(words)
        return words, pc.fill_null(coded.indices, len(words) - 1).to_numpy()


def pick(table: pa.Table, name: str, role: str = "column") -> pa.ChunkedArray:
    """One column by name; an error suggests the nearest name."""
    if name in table.column_names:
        return table[name]
    near = nearest_names(name, table.column_names)
    raise DataError(
        got=f"no {role} {name!r} in the table",
        wanted=f"one of its columns: {', '.join(map(repr, table.column_names))}",
        fix=f"Did you mean {near[0]!r}?" if near else "",
    )


def encode_columns(
    columns: tuple[Column, ...], table: pa.Table, rows: int = 65_536
) -> tuple[Array, list[str], list[Surprise]]:
    """The whole matrix (n, d), the names of its columns, and what training did not see.

    So many rows are written at a time: a column of a long matrix is spread over more memory than a cache holds.
    """
    used = [column for column in columns if column.kind != "left out"]
    names = [name for column in used for name in column.features]
    X = np.empty((table.num_rows, len(names)))
    there = {name: number for number, name in enumerate(table.column_names)}
    for column in used:
        if column.name not in there:
            raise DataError(
                got=f"a table without the column {column.name!r}, which the model was fitted with",
                wanted=f"all of {', '.join(repr(c.name) for c in used)}",
            )
    surprises: list[Surprise] = []
    for start in range(0, table.num_rows, rows):
        first, part = 0, table.slice(start, rows)
        for column in used:
            block, new = column.encode(part.column(there[column.name]), start)
            X[start : start + rows, first : first + block.shape[1]] = block
            first += block.shape[1]
            surprises += new
    return X, names, add_up(surprises)


def column_kind(t: pa.DataType) -> Kind:
    if types.is_boolean(t):
        return "yes/no"
    if types.is_integer(t) or types.is_floating(t) or types.is_decimal(t) or types.is_null(t):
        return "number"
    if types.is_date(t) or types.is_timestamp(t):
        return "date"
    if types.is_time(t) or types.is_duration(t):
        return "number"
    if types.is_string(t) or types.is_large_string(t) or types.is_string_view(t) or types.is_dictionary(t):
        return "category"
    return "left out"


def is_text(values: pa.ChunkedArray) -> bool:
    return column_kind(values.type) == "category"


def as_text(name: str, values: pa.ChunkedArray) -> pa.ChunkedArray:
    if types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    return _cast(name, values, pa.string(), "text")


def as_numbers(name: str, values: pa.ChunkedArray, kind: Kind, start: int = 0) -> Array:
    """(n,) float64 with NaN for missing entries: dates and durations as days, times of the day as hours.

    Infinities are refused, by row from `start` on.
    """
    if kind == "missing or not":
        return np.where(_to_numpy(pc.is_null(values, nan_is_null=True)), np.nan, 0.0)
    if kind == "date":
        days = _cast(name, values, pa.timestamp("us"), "dates").cast(pa.int64()).cast(pa.float64(), safe=False)
        return _to_numpy(days) / 86_400e6
    if kind == "yes/no":
        values = _cast(name, values, pa.bool_(), "yes or no (true or false)")
    if types.is_time(values.type) or types.is_duration(values.type):
        of_day = types.is_time(values.type)
        ticks = _cast(name, values, pa.time64("us") if of_day else pa.duration("us"), "times").cast(pa.int64())
        return _to_numpy(ticks.cast(pa.float64(), safe=False)) / (3600e6 if of_day else 86_400e6)
    x = _to_numpy(_cast(name, values, pa.float64(), "numbers")).astype(np.float64, copy=False)
    if np.isinf(x).any():
        raise DataError(
            got=f"infinity in row {start + int(np.isinf(x).argmax())} of column {name!r}",
            wanted="finite numbers or empty cells",
            fix="Replace it by a number, or empty the cell.",
        )
    return x


def _cast(name: str, values: pa.ChunkedArray, to: pa.DataType, wanted: str) -> pa.ChunkedArray:
    try:
        return values.cast(to, safe=False)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise DataError(
            got=f"column {name!r} of type {values.type} ({error})", wanted=f"{wanted}, as in training"
        ) from error


def _to_numpy(values: pa.ChunkedArray) -> Array:
    return values.to_numpy()
