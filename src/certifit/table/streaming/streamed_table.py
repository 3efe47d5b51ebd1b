"""A table in files that is fitted by passes over its blocks, as rows of numbers that never are all in memory.

Blocks are those of the same table in memory: rows without a label or weight are left out before rows are cut, and
columns are encoded as they would be there.
"""

from __future__ import annotations

import hashlib
from collections.abc import Generator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from certifit.exceptions import DataError
from certifit.rows import Array, Block, block_rows
from certifit.rows.rows import relabelled
from certifit.rows.sources.open_source import open_source
from certifit.rows.sources.streamed import FileRows, UnparsedBlock, read_ahead
from certifit.rows.sources.table import Batches, Source, Table, Types
from certifit.table.columns import Column, encode_columns
from certifit.table.labelled_table import READING, LabelledRows, LabelledTable, as_labelled, labelled_table
from certifit.table.learning.learn_columns import TableTuning
from certifit.table.learning.target_findings import read_amounts
from certifit.table.reading import refuse_repeated
from certifit.table.streaming.learning_pass import LabelledBlock, LearningPass, StreamPlan, learn
from certifit.table.streaming.memory import is_large
from certifit.table.streaming.row_sample import frequent
from certifit.table.targets import FamilyChoice, TaskChoice, is_number, label_values
from certifit.table.text.holes import with_holes
from certifit.table.text.readings import read_text


@dataclass(frozen=True)
class StreamedTable:
    """Rows with a target and a positive weight that are read in every pass."""

    source: Any  # the table that they are read from
    plan: StreamPlan
    learnt: LearningPass
    choice: TaskChoice  # whether the target is classes or a quantity, and why
    columns: tuple[Column, ...]  # what becomes of every column, learnt from all rows
    named = True
    engine = "blocks"  # how its rows are passed over

    @property
    def n_rows(self) -> int:
        """How many rows are learnt from."""
        return self.learnt.n_rows

    @property
    def unlabelled(self) -> int:
        """Rows left out because their target is missing."""
        return self.learnt.unlabelled

    @property
    def weightless(self) -> int:
        """Rows left out because their weight is 0."""
        return self.learnt.seen - self.learnt.n_rows - self.learnt.unlabelled

    @property
    def target(self) -> str:
        """Name of the target column."""
        return self.plan.target

    @property
    def weight(self) -> str | None:
        """Name of the weight column."""
        return self.plan.weight

    @property
    def column_names(self) -> list[str]:
        """Names of the columns that are neither target nor weight."""
        return [column.name for column in self.columns]

    @property
    def reading(self) -> dict[str, Any]:
        """How columns are read, as a table model takes it."""
        return {name: getattr(self.plan, name) for name in READING}

    @property
    def total_weight(self) -> float:
        """Σ w."""
        return self.learnt.weight.weight

    @cached_property
    def labels(self) -> Array:
        """(k,) the different labels."""
        return self.learnt.target.labels()[0]

    def choose_family(self) -> FamilyChoice:
        """The family of a quantity."""
        return self.learnt.target.choose_family()

    def encode(self) -> Any:
        """The rows as numbers, by the encoding learnt from these rows."""
        return self.encode_as(self.columns)

    def encode_as(self, columns: tuple[Column, ...]) -> Any:
        """The rows as numbers, by another encoding."""
        return StreamedRows(self, columns)

    def read_again(self, **reading: Any) -> StreamedTable:
        """The same rows, with columns read in another way."""
        return self if reading == self.reading else learn_table(self.source, replace(self.plan, **reading))

    @cached_property
    def sample(self) -> LabelledTable:
        """Rows drawn at random, in memory; text that stands for numbers or dates is read as in all rows."""
        table = self.sample_table.drop_columns(list(self.plan.beside))
        return labelled_table(table, self.target, self.weight, task=self.choice.task, **self.reading)

    @property
    def sample_numbers(self) -> Array:
        """(m,) the numbers of the rows of the sample in the table."""
        return self._drawn[1]

    @property
    def sample_table(self) -> pa.Table:
        """The sample with all of its columns."""
        return self._drawn[0]

    @cached_property
    def _drawn(self) -> tuple[pa.Table, Array]:
        """The sample as a table, and the numbers of its rows; rows of classes that have few of them are left out."""
        (table, numbers), target = self.learnt.sample.drawn(), self.learnt.target
        readings = {column.name: column.reading for column in self.columns if column.reading}
        if self.choice.task == "regression" and target.reading:
            readings[self.target] = target.reading
        for name, reading in readings.items():
            values = read_text(with_holes(table[name].cast(pa.string())), reading)
            table = table.set_column(table.column_names.index(name), name, values)
        if self.choice.task == "classification":
            often = frequent(label_values(table[self.target]), self.plan.fewest_of_class)
            table, numbers = table.filter(often), numbers[often]
        return table, numbers

    @property
    def label_counts(self) -> tuple[Array, Array]:
        """(k,) the different labels, and (k,) how many rows have each."""
        return self.learnt.target.labels()

    @property
    def spread(self) -> tuple[float, float, float]:
        """The smallest, the median (of the sample) and the largest of a quantity."""
        low, high = self.learnt.target.ends
        return low, float(np.median(self.sample.y)), high

    @property
    def has_numeric_target(self) -> bool:
        """Whether the target are numbers, so that they may be classes or a quantity."""
        return self.choice.task == "regression" or is_number(self.learnt.target.type)

    def encoder(self, columns: tuple[Column, ...]) -> BlockEncoder:
        """What makes numbers of blocks, by an encoding."""
        classes = self.choice.task == "classification"
        kind = self.labels.dtype if classes else np.dtype(np.float64)
        used = tuple(column for column in columns if column.kind != "left out")
        return BlockEncoder(self.plan, used, kind, classes, "" if classes else self.learnt.target.reading)


