"""The columns of a mixed table (numbers, dates, yes/no, categories) as columns of numbers.

Each `Column` is learnt from the training rows and says in words what it does. A missing entry is never an error: it
takes the column's mean, and where training had missing entries a 0/1 column "… is missing" lets the model learn what
they mean.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from certifit.exceptions import DataError
from certifit.rows import Array
from certifit.rows.named_columns import nearest_names
from certifit.table.text_values import find_reading, is_hole, read_text, with_holes

Kind = Literal["number", "date", "yes/no", "category", "missing or not", "left out"]


@dataclass(frozen=True)
class TableTuning:
    """When text counts as categories, and when a column only tells the rows apart.

    Whole numbers that are all different and lie close together are row numbers, no measurements: of n numbers drawn
    from 2n, two are equal except with a probability of about e^(-n/4).
    """

    most_categories: int = 1000  # a column with more is left out, and said so
    few_texts: int = 10  # so many different texts may always be categories
    identifier_share: float = 0.9  # text with more different values than this share of its rows names the rows
    few_numbers: int = 5  # so many rows may have the numbers 1, 2, 3, … as a measurement
    few_rows: int = 20  # from so many rows on, row numbers may have gaps: part of the rows may be elsewhere
    widest_gaps: float = 2.0  # largest range of such row numbers, in numbers of rows
    identifier_names: str = r"(?i)^(id|index|key|uuid|guid|row_?(id|names?|numbers?|no|nr)?)$|([_. -]id|[a-z]I[dD])$"


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
    reading: str = ""  # how text is read as numbers or dates (`table.text_values`); empty: as it is

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

    def encode(self, values: pa.ChunkedArray) -> tuple[Array, list[Surprise]]:
        """(n, len(features)) numbers, and what training did not see."""
        surprises = []
        out = np.zeros((len(values), len(self.features)))
        if self.kind == "category":
            text = _text(self.name, values)
            if not any(is_hole(category) for category in self.categories):
                text = with_holes(text)
            missing = _to_numpy(pc.is_null(text))
            code = _to_numpy(pc.fill_null(pc.index_in(text, pa.array(self.categories, pa.string())), -1))
            row = np.flatnonzero(code >= 0)
            out[row, code[row]] = 1.0
            unseen = np.flatnonzero((code < 0) & ~missing)
            if len(unseen):
                first = text[int(unseen[0])].as_py()
                words = (
                    f"categories that training did not see (the first: {first!r}); they count as none of the known"
                )
                surprises.append(Surprise(self.name, "category", len(unseen), words))
        else:
            if self.reading:
                values = read_text(with_holes(_text(self.name, values)) if _is_text(values) else values, self.reading)
            x = _numbers(self.name, values, self.kind)
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


def learn_columns(
    table: pa.Table,
    w: Array,
    keep: Collection[str] = (),
    categorical: Collection[str] = (),
    tuning: TableTuning | None = None,
) -> tuple[Column, ...]:
    """Decide for every column what becomes of it, from rows of positive weight `w`.

    Columns that only tell the rows apart are left out, except those to `keep`; numbers that are `categorical` are
    categories.
    """
    tuning = tuning or TableTuning()
    for name in keep:
        pick(table, name, "column to keep")
    for name in categorical:
        column = pick(table, name, "column of categories")
        table = table.set_column(table.column_names.index(name), name, _text(name, column).dictionary_encode())
    used = {*keep, *categorical}
    return tuple(_learn(name, table[name], w, name in used, tuning) for name in table.column_names)


def encode_columns(columns: tuple[Column, ...], table: pa.Table) -> tuple[Array, list[str], list[Surprise]]:
    """The whole matrix (n, d), the names of its columns, and what training did not see."""
    used = [column for column in columns if column.kind != "left out"]
    names = [name for column in used for name in column.features]
    X = np.empty((table.num_rows, len(names)))
    surprises, first = [], 0
    there = {name: number for number, name in enumerate(table.column_names)}
    for column in used:
        if column.name not in there:
            raise DataError(
                got=f"a table without the column {column.name!r}, which the model was fitted with",
                wanted=f"all of {', '.join(repr(c.name) for c in used)}",
            )
        block, new = column.encode(table.column(there[column.name]))
        X[:, first : first + block.shape[1]] = block
        first += block.shape[1]
        surprises += new
    return X, names, surprises


def _learn(name: str, values: pa.ChunkedArray, w: Array, keep: bool, tuning: TableTuning) -> Column:
    kind, stored, reading = _kind(values.type), str(values.type), ""
    if kind == "category" and not types.is_dictionary(values.type):  # whose categories are meant
        text = with_holes(_text(name, values))
        reading = find_reading(text)
        values = read_text(text, reading) if reading else text
        kind = _kind(values.type)
    if kind == "left out":
        return Column(name, stored, kind, "left out: this type of column is not used")
    if types.is_dictionary(values.type):
        stored = f"categories of {values.type.value_type}"
    if kind == "category":
        column = _learn_category(name, stored, values, tuning)
    else:
        column = replace(_learn_number(name, stored, values, w), reading=reading)
        if reading and column.kind != "left out":
            what = "numbers" if kind == "number" else "dates"
            column = replace(column, done=f"text read as {what}, {column.done}")
    reason = "" if keep else _why_identifier(name, values, column, tuning)
    if not reason:
        return column
    found: dict[str, Any] = {"missing": column.missing, "distinct": column.distinct}
    return Column(name, stored, "left out", f"left out: {reason}", identifies=True, **found)


def _why_identifier(name: str, values: pa.ChunkedArray, column: Column, tuning: TableTuning) -> str:
    """Why a column only tells the rows apart; empty where it does not."""
    rows, observed = len(values), len(values) - column.missing
    if column.kind == "left out":
        return ""
    if re.fullmatch(r"\s*|Unnamed: \d+(_level_\d+)?|__index_level_\d+__", name):
        return "it has no name, like an index"
    if column.kind == "category":
        many = max(tuning.few_texts, tuning.identifier_share * observed)
        return f"{column.distinct:,} different texts in {observed:,} rows" if column.distinct > many else ""
    whole = types.is_integer(values.type) and column.distinct == rows > tuning.few_numbers
    if not whole:
        return ""
    ends = pc.min_max(values).as_py()
    span = ends["max"] - ends["min"] + 1
    if span == rows:
        return f"it numbers the rows from {ends['min']} to {ends['max']}"
    if rows >= tuning.few_rows and span <= tuning.widest_gaps * rows:
        return f"it numbers the rows, from {ends['min']} to {ends['max']} with gaps"
    return "a different number in each row, like an identifier" if re.search(tuning.identifier_names, name) else ""


def _learn_number(name: str, stored: str, values: pa.ChunkedArray, w: Array) -> Column:
    kind = _kind(values.type)
    x = _numbers(name, values, kind)
    seen = ~np.isnan(x)
    missing, distinct = int((~seen).sum()), len(np.unique(x[seen]))
    found: dict[str, Any] = {"name": name, "type": stored, "missing": missing, "distinct": distinct}
    if distinct == 0:
        return Column(kind="left out", done="left out: empty", **found)
    centre, scale = _mean_and_deviation(name, x[seen], w[seen])
    if distinct == 1 or scale == 0.0:
        value = f"the same value everywhere ({centre:.6g})"
        if not missing:
            return Column(kind="left out", done=f"left out: {value}", **found)
        done = f"{value}: only where it is missing is used"
        return Column(kind="missing or not", done=done, marks_missing=True, **found)
    how = ", missing entries marked" if missing else ""
    if kind == "yes/no":
        return Column(kind=kind, done="0 or 1" + how, fill=centre, marks_missing=missing > 0, **found)
    done = ("days, " if kind == "date" else "") + "standardised" + how
    return Column(kind=kind, done=done, centre=centre, scale=scale, marks_missing=missing > 0, **found)


def _learn_category(name: str, stored: str, values: pa.ChunkedArray, tuning: TableTuning) -> Column:
    text = _text(name, values)
    known = text.unique().drop_null()
    missing, distinct = text.null_count, len(known)
    found: dict[str, Any] = {"name": name, "type": stored, "missing": missing, "distinct": distinct}
    if distinct == 0:
        return Column(kind="left out", done="left out: empty", **found)
    if distinct == 1 and not missing:
        return Column(kind="left out", done=f"left out: the same value everywhere ({known[0].as_py()!r})", **found)
    done = f"{distinct} categories, each 0 or 1" + (", missing entries too" if missing else "")
    categories = tuple(sorted(known.to_pylist()))
    column = Column(kind="category", done=done, categories=categories, marks_missing=missing > 0, **found)
    observed = len(text) - missing
    if distinct > tuning.most_categories and distinct <= tuning.identifier_share * observed:
        reason = f"{distinct:,} categories, more than {tuning.most_categories:,}; group them to use them"
        column = replace(column, kind="left out", done=f"left out: {reason}", categories=(), marks_missing=False)
    return column


def _kind(t: pa.DataType) -> Kind:
    if types.is_boolean(t):
        return "yes/no"
    if types.is_integer(t) or types.is_floating(t) or types.is_decimal(t) or types.is_null(t):
        return "number"
    if types.is_date(t) or types.is_timestamp(t):
        return "date"
    if types.is_string(t) or types.is_large_string(t) or types.is_string_view(t) or types.is_dictionary(t):
        return "category"
    return "left out"


def _is_text(values: pa.ChunkedArray) -> bool:
    return _kind(values.type) == "category"


def _text(name: str, values: pa.ChunkedArray) -> pa.ChunkedArray:
    if types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    return _cast(name, values, pa.string(), "text")


def _numbers(name: str, values: pa.ChunkedArray, kind: Kind) -> Array:
    """(n,) float64 with NaN for missing entries; dates as days. Infinities are refused."""
    if kind == "missing or not":
        return np.where(_to_numpy(pc.is_null(values, nan_is_null=True)), np.nan, 0.0)
    if kind == "date":
        days = _cast(name, values, pa.timestamp("us"), "dates").cast(pa.int64()).cast(pa.float64(), safe=False)
        return _to_numpy(days) / 86_400e6
    if kind == "yes/no":
        values = _cast(name, values, pa.bool_(), "yes or no (true or false)")
    x = _to_numpy(_cast(name, values, pa.float64(), "numbers")).astype(np.float64, copy=False)
    if np.isinf(x).any():
        raise DataError(
            got=f"infinity in row {int(np.isinf(x).argmax())} of column {name!r}",
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


def _mean_and_deviation(name: str, x: Array, w: Array) -> tuple[float, float]:
    with np.errstate(over="ignore", invalid="ignore"):
        rough = np.average(x, weights=w)
        centre = rough + np.average(x - rough, weights=w)  # second pass: right at offset 1e8 too
        scale = np.sqrt(np.average((x - centre) ** 2, weights=w))
    if not np.isfinite(scale):
        raise DataError(
            got=f"values up to {np.abs(x).max():.3g} in column {name!r}, whose squares overflow",
            wanted="numbers below about 1e150",
            fix="Divide the column by its largest value.",
        )
    return float(centre), float(scale)
