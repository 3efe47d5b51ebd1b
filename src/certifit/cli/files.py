"""Files in and out: a table in files as an Arrow table, and places to write to, with errors that name them.

A table is a file, a directory of Parquet files, a pattern, several of these, `-` for what is piped in, or a table of
a database: `file.db::table`. What is CSV or Parquet can be read block by block; all else is read at once.
"""

from __future__ import annotations

import os
import sqlite3
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.feather
import pyarrow.json

from certifit.exceptions import DataError
from certifit.rows.named_columns import nearest_names
from certifit.rows.sources.open_source import join_files, open_path, refuse_overwriting
from certifit.rows.sources.regular_file import check_regular
from certifit.rows.sources.text_encoding import EncodedPath, check_encoding
from certifit.table.streaming.memory import is_large

JSON_LINES = (".jsonl", ".ndjson")
FEATHER = (".feather", ".arrow", ".ipc")
PIPED = "-"
KNOWN = ".csv or .tsv (also with .gz or .zst), .parquet, .jsonl, .ndjson, .feather or .arrow; or file.db::table"
ADVICE = {
    ".json": "One object in each line is .jsonl; of a list make that: jq -c '.[]' table.json > table.jsonl",
    ".txt": "Separated columns are a .csv, whatever separates them: rename it.",
    ".dat": "Separated columns are a .csv, whatever separates them: rename it.",
    ".xlsx": "Save the sheet as CSV.",
    ".xls": "Save the sheet as CSV.",
    **dict.fromkeys((".db", ".sqlite", ".sqlite3", ".duckdb"), "Name the table, after two colons."),
}
BEGINNINGS = {
    b"PAR1": ".parquet", b"\x1f\x8b": ".csv.gz", b"\x28\xb5\x2f\xfd": ".csv.zst", b"ARROW1": ".feather",
    b"{": ".jsonl",
}  # fmt: skip


@dataclass(frozen=True)
class TableFiles:
    """Where a table is, as it was typed."""

    paths: tuple[str, ...]
    encoding: str | None = None  # of text; None: found out

    def __post_init__(self) -> None:
        if self.encoding is not None:
            check_encoding(self.encoding)

    @property
    def typed(self) -> list[str]:
        """The words of a command that name the table."""
        return [*self.paths, *(["--encoding", self.encoding] if self.encoding else [])]

    @property
    def sources(self) -> list[Any]:
        """What `open_source` takes, one for each path."""
        encoding = self.encoding
        return [*self.paths] if encoding is None else [EncodedPath(path, encoding) for path in self.paths]

    @property
    def name(self) -> str:
        """What to call it."""
        more = f" and {len(self.paths) - 1} more" if len(self.paths) > 1 else ""
        first = self.paths[0]
        return ("standard input" if first == PIPED else Path(first).name) + more

    @property
    def stem(self) -> str:
        """The beginning of names of files that are about it."""
        first = self.paths[0].rpartition("::")[2] if "::" in self.paths[0] else Path(self.paths[0]).name
        plain = Path(first.removesuffix(".gz").removesuffix(".zst")).stem
        return "table" if first == PIPED else "".join(c for c in plain if c not in "*?[]") or "table"

    def __str__(self) -> str:
        return " ".join(self.paths)


def read_table(files: TableFiles) -> Any:
    """The whole table, as an Arrow table."""
    _check_kinds(files.paths)
    found = _read_piped(files.encoding) if files.paths == (PIPED,) else _read_files(files)
    if found.num_rows == 0:
        raise DataError(got=f"{str(files)!r}, which has no rows", wanted="at least one row below the column names")
    return found


def block_source(files: TableFiles) -> Any:
    """What can be read block by block where that is possible: paths; else the whole table."""
    _check_kinds(files.paths)
    if not _is_in_blocks(files):
        return read_table(files)
    return files.sources[0] if len(files.paths) == 1 else files.sources


def table_to_fit(files: TableFiles, stream: bool = False) -> Any:
    """Paths where a table is read block by block, as asked or because it is large; else the whole table."""
    source = block_source(files) if _is_in_blocks(files) else None
    if stream and source is None:
        raise DataError(got=f"--stream of {str(files)!r}", wanted="CSV or Parquet files, which can be read in blocks")
    return source if source is not None and (stream or is_large(source)) else read_table(files)


def _is_in_blocks(files: TableFiles) -> bool:
    return files.paths != (PIPED,) and not any(_is_read_at_once(path) for path in files.paths)


def _check_kinds(paths: tuple[str, ...]) -> None:
    """Refuse files that hold no table we can read, with what to do about it."""
    for path in map(Path, paths):
        ending = path.suffix.lower()
        if ending in ADVICE and path.is_file():
            raise DataError(got=f"{str(path)!r}, a file of another kind", wanted=KNOWN, fix=ADVICE[ending])


def _is_read_at_once(path: str) -> bool:
    return "::" in path or path.lower().endswith((*JSON_LINES, *FEATHER))


