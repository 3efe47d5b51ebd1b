"""A table in files that workers of a Dask cluster read: each learns and sums the pieces it is given.

All workers must see the files under the same paths. A piece is a run of groups of rows of a Parquet file, or a CSV
file; it is read and encoded again in every pass.
"""

from __future__ import annotations

import hashlib
from collections.abc import Generator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet
from dask.delayed import delayed

from certifit.exceptions import DataError
from certifit.rows import Array, block_rows
from certifit.rows.checks import TableTerms
from certifit.rows.sources.csv import CsvFile
from certifit.rows.sources.dask import DaskRows, PartitionLayout, shared_task
from certifit.rows.sources.dask_partitions import DaskPartition, compute_tasks
from certifit.rows.sources.open_source import open_path, open_source
from certifit.rows.sources.table import FileStamp, JoinedTables, Table, check_unchanged
from certifit.rows.sources.text_encoding import EncodedPath
from certifit.rows.sums import tree_sum
from certifit.table.columns import Column
from certifit.table.labelled_table import LabelledRows
from certifit.table.reading import refuse_repeated
from certifit.table.streaming.learning_pass import LabelledBlock, LearningPass, StreamPlan, learn
from certifit.table.streaming.streamed_table import BlockEncoder, StreamedTable, blocks_of, checked_choice


@dataclass(frozen=True)
class PieceTuning:
    """How large pieces are."""

    rows: int = 2**18  # of a piece of a Parquet file, at least, where the file has as many
    csv_rows: int = 2**40  # more than a CSV file has: numbers of rows in different files differ


@dataclass(frozen=True)
class FilePiece:
    """A part of a file."""

    stamp: FileStamp
    groups: tuple[int, ...] | None  # of rows of a Parquet file; None for all of a CSV file
    start: int  # the number of its first row
    encoding: str = ""  # of the text of a CSV file

    def tables(self, schema: pa.Schema) -> Generator[pa.Table, None, None]:
        """Give its rows, with these columns, block by block."""
        check_unchanged([self.stamp])
        types = {field.name: field.type for field in schema}
        if self.groups is None:
            yield from blocks_of(open_path(EncodedPath(str(self.stamp.path), self.encoding)).select(types), types)
        else:
            with pa.parquet.ParquetFile(self.stamp.path, page_checksum_verification=True) as file:
                for batch in file.iter_batches(row_groups=list(self.groups), columns=list(types)):
                    yield pa.Table.from_batches([batch]).select(schema.names).cast(schema)
        check_unchanged([self.stamp])


class PiecedFiles(NamedTuple):
    """Files in pieces."""

    schema: pa.Schema
    pieces: tuple[FilePiece, ...]


@dataclass(frozen=True)
class DistributedTable(StreamedTable):
    """Rows with a target and a positive weight that workers of a cluster read in every pass."""

    piece_rows: tuple[int, ...] = ()  # labelled rows of each piece
    engine = "dask"

    def encode_as(self, columns: tuple[Column, ...]) -> DistributedRows:
        """The rows as numbers, by another encoding."""
        return DistributedRows(self, columns)

    def read_again(self, **reading: Any) -> StreamedTable:
        """The same rows, with columns read in another way."""
        return self if reading == self.reading else learn_pieces(self.source, replace(self.plan, **reading))


