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


def visits_path() -> Path:
    """Path of visits to a doctor in RAND's Health Insurance Experiment (20,190 rows, 8 columns; public domain)."""
    return Path(str(files(__name__).joinpath("visits.csv.gz")))


def load_visits(*, return_X_y: bool = False) -> Any:
    """Visits to a doctor in a year, as a pandas data frame: 20,190 years of people insured in different ways.

    From RAND's Health Insurance Experiment, as Cameron & Trivedi, Microeconometrics (2005), chapter 20, use it: the
    logarithms of the share that the insured pay, of the yearly payment for taking part and of the limit of what they
    pay, whether there is a deductible, physical limitation, chronic diseases (an index), health as they see it.

    Parameters
    ----------
    return_X_y : bool, default=False
        Whether to return the columns and the number of visits apart, as scikit-learn's loaders do.

    Returns
    -------
    frame : pandas.DataFrame, or (frame without visits, pandas.Series of visits)

    Examples
    --------
    >>> X, y = load_visits(return_X_y=True)
    >>> X.shape, round(float(y.mean()), 3)
    ((20190, 7), 2.86)
    """
    from certifit.rows.sources.csv import CsvFile

    frame = CsvFile(visits_path()).whole().to_pandas()
    return (frame.drop(columns="visits"), frame["visits"]) if return_X_y else frame
