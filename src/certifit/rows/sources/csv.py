"""CSV files; `fit("t.csv")`, the command line and the bundled tables all read them here.

The separator is the comma, tab, semicolon or bar that is as often in the first lines as in the header, or what a line
`sep=;` of a spreadsheet says; where a space stands behind each, it belongs to no value. `text_encoding.py` finds the
encoding. The first block of the file decides the type of each column; whole numbers of which some begin with 0, such
as postal codes, stay text. The words for a missing entry are those of Arrow's list.
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
from certifit.rows.sources.memory import available_bytes
from certifit.rows.sources.table import Batches, FileStamp, ReadTuning, Table, Types, explain_read_errors
from certifit.rows.sources.text_encoding import find_encoding


def null_words() -> list[str]:
    """Return the words that stand for a missing entry in a CSV file.

    >>> {"", "NA", "N/A", "NaN", "nan", "null", "NULL"} <= set(null_words())
    True
    """
    return list(pa.csv.ConvertOptions().null_values)


class CsvFile(Table):
    """A CSV file with a header, whose names lose spaces at their ends; its first block decides each column's type."""

    def __init__(self, path: Path, encoding: str | None = None) -> None:
        self.stamps = [FileStamp.of(path)]
        self.path = path
        self.header: list[str] = []
        self._written: dict[str, str] = {}  # names as they stand in the file, by those without spaces at their ends
        with explain_read_errors(self.stamps, self._explain):
            found = find_encoding(self.stamps[0], encoding)
            self.encoding, self.dialect = found.name, _find_dialect(path, found.name)
            self._check_width()
        if found.assumed:
            warn_caller(found.words(path))
        with self._open({}) as reader:
            written = reader.schema.names
            bare = [name.strip().strip('"' if self.dialect.spaced else " ") for name in written]
            self.header = bare if len({*bare}) == len({*written}) else written
            self._written = dict(zip(self.header, written, strict=True))
            # A column without values in the first block is taken for numbers.
            kinds = [pa.float64() if pa.types.is_null(kind) else kind for kind in reader.schema.types]
        codes = self._codes(
            [name for name, kind in zip(self.header, kinds, strict=True) if pa.types.is_integer(kind)]
        )
        kinds = [pa.string() if name in codes else kind for name, kind in zip(self.header, kinds, strict=True)]
        self.schema = pa.schema(list(zip(self.header, kinds, strict=True)))

    def _check_width(self) -> None:
        """Refuse more columns than there is memory to read."""
        tuning = ReadTuning()
        with pa.input_stream(self.path) as file:
            head = file.read(tuning.csv_block_bytes).decode(self.encoding, "replace").lstrip("\ufeff\r\n")
        columns = head.split("\n", self.dialect.skipped + 1)[self.dialect.skipped :][:1]
        found = 1 + sum(line.count(self.dialect.separator) for line in columns)
        most = int(tuning.memory_share * available_bytes() / tuning.csv_column_bytes)
        if found > most:
            raise DataError(
                got=f"{str(self.path)!r} with {found:,} columns",
                wanted=f"at most {most:,}, for which there is memory",
                fix="Turn it round, if its rows are the columns; or keep those that are needed.",
            )

    def _codes(self, whole: list[str]) -> set[str]:
        """Those of some columns of whole numbers that have one like 01234 in the first block: zeros say something."""
        if not whole:
            return set()
        as_text = dict.fromkeys(whole, pa.string())  # each name once: columns of one name are refused later
        with self._open(as_text) as reader:
            first = next(iter(reader))
        led = (pc.any(pc.match_substring_regex(column, "^ *[-+]?0[0-9]")).as_py() for column in first.columns)
        return {name for name, has_zeros in zip(as_text, led, strict=True) if has_zeros}

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
            for batch in reader:
                batch = batch.rename_columns(list(types)) if types else batch
                yield _without_spaces(batch) if self.dialect.spaced else batch

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
                    include_columns=[self._written[name] for name in types],
                    column_types={self._written[name]: kind for name, kind in types.items()},
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
            quotes = (
                "Put quotes around values that contain the separator, and give every line the same number of fields."
            )
            notes = "The names of columns come first: take notes and titles above them away."
            return DataError(
                got=f"line {ragged[1]} of {path} with {ragged[3]} fields ({ragged[4][:60]!r})",
                wanted=f"{ragged[2]} field{'s' if ragged[2] != '1' else ''}, as in the first line",
                fix=notes if ragged[2] == "1" else quotes,
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
    spaced: bool = False  # a space stands behind every separator


def _without_spaces(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The same rows, texts without spaces and quotes at their ends.

    >>> _without_spaces(pa.RecordBatch.from_pydict({"a": [" x", ' "y z"', " NA "], "b": [1, 2, 3]})).to_pylist()
    [{'a': 'x', 'b': 1}, {'a': 'y z', 'b': 2}, {'a': None, 'b': 3}]
    """
    columns = []
    for column in batch.columns:
        if pa.types.is_string(column.type):
            bare = pc.utf8_trim_whitespace(column)
            bare = pc.replace_substring_regex(bare, '^"(.*)"$', r"\1")
            column = pc.if_else(pc.is_in(bare, pa.array(null_words())), None, bare)
        columns.append(column)
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def _find_dialect(path: Path, encoding: str) -> CsvDialect:
    """The separator, by the first lines of a file; one that says it (`sep=;`) is no header."""
    # Decompresses by the ending of the file's name.
    with pa.input_stream(path) as file:
        head = file.read(64 * 1024).decode(encoding, "replace").removeprefix("\ufeff")
    lines = [line for line in head.splitlines() if line.strip()]
    told = re.fullmatch(r'"?sep=(.)"?', lines[0].strip("\r\n")) if lines else None
    if told:
        return CsvDialect(told[1], 1)
    separator = _find_separator(lines)
    return CsvDialect(separator, spaced=_is_spaced(lines, separator))


def _is_spaced(lines: list[str], separator: str, seen: int = 20) -> bool:
    """Whether a space stands behind every separator in the first lines below the header."""
    rows = [re.sub(r'"[^"]*"', "", line) for line in lines[1 : seen + 1]]
    marks = sum(row.count(separator) for row in rows)
    return separator != "\t" and marks > 0 and marks == sum(row.count(f"{separator} ") for row in rows)


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
