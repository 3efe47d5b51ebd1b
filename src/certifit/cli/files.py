"""Files in and out: a table in a file as an Arrow table, and places to write to, with errors that name them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from certifit.exceptions import DataError
from certifit.rows.sources.open_source import open_path


def read_table(path: Path) -> Any:
    """The whole table of a CSV file, a Parquet file or a directory of Parquet files, as an Arrow table."""
    table = open_path(path).whole()
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