@dataclass(frozen=True)
class BlockEncoder:
    """What makes rows of numbers of a block of labelled rows."""

    plan: StreamPlan
    columns: tuple[Column, ...]  # those that are used
    label_type: np.dtype[Any]
    classes: bool  # whether the target is classes
    amounts: str  # how a target of text is read as numbers; empty where it is none

    @property
    def features(self) -> list[str]:
        """Names of the columns of numbers."""
        return [name for column in self.columns for name in column.features]

    def types(self, schema: pa.Schema) -> dict[str, Any]:
        """The columns that are read, with their types; those that are not there are refused."""
        plan, known = self.plan, {field.name: field.type for field in schema}
        names = [column.name for column in self.columns] + [plan.target] + ([plan.weight] if plan.weight else [])
        for name in names:
            if name not in known:
                raise DataError(
                    got=f"a table without the column {name!r}, which the model was fitted with",
                    wanted="all columns of the fit",
                )
        return {name: known[name] for name in names}

    def block(self, table: pa.Table, start: int) -> Block:
        """Labelled rows as numbers, with their targets and weights."""
        X, _, _ = encode_columns(self.columns, table)
        w, target = np.ones(len(X)), table[self.plan.target]
        if self.plan.weight is not None:
            w = table[self.plan.weight].cast(pa.float64(), safe=False).to_numpy()
        y = label_values(target).astype(self.label_type) if self.classes else read_amounts(target, self.amounts)
        return Block(X, y, w, start)


def streamed_table(X: Any, plan: StreamPlan) -> StreamedTable:
    """Learn from a table in files, in one pass; `plan` says what its columns are for."""
    source = open_source(X) if not isinstance(X, Table) else X
    if not isinstance(source, Source):
        raise DataError(
            got=f"a {type(X).__name__} to read block by block", wanted="paths of Parquet or CSV files, or a query"
        )
    refuse_repeated(source.schema.names)
    kept = {field.name: field.type for field in source.schema if field.name not in plan.drop}
    return learn_table(source.select(kept), plan)


