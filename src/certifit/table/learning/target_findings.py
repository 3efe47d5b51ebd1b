"""What one pass over the blocks of a table finds out about the column to predict."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from certifit.exceptions import DataError
from certifit.rows import Array
from certifit.table.learning.column_findings import ColumnFindings, NumberSummary
from certifit.table.targets import (
    FamilyChoice,
    QuantityFacts,
    Task,
    TaskChoice,
    family_of,
    has_fraction,
    is_number,
    label_values,
    quantities,
    refuse_quantity,
    task_of_numbers,
    type_words,
    unpacked,
)
from certifit.table.text.holes import with_holes
from certifit.table.text.numbers import is_number_reading
from certifit.table.text.readings import read_text


class TargetFindings:
    """How often each label occurs, as long as they are few; and the target as numbers, where it can be read so."""

    def __init__(self, name: str, stored: pa.DataType, most_classes: int = 10_000) -> None:
        self.type = stored.value_type if pa.types.is_dictionary(stored) else stored
        self.column = ColumnFindings(name, self.type, most_texts=0, powers=3)
        self.most_classes = most_classes
        self.counts: dict[Any, int] | None = {}  # None where there are more labels
        self.fraction = False

    def add(self, values: pa.ChunkedArray, w: Array, start: int) -> None:
        """Take notice of labels of rows of positive weights w (n,), none of them missing."""
        values = unpacked(values)
        if pa.types.is_floating(values.type) and not self.fraction:
            self.fraction = has_fraction(values.to_numpy())
        self.column.add(values, w, start)
        if self.counts is not None:
            self._count({pair["values"]: pair["counts"] for pair in pc.value_counts(values).to_pylist()})

    def merge(self, other: TargetFindings) -> None:
        """Take notice of all that the findings of other rows have seen."""
        self.fraction = self.fraction or other.fraction
        self.column.merge(other.column)
        self._count(other.counts)

    def _count(self, more: dict[Any, int] | None) -> None:
        if self.counts is None or more is None:
            self.counts = None
            return
        for label, times in more.items():
            self.counts[label] = self.counts.get(label, 0) + times
        if len(self.counts) > self.most_classes:
            self.counts = None

    @property
    def reading(self) -> str:
        """How text that is amounts in all rows is read; empty for other targets."""
        whole = self.column.texts is not None and self.column.texts.observed == self.column.rows
        return self.column.reading if whole and is_number_reading(self.column.reading) else ""

    def choose_task(self, task: Task | str) -> TaskChoice:
        """Classes or a quantity, as asked for or by the values."""
        if task != "auto":
            return TaskChoice("classification" if task == "classification" else "regression", "as asked")
        if self.reading or is_number(self.type):
            numbers = self._numbers()
            fraction = not numbers.whole if self.reading else self.fraction
            distinct = numbers.distinct.count(numbers.observed)
            return task_of_numbers(distinct, numbers.observed, fraction, self.ends)
        return TaskChoice("classification", f"{type_words(self.type)} are classes")

    def _numbers(self) -> NumberSummary:
        found = self.column.numbers
        if found is None:
            quantities(pa.array([], self.type))  # which says that these are none
        assert found is not None
        if found.observed < self.column.rows:
            raise DataError(got="a target with values that are no numbers (NaN)", wanted="finite numbers")
        return found

    def choose_family(self) -> FamilyChoice:
        """The family of a quantity."""
        numbers = self._numbers()
        moments, distinct = numbers.moments, numbers.distinct.count(numbers.observed)
        whole = numbers.whole or not (self.fraction or self.reading)
        return family_of(QuantityFacts(float(numbers.low), moments.mean, moments.skewness, distinct, whole))

    @property
    def ends(self) -> tuple[float, float]:
        """The smallest and the largest of a quantity."""
        numbers = self._numbers()
        return float(numbers.low), float(numbers.high)

    @property
    def deviation(self) -> float:
        """The standard deviation of a quantity."""
        return float(np.sqrt(self._numbers().moments.variance))

    def labels(self) -> tuple[Array, Array]:
        """(k,) different labels, ascending, and (k,) how many rows have each; a quantity is refused."""
        rows = self.column.rows
        if self.counts is None:
            if is_number(self.type):
                numbers = self._numbers()
                refuse_quantity(np.arange(numbers.distinct.count(numbers.observed)), rows)
            raise DataError(
                got=f"a target of more than {self.most_classes:,} different labels in {rows:,} rows",
                wanted="fewer classes",
                fix="Group the rare ones.",
            )
        found = label_values(pa.chunked_array([pa.array([*self.counts], self.type)]))
        refuse_quantity(np.unique(found), rows)
        order = np.argsort(found, kind="stable")
        return found[order], np.array([*self.counts.values()])[order]


def read_amounts(values: pa.ChunkedArray, reading: str) -> Array:
    """A quantity (n,); text is read in the way that was found for all of it."""
    values = unpacked(values)
    return quantities(read_text(with_holes(values.cast(pa.string())), reading) if reading else values)
