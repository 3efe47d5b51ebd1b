"""The columns of a mixed table (numbers, dates, yes/no, categories) as columns of numbers.

Each `Column` is learnt from the training rows and says in words what it does. A missing entry is never an error: it
takes the column's mean, and where training had missing entries a 0/1 column "… is missing" lets the model learn what
they mean.
"""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types
from sklearn.utils.validation import check_array

from certifit.exceptions import DataError
from certifit.rows import Array

Kind = Literal["number", "date", "yes/no", "category", "missing or not", "left out"]


@dataclass(frozen=True)
class TableTuning:
    """When text counts as categories, and numbers as class labels."""

    most_categories: int = 1000  # a column with more is left out, and said so
    few_texts: int = 10  # so many different texts may always be categories
    identifier_share: float = 0.9  # text with more different values than this share of its rows names the rows
    most_numeric_classes: int = 50  # a target with more different numbers is a quantity, not a class


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

    def is_like(self, other: Column, close: float = 1e-9) -> bool:
        """Whether both do the same to a column, up to rounding; how its values are stored does not matter."""
        same = all(
            getattr(self, name) == getattr(other, name)
            for name in ("name", "kind", "missing", "distinct", "categories", "marks_missing")
        )
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

    def encode(self, values: pa.ChunkedArray) -> tuple[Array, list[str]]:
        """(n, len(features)) numbers, and a sentence for each thing that training did not see."""
        surprises = []
        out = np.zeros((len(values), len(self.features)))
        if self.kind == "category":
            text = _text(self.name, values)
            missing = _to_numpy(pc.is_null(text))
            code = _to_numpy(pc.fill_null(pc.index_in(text, pa.array(self.categories, pa.string())), -1))
            row = np.flatnonzero(code >= 0)
            out[row, code[row]] = 1.0
            unseen = np.flatnonzero((code < 0) & ~missing)
            if len(unseen):
                surprises.append(
                    f"{len(unseen)} value(s) of {self.name!r} are categories that training did not see (the first: "
                    f"{text[int(unseen[0])].as_py()!r}); they count as none of the known ones"
                )
        else:
            x = _numbers(self.name, values, self.kind)
            missing = np.isnan(x)
            if self.kind != "missing or not":
                with np.errstate(over="ignore"):
                    out[:, 0] = np.where(missing, self.fill, (x - self.centre) / self.scale)
        if self.marks_missing:
            out[:, -1] = missing
        elif missing.any():
            filled = "count as no category" if self.kind == "category" else "take the training mean"
            surprises.append(
                f"{missing.sum()} value(s) of {self.name!r} are missing, none was in training; they {filled}"
            )
        return out, surprises


def as_table(X: Any) -> pa.Table:
    """An Arrow table from an Arrow table, any frame with the Arrow interface (pandas, polars), or a 2-D array."""
    try:
        if isinstance(X, pa.Table):
            table = X
        elif hasattr(X, "iloc"):  # pandas, whose index is not a column
            table = pa.Table.from_pandas(X, preserve_index=False)
        elif hasattr(X, "__arrow_c_stream__"):
            table = pa.table(X)
        else:
            X = check_array(X, dtype=None, ensure_all_finite="allow-nan")
            table = pa.table({f"x{j}": pa.array(column, from_pandas=True) for j, column in enumerate(X.T)})
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        raise DataError(
            got=f"a table that Arrow cannot hold ({error})",
            wanted="one type of value in each column",
            fix="Convert mixed columns to text or to numbers first.",
        ) from error
    names = table.column_names
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise DataError(got=f"columns with the same name: {repeated}", wanted="a different name for each column")
    return table


def pick(table: pa.Table, name: str, role: str = "column") -> pa.ChunkedArray:
    """One column by name; an error suggests the nearest name."""
    if name in table.column_names:
        return table[name]
    lower = {known.lower(): known for known in table.column_names}
    near = [lower[match] for match in get_close_matches(name.lower(), lower, n=1)]
    raise DataError(
        got=f"no {role} {name!r} in the table",
        wanted=f"one of its columns: {', '.join(map(repr, table.column_names))}",
        fix=f"Did you mean {near[0]!r}?" if near else "",
    )


def learn_columns(table: pa.Table, w: Array, tuning: TableTuning | None = None) -> tuple[Column, ...]:
    """Decide for every column what becomes of it, from rows of positive weight `w`."""
    return tuple(_learn(name, table[name], w, tuning or TableTuning()) for name in table.column_names)


def encode_columns(columns: tuple[Column, ...], table: pa.Table) -> tuple[Array, list[str], list[str]]:
    """The whole matrix (n, d), the names of its columns, and what training did not see."""
    used = [column for column in columns if column.kind != "left out"]
    names = [name for column in used for name in column.features]
    X = np.empty((table.num_rows, len(names)))
    surprises, first = [], 0
    for column in used:
        block, new = column.encode(pick(table, column.name))
        X[:, first : first + block.shape[1]] = block
        first += block.shape[1]
        surprises += new
    return X, names, surprises


def _learn(name: str, values: pa.ChunkedArray, w: Array, tuning: TableTuning) -> Column:
    kind, stored = _kind(values.type), str(values.type)
    if kind == "left out":
        return Column(name, stored, kind, "left out: this type of column is not used")
    if types.is_dictionary(values.type):
        stored = f"categories of {values.type.value_type}"
    if kind == "category":
        return _learn_category(name, stored, values, tuning)
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
    observed = len(text) - missing
    found: dict[str, Any] = {"name": name, "type": stored, "missing": missing, "distinct": distinct}
    reason = ""
    if distinct == 0:
        reason = "empty"
    elif distinct == 1 and not missing:
        reason = f"the same value everywhere ({known[0].as_py()!r})"
    elif distinct > max(tuning.few_texts, tuning.identifier_share * observed):
        reason = f"{distinct:,} different texts in {observed:,} rows, like an identifier"
    elif distinct > tuning.most_categories:
        reason = f"{distinct:,} categories, more than {tuning.most_categories:,}; group them to use them"
    if reason:
        return Column(kind="left out", done=f"left out: {reason}", **found)
    done = f"{distinct} categories, each 0 or 1" + (", missing entries too" if missing else "")
    return Column(
        kind="category", done=done, categories=tuple(sorted(known.to_pylist())), marks_missing=missing > 0, **found
    )


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