def labelled_rows(
    X: Any, y: Any = None, sample_weight: Any = None, *, task: Any = "classification", **reading: Any
) -> LabelledTable | StreamedTable:
    """Labelled rows of a table: in memory, or read block by block where its files are too large for that."""
    read: dict[str, Any] = {name: tuple(values) for name, values in reading.items()}
    if isinstance(X, StreamedTable):
        found: StreamedTable = as_labelled(X, y, sample_weight, task, read)
        return found
    named = isinstance(y, str) and (sample_weight is None or isinstance(sample_weight, str))
    if named and is_large(X):
        return streamed_table(X, StreamPlan(y, sample_weight, task, **read))
    return labelled_table(X, y, sample_weight, task=task, **read)


def learn_table(source: Table, plan: StreamPlan) -> StreamedTable:
    """Learn what becomes of every column, in one pass over the rows."""
    schema = pa.schema([field for field in source.schema if field.name not in plan.drop])
    types = {field.name: field.type for field in schema}
    learnt = learn(read_ahead(blocks_of(source, types)), plan, schema)
    return StreamedTable(source, plan, learnt, checked_choice(plan, learnt), learnt.columns.decide())


def checked_choice(plan: StreamPlan, learnt: LearningPass) -> TaskChoice:
    """Whether the target is classes or a quantity; rows of which nothing can be learnt are refused."""
    learnt.check()
    choice = learnt.target.choose_task(plan.task)
    if choice.task == "classification":
        learnt.target.labels()
    else:
        learnt.target.choose_family()
    return choice


def blocks_of(source: Table, types: Types, rows: int = TableTuning().block_rows) -> Generator[pa.Table, None, None]:
    """The table in blocks of so many rows or a little more."""
    held: list[Any] = []
    for batch in source.read(types, rows):
        held.append(batch)
        if sum(part.num_rows for part in held) >= rows:
            yield pa.Table.from_batches(held)
            held = []
    if held:
        yield pa.Table.from_batches(held)


class LabelledSource(Table):
    """The rows of another table that have a label and a positive weight."""

    def __init__(self, source: Table, plan: StreamPlan, n_rows: int) -> None:
        self.source, self.plan, self.n_rows = source, plan, n_rows
        self.schema, self.stamps = source.schema, source.stamps

    def _read(self, types: Types, rows: int) -> Batches:
        for batch in self.source.read(types, rows):
            yield from LabelledBlock(pa.Table.from_batches([batch]), self.plan).table.to_batches()


class StreamedRows(LabelledRows, FileRows):
    """Labelled rows as numbers; every pass reads and encodes them block by block."""

    def __init__(self, data: StreamedTable, columns: tuple[Column, ...]) -> None:
        self.data, self.encoder = data, data.encoder(columns)
        self.features = self.encoder.features
        self.types = self.encoder.types(data.source.schema)
        self.source = LabelledSource(data.source, data.plan, data.n_rows)
        self.n_rows, self.n_features = data.n_rows, len(self.features)
        self.dtype, self.names = np.dtype(np.float64), None
        self.block_rows = block_rows(self.n_features)
        self.relabels = ()

    def _block(self, piece: UnparsedBlock) -> Block:
        return relabelled(self.encoder.block(pa.Table.from_batches(piece.batches), piece.start), self.relabels)

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the rows, labels and weights, as of the same rows in memory."""
        shape = (self.n_rows, self.n_features)
        digest = hashlib.sha256(repr((shape, self.encoder.label_type.str)).encode())
        for block in self:
            digest.update(np.ascontiguousarray(block.X).data)
        labels = StreamedRows(self.data, ())
        for name in ("y", "w") if self.data.weight else ("y",):
            for block in labels:
                digest.update(np.ascontiguousarray(getattr(block, name)).data)
        return digest.hexdigest()
