"""Parquet files, one or several one after the other, read in bounded memory and with their checksums verified."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet

from certifit.exceptions import DataError
from certifit.rows.sources.table import (
    Batches,
    FileStamp,
    ReadTuning,
    Table,
    Types,
    common_schema,
    explain_read_errors,
)


class ParquetFiles(Table):
    """One Parquet file, or several one after the other."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self.stamps = [FileStamp.of(path) for path in paths]
        self.n_rows = 0
        self.schema = None
        for stamp in self.stamps:
            with _open_parquet(stamp) as file:
                self.n_rows += file.metadata.num_rows
                schema = file.schema_arrow.remove_metadata()
            self.schema = schema if self.schema is None else common_schema(self.schema, schema, str(stamp.path))

    def _read(self, types: Types, rows: int) -> Batches:
        for stamp in self.stamps:
            with _open_parquet(stamp) as file:
                yield from file.iter_batches(ReadTuning().rows_at_a_time(len(types), rows), columns=list(types))


@contextmanager
def _open_parquet(stamp: FileStamp) -> Iterator[Any]:
    with explain_read_errors([stamp], partial(_damaged_file, stamp.path)), _parquet_file(stamp.path) as file:
        yield file


def _parquet_file(path: Path) -> Any:
    return pa.parquet.ParquetFile(
        path, buffer_size=ReadTuning().buffer_bytes, pre_buffer=False, page_checksum_verification=True
    )


def _damaged_file(path: Path, reason: str) -> DataError:
    return DataError(
        got=f"{str(path)!r}, which cannot be read{_damaged_place(path)} ({reason})",
        wanted="a complete Parquet file",
        fix="Write the file again: it is cut off or damaged.",
    )


def _damaged_place(path: Path) -> str:
    """Where a file that opens is damaged: the first row group, and its first column, that cannot be read."""
    try:
        with _parquet_file(path) as file:
            for group, name in product(range(file.num_row_groups), file.schema_arrow.names):
                try:
                    for _ in file.iter_batches(ReadTuning().batch_rows, row_groups=[group], columns=[name]):
                        pass
                except (pa.ArrowException, OSError):
                    return f" in row group {group} of {file.num_row_groups} (the first is 0), column {name!r}"
    except (pa.ArrowException, OSError):
        pass  # it does not open: the reason says so
    return ""
