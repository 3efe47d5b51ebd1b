"""Named columns that can be read again and again, batch by batch, with the same rows in the same order.

A `Source` can be turned into a `Table`, and a `Table` can be read. Files are read in bounded memory. A file that
changes between or during passes is an error, because sums over two versions must not be mixed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, Self, TypeAlias

import pyarrow as pa

from certifit.exceptions import DataError, SourceChangedError
from certifit.rows.sources.memory import available_bytes
from certifit.rows.sources.regular_file import check_regular

Types: TypeAlias = Mapping[str, Any]  # Arrow type wanted of each column to read
Batches: TypeAlias = Generator[Any, None, None]  # of Arrow record batches


@dataclass(frozen=True)
class ReadTuning:
    """How much is read at a time."""

    buffer_bytes: int = 2**16  # read at a time of a Parquet column; else a whole column of a row group is in memory
    batch_rows: int = 4096  # decoded at a time where rows are wide: a batch costs a little for each column
    batch_entries: int = 2**22  # most entries of such a batch
    memory_share: float = 0.7  # of the memory available, that a whole table may take
    csv_block_bytes: int = 2**22  # parsed at a time; the first block decides the types of the columns
    csv_column_bytes: float = 30e3  # that reading one more column takes, whose name and values may be a few letters

    def rows_at_a_time(self, columns: int, rows: int) -> int:
        """Return how many rows to decode at a time where a block has `rows` rows."""
        return max(rows, min(self.batch_rows, self.batch_entries // max(1, columns)))


class Source(ABC):
    """Named columns that can be turned into a table."""

    schema: Any  # Arrow's names and types of the columns

    @abstractmethod
    def select(self, types: Types) -> Table:
        """Return a table from which these columns can be read."""


class Table(Source):
    """Named columns that can be read many times, with the same rows in the same order."""

    n_rows: int
    in_memory = False
    stamps: Sequence[FileStamp] = ()  # the files it is read from

    def select(self, types: Types) -> Self:
        return self

    def read(self, types: Types, rows: int) -> Batches:
        """Give the columns as record batches, of about `rows` rows where the source allows it.

        Every batch has the types that are wanted or those of the table's schema, whatever a single file has.
        """
        self.check_unchanged()
        for batch in self._read(types, rows):
            yield self._with_common_types(batch, types)
        self.check_unchanged()

    def check_unchanged(self) -> None:
        """Refuse what changed or vanished since it was first read."""
        check_unchanged(self.stamps)

    def _with_common_types(self, batch: Any, types: Types) -> Any:
        wanted = [
            field if field.type == types[field.name] else self.schema.field(field.name) for field in batch.schema
        ]
        same = all(field.type == other.type for field, other in zip(wanted, batch.schema, strict=True))
        return batch if same else batch.cast(pa.schema(wanted), safe=False)

    def whole(self) -> Any:
        """Return all columns and rows as an Arrow table in memory."""
        types = {field.name: field.type for field in self.schema}
        batches, taken, room = [], 0, ReadTuning().memory_share * available_bytes()
        for batch in self.read(types, ReadTuning().batch_rows):
            batches.append(batch)
            taken += batch.nbytes
            if taken > room:  # few bytes of a compressed file may stand for any number of rows
                raise DataError(
                    got=f"a table of which {sum(part.num_rows for part in batches):,} rows take {taken / 1e9:.1f} GB",
                    wanted="one that the memory holds",
                    fix="Have it read block by block: stream=True, or --stream at the command line.",
                )
        return pa.Table.from_batches(batches, self.schema)

    @abstractmethod
    def _read(self, types: Types, rows: int) -> Batches: ...


class JoinedTables(Table):
    """Several tables with the same columns, one after the other."""

    def __init__(self, tables: Sequence[Table], names: Sequence[str]) -> None:
        self.tables = list(tables)
        self.schema = tables[0].schema
        for table, name in zip(tables[1:], names[1:], strict=True):
            self.schema = common_schema(self.schema, table.schema, name)
        self.stamps = [stamp for table in tables for stamp in table.stamps]

    def select(self, types: Types) -> Self:
        self.tables = [table.select(types) for table in self.tables]
        self.n_rows = sum(table.n_rows for table in self.tables)
        return self

    def _read(self, types: Types, rows: int) -> Batches:
        for table in self.tables:
            yield from table._read(types, rows)


def common_schema(first: Any, other: Any, name: str) -> Any:
    """Return a schema for both tables, which must have the same columns, of types that can be unified."""
    if other.equals(first):
        return first
    odd = sorted(set(first.names) ^ set(other.names))
    if odd:
        raise DataError(
            got=f"{name!r} and the files before it with different columns ({', '.join(odd)})",
            wanted="the same columns in every file",
        )
    try:
        return pa.unify_schemas(_values_where_unlike(first, other), promote_options="permissive")
    except pa.ArrowException as error:
        raise DataError(
            got=f"{name!r} with other types than the files before it ({error})",
            wanted="columns of the same type in every file",
        ) from error


def _values_where_unlike(first: Any, other: Any) -> list[Any]:
    """Both schemas, with values for dictionaries of another kind: categories in one file, text in the next.

    Whole numbers are text where they are text in the other file: codes of which only that has some like 01234.
    """
    schemas = [first, other]
    for name in first.names:
        kinds = [schema.field(name).type for schema in schemas]
        values = [kind.value_type if pa.types.is_dictionary(kind) else kind for kind in kinds]
        unlike = len({pa.types.is_dictionary(kind) for kind in kinds}) > 1 or values[0] != values[1]
        if any(map(pa.types.is_integer, values)) and any(map(pa.types.is_string, values)):
            values = [pa.string(), pa.string()]
        if unlike:
            schemas = [
                schema.set(schema.get_field_index(name), schema.field(name).with_type(value))
                for schema, value in zip(schemas, values, strict=True)
            ]
    return schemas


@dataclass(frozen=True)
class FileStamp:
    """The size, times of change and inode of a file when it was first read.

    Of the two times a program can set back the one of the content, as copies that keep times do; the other it cannot.
    """

    path: Path
    state: tuple[int, int, int, int]

    @classmethod
    def of(cls, path: Path) -> FileStamp:
        status = check_regular(path)
        return cls(path, (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino))


def check_unchanged(stamps: Sequence[FileStamp]) -> None:
    """Refuse files that changed or vanished since they were first read."""
    for stamp in stamps:
        try:
            same = FileStamp.of(stamp.path) == stamp
        except (OSError, DataError):
            same = False
        if not same:
            refuse_changed(str(stamp.path))


def refuse_changed(path: str) -> NoReturn:
    """Refuse a file of which two passes would read two versions."""
    raise SourceChangedError(
        f"Got {path!r}, which changed or vanished since it was first read; wanted the same file "
        "on every pass, because sums over two versions must not be mixed. Fit again when nothing writes to "
        "it, or fit to a copy."
    )


@contextmanager
def explain_read_errors(stamps: Sequence[FileStamp], explain: Callable[[str], DataError]) -> Iterator[None]:
    """Turn Arrow's error about a file that it cannot read into a `DataError`."""
    try:
        yield
    except PermissionError as error:
        raise DataError(
            got=f"{str(error.filename or stamps[0].path)!r}, which you may not read",
            wanted="a file with permission to read",
            fix="Ask its owner, or: chmod +r FILE.",
        ) from error
    except (pa.ArrowException, OSError) as error:
        check_unchanged(stamps)
        raise explain(str(error).strip().splitlines()[0].rstrip(".")) from error
