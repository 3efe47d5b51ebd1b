"""Tables that can be read again and again, batch by batch, in the same order: Parquet, CSV, Arrow.

Files are read in bounded memory and watched: a file that changes between or during passes is an error.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Self, TypeAlias

import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset
import pyarrow.fs
import pyarrow.parquet

from certifit.exceptions import DataError, SourceChangedError

Types: TypeAlias = Mapping[str, Any]  # Arrow type wanted of each column to read
Batches: TypeAlias = Generator[Any, None, None]  # of Arrow record batches

BUFFER = 2**16  # bytes read at a time per column; without it, whole column chunks of a row group are held


class Source(ABC):
    """Named columns that can be made readable."""

    schema: Any  # Arrow's

    @abstractmethod
    def select(self, types: Types) -> Table:
        """The source, ready to read these columns."""


class Table(Source):
    """Named columns that can be read many times, with the same rows in the same order."""

    n_rows: int
    in_memory = False
    stamps: Sequence[Stamp] = ()  # the files it is read from

    def select(self, types: Types) -> Self:
        return self

    def read(self, types: Types, rows: int) -> Batches:
        """The columns as record batches, of about `rows` rows where that can be chosen."""
        check_unchanged(self.stamps)
        yield from self._read(types, rows)
        check_unchanged(self.stamps)

    @abstractmethod
    def _read(self, types: Types, rows: int) -> Batches: ...


@dataclass(frozen=True)
class Stamp:
    """A file as it was when it was first seen: size, time of change, inode."""

    path: Path
    state: tuple[int, int, int]

    @classmethod
    def of(cls, path: Path) -> Stamp:
        status = path.stat()
        return cls(path, (status.st_size, status.st_mtime_ns, status.st_ino))


def check_unchanged(stamps: Sequence[Stamp]) -> None:
    for stamp in stamps:
        try:
            same = Stamp.of(stamp.path) == stamp
        except OSError:
            same = False
        if not same:
            raise SourceChangedError(
                f"Got {str(stamp.path)!r}, which changed or vanished since it was first read; wanted the same file "
                "on every pass, because sums over two versions must not be mixed. Fit again when nothing writes to "
                "it, or fit to a copy."
            )


@contextmanager
def _reading(stamps: Sequence[Stamp], explain: Callable[[str], DataError]) -> Iterator[None]:
    """Arrow's complaints in our words."""
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        check_unchanged(stamps)
        raise explain(str(error).strip().splitlines()[0].rstrip(".")) from error


