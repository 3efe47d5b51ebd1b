"""Any table as `Rows`, and all checks of what users pass: types, shapes, finite numbers, names, weights, targets."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from numbers import Number
from typing import Any

import numpy as np
from scipy import sparse as sp
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from certifit.exceptions import DataError
from certifit.rows.checks import TableTerms, Target, as_numbers, check_finite, check_target, check_weights
from certifit.rows.named_columns import (
    choose_columns,
    is_pandas,
    named_targets,
    note_features,
    pandas_parts,
    refuse_names,
)
from certifit.rows.rows import ArrayRows, Rows

__all__ = ["Target", "as_rows"]


def as_rows(
    X: Any,
    y: Any = None,
    sample_weight: Any = None,
    *,
    estimator: BaseEstimator | None = None,
    target: Target = "none",
    targets: int = 1,
    sparse: bool = False,
    missing: bool = False,
    finite: bool = True,
    reset: bool = True,
    columns: Sequence[str] | None = None,
) -> Rows:
    """Turn a table of any kind into rows, and check it.

    Parameters
    ----------
    X : NumPy array or memory map, SciPy sparse matrix, pandas, polars (also lazy) or narwhals frame, Arrow table,
        stream (such as a DuckDB relation) or dataset, path to a Parquet or CSV file or to a directory of Parquet
        files, a list or a pattern (data/*.parquet) of these, an address (s3://…), Dask array or frame
    y, sample_weight : arrays, or names of columns of X
    estimator : its `n_features_in_` and `feature_names_in_` are set or compared
    target : what y must be: nothing, classes or numbers (which become float64)
    targets : columns of y; where there are several, y is an array (n, targets) of numbers or a list of names
    sparse : whether sparse X is accepted
    missing : whether X may have missing entries, NaN or null, which become NaN
    columns : names of the columns of X to learn from; all but y and sample_weight by default
    finite : whether arrays in memory are searched for infinities and NaN, which takes a pass over them
    reset : whether the names and number of columns are noted in the estimator, else they are compared

    >>> rows = as_rows([[1, 2], [3, 4], [5, 6]])
    >>> rows.n_rows, rows.n_features, rows.dtype
    (3, 2, dtype('float64'))

    The target and the weights can be columns of the table, given by name:

    >>> import pyarrow as pa
    >>> rows = as_rows(pa.table({"x": [1, 2], "z": [3, 4], "kind": ["a", "b"]}), y="kind", target="classes")
    >>> rows.names.tolist(), rows.load().y.tolist()
    (['x', 'z'], ['a', 'b'])

    Rows of some columns only, which any `fit` takes in place of the table:

    >>> as_rows(pa.table({"x": [1, 2], "z": [3, 4], "kind": ["a", "b"]}), columns=["z"]).names.tolist()
    ['z']
    """
    estimator = BaseEstimator() if estimator is None else estimator
    if isinstance(X, Rows):
        if y is not None or sample_weight is not None:
            raise DataError(got="y or sample_weight beside rows", wanted="rows that carry their own")
        note_features(estimator, X.n_features, X.names, reset)
        return X
    chosen = None if columns is None else tuple(columns)
    terms = TableTerms(target, targets, sparse, missing, finite, chosen)
    rows = _rows(X, y, sample_weight, estimator, terms, reset)
    return rows.relabel(as_numbers) if target == "numbers" else rows


def _rows(X: Any, y: Any, sample_weight: Any, estimator: BaseEstimator, terms: TableTerms, reset: bool) -> Rows:
    if hasattr(X, "__dask_graph__"):
        from certifit.rows.sources.dask import dask_rows

        return dask_rows(X, y, sample_weight, estimator, terms, reset)
    if type(X).__module__.partition(".")[0] == "narwhals" and hasattr(X, "to_native"):
        return _rows(X.to_native(), y, sample_weight, estimator, terms, reset)
    if may_be_source(X):
        from certifit.rows.sources.open_source import open_source

        source = open_source(X)
        if source is not None:
            return _source_rows(source, y, sample_weight, estimator, terms, reset)
    return _array_rows(X, y, sample_weight, estimator, terms, reset)


def may_be_source(X: Any) -> bool:
    """Say whether X may be files or columns to be read, not numbers in memory."""
    if isinstance(X, (list, tuple)):
        return len(X) > 0 and isinstance(X[0], (str, os.PathLike))
    return not (isinstance(X, np.ndarray) or sp.issparse(X) or is_pandas(X))


def _array_rows(
    X: Any, y: Any, sample_weight: Any, estimator: BaseEstimator, terms: TableTerms, reset: bool
) -> ArrayRows:
    options: dict[str, Any] = {
        "accept_sparse": "csr" if terms.sparse else False,
        "dtype": [np.float64, np.float32],
        # `check_finite` looks below, on all threads.
        "ensure_all_finite": False,
        "reset": reset,
    }
    arrays = all(part is None or type(part) is np.ndarray for part in (y, sample_weight))
    if _is_plain(X) and arrays and terms.columns is None and _note_width(estimator, X.shape[1], reset):
        return _checked_rows(X, y, sample_weight, None, terms, reset)
    _refuse_no_table(X)
    try:
        if is_pandas(X):
            X, y, sample_weight = pandas_parts(X, y, sample_weight, estimator, terms, reset)
            options["dtype"] = np.float32 if (X.dtypes == np.float32).all() else np.float64
        else:
            refuse_names(X, y, sample_weight, terms)
        # A memory map stays on disk: only its first row is validated here.
        if isinstance(X, np.memmap):
            validate_data(estimator, X[:1], **options)
        else:
            X = validate_data(estimator, X, **options)
    except ValueError as error:
        if "could not convert string" not in str(error):
            raise
        raise DataError(
            got=f"text among the features ({error})",
            wanted="numbers",
            fix="Encode text (for instance with sklearn.preprocessing.OneHotEncoder) or leave it out.",
        ) from error
    if sp.issparse(X) and not X.has_canonical_format:
        # A copy, because the caller's matrix must not change.
        X = X.copy()
        X.sum_duplicates()
    return _checked_rows(X, y, sample_weight, getattr(estimator, "feature_names_in_", None), terms, reset)


def _refuse_no_table(X: Any) -> None:
    """Refuse what has no rows: a dictionary, an open file, a connection; NumPy would make one object of it."""
    if X is None or isinstance(X, (list, tuple, Number)) or hasattr(X, "__array__") or hasattr(X, "ndim"):
        return
    if np.asarray(X).ndim:
        return
    kind = type(X).__name__
    fixes = {
        "DuckDBPyConnection": "Pass a relation: connection.sql('select …').",
        "ParquetFile": "Pass the path of the file, or what its method read() gives.",
        "dict": "Pass pandas.DataFrame(X).",
    }
    raise DataError(
        got=f"an object of type {kind} as X",
        wanted="a table: an array, a data frame, an Arrow table or stream, or a path",
        fix=fixes.get(kind, "Pass the path of the file." if hasattr(X, "read") else ""),
    )


def _is_plain(X: Any) -> bool:
    """Say whether X is an array in which scikit-learn's checks find nothing: they take as long as many answers."""
    return type(X) is np.ndarray and X.ndim == 2 and X.dtype.char in "df" and X.dtype.isnative and 0 not in X.shape


def _note_width(estimator: BaseEstimator, width: int, reset: bool) -> bool:
    """Set or compare the number of columns, which have no names; say whether there is nothing to be told of it."""
    known = vars(estimator)
    if reset:
        known["n_features_in_"] = width
        known.pop("feature_names_in_", None)
    return known.get("n_features_in_") == width and "feature_names_in_" not in known


def _checked_rows(X: Any, y: Any, sample_weight: Any, names: Any, terms: TableTerms, reset: bool) -> ArrayRows:
    """Return rows with a target and weights that suit them, and refuse infinities.

    Rows that a fitted model answers are mostly read once: they are checked on the way.
    """
    n_rows = X.shape[0]
    rows = ArrayRows(X, check_target(y, n_rows, terms), check_weights(sample_weight, n_rows), names)
    if terms.finite:
        rows.check_later(partial(check_finite, names=names, missing=terms.missing))
        if reset or y is not None:
            rows.check_now()
    return rows


def _source_rows(
    source: Any, y: Any, sample_weight: Any, estimator: BaseEstimator, terms: TableTerms, reset: bool
) -> Rows:
    """Return rows of a table with named columns that is read batch by batch."""
    from certifit.rows.sources.streamed import FileRows

    rows = FileRows(source, choose_columns(source.schema.names, y, sample_weight, estimator, terms, reset), terms)
    if not named_targets(y, terms.targets):
        rows.y = check_target(y, rows.n_rows, terms)
    if not isinstance(sample_weight, str):
        rows.w = check_weights(sample_weight, rows.n_rows)
    return rows.load() if rows.source.in_memory else rows
