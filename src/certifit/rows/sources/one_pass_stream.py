"""Streams and queries that can be read only once: they are written to a temporary Parquet file, then read from it."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet

from certifit.exceptions import DataError
from certifit.rows.sources.parquet import ParquetFiles
from certifit.rows.sources.table import Source, Table, Types


class OnePassStream(Source):
    """A stream of record batches that can be read once, such as the answer of a database."""

    def __init__(self, stream: Any) -> None:
        self.kind = type(stream).__name__
        with self._explain_errors():
            self.reader = pa.RecordBatchReader.from_stream(stream)
            self.schema = self.reader.schema

    def select(self, types: Types) -> Table:
        folder = tempfile.mkdtemp(prefix="certifit-")
        path = Path(folder, "rows.parquet")
        try:
            self._write(path, list(types))
            table = ParquetFiles([path])
        except BaseException as error:
            shutil.rmtree(folder, ignore_errors=True)
            if not isinstance(error, OSError):
                raise
            raise DataError(
                got=f"a temporary directory {folder!r} that cannot hold the rows ({error})",
                wanted="room for the columns in use",
                fix="Set TMPDIR to a larger disk, or write the table to Parquet yourself and pass its path.",
            ) from error
        weakref.finalize(table, shutil.rmtree, folder, ignore_errors=True)
        return table

    def _write(self, path: Path, columns: list[str]) -> None:
        schema = pa.schema([self.schema.field(name) for name in columns])
        with pa.parquet.ParquetWriter(path, schema, compression="lz4", use_dictionary=False) as file:
            for batch in self._batches():
                file.write_batch(batch.select(columns))

    def _batches(self) -> Iterator[Any]:
        with self._explain_errors():
            yield from self.reader

    @contextmanager
    def _explain_errors(self) -> Iterator[None]:
        """Say in words what goes wrong while somebody else's program makes the rows."""
        try:
            yield
        except (DataError, MemoryError):
            raise
        except Exception as error:  # of a database, a query engine, a generator
            reason = next(iter(str(error).strip().splitlines()), type(error).__name__)
            raise DataError(
                got=f"a {self.kind} that does not give its rows ({reason})",
                wanted="a query or stream that gives them all, once",
            ) from error


class PolarsQuery(OnePassStream):
    """A lazy polars query, run once, because a second run may give other rows or another order."""

    def __init__(self, query: Any) -> None:
        import polars as pl

        self.query, self.kind = query, "polars query"
        with self._explain_errors():
            self.schema = pl.DataFrame(schema=query.collect_schema()).to_arrow().schema

    def _write(self, path: Path, columns: list[str]) -> None:
        with self._explain_errors():
            self.query.select(columns).sink_parquet(path, compression="lz4", row_group_size=2**16)
