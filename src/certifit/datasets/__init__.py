"""Bundled tables."""

from importlib.resources import files
from pathlib import Path
from typing import Any


def penguins_path() -> Path:
    """Path of the Palmer penguins (344 rows, 8 columns, with missing entries; Horst, Hill & Gorman 2020, CC0)."""
    return Path(str(files(__name__).joinpath("penguins.csv")))


def penguins_table() -> Any:
    """The Palmer penguins as an Arrow table."""
    from certifit.rows.sources.csv import CsvFile

    return CsvFile(penguins_path()).whole()


def load_penguins(*, return_X_y: bool = False) -> Any:
    """The Palmer penguins as a pandas data frame: 344 birds of three species, some measurements missing.

    Parameters
    ----------
    return_X_y : bool, default=False
        Whether to return the columns and the species apart, as scikit-learn's loaders do.

    Returns
    -------
    frame : pandas.DataFrame, or (frame without species, pandas.Series of species)

    Examples
    --------
    >>> load_penguins().shape
    (344, 8)
    >>> X, y = load_penguins(return_X_y=True)
    >>> X.shape, y.name
    ((344, 7), 'species')
    """
    frame = penguins_table().to_pandas()
    return (frame.drop(columns="species"), frame["species"]) if return_X_y else frame
