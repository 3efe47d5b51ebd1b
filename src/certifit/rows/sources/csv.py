"""CSV files; `fit("t.csv")`, the command line and the bundled tables all read them here.

The separator is the comma, tab, semicolon or bar that is as often in the first lines as in the header, or what a line
`sep=;` of a spreadsheet says. `text_encoding.py` finds the encoding. The first block of the file decides the type of
each column; whole numbers of which some begin with 0, such as postal codes, stay text. The words for a missing entry
are those of Arrow's list.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Self

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from certifit.exceptions import DataError, warn_caller
from certifit.rows.sources.table import Batches, FileStamp, ReadTuning, Table, Types, explain_read_errors
from certifit.rows.sources.text_encoding import find_encoding


def null_words() -> list[str]:
    """Return the words that stand for a missing entry in a CSV file.

    >>> {"", "NA", "N/A", "NaN", "nan", "null", "NULL"} <= set(null_words())
    True
    """
    return list(pa.csv.ConvertOptions().null_values)


class CsvFile(Table):
    """A CSV file with a header; its first block decides the type of each column."""

    def __init__(self, path: Path, encoding: str | None = None) -> None:
        self.stamps = [FileStamp.of(path)]
        self.path = path
        self.header: list[str] = []
        with explain_read_errors(self.stamps, self._explain):
            found = find_encoding(self.stamps[0], encoding)
            self.encoding, self.dialect = found.name, _find_dialect(path, found.name)
        if found.assumed:
            warn_caller(found.words(path))
        with self._open({}) as reader:
            self.header = reader.schema.names
            # A column without values in the first block is taken for numbers.
            kinds = [pa.float64() if pa.types.is_null(kind) else kind for kind in reader.schema.types]
        codes = self._codes(
            [name for name, kind in zip(self.header, kinds, strict=True) if pa.types.is_integer(kind)]
        )
        kinds = [pa.string() if name in codes else kind for name, kind in zip(self.header, kinds, strict=True)]
        self.schema = pa.schema(list(zip(self.header, kinds, strict=True)))

    def _codes(self, whole: list[str]) -> set[str]:
        """Those of some columns of whole numbers that have one like 01234 in the first block: zeros say something."""
        if not whole:
            return set()
        with self._open(dict.fromkeys(whole, pa.string())) as reader:
            first = next(iter(reader))
        led = (pc.any(pc.match_substring_regex(column, "^ *[-+]?0[0-9]")).as_py() for column in first.columns)
        return {name for name, has_zeros in zip(first.schema.names, led, strict=True) if has_zeros}

    def select(self, types: Types) -> Self:
        self.n_rows = sum(batch.num_rows for batch in self.read(types, 0))
        return self

    def whole(self) -> Any:
        """Return all columns and rows as an Arrow table in memory."""
        twice = sorted(name for name, times in Counter(self.header).items() if times > 1)
        if twice:
            raise DataError(got=f"columns with the same name: {twice}", wanted="a different name for each column")
        table = super().whole()
        if table.num_rows == 0:
            raise self._explain("Empty CSV file")
        return table

    def _read(self, types: Types, rows: int) -> Batches:
        # `rows` is not used: the parser reads so many bytes at a time.
        with self._open(types) as reader:
            yield from reader

    @contextmanager
    def _open(self, types: Types) -> Iterator[Any]:
        block = ReadTuning().csv_block_bytes
        with (
            explain_read_errors(self.stamps, self._explain),
            pa.csv.open_csv(
                self.path,
                # One thread is as fast, and its errors name the line.
                pa.csv.ReadOptions(
                    use_threads=False, block_size=block, encoding=self.encoding, skip_rows=self.dialect.skipped
                ),
                pa.csv.ParseOptions(delimiter=self.dialect.separator, newlines_in_values=True),
                pa.csv.ConvertOptions(
                    null_values=null_words(),
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
        if ragged := re.search(r"Row #(\d+): Expected (\d+) columns, got (\d+): (.*)", reason):
            return DataError(
                got=f"line {ragged[1]} of {path} with {ragged[3]} fields ({ragged[4][:60]!r})",
                wanted=f"{ragged[2]} fields, as in the first line",
                fix="Put quotes around values that contain the separator, and give every line the same number of "
                "fields.",
            )
        return DataError(
            got=f"{path}, which cannot be read ({reason})",
            wanted="a CSV file with a header and as many values in every line",
            fix="If it was copied or downloaded, it may be cut short: get it again.",
        )


class CsvDialect(NamedTuple):
    """How the lines of a file are to be read."""

    separator: str
    skipped: int = 0  # lines before the header


def _find_dialect(path: Path, encoding: str) -> CsvDialect:
    """The separator, by the first lines of a file; one that says it (`sep=;`) is no header."""
    # Decompresses by the ending of the file's name.
    with pa.input_stream(path) as file:
        head = file.read(64 * 1024).decode(encoding, "replace").removeprefix("\ufeff")
    lines = [line for line in head.splitlines() if line.strip()]
    told = re.fullmatch(r'"?sep=(.)"?', lines[0].strip("\r\n")) if lines else None
    return CsvDialect(told[1], 1) if told else CsvDialect(_find_separator(lines))


def _find_separator(lines: list[str], seen: int = 20) -> str:
    """Return what stands as often in the header as in the next lines; the comma where nothing does, or several do.

    What is in quotes separates nothing, and neither does what the header alone has: a column may be called "P(a|b)".
    """
    bare = [re.sub(r'"[^"]*"', "", line) for line in lines[: seen + 1]]
    if not bare:
        return ","
    found = [mark for mark in ",\t;|" if mark in bare[0] and len({line.count(mark) for line in bare}) == 1]
    if not found and "," in bare[0]:
        return ","
    # Lines may be broken within quotes, or some of them too short, as the reader will say.
    found = found or [mark for mark in "\t;|" if mark in bare[0] and all(mark in line for line in bare[1:2])]
    return max(found, key=bare[0].count, default=",")