class ParquetFiles(Table):
    """One Parquet file, or several one after the other."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self.stamps = [Stamp.of(path) for path in paths]
        self.n_rows = 0
        self.schema = None
        for stamp in self.stamps:
            with _parquet(stamp) as file:
                self.n_rows += file.metadata.num_rows
                schema = file.schema_arrow.remove_metadata()
            self.schema = schema if self.schema is None else _common(self.schema, schema, stamp.path)

    def _read(self, types: Types, rows: int) -> Batches:
        for stamp in self.stamps:
            with _parquet(stamp) as file:
                yield from file.iter_batches(_batch_rows(types, rows), columns=list(types))


def _batch_rows(types: Types, rows: int) -> int:
    """Rows to decode at a time: each column costs a little per batch, so more than a block where rows are wide."""
    return max(rows, min(4096, 2**22 // len(types)))


@contextmanager
def _parquet(stamp: Stamp) -> Iterator[Any]:
    with (
        _reading([stamp], partial(_damaged, stamp.path)),
        pa.parquet.ParquetFile(
            stamp.path, buffer_size=BUFFER, pre_buffer=False, page_checksum_verification=True
        ) as file,
    ):
        yield file


def _damaged(path: Path, reason: str) -> DataError:
    return DataError(
        got=f"{str(path)!r}, which cannot be read ({reason})",
        wanted="a complete Parquet file",
        fix="Write the file again: it is cut off or damaged.",
    )


def _common(first: Any, other: Any, path: Path) -> Any:
    """The schema of two files: the same columns, of types that one type can hold."""
    if other.equals(first):
        return first
    odd = sorted(set(first.names) ^ set(other.names))
    if odd:
        raise DataError(
            got=f"{str(path)!r} and the files before it with different columns ({', '.join(odd)})",
            wanted="the same columns in every file",
        )
    try:
        return pa.unify_schemas([first, other], promote_options="permissive")
    except pa.ArrowException as error:
        raise DataError(
            got=f"{str(path)!r} with other types than the files before it ({error})",
            wanted="columns of the same type in every file",
        ) from error


class CsvFile(Table):
    """A CSV file with a header; its first block decides the type of each column."""

    def __init__(self, path: Path) -> None:
        self.stamps = [Stamp.of(path)]
        self.path = path
        with self._open({}) as reader:
            self.header = reader.schema.names
            # a column that begins empty is taken for numbers
            kinds = [pa.float64() if pa.types.is_null(kind) else kind for kind in reader.schema.types]
        self.schema = pa.schema(list(zip(self.header, kinds, strict=True)))

    def select(self, types: Types) -> Self:
        self.n_rows = sum(batch.num_rows for batch in self.read(types, 0))
        return self

    def _read(self, types: Types, rows: int) -> Batches:  # the parser's blocks are bytes
        with self._open(types) as reader:
            yield from reader

    @contextmanager
    def _open(self, types: Types) -> Iterator[Any]:
        with (
            _reading(self.stamps, self._explain),
            pa.csv.open_csv(
                self.path,
                pa.csv.ReadOptions(use_threads=False, block_size=2**22),  # as fast, and errors know their line
                pa.csv.ParseOptions(newlines_in_values=True),
                pa.csv.ConvertOptions(
                    null_values=["", "NA", "NaN", "null"],
                    strings_can_be_null=True,
                    include_columns=list(types),
                    column_types=types,
                ),
            ) as reader,
        ):
            yield reader

    def _explain(self, reason: str) -> DataError:
        path = repr(str(self.path))
        if reason.startswith("Empty CSV") or "cannot infer number of columns" in reason:
            return DataError(got=f"{path} without rows", wanted="a header and at least one row")
        if conversion := re.match(r"In CSV column #(\d+): (.*)", reason):
            name = self.header[int(conversion[1])]
            return DataError(
                got=f"{path} with a value of another type in column {name!r} ({conversion[2]})",
                wanted=f"the type of the first rows ({self.schema.field(name).type}) in all rows",
                fix="Correct that value; a missing value is written as nothing, NA, NaN or null.",
            )
        return DataError(
            got=f"{path}, which cannot be read ({reason})",
            wanted="a CSV file with a header, separated by commas, with as many values in every line",
            fix="Correct that line; text that contains commas must stand in double quotes.",
        )


class ArrowTable(Table):
    """A table that is already in memory."""

    in_memory = True

    def __init__(self, table: Any) -> None:
        self.table, self.schema, self.n_rows = table, table.schema, table.num_rows

    def _read(self, types: Types, rows: int) -> Batches:
        yield from self.table.select(list(types)).to_batches(max_chunksize=rows)


class Dataset(Table):
    """An Arrow dataset: any format, partitions and filters it knows; local files are watched."""

    def __init__(self, dataset: Any) -> None:
        self.dataset, self.schema = dataset, dataset.schema
        if isinstance(getattr(dataset, "filesystem", None), pa.fs.LocalFileSystem):
            self.stamps = [Stamp.of(Path(file)) for file in dataset.files]
        with _reading(self.stamps, self._explain):
            self.n_rows = dataset.count_rows()

    def _read(self, types: Types, rows: int) -> Batches:
        options = {}
        if isinstance(getattr(self.dataset, "format", None), pa.dataset.ParquetFileFormat):
            options["fragment_scan_options"] = pa.dataset.ParquetFragmentScanOptions(
                use_buffered_stream=True, buffer_size=BUFFER, pre_buffer=False, page_checksum_verification=True
            )
        with _reading(self.stamps, self._explain):
            yield from self.dataset.to_batches(
                columns=list(types),
                batch_size=_batch_rows(types, rows),
                batch_readahead=1,
                fragment_readahead=1,
                **options,
            )

    def _explain(self, reason: str) -> DataError:
        return DataError(
            got=f"an Arrow dataset that cannot be read ({reason})",
            wanted="complete files of one schema",
            fix="Pass the path of a file or directory instead to learn which file is damaged.",
        )
