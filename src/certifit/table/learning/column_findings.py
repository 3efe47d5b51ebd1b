"""What one pass over the blocks of a table finds out about each of its columns.

A summary takes block after block, and two summaries of different rows can be merged. What it says does not depend on
where rows are cut, so that a table in memory is the case of few blocks.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from certifit.rows import Array
from certifit.table.columns import Kind, as_numbers, as_text, column_kind
from certifit.table.learning.distinct_values import DistinctValues, hashed_numbers, hashed_texts
from certifit.table.learning.exact_moments import ExactMoments
from certifit.table.text.dates import choose_date, is_date_reading
from certifit.table.text.holes import with_holes
from certifit.table.text.numbers import FORMS, UNIT_WORD, is_number_reading, units_of
from certifit.table.text.readings import YES_OR_NO, choose_reading, fitting_readings, read_text


class NumberSummary:
    """Numbers of a column: how many are there, where they lie, their moments, how many are different."""

    def __init__(self, powers: int = 2) -> None:
        self.observed = 0
        self.whole = True  # whether all are stored, or written, as whole numbers
        self.low: Any = None  # the smallest; a Python int where all are whole
        self.high: Any = None
        self.moments = ExactMoments(powers)
        self.distinct = DistinctValues()

    def add(self, x: Array, w: Array, ends: tuple[int, int] | None) -> None:
        """Take notice of numbers x (n,), NaN where they are missing, with weights w (n,).

        `ends` are the smallest and the largest of whole numbers; None for others.
        """
        seen = ~np.isnan(x)
        if not seen.all():
            x, w = x[seen], w[seen]
        if not len(x):
            return
        self.whole = self.whole and ends is not None
        self._widen(*(ends or (float(x.min()), float(x.max()))))
        self.observed += len(x)
        self.moments.add(x, w)
        self.distinct.add(hashed_numbers(x))

    def merge(self, other: NumberSummary) -> None:
        """Take notice of all that another has seen."""
        if other.observed:
            self._widen(other.low, other.high)
        self.whole = self.whole and other.whole
        self.observed += other.observed
        self.moments.merge(other.moments)
        self.distinct.merge(other.distinct)

    def _widen(self, low: Any, high: Any) -> None:
        self.low = low if self.low is None else min(self.low, low)
        self.high = high if self.high is None else max(self.high, high)


class TextSummary:
    """Texts of a column: those that are different, as long as they are few, and how many there are."""

    def __init__(self, most: float) -> None:
        self.most = most
        self.observed = 0
        self.texts: set[str] | None = set()  # None where there are more than so many
        self.distinct = DistinctValues()

    def add(self, known: pa.Array, observed: int) -> None:
        """Take notice of different texts that so many entries have."""
        self.observed += observed
        self.distinct.add(hashed_texts(known))
        self._add_texts(known.to_pylist() if self.texts is not None else None)

    def merge(self, other: TextSummary) -> None:
        """Take notice of all that another has seen."""
        self.observed += other.observed
        self.distinct.merge(other.distinct)
        self._add_texts(other.texts)

    def _add_texts(self, more: Any) -> None:
        if self.texts is not None and more is not None:
            self.texts.update(more)
        if more is None or (self.texts is not None and len(self.texts) > self.most):
            self.texts = None


class ColumnFindings:
    """A column as it is stored, and in every other way in which all of its texts so far can be read."""

    def __init__(
        self,
        name: str,
        stored: pa.DataType,
        *,
        most_texts: float,
        categorical: bool = False,
        powers: int = 2,
        date: str | None = None,
    ) -> None:
        self.name, self.type = name, str(stored)
        self.kind: Kind = "category" if categorical else column_kind(stored)
        self.is_categories = categorical or types.is_dictionary(stored)  # so that a text is what it is
        if self.is_categories:
            value_type = stored.value_type if types.is_dictionary(stored) else pa.string()
            self.type = f"categories of {value_type}"
        self.rows, self.powers = 0, powers
        self.date = date if self.kind == "category" else None  # the format of dates asked for; empty: to be found
        self.texts = TextSummary(most_texts) if self.kind == "category" else None
        # By the ways of reading; a column of numbers has one, and a text none until its first entry.
        self.readings: dict[str, NumberSummary] | None = None
        self.units: set[str] = set()  # of texts that are numbers
        self.nulls = 0  # entries that are missing, of a type that is not used
        if self.texts is None:
            self.readings = {"": NumberSummary(powers)}

    def add(self, values: pa.ChunkedArray, w: Array, start: int) -> None:
        """Take notice of a block of the column, from row `start` on, with weights w (n,)."""
        self.rows += len(values)
        if self.texts is not None:
            self._add_text(as_text(self.name, values), w)
        elif self.kind == "left out":
            self.nulls += values.null_count
        else:
            assert self.readings is not None
            x = as_numbers(self.name, values, self.kind, start)
            self.readings[""].add(x, w, _whole_ends(values))

    def _add_text(self, text: pa.ChunkedArray, w: Array) -> None:
        assert self.texts is not None
        text = text if self.is_categories else with_holes(text)
        encoded = text.combine_chunks().dictionary_encode()
        known = encoded.dictionary
        self.texts.add(known, len(text) - text.null_count)
        if self.is_categories or not len(known) or self.readings == {}:
            return
        fitting = frozenset([self.date]) if self.date else fitting_readings(known)
        if self.date == "":
            fitting = frozenset(filter(is_date_reading, fitting))
        if self.readings is None:
            self.readings = {name: NumberSummary(self.powers) for name in fitting}
        self.readings = {name: found for name, found in self.readings.items() if name in fitting}
        if any(map(is_number_reading, self.readings)):
            self.units |= units_of(known)
        code = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        for name, found in self.readings.items():
            read = read_text(known, name, any_unit=True)
            numbers = read if isinstance(read, pa.ChunkedArray) else pa.chunked_array([read])
            x = np.append(as_numbers(self.name, numbers, column_kind(numbers.type)), np.nan)
            found.add(x[code], w, _whole_ends(numbers))

    def merge(self, other: ColumnFindings) -> None:
        """Take notice of all that a summary of other rows of the same column has seen."""
        self.rows += other.rows
        if self.texts is not None:
            assert other.texts is not None
            self.texts.merge(other.texts)
        self.units |= other.units
        self.nulls += other.nulls
        if self.readings is None:
            self.readings = other.readings
        elif other.readings is not None:
            both = {name: found for name, found in self.readings.items() if name in other.readings}
            for name, found in both.items():
                found.merge(other.readings[name])
            self.readings = both

    @property
    def reading(self) -> str:
        """The one way in which all texts of the column can be read; empty where it is as it is stored."""
        if self.texts is None:
            return ""
        if self.date is not None:
            return self.date or choose_date(self.readings or ())
        reading = choose_reading(self.readings or (), self.units or ("",))
        # Two words that are always written alike are categories, by their own names.
        return "" if reading == YES_OR_NO and self.texts.distinct.count(self.texts.observed) <= 2 else reading

    @property
    def either_order(self) -> bool:
        """Whether dates were asked for whose day and month may be in either order."""
        return self.date == "" and len(self.readings or ()) > 1

    @property
    def either_separator(self) -> bool:
        """Whether commas part thousands, as they are read, or decimals just as well."""
        first, second = ((self.readings or {}).get(form) for form in FORMS)
        alike = first is None or second is None or (first.low, first.high) == (second.low, second.high)
        return is_number_reading(self.reading) and not alike

    @property
    def numbers(self) -> NumberSummary | None:
        """The column as numbers or dates; None where it is text."""
        if self.texts is None:
            return (self.readings or {})[""]
        form = self.reading.partition(UNIT_WORD)[0]
        return (self.readings or {}).get(form)

    @property
    def kind_read(self) -> Kind:
        """What the column is, as it is read."""
        if not self.reading:
            return self.kind
        if self.reading == YES_OR_NO:
            return "yes/no"
        return "number" if is_number_reading(self.reading) else "date"


def _whole_ends(values: pa.ChunkedArray) -> tuple[int, int] | None:
    """The smallest and the largest of whole numbers; None for other values, and where there are none."""
    if not types.is_integer(values.type) or values.null_count == len(values):
        return None
    ends = pc.min_max(values).as_py()
    return ends["min"], ends["max"]
