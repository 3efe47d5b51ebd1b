"""Any table with columns of any type as Arrow tables: all of it in memory, or block by block."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from sklearn.utils.validation import check_array

from certifit.exceptions import DataError
from certifit.rows.as_rows import may_be_source
from certifit.rows.sources.open_source import is_paths, open_source
from certifit.rows.sources.table import Source, Table


def as_table(X: Any) -> pa.Table:
    """An Arrow table of anything that `fit` takes: a frame, an Arrow table, a path, a query, a 2-D array."""
    return pa.concat_tables(table_blocks(X, rows=0))


def table_blocks(X: Any, rows: int = 65_536) -> Iterator[pa.Table]:
    """The same table in blocks of about so many rows where it is read from files; 0 for all of it at once."""
    if rows and hasattr(X, "__dask_graph__") and hasattr(X, "partitions"):
        for part in X.partitions:
            yield from table_blocks(part.compute(), rows)
        return
    X = _plain(X)
    source = open_source(X) if may_be_source(X) else None
    if not isinstance(source, Source):
        yield _checked(_in_memory(X))
        return
    types = {field.name: field.type for field in source.schema}
    if len(types) < len(source.schema.names):
        refuse_repeated(source.schema.names)
    table: Table = source.select(types)
    if table.in_memory or not rows:
        yield _checked(table.whole())
        return
    held: list[Any] = []
    for batch in table.read(types, rows):
        held.append(batch)
        if sum(part.num_rows for part in held) >= rows:
            yield pa.Table.from_batches(held)
            held = []
    if held or not table.n_rows:
        yield pa.Table.from_batches(held, table.schema)


def has_names(X: Any) -> bool:
    """Say whether the columns of X have names of their own, as those of an array have not."""
    if isinstance(X, (str, os.PathLike)) or is_paths(X):
        return True
    return any(hasattr(type(X), name) for name in ("columns", "schema", "__arrow_c_stream__"))


def _plain(X: Any) -> Any:
    """A table in its own library's form; a Dask frame is computed."""
    if type(X).__module__.partition(".")[0] == "narwhals" and hasattr(X, "to_native"):
        X = X.to_native()
    return X.compute() if hasattr(X, "__dask_graph__") else X


def _in_memory(X: Any) -> pa.Table:
    try:
        if hasattr(X, "iloc"):  # pandas, whose index is not a column
            return pa.Table.from_pandas(X, preserve_index=False)
        X = check_array(X, dtype=None, ensure_all_finite="allow-nan")
        return pa.table({f"x{j}": pa.array(column, from_pandas=True) for j, column in enumerate(X.T)})
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        raise DataError(
            got=f"a table that Arrow cannot hold ({error})",
            wanted="one type of value in each column",
            fix="Convert mixed columns to text or to numbers first.",
        ) from error


def _checked(table: pa.Table) -> pa.Table:
    refuse_repeated(table.column_names)
    return table.replace_schema_metadata(None)


def refuse_repeated(names: list[str]) -> None:
    """Refuse columns of the same name."""
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise DataError(got=f"columns with the same name: {repeated}", wanted="a different name for each column")
