"""Rows that are read from their source in every pass: in bounded memory, and in the blocks of a table in memory."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from copy import copy
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa

from certifit.exceptions import DataError, SourceChangedError
from certifit.rows.block import Array, Block, block_rows
from certifit.rows.checks import TableTerms, Target, check_block, refuse_targets, refuse_weights, refuse_zero_weights
from certifit.rows.named_columns import ColumnRoles, refuse_columns, stack_columns
from certifit.rows.rows import JoinedParts, R, Relabel, Rows, relabelled, write_rows
from certifit.rows.sources.table import Source, Table
from certifit.rows.sums import S
from certifit.rows.threads import parallel_map, parallel_sum

T = TypeVar("T")


class UnparsedBlock(NamedTuple):
    """A block as it was read, in columns."""

    start: int
    batches: list[Any]  # Arrow record batches


class FileRows(Rows):
    """Rows of an Arrow source; target and weights are columns of it, or arrays.

    One thread reads the next block while the others turn columns into rows and sum.
    """

    def __init__(self, source: Source, columns: ColumnRoles, terms: TableTerms) -> None:
        kinds = {name: source.schema.field(name).type for name in columns.features}
        refuse_columns({name: kind for name, kind in kinds.items() if not is_number(kind)}, terms.missing)
        small = all(pa.types.is_float32(kind) for kind in kinds.values())
        number = pa.float32() if small else pa.float64()
        self.dtype = np.dtype(np.float32 if small else np.float64)
        self.wanted = pa.schema([(name, number) for name in columns.features])
        self.types = {name: kind if pa.types.is_boolean(kind) else number for name, kind in kinds.items()}
        for name in columns.y:
            self.types[name] = _label_type(source.schema.field(name), terms.target)
        if columns.w is not None:
            self.types[columns.w] = _weight_type(source.schema.field(columns.w))
        self.source: Table = source.select(self.types)
        self.n_rows, self.n_features = self.source.n_rows, len(kinds)
        if self.n_rows == 0:
            raise DataError(got="a table without rows", wanted="at least one row")
        self.columns, self.terms = columns, terms
        self.names = np.array(columns.features, dtype=object)
        self.block_rows = block_rows(self.n_features)
        # Target and weights that are no columns of the source.
        self.y: Array | None = None
        self.w: Array | None = None
        self.relabels: tuple[Relabel, ...] = ()
        if columns.w is not None:
            self._check_some_weight(columns.w)

    def _check_some_weight(self, name: str) -> None:
        with closing(self.source.read({name: pa.float64()}, self.block_rows)) as batches:
            if not any((_vector([batch], name, pa.float64()) > 0).any() for batch in batches):
                refuse_zero_weights()

    def relabel(self, f: Relabel) -> FileRows:
        rows = copy(self)
        rows.relabels = (*self.relabels, f)
        return rows

    def __iter__(self) -> Iterator[Block]:
        with closing(self._read_ahead()) as pieces:
            yield from map(self._block, pieces)

    def _sum(self, f: Callable[[Block], S]) -> S:
        return parallel_sum(partial(self._apply, f), self._read_ahead())

    def each(self, f: Callable[[Block], R]) -> list[R]:
        return parallel_map(partial(self._apply, f), self._read_ahead())

    def map(self, f: Callable[[Block], Array]) -> Array:
        return JoinedParts(self.n_rows).of(self, f)

    def fill(self, f: Callable[[Block], tuple[Array, ...]], outs: tuple[Array, ...]) -> None:
        self.each(partial(write_rows, f, outs))

    def _apply(self, f: Callable[[Block], R], piece: UnparsedBlock) -> R:
        return f(self._block(piece))

    def _read_ahead(self) -> Generator[UnparsedBlock, None, None]:
        """Give blocks as they were read; the next one is read meanwhile."""
        return read_ahead(self._cut_blocks())

    def _cut_blocks(self) -> Generator[UnparsedBlock, None, None]:
        """Cut and join the batches of the source into blocks."""
        start, rows = 0, 0
        held: list[Any] = []
        for batch in self.source.read(self.types, self.block_rows):
            done = 0
            while done < batch.num_rows:
                part = batch.slice(done, self.block_rows - rows)
                held.append(part)
                rows, done = rows + part.num_rows, done + part.num_rows
                if rows == self.block_rows:
                    yield UnparsedBlock(start, held)
                    start, rows, held = start + rows, 0, []
        if rows:
            yield UnparsedBlock(start, held)
        if start + rows != self.n_rows:
            raise SourceChangedError(
                f"Got {start + rows} rows; wanted the {self.n_rows} of the first pass: the data changed in between."
            )

    def _block(self, piece: UnparsedBlock) -> Block:
        X = _matrix(piece.batches, self.wanted, self.dtype)
        rows = slice(piece.start, piece.start + len(X))
        y = None if self.y is None else self.y[rows]
        w = np.ones(len(X)) if self.w is None else self.w[rows]
        if self.columns.y:
            y = stack_columns([_vector(piece.batches, name, self.types[name]) for name in self.columns.y])
        if self.columns.w is not None:
            w = _vector(piece.batches, self.columns.w, pa.float64())
        block = Block(X, y, w, piece.start)
        check_block(block, self.terms, self.names, self.columns.y)
        return relabelled(block, self.relabels)


def read_ahead(pieces: Generator[T, None, None]) -> Generator[T, None, None]:
    """Give what a generator gives; it makes the next piece meanwhile."""
    with closing(pieces), ThreadPoolExecutor(1) as reader:
        ahead = reader.submit(next, pieces, None)
        while (piece := ahead.result()) is not None:
            ahead = reader.submit(next, pieces, None)
            yield piece


def _matrix(batches: Sequence[Any], wanted: Any, dtype: np.dtype[Any]) -> Array:
    """Return columns as rows (rows, d), C-contiguous; nulls become NaN."""
    parts = []
    for batch in batches:
        batch = batch.select(wanted.names)
        if not batch.schema.equals(wanted):
            kinds = set(batch.schema.types)
            # Whole numbers of one type need no cast.
            if len(kinds) > 1 or not pa.types.is_integer(kinds.pop()):
                batch = batch.cast(wanted, safe=False)
        parts.append(batch.to_tensor(null_to_nan=True, row_major=True).to_numpy())
    X = parts[0] if len(parts) == 1 else np.concatenate(parts)
    return X.astype(dtype, copy=False)


def _vector(batches: Sequence[Any], name: str, kind: Any) -> Array:
    """Return a column as an array (rows,); text becomes Python strings, a null NaN or None."""
    parts = [batch.column(name).cast(kind, safe=False) for batch in batches]
    return pa.chunked_array(parts, kind).to_numpy()


def is_number(kind: Any) -> bool:
    """Say whether values of an Arrow type are numbers."""
    return any(f(kind) for f in (pa.types.is_floating, pa.types.is_integer, pa.types.is_boolean, pa.types.is_decimal))


def _weight_type(field: Any) -> Any:
    if not is_number(field.type):
        refuse_weights(field.name, field.type)
    return pa.float64()


def _label_type(field: Any, target: Target) -> Any:
    """Return the type in which a target column is read."""
    kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
    if target == "numbers" and not is_number(kind):
        refuse_targets(kind)
    if pa.types.is_nested(kind):
        raise DataError(got=f"target column {field.name!r} of type {kind}", wanted="one number or label per row")
    if pa.types.is_decimal(kind):
        return pa.float64()
    if pa.types.is_string_view(kind) or pa.types.is_large_string(kind):
        return pa.string()
    return kind
