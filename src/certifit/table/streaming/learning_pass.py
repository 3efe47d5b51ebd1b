"""The pass over all rows from which everything is learnt: encoding, labels, weights, and a sample to look at."""

from __future__ import annotations

from collections.abc import Iterable
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from certifit.exceptions import DataError
from certifit.rows import Array
from certifit.rows.checks import refuse_weights, refuse_zero_weights
from certifit.table.columns import pick
from certifit.table.learning.exact_moments import ExactMoments
from certifit.table.learning.learn_columns import TableSummary
from certifit.table.learning.target_findings import TargetFindings
from certifit.table.streaming.row_sample import RowSample
from certifit.table.text.holes import without_words


@dataclass(frozen=True)
class StreamPlan:
    """What columns of a table are for, and how they are read."""

    target: str
    weight: str | None = None
    task: str = "auto"
    beside: tuple[str, ...] = ()  # columns of the sample that are not learnt from: groups and times
    drop: tuple[str, ...] = ()  # not to be used
    keep: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()
    missing_words: tuple[str, ...] = ()
    dates: tuple[str, ...] = ()
    sample_rows: int = 10_000  # to be drawn
    seed: int = 0  # of the draw
    fewest_of_class: int = 5  # rows of the sample; classes with fewer are left out of it

    def features(self, schema: pa.Schema) -> pa.Schema:
        """The columns to learn from."""
        other = {self.target, self.weight, *self.beside, *self.drop}
        return pa.schema([field for field in schema if field.name not in other])

    def check(self, schema: pa.Schema) -> None:
        """Refuse columns that are not there, and a table without others to learn from."""
        none = schema.empty_table()
        pick(none, self.target, "target column")
        if self.weight is not None:
            pick(none, self.weight, "weight column")
            if not any(f(schema.field(self.weight).type) for f in (pa.types.is_integer, pa.types.is_floating)):
                refuse_weights(self.weight, schema.field(self.weight).type)
        if not self.features(schema):
            raise DataError(got="no column to learn from beside the target", wanted="at least one that varies")


class LabelledBlock:
    """Rows of a block that have a label and a positive weight."""

    def __init__(self, table: pa.Table, plan: StreamPlan) -> None:
        table = without_words(table, plan.missing_words)
        known = pc.is_valid(table[plan.target]).to_numpy()
        w = None if plan.weight is None else _weights(table[plan.weight], plan.weight)
        self.unlabelled = int((~known).sum())
        kept = known if w is None else known & (w > 0)
        self.numbers = np.flatnonzero(kept)  # of the rows in the block
        self.table = table if kept.all() else table.filter(kept)
        self.w = np.ones(len(self.numbers)) if w is None else w[kept]


def _weights(column: pa.ChunkedArray, name: str) -> Array:
    w = column.cast(pa.float64(), safe=False).to_numpy()
    if column.null_count or not np.isfinite(w).all() or (w < 0).any():
        raise DataError(
            got=f"weights in column {name!r} that are missing, negative or no numbers",
            wanted="a weight of at least 0 for every row",
            fix="Set them to 0 to leave those rows out.",
        )
    return w


class LearningPass:
    """All that is learnt of the rows so far."""

    def __init__(self, plan: StreamPlan, schema: pa.Schema, start: int = 0) -> None:
        plan.check(schema)
        self.plan, self.start, self.seen, self.n_rows, self.unlabelled = plan, start, 0, 0, 0
        self.columns = TableSummary(plan.features(schema), plan.keep, plan.categorical, plan.dates)
        self.target = TargetFindings(plan.target, schema.field(plan.target).type)
        self.weight = ExactMoments(0)
        self.sample = RowSample(plan.sample_rows, plan.seed)

    def add(self, table: pa.Table) -> None:
        """Learn from a block."""
        block = LabelledBlock(table, self.plan)
        found, w = block.table, block.w
        self.columns.add(found.select([column.name for column in self.columns.columns]), w)
        self.target.add(found[self.plan.target], w, self.n_rows)
        self.weight.add(w, w)
        self.sample.add(found, self.start + self.seen + block.numbers)
        self.seen += table.num_rows
        self.n_rows += len(w)
        self.unlabelled += block.unlabelled

    def __add__(self, other: LearningPass) -> LearningPass:
        """All that is learnt of two runs of rows."""
        both = deepcopy(self)
        for name in ("columns", "target", "weight", "sample"):
            getattr(both, name).merge(getattr(other, name))
        both.seen, both.n_rows = self.seen + other.seen, self.n_rows + other.n_rows
        both.unlabelled = self.unlabelled + other.unlabelled
        return both

    def check(self) -> None:
        """Refuse rows of which none can be learnt from."""
        if self.seen == 0:
            raise DataError(got="a table with no rows", wanted="at least one row")
        if self.n_rows == 0:
            if self.unlabelled < self.seen:
                refuse_zero_weights()
            raise DataError(got="a target that is missing in every row", wanted="rows with a label")


def learn(tables: Iterable[Any], plan: StreamPlan, schema: pa.Schema, start: int = 0) -> LearningPass:
    """Learn from tables, one after the other, whose first row has the number `start`."""
    found = LearningPass(plan, schema, start)
    for table in tables:
        found.add(table)
    return found