def _read_files(files: TableFiles) -> Any:
    at_once, sources = [_is_read_at_once(path) for path in files.paths], files.sources
    if not any(at_once):
        return join_files(sources).whole()
    parts = [
        _read_at_once(path) if once else open_path(source).whole()
        for path, source, once in zip(files.paths, sources, at_once, strict=True)
    ]
    try:
        return pa.concat_tables(parts, promote_options="permissive" if len(parts) > 1 else "none")
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise DataError(got=f"tables that do not fit together ({error})", wanted="the same columns") from error


def _read_at_once(path: str) -> Any:
    if "::" in path:
        return _read_database(*path.split("::", 1))
    try:
        check_regular(path)
        if not path.lower().endswith(FEATHER):
            return pa.json.read_json(path)
        table = pa.feather.read_table(path, memory_map=False)
        table.validate(full=True)  # a damaged file may point outside of its own bytes
        return table
    except (pa.ArrowException, OSError) as error:
        wanted = "a Feather file" if path.lower().endswith(FEATHER) else "one JSON object in each line"
        raise DataError(got=f"{path!r}, which cannot be read ({error})", wanted=wanted) from error


def _read_piped(encoding: str | None) -> Any:
    """What is piped in: CSV, gzipped or not, JSON lines, Parquet or Feather, by its first bytes."""
    content = sys.stdin.buffer.read()
    ending = next((ending for first, ending in BEGINNINGS.items() if content.startswith(first)), ".csv")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"piped{ending}"
        path.write_bytes(content)
        try:
            return read_table(TableFiles((str(path),), encoding))
        except DataError as error:  # nobody knows the file that it was written to
            words = [part.replace(repr(str(path)), "standard input") for part in (error.got, error.wanted, error.fix)]
            raise DataError(got=words[0], wanted=words[1], fix=words[2]) from error


def _read_database(path: str, table: str) -> Any:
    """A table or view of an SQLite file, or of a DuckDB file where that library is installed."""
    if not Path(path).is_file():
        raise DataError(got=f"path {path!r}, which does not exist", wanted="a database file before ::")
    with open(path, "rb") as file:
        if file.read(16) != b"SQLite format 3\x00":
            return _read_duckdb(path, table)
    connection = sqlite3.connect(f"{Path(path).resolve().as_uri()}?mode=ro", uri=True)
    try:
        listed = connection.execute("select name from sqlite_master where type in ('table', 'view')")
        _check_table(path, table, [name for (name,) in listed])
        rows = connection.execute(f"select * from {_quoted(table)}")
        names = [column[0] for column in rows.description]
        columns = [*zip(*rows.fetchall(), strict=True)] or [()] * len(names)
        return pa.Table.from_arrays([_column(path, *pair) for pair in zip(names, columns, strict=True)], names=names)
    except sqlite3.Error as error:
        raise DataError(got=f"{path!r}, which cannot be read ({error})", wanted="an intact SQLite file") from error
    finally:
        connection.close()


def _column(path: str, name: str, values: Any) -> Any:
    try:
        return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise DataError(got=f"column {name!r} of {path!r} with values of several types", wanted="one type") from error


def _read_duckdb(path: str, table: str) -> Any:
    try:
        import duckdb
    except ImportError as error:
        raise DataError(
            got=f"{path!r}, which is not an SQLite file", wanted="SQLite, or DuckDB with its library installed",
            fix="pip install duckdb",
        ) from error  # fmt: skip
    try:
        with duckdb.connect(path, read_only=True) as connection:
            _check_table(path, table, [row[0] for row in connection.execute("show tables").fetchall()])
            return connection.sql(f"select * from {_quoted(table)}").to_arrow_table()
    except duckdb.Error as error:
        raise DataError(
            got=f"{path!r}, which cannot be read ({error})",
            wanted="an intact SQLite or DuckDB file that no other program is writing to",
        ) from error


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _check_table(path: str, table: str, known: list[str]) -> None:
    if table not in known:
        near = nearest_names(table, known)
        raise DataError(
            got=f"no table {table!r} in {path!r}",
            wanted=f"one of {', '.join(map(repr, known)) or 'its tables, of which it has none'}",
            fix=f"Did you mean {near[0]!r}?" if near else "",
        )  # fmt: skip


def check_writable(place: Path, *sources: str | Path) -> None:
    """Refuse a place that cannot be written, or that is read from too, before any work is done."""
    if not place.absolute().parent.is_dir():
        raise DataError(
            got=f"{str(place)!r} to write, in a folder that does not exist", wanted="a folder that exists"
        )
    if place.is_dir():
        raise DataError(got=f"{str(place)!r} to write, which is a folder", wanted="the name of a file")
    if not os.access(place if place.exists() else place.absolute().parent, os.W_OK):
        raise DataError(got=f"{str(place)!r} to write, without permission", wanted="a place that can be written to")
    refuse_overwriting(place, *(str(source).partition("::")[0] for source in sources))
