"""Where the columns of a table lie and how far they spread: units for mixtures, and the floor of their variances.

Medians and quartiles of a sample of rows do not depend on what a few rows do. The estimators use these numbers to
define their objective, the checkers find them again from the rows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse

from certifit.checkers.plain.blocks import dense
from certifit.exceptions import DataError
from certifit.rows import Array, ArrayRows, Block, Rows
from certifit.rows.mapped import MappedRows


class ColumnSurvey(NamedTuple):
    """Medians and spreads of all columns, and the rows that they come from."""

    sample: ArrayRows  # evenly spaced rows, of which only those with a positive weight and any entry
    median: Array  # (d,)
    spread: Array  # (d,) the distance between quartiles; never 0


def survey_columns(
    rows: Rows, sample_rows: int = 2**16, sample_entries: int = 2**24, sorted_rows: int = 2**13
) -> ColumnSurvey:
    """Find the weighted medians and spreads of the observed entries of each column.

    The sample has at most so many rows and entries; quartiles are found by sorting at most `sorted_rows` of them.

    >>> from certifit.rows import as_rows
    >>> found = survey_columns(as_rows([[1.0, 5.0], [2.0, 5.0], [3.0, 5.0], [4.0, 5.0], [1e9, 5.0]]))
    >>> found.median.tolist(), found.spread.tolist()
    ([3.0, 5.0], [2.0, 2.0])
    """
    most = max(1, min(sample_rows, sample_entries // rows.n_features))
    sample = rows.load() if rows.n_rows <= most else rows.thin(-(-rows.n_rows // most))
    some = (sample.w > 0) & ~np.isnan(sample.X).all(axis=1)
    if not some.any():
        raise DataError(
            got=f"no row with weight and any entry among every {-(-rows.n_rows // most)}th row",
            wanted="rows that count",
            fix="Drop the rows of weight 0 and those without entries.",
        )
    sample = sample if some.all() else sample.take(np.flatnonzero(some))
    places = np.array([_quartiles(sample, j, sorted_rows) for j in range(sample.n_features)])
    spread = places[:, 2] - places[:, 0]
    for j in np.flatnonzero(spread == 0):  # most entries are equal: take the root mean square distance instead
        away = np.asarray(sample.X[:, j], np.float64) - places[j, 1]
        here = ~np.isnan(away)
        spread[j] = np.sqrt(sample.w[here] @ away[here] ** 2 / sample.w[here].sum())
    if (spread == 0).any():  # a constant column gets the typical spread of the others
        spread[spread == 0] = np.exp(np.log(spread[spread > 0]).mean()) if spread.any() else 1.0
    return ColumnSurvey(sample, places[:, 1].copy(), spread)


def _quartiles(sample: ArrayRows, column: int, most: int) -> Array:
    """Return the three weighted quartiles of a column (3,), from `most` rows where these have any entry."""
    step = -(-sample.n_rows // most)
    for every in (step, 1):
        x, w = np.asarray(sample.X[::every, column], np.float64), sample.w[::every]
        here = np.flatnonzero(~np.isnan(x))
        if len(here):
            order = here[np.argsort(x[here], kind="stable")]
            mass = np.cumsum(w[order])
            return x[order][np.searchsorted(mass, np.array([0.25, 0.5, 0.75]) * mass[-1])]
    raise DataError(
        got=f"column {column} of X without a single value", wanted="some in every column", fix="Leave it out."
    )


def variance_floor(reg_covar: float | str, spread: Array) -> Array:
    """Return the penalty's floor of variances (d,): `reg_covar`, or for 'auto' 1e-7 of the squared spreads.

    It is never below 1e-12 of the squared spreads.

    >>> variance_floor("auto", np.array([1.0, 2.0])).tolist(), variance_floor(0.01, np.array([1.0, 2.0])).tolist()
    ([1e-07, 4e-07], [0.01, 0.01])
    """
    narrowest = 1e-130  # squares of smaller spreads underflow
    if not ((spread > narrowest) & (spread < 1 / narrowest)).all():
        raise DataError(
            got=f"columns whose quartiles are from {spread.min():.3g} to {spread.max():.3g} apart",
            wanted=f"{narrowest:g} to {1 / narrowest:g}, so that squares neither over- nor underflow",
            fix="Rescale the columns, for instance to unit variance.",
        )
    least = 1e-12 * spread**2
    return 1e-7 * spread**2 if isinstance(reg_covar, str) else np.maximum(float(reg_covar), least)


def dense_rows(rows: Rows) -> Rows:
    """Return the same rows; those of a sparse matrix are filled in block by block, never all at once."""
    return MappedRows(rows, _filled, rows.n_features) if sparse.issparse(getattr(rows, "X", None)) else rows


def _filled(block: Block) -> Array:
    return dense(block.X)