class DistributedRows(LabelledRows, DaskRows):
    """Labelled rows as numbers, in the pieces that workers read."""

    def __init__(self, data: DistributedTable, columns: tuple[Column, ...]) -> None:
        self.data, encoder = data, data.encoder(columns)
        self.features = encoder.features
        types = encoder.types(data.source.schema)
        shared = shared_task((encoder, pa.schema(list(types.items()))))
        starts = np.cumsum([0, *data.piece_rows])[:-1].tolist()
        encode = delayed(_encoded_piece, nout=3)
        parts = []
        for piece, rows, start in zip(data.source.pieces, data.piece_rows, starts, strict=True):
            if rows:
                X, y, w = encode(shared, shared_task(piece))
                parts.append(DaskPartition([X], [y], [w], start, rows))
        terms = TableTerms("classes" if encoder.classes else "numbers")
        width = len(self.features)
        layout = PartitionLayout(None, None, np.dtype(np.float64), terms, block_rows(width))
        super().__init__(parts, layout, width)

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the digests of all pieces: of the same pieces only, so it says so."""
        digests = compute_tasks(*(delayed(_digest)(self.store.partition(k)) for k in range(len(self.parts))))
        return "pieces:" + hashlib.sha256(b"".join(digests)).hexdigest()


def distributed_table(X: Any, plan: StreamPlan) -> DistributedTable:
    """Learn from files in one pass, by the workers of the current Dask cluster."""
    source = open_source(X)
    if not isinstance(source, Table) or not source.stamps:
        raise DataError(
            got=f"a {type(X).__name__} for a Dask cluster",
            wanted="paths of Parquet or CSV files that workers can read",
        )
    refuse_repeated(source.schema.names)
    return learn_pieces(PiecedFiles(source.schema, cut_files(source)), plan)


def cut_files(source: Table, tuning: PieceTuning = PieceTuning()) -> tuple[FilePiece, ...]:
    """The files of a table in pieces, with the numbers of their first rows."""
    tables = source.tables if isinstance(source, JoinedTables) else [source]
    encodings = {table.path: table.encoding for table in tables if isinstance(table, CsvFile)}
    pieces, start = [], 0
    for stamp in source.stamps:
        if stamp.path.suffix.lower() not in (".parquet", ".pq"):
            pieces.append(FilePiece(stamp, None, start, encodings[stamp.path]))
            start += tuning.csv_rows
            continue
        facts = pa.parquet.read_metadata(stamp.path)
        held: list[int] = []
        rows = 0
        for group in range(facts.num_row_groups):
            held.append(group)
            rows += facts.row_group(group).num_rows
            if rows >= tuning.rows or group == facts.num_row_groups - 1:
                pieces.append(FilePiece(stamp, tuple(held), start))
                start, rows, held = start + rows, 0, []
    return tuple(pieces)


def learn_pieces(files: PiecedFiles, plan: StreamPlan) -> DistributedTable:
    """Learn from every piece where it is read, and join what was learnt."""
    schema = pa.schema([field for field in files.schema if field.name not in plan.drop])
    plan.check(schema)
    shared = shared_task((plan, schema))
    found = [delayed(_learn_piece)(shared, shared_task(piece)) for piece in files.pieces]
    learnt, *rows = compute_tasks(tree_sum(found), *(delayed(_labelled)(part) for part in found))
    choice = checked_choice(plan, learnt)
    return DistributedTable(files, plan, learnt, choice, learnt.columns.decide(), tuple(rows))


# ------------------------------------------------------------------------------------------------ on the workers
def _learn_piece(shared: tuple[StreamPlan, pa.Schema], piece: FilePiece) -> LearningPass:
    plan, schema = shared
    return learn(piece.tables(schema), plan, schema, piece.start)


def _labelled(found: LearningPass) -> int:
    return found.n_rows


def _encoded_piece(shared: tuple[BlockEncoder, pa.Schema], piece: FilePiece) -> tuple[Array, Array, Array]:
    """X (n, d), y (n,) and w (n,) of a piece."""
    encoder, schema = shared
    blocks = [encoder.block(LabelledBlock(table, encoder.plan).table, 0) for table in piece.tables(schema)]
    X, y, w = (np.concatenate([block[place] for block in blocks]) for place in range(3))
    return X, y, w


def _digest(piece: Any) -> bytes:
    """SHA-256 of a piece's X, y and w, which may be held as blocks."""
    columns = zip(*(block[:3] for block in piece), strict=True) if isinstance(piece, list) else piece[:3]
    digest = hashlib.sha256()
    for part in map(np.concatenate, columns):
        digest.update(repr((part.shape, part.dtype.str)).encode() + np.ascontiguousarray(part).tobytes())
    return digest.digest()
