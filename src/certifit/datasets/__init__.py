"""Bundled tables."""

from importlib.resources import files
from pathlib import Path
from typing import Any


def penguins_path() -> Path:
    """Path of the Palmer penguins (344 rows, 8 columns, with missing entries; Horst, Hill & Gorman 2020, CC0)."""
    return Path(str(files(__name__).joinpath("penguins.csv")))


def load_penguins() -> Any:
    """The Palmer penguins as an Arrow table.

    >>> load_penguins().num_rows
    344
    """
    from certifit.rows.sources.csv import CsvFile

    return CsvFile(penguins_path()).whole()
