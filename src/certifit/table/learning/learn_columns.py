"""What becomes of every column of a table, decided from what one pass over its rows has found."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from certifit.exceptions import DataError
from certifit.rows import Array
from certifit.rows.threads import parallel_map
from certifit.table.columns import Column, column_kind, pick
from certifit.table.learning.column_findings import ColumnFindings, NumberSummary
from certifit.table.text.dates import date_formats


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
    block_rows: int = 2**16  # that are looked at together, so that they stay in a cache
    threaded_rows: int = 2**13  # from so many rows of a block on, threads are worth starting


class TableSummary:
    """What a pass over the rows has found out about every column."""

    def __init__(
        self,
        schema: pa.Schema,
        keep: Collection[str] = (),
        categorical: Collection[str] = (),
        dates: Collection[str] = (),
        tuning: TableTuning = TableTuning(),
    ) -> None:
        none = schema.empty_table()
        for name in keep:
            pick(none, name, "column to keep")
        for name in categorical:
            pick(none, name, "column of categories")
        formats = date_formats(dates)
        for name in formats:
            _check_dates(pick(none, name, "column of dates").type, name)
        self.used, self.tuning, self.rows = {*keep, *categorical}, tuning, 0
        self.columns = [
            ColumnFindings(
                field.name, field.type, categorical=field.name in categorical, date=formats.get(field.name),
                most_texts=np.inf if field.name in self.used else tuning.most_categories,
            )
            for field in schema
        ]  # fmt: skip

    def add(self, table: pa.Table, w: Array) -> None:
        """Take notice of a block of rows of positive weights w (n,); columns are looked at on all threads."""
        start, self.rows = self.rows, self.rows + table.num_rows
        add = partial(_add_column, table, w, start)
        if table.num_rows < self.tuning.threaded_rows:
            for numbered in enumerate(self.columns):
                add(numbered)
        else:
            parallel_map(add, enumerate(self.columns))

    def merge(self, other: TableSummary) -> TableSummary:
        """Take notice of all that a summary of other rows has seen."""
        self.rows += other.rows
        for mine, theirs in zip(self.columns, other.columns, strict=True):
            mine.merge(theirs)
        return self

    def decide(self) -> tuple[Column, ...]:
        """What becomes of every column."""
        return tuple(_decide(found, found.name in self.used, self.tuning) for found in self.columns)


def learn_columns(
    table: pa.Table,
    w: Array,
    keep: Collection[str] = (),
    categorical: Collection[str] = (),
    dates: Collection[str] = (),
    tuning: TableTuning = TableTuning(),
) -> tuple[Column, ...]:
    """Decide for every column what becomes of it, from rows of positive weight `w`.

    Columns that only tell the rows apart are left out, except those to `keep`; numbers that are `categorical` are
    categories; text of `dates` ("name", or "name=format") is read so.
    """
    found = TableSummary(table.schema, keep, categorical, dates, tuning)
    for part, weights in _blocks(table, w, tuning.block_rows):
        found.add(part, weights)
    return found.decide()


def _blocks(table: pa.Table, w: Array, rows: int) -> Iterable[tuple[pa.Table, Array]]:
    for start in range(0, table.num_rows, rows):
        yield table.slice(start, rows), w[start : start + rows]


def _add_column(table: pa.Table, w: Array, start: int, numbered: tuple[int, ColumnFindings]) -> None:
    number, found = numbered
    found.add(table.column(number), w, start)


def _check_dates(stored: pa.DataType, name: str) -> None:
    if column_kind(stored) not in ("category", "date"):
        raise DataError(
            got=f"column {name!r} of type {stored} to be read as dates",
            wanted="text; columns of dates are read as they are",
        )


def _decide(found: ColumnFindings, keep: bool, tuning: TableTuning) -> Column:
    name, numbers = found.name, found.numbers
    if found.kind == "left out":
        words = "left out: this type of column is not used"
        return Column(name, found.type, "left out", words, missing=found.nulls)
    if found.date is not None and (numbers is None or numbers.observed == 0):
        form = found.date or "one of the usual formats"
        raise DataError(
            got=f"column {name!r} to be read as dates, which are not in {form}", wanted="dates",
            fix="Name their format: --date NAME=%d/%m/%Y, or dates=['NAME=%d/%m/%Y'].",
        )  # fmt: skip
    if numbers is None:
        column = _decide_category(found, tuning)
    else:
        column = replace(_decide_number(found, numbers), reading=found.reading)
        if found.reading and column.kind != "left out":
            what = {"number": found.reading, "date": "dates", "yes/no": found.reading}[found.kind_read]
            what += " (day first; month first fits too)" if found.either_order else ""
            what += " (commas part thousands; as decimal commas they fit too)" if found.either_separator else ""
            column = replace(column, done=f"text read as {what}, {column.done}")
    reason = "" if keep else _why_identifier(found, column, tuning)
    if not reason:
        return column
    counts: dict[str, Any] = {"missing": column.missing, "distinct": column.distinct}
    return Column(name, found.type, "left out", f"left out: {reason}", identifies=True, **counts)


def _why_identifier(found: ColumnFindings, column: Column, tuning: TableTuning) -> str:
    """Why a column only tells the rows apart; empty where it does not."""
    name, rows, observed = found.name, found.rows, found.rows - column.missing
    if column.kind == "left out":
        return ""
    if re.fullmatch(r"\s*|Unnamed: \d+(_level_\d+)?|__index_level_\d+__", name):
        return "it has no name, like an index"
    if column.kind == "category":
        many = max(tuning.few_texts, tuning.identifier_share * observed)
        return f"{column.distinct:,} different texts in {observed:,} rows" if column.distinct > many else ""
    numbers = found.numbers
    assert numbers is not None
    if not (numbers.whole and column.distinct == rows > tuning.few_numbers):
        return ""
    span = numbers.high - numbers.low + 1
    if span == rows:
        return f"it numbers the rows from {numbers.low} to {numbers.high}"
    if rows >= tuning.few_rows and span <= tuning.widest_gaps * rows:
        return f"it numbers the rows, from {numbers.low} to {numbers.high} with gaps"
    return "a different number in each row, like an identifier" if re.search(tuning.identifier_names, name) else ""


def _decide_number(found: ColumnFindings, numbers: NumberSummary) -> Column:
    kind, missing = found.kind_read, found.rows - numbers.observed
    distinct = numbers.distinct.count(numbers.observed)
    counts: dict[str, Any] = {"name": found.name, "type": found.type, "missing": missing, "distinct": distinct}
    if distinct == 0:
        return Column(kind="left out", done="left out: empty", **counts)
    centre, scale = (float(numbers.low), 0.0) if distinct == 1 else _mean_and_deviation(found.name, numbers)
    if scale == 0.0:
        value = f"the same value everywhere ({centre:.6g})"
        if not missing:
            return Column(kind="left out", done=f"left out: {value}", **counts)
        done = f"{value}: only where it is missing is used"
        return Column(kind="missing or not", done=done, marks_missing=True, **counts)
    how = ", missing entries marked" if missing else ""
    if kind == "yes/no":
        return Column(kind=kind, done="0 or 1" + how, fill=centre, marks_missing=missing > 0, **counts)
    unit = "days, " if kind == "date" else _TIME_UNITS.get(found.type.partition("[")[0], "")
    done = unit + "standardised" + how
    return Column(kind=kind, done=done, centre=centre, scale=scale, marks_missing=missing > 0, **counts)


def _decide_category(found: ColumnFindings, tuning: TableTuning) -> Column:
    texts = found.texts
    assert texts is not None
    missing, distinct = found.rows - texts.observed, texts.distinct.count(texts.observed)
    counts: dict[str, Any] = {"name": found.name, "type": found.type, "missing": missing, "distinct": distinct}
    known = sorted(texts.texts or ())
    if distinct == 0:
        return Column(kind="left out", done="left out: empty", **counts)
    if distinct == 1 and not missing:
        return Column(kind="left out", done=f"left out: the same value everywhere ({known[0]!r})", **counts)
    if distinct > tuning.most_categories and distinct <= tuning.identifier_share * texts.observed:
        reason = f"{distinct:,} categories, more than {tuning.most_categories:,}; group them to use them"
        return Column(kind="left out", done=f"left out: {reason}", **counts)
    done = f"{distinct} categories, each 0 or 1" + (", missing entries too" if missing else "")
    return Column(kind="category", done=done, categories=tuple(known), marks_missing=missing > 0, **counts)


# What times of the day and durations are counted in.
_TIME_UNITS = {"time32": "hours, ", "time64": "hours, ", "duration": "days, "}


def _mean_and_deviation(name: str, numbers: NumberSummary) -> tuple[float, float]:
    scale = np.sqrt(numbers.moments.variance)
    if not np.isfinite(scale):
        raise DataError(
            got=f"values up to {max(abs(numbers.low), abs(numbers.high)):.3g} in column {name!r}, whose squares "
            "overflow",
            wanted="numbers below about 1e150",
            fix="Divide the column by its largest value.",
        )
    return numbers.moments.mean, float(scale)
