"""Bundled tables."""

from importlib.resources import files
from pathlib import Path
from typing import Any


def penguins_path() -> Path:
    """Path of the Palmer penguins (344 rows, 8 columns, with holes; Horst, Hill & Gorman 2020, CC0)."""
    return Path(str(files(__name__).joinpath("penguins.csv")))


def load_penguins() -> Any:
    """The Palmer penguins as an Arrow table.

    >>> load_penguins().num_rows
    344
    """
    from pyarrow import csv

    options = csv.ConvertOptions(null_values=["NA", ""], strings_can_be_null=True)
    return csv.read_csv(penguins_path(), convert_options=options)
