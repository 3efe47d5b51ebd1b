"""What a fitted model says of a table, written to a file block by block: neither needs to fit in memory."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator
from io import BufferedIOBase
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from certifit.exceptions import DataError
from certifit.files.atomic_file import open_atomically
from certifit.rows import Array
from certifit.rows.sources.open_source import PARQUET, is_paths, refuse_overwriting
from certifit.store.spreadsheet_csv import SpreadsheetCsvWriter
from certifit.table.columns import pick
from certifit.table.reading import table_blocks


def write_predictions(
    model: Any,
    X: Any,
    path: str | os.PathLike[str],
    *,
    methods: str | Collection[str] = "auto",
    keep: Collection[str] = (),
) -> int:
    """Write what a fitted model says of every row of a table to a Parquet or CSV file, and return the number of rows.

    The table is read and the file is written block by block, so that both may be larger than memory. The file appears
    when it is complete. In a CSV file an apostrophe comes before text that a spreadsheet would take for a formula.

    Parameters
    ----------
    model : fitted model of any library, or a pipeline
    X : table that is read in blocks: the path of Parquet or CSV files, a list or a pattern of paths, an address, a
        query, a stream, a Dask frame; or any table in memory
    path : file to write, which ends in .parquet, .pq or .csv
    methods : the methods to ask: 'predict', 'predict_proba', 'decision_function', 'transform', …, or several
        'auto' is predict, or transform where the model has no predict.
    keep : names of columns of X to write beside, such as an identifier

    Returns
    -------
    int : the number of rows

    Examples
    --------
    >>> import os, tempfile
    >>> import pyarrow.parquet as pq
    >>> from certifit import TableClassifier
    >>> from certifit.datasets import penguins_path
    >>> model = TableClassifier().fit(penguins_path(), "species")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     out = os.path.join(folder, "species.parquet")
    ...     rows = write_predictions(model, penguins_path(), out, methods=("predict", "predict_proba"))
    ...     rows, pq.read_table(out).column_names[:2]
    (344, ['prediction', 'probability Adelie'])
    """
    check_is_fitted(model)
    path = Path(path)
    asked = _methods(model, methods)
    blocks = (_said(model, asked, table, keep) for table in table_blocks(X))
    writer = pa.parquet.ParquetWriter if path.suffix.lower() in PARQUET else SpreadsheetCsvWriter
    if writer is SpreadsheetCsvWriter and path.suffix.lower() != ".csv":
        raise DataError(got=f"{str(path)!r} to write", wanted=f"a name that ends in {', '.join(PARQUET)} or .csv")
    if isinstance(X, (str, os.PathLike)) or is_paths(X):
        refuse_overwriting(path, *(X if is_paths(X) else [X]))
    with open_atomically(path) as file:
        return _write_blocks(blocks, lambda schema: writer(file, schema))


def write_csv(
    model: Any, X: Any, file: IO[bytes] | BufferedIOBase, methods: Collection[str], keep: Collection[str] = ()
) -> None:
    """Write what a fitted model says of a table as CSV to an open file."""
    blocks = (_said(model, methods, table, keep) for table in table_blocks(X))
    _write_blocks(blocks, lambda schema: SpreadsheetCsvWriter(file, schema))


def _write_blocks(blocks: Iterator[pa.Table], open_writer: Callable[[Any], Any]) -> int:
    first = next(blocks)
    rows = first.num_rows
    with open_writer(first.schema) as file:
        file.write_table(first)
        for table in blocks:
            file.write_table(table.cast(first.schema))
            rows += table.num_rows
    return rows


def _methods(model: Any, methods: str | Collection[str]) -> list[str]:
    if methods == "auto":
        return ["predict" if hasattr(model, "predict") else "transform"]
    asked = [methods] if isinstance(methods, str) else list(methods)
    missing = [name for name in asked if not hasattr(model, name)]
    if missing or not asked:
        raise DataError(got=f"methods={methods!r}", wanted=f"methods that a {type(model).__name__} has")
    return asked


def _said(model: Any, methods: Collection[str], table: pa.Table, keep: Collection[str]) -> pa.Table:
    """The columns of one block: those to keep, and what each method says."""
    columns = {name: pick(table, name, "column to keep") for name in keep}
    rows = _for_model(model, table)
    for method in methods:
        values = getattr(model, method)(rows)
        values = np.asarray(values.toarray() if hasattr(values, "toarray") else values)
        for name, column in zip(_names(model, method, values), values.reshape(len(values), -1).T, strict=True):
            columns[name] = pa.array(column)
    return pa.table(columns)


def _for_model(model: Any, table: pa.Table) -> Any:
    """A block as the model takes it: Arrow for ours, a pandas frame for others."""
    if type(model).__module__.partition(".")[0] == "certifit" and not isinstance(model, Pipeline):
        return table
    names = getattr(model, "feature_names_in_", None)
    return (table if names is None else table.select(list(names))).to_pandas()


def _names(model: Any, method: str, values: Array) -> list[str]:
    if values.ndim == 1:
        return ["prediction" if method == "predict" else method]
    width = values.shape[1]
    classes = getattr(model, "classes_", ())
    if method == "predict_proba" and len(classes) == width:
        return [f"probability {label}" for label in classes]
    if method == "predict_interval" and width == 2:
        return ["low", "high"]
    if method == "predict_set" and len(classes) == width:
        return [f"may be {label}" for label in classes]
    if method == "transform" and hasattr(model, "get_feature_names_out"):
        return [str(name) for name in model.get_feature_names_out()]
    return [f"{method} {label}" for label in (classes if len(classes) == width else range(width))]
