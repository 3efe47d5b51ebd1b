"""Tables of any kind as pictures read them: columns by number or name, and rows made up for a model to judge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from scipy import sparse

from certifit.exceptions import DataError
from certifit.rows import Array, as_rows
from certifit.rows.named_columns import find_column, list_names


@dataclass(frozen=True)
class TableView:
    """A table seen by its columns. What a model is asked about is a table of the same kind (`source`)."""

    source: Any  # a pandas or polars frame, an Arrow table, an array (n, d) or a sparse matrix
    names: tuple[str, ...] | None  # of columns, where the table has them
    n_rows: int
    n_columns: int

    def label(self, j: int) -> str:
        return f"column {j}" if self.names is None else self.names[j]

    def column(self, j: int) -> Array:
        """Return column j (n,), of whatever type."""
        if sparse.issparse(self.source):
            return np.asarray(self.source[:, [j]].toarray()).ravel()
        if self.names is None:
            return np.asarray(self.source[:, j])
        if isinstance(self.source, pa.Table):
            return np.asarray(self.source.column(j).to_numpy())
        return np.asarray(self.source[self.source.columns[j]])

    def numbers(self, j: int) -> Array:
        """Return column j as float64 (n,), with NaN for missing entries."""
        values = self.column(j)
        try:
            return np.array([np.nan if v is None else v for v in values] if values.dtype == object else values, float)
        except (TypeError, ValueError):
            raise DataError(
                got=f"{self.label(j)!r}, a column of {values.dtype}",
                wanted="a column of numbers to draw along an axis",
                fix="Choose two columns of numbers with features=.",
            ) from None

    def place(self, feature: Any) -> int:
        """Return the number of a column that is given by number or by name."""
        if isinstance(feature, str):
            if self.names is None:
                raise DataError(
                    got=f"column {feature!r} of a table without names",
                    wanted=f"numbers from 0 to {self.n_columns - 1}",
                    fix="Give columns by number, or X as a data frame.",
                )
            return self.names.index(find_column(feature, self.names, "features"))
        j = int(feature) if isinstance(feature, (int, np.integer)) and not isinstance(feature, bool) else None
        if j is None or not -self.n_columns <= j < self.n_columns:
            raise DataError(
                got=f"column {feature!r} of a table of {self.n_columns}",
                wanted=f"a number from 0 to {self.n_columns - 1}"
                + (f", or one of {list_names(self.names)}" if self.names else ""),
            )
        return j % self.n_columns

    def pair(self, features: Any) -> tuple[int, int]:
        """Return the numbers of two columns."""
        if isinstance(features, str) or not isinstance(features, (Sequence, np.ndarray)) or len(features) != 2:
            raise DataError(got=f"features={features!r}", wanted="two columns, such as features=(0, 1)")
        first, second = (self.place(feature) for feature in features)
        if first == second:
            raise DataError(got=f"features={tuple(features)!r}", wanted="two different columns of X")
        return first, second

    def usual_values(self, moved: Sequence[int]) -> list[Any]:
        """Return a value for each column not `moved`: its median, or of words the most frequent one."""
        if sparse.issparse(self.source):
            return []
        return [None if j in moved else _usual(self.column(j)) for j in range(self.n_columns)]

    def rows_at(self, moved: Mapping[int, Array], usual: Sequence[Any]) -> Any:
        """Return rows, as a table of the same kind, with these columns; all others have their usual value."""
        n = len(next(iter(moved.values())))
        if sparse.issparse(self.source):
            # More than half of the entries of most columns of a sparse table are 0, which is then their median.
            rows = sparse.lil_matrix((n, self.n_columns))
            for j, values in moved.items():
                rows[:, j] = values[:, None]
            return rows.tocsr()
        columns = [moved[j] if j in moved else np.full(n, usual[j]) for j in range(self.n_columns)]
        if self.names is None:
            return np.column_stack(columns)
        made = dict(zip(self.names, columns, strict=True))
        if isinstance(self.source, pa.Table):
            return pa.table(made)
        frame = type(self.source)(made)
        if hasattr(frame, "astype"):
            kinds = zip(frame.columns, self.source.columns, self.source.dtypes, strict=True)
            words = {mine: kind for mine, own, kind in kinds if _is_words(np.asarray(self.source[own]))}
            frame = frame.astype(words).set_axis(self.source.columns, axis=1)
        return frame


def _is_words(values: Array) -> bool:
    return values.dtype.kind not in "biufM" and not _numbers_or_none(values)


def _numbers_or_none(values: Array) -> bool:
    return values.dtype == object and all(isinstance(v, (int, float, type(None))) for v in values)


def _usual(values: Array) -> Any:
    """Return the median of numbers, and of anything else the value that occurs most often."""
    if not _is_words(values) and values.dtype.kind != "M":
        numbers = np.array([np.nan if v is None else v for v in values], float) if values.dtype == object else values
        known = numbers[~np.isnan(numbers)] if numbers.dtype.kind == "f" else numbers
        return float(np.median(known)) if len(known) else np.nan
    found, counts = np.unique(values[values == values].astype(str), return_counts=True)
    return next(v for v in values if str(v) == found[counts.argmax()])


def view_table(X: Any, y: Any = None) -> tuple[TableView, Any]:
    """Return a table by columns, and its target: y itself, or the column of the table that y names."""
    if X is None or isinstance(X, (int, float)):
        raise DataError(got=f"X={X!r}", wanted="a table: an array of rows, a data frame or an Arrow table")
    if hasattr(X, "collect_schema") and hasattr(X, "collect"):
        X = X.collect()
    if not (isinstance(X, pa.Table) or _is_frame(X) or sparse.issparse(X)):
        X = _array_or_arrow(X)
    if sparse.issparse(X):
        return TableView(X.tocsr(), None, *X.shape), y
    if isinstance(X, np.ndarray):
        return TableView(X, None, *X.shape), y
    names = X.column_names if isinstance(X, pa.Table) else list(X.columns)
    if isinstance(y, str):
        target = find_column(y, names, "y")
        y = X.column(target) if isinstance(X, pa.Table) else X[target]
        X = X.drop(columns=[target]) if hasattr(X, "loc") else X.drop([target])
        names = [name for name in names if name != target]
    return TableView(X, tuple(str(name) for name in names), X.shape[0], len(names)), y


def _is_frame(X: Any) -> bool:
    return type(X).__module__.partition(".")[0] in ("pandas", "polars") and hasattr(X, "columns")


def _array_or_arrow(X: Any) -> Any:
    """Return rows given as lists, files or otherwise: an array, or an Arrow table where columns have names."""
    if isinstance(X, (np.ndarray, list, tuple)):
        try:
            values = np.asarray(X)
        except ValueError:
            values = np.empty(0)
        if values.ndim != 2 or values.dtype.kind not in "biufO":
            raise DataError(
                got=f"X of shape {values.shape} and type {values.dtype}",
                wanted="a table of numbers, rows by columns",
                fix="X.reshape(-1, 1) makes a table of one column.",
            )
        return values
    rows = as_rows(X, missing=True).load()
    return rows.X if rows.names is None else pa.table(dict(zip(rows.names, rows.X.T, strict=True)))


def table_numbers(X: Any) -> Array:
    """Return the numbers (n, d) of a table of any kind, with NaN for missing entries."""
    view, _ = view_table(X)
    return np.column_stack([view.numbers(j) for j in range(view.n_columns)])


def target_values(y: Any, n_rows: int) -> Array | None:
    """Return y as an array (n,), one value for each row."""
    if y is None:
        return None
    if isinstance(y, str):
        raise DataError(
            got=f"y={y!r} with a table whose columns are not at hand by name",
            wanted="y as an array",
            fix="Or pass X as a data frame or an Arrow table with that column.",
        )
    values = np.asarray(y)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.shape != (n_rows,):
        raise DataError(
            got=f"y of shape {values.shape} for {n_rows} rows of X",
            wanted="one label or number for each row",
        )
    return values
