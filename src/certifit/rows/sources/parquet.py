"""Parquet files, one or several one after the other, read in bounded memory and with their checksums verified."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
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
    with (
        explain_read_errors([stamp], partial(_damaged_file, stamp.path)),
        pa.parquet.ParquetFile(
            stamp.path, buffer_size=ReadTuning().buffer_bytes, pre_buffer=False, page_checksum_verification=True
        ) as file,
    ):
        yield file


def _damaged_file(path: Path, reason: str) -> DataError:
    return DataError(
        got=f"{str(path)!r}, which cannot be read ({reason})",
        wanted="a complete Parquet file",
        fix="Write the file again: it is cut off or damaged.",
    )
