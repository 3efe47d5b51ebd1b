"""Files in and out: a CSV or Parquet file as an Arrow table, and places to write to, with errors that name them."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pyarrow as pa
from pyarrow import csv, parquet

from certifit.exceptions import DataError


def read_table(path: Path) -> pa.Table:
    """The whole table. In a CSV file, empty cells and NA, NaN, N/A, null, … are holes."""
    if not path.exists():
        raise DataError(
            got=f"{str(path)!r}, which does not exist", wanted="a CSV or Parquet file", fix="Check the path."
        )
    suffixes = [suffix.lower() for suffix in path.suffixes]
    try:
        if path.is_dir() or suffixes[-1:] in ([".parquet"], [".pq"]):
            table = parquet.read_table(path)
        elif suffixes[-1:] in ([".csv"], [".tsv"]) or suffixes[-2:] in ([".csv", ".gz"], [".tsv", ".gz"]):
            table = _read_csv(path)
        else:
            raise DataError(got=f"{str(path)!r}", wanted="a name that ends in .csv, .csv.gz, .tsv or .parquet")
    except pa.ArrowException as error:
        raise DataError(
            got=f"{str(path)!r}, which cannot be read: {_first_line(error)}",
            wanted="an intact CSV or Parquet file",
            fix="If it was copied or downloaded, it may be cut short: get it again.",
        ) from error
    if table.num_rows == 0:
        raise DataError(got=f"{str(path)!r}, which has no rows", wanted="at least one row below the column names")
    return table


def check_writable(place: Path, table: Path) -> None:
    """Refuse a place that cannot be written, or that is the table itself, before any work is done."""
    if not place.absolute().parent.is_dir():
        raise DataError(
            got=f"{str(place)!r} to write, in a folder that does not exist", wanted="a folder that exists"
        )
    if place.exists() and table.exists() and place.samefile(table):
        raise DataError(got=f"{str(place)!r} as input and output", wanted="another file to write to")


def _read_csv(path: Path) -> pa.Table:
    bad: list[csv.InvalidRow] = []

    def note(row: csv.InvalidRow) -> str:
        bad.append(row)
        return "error"

    def read(use_threads: bool) -> pa.Table:
        return csv.read_csv(
            path,
            read_options=csv.ReadOptions(use_threads=use_threads),
            parse_options=csv.ParseOptions(
                delimiter=_delimiter(path), newlines_in_values=True, invalid_row_handler=note
            ),
            convert_options=csv.ConvertOptions(strings_can_be_null=True),
        )

    try:
        table = read(use_threads=True)
    except pa.ArrowInvalid:
        if not bad:
            raise
        with suppress(pa.ArrowInvalid):  # only the serial reader counts lines
            read(use_threads=False)
        row = bad[-1]
        raise DataError(
            got=f"line {row.number} of {str(path)!r} with {row.actual_columns} fields ({row.text[:60]!r})",
            wanted=f"{row.expected_columns} fields, as in the first line",
            fix="Put quotes around values that contain the separator, and give every line the same number of fields.",
        ) from None
    not_text = [field.name for field in table.schema if pa.types.is_binary(field.type)]
    if not_text:
        raise DataError(
            got=f"column {not_text[0]!r} of {str(path)!r} with bytes that are not UTF-8 text",
            wanted="a CSV file in UTF-8",
            fix="Save it as UTF-8, for instance: iconv -f latin1 -t utf-8 old.csv > new.csv",
        )
    return table


def _delimiter(path: Path) -> str:
    """The comma, unless the first line has none and has tabs, semicolons or bars instead."""
    with pa.input_stream(path) as file:  # decompresses by the file's ending
        head = file.read(64 * 1024).decode("utf-8", "replace")
    first = (head.splitlines() or [""])[0]
    if "," in first:
        return ","
    found = max("\t;|", key=first.count)
    return found if found in first else ","


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__
