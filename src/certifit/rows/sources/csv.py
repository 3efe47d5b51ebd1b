"""CSV files; `fit("t.csv")`, the command line and the bundled tables all read them here.

The separator is the comma, unless the first line has none and has tabs, semicolons or bars instead. Text is UTF-8, or
UTF-16 where the first bytes (a byte order mark) say so. The first block of the file decides the type of each column.
The words for a missing entry are those of Arrow's list.
"""

from __future__ import annotations

import codecs
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn, Self

import pyarrow as pa
import pyarrow.csv

from certifit.exceptions import DataError
from certifit.rows.sources.table import Batches, FileStamp, ReadTuning, Table, Types, explain_read_errors


def null_words() -> list[str]:
    """Return the words that stand for a missing entry in a CSV file.

    >>> {"", "NA", "N/A", "NaN", "nan", "null", "NULL"} <= set(null_words())
    True
    """
    return list(pa.csv.ConvertOptions().null_values)


class CsvFile(Table):
    """A CSV file with a header; its first block decides the type of each column."""

    def __init__(self, path: Path) -> None:
        self.stamps = [FileStamp.of(path)]
        self.path = path
        self.header: list[str] = []
        with explain_read_errors(self.stamps, self._explain):
            self.encoding, self.separator = _find_dialect(path)
        with self._open({}) as reader:
            try:
                self.header = reader.schema.names
            except UnicodeDecodeError:
                self._refuse_encoding("column names")
            # A column without values in the first block is taken for numbers.
            kinds = [pa.float64() if pa.types.is_null(kind) else kind for kind in reader.schema.types]
        self.schema = pa.schema(list(zip(self.header, kinds, strict=True)))

    def select(self, types: Types) -> Self:
        self._refuse_bytes(types)
        self.n_rows = sum(batch.num_rows for batch in self.read(types, 0))
        return self

    def whole(self) -> Any:
        """Return all columns and rows as an Arrow table in memory."""
        twice = sorted(name for name, times in Counter(self.header).items() if times > 1)
        if twice:
            raise DataError(got=f"columns with the same name: {twice}", wanted="a different name for each column")
        self._refuse_bytes(dict.fromkeys(self.header))
        table = super().whole()
        if table.num_rows == 0:
            raise self._explain("Empty CSV file")
        return table

    def _refuse_bytes(self, types: Types) -> None:
        """Refuse columns that Arrow reads as bytes because they are not UTF-8."""
        for name in types:
            if pa.types.is_binary(self.schema.field(name).type):
                self._refuse_encoding(f"column {name!r}")

    def _refuse_encoding(self, what: str) -> NoReturn:
        raise DataError(
            got=f"{what} of {str(self.path)!r} with bytes that are not UTF-8 text",
            wanted="a CSV file in UTF-8",
            fix="Save it as UTF-8, for instance: iconv -f latin1 -t utf-8 old.csv > new.csv",
        )

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
                pa.csv.ReadOptions(use_threads=False, block_size=block, encoding=self.encoding),
                pa.csv.ParseOptions(delimiter=self.separator, newlines_in_values=True),
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


def _find_dialect(path: Path) -> tuple[str, str]:
    """The encoding and the separator of a file, by its first lines."""
    # Decompresses by the ending of the file's name.
    with pa.input_stream(path) as file:
        head = file.read(64 * 1024)
    encoding = "utf-16" if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "utf8"
    return encoding, _find_separator(head.decode(encoding, "replace"))


def _find_separator(head: str) -> str:
    """Return the comma, or where the first line has none the tab, semicolon or bar that is most frequent there.

    It has to be in the second line too: a single column may be called "P(a|b)".
    """
    lines: list[str] = [*head.splitlines(), "", ""]
    first, second = lines[:2]
    if "," in first:
        return ","
    found = max("\t;|", key=first.count)
    return found if found in first and (found in second or not second) else ","
