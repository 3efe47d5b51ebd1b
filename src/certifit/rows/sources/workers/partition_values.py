"""What the partitions of a Dask collection hold, checked where they are, as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np
from pandas.api.types import is_numeric_dtype
from scipy import sparse

from certifit.exceptions import DataError, SourceChangedError
from certifit.rows.block import Array, row_major
from certifit.rows.named_columns import ColumnRoles, is_number, list_names, stack_columns


def check_pieces(pieces: Sequence[Any], columns: ColumnRoles | None, start: int, rows: int) -> None:
    """Refuse partitions, or parts of them, that are not so many rows, from row `start` on, as the collection says."""
    if any(map(sparse.issparse, pieces)):
        raise DataError(
            got="a Dask array with sparse chunks",
            wanted="dense chunks",
            fix="Use X.map_blocks(lambda x: x.toarray()).",
        )
    check_length(sum(map(len, pieces)), rows, "X")
    if columns is not None:
        for piece in pieces:
            _check_columns(piece, columns, start)
            start += len(piece)


def _check_columns(piece: Any, columns: ColumnRoles, start: int) -> None:
    """Refuse rows of a frame that lack a column, or whose features are not the numbers that they should be."""
    missing = sorted({*columns.all} - {*piece.columns})
    if missing:
        raise DataError(
            got=f"a Dask partition (around row {start}) without {list_names(missing)}",
            wanted="the same columns in all partitions",
            fix="Add them where the partition is made.",
        )
    features = piece[list(columns.features)]
    for name, kind in features.dtypes.items():
        if is_number(kind) or features[name].isna().all():
            continue
        raise DataError(
            got=f"a Dask partition (around row {start}) whose column {name!r} is {kind}, while the collection says "
            "that it holds numbers",
            wanted="the same type of a column in all partitions",
            fix=f"Convert it where it is read: X.assign({name}=dask.dataframe.to_numeric(X[{name!r}])), say.",
        )


def piece_values(piece: Any, dtype: np.dtype[Any]) -> Array:
    """Return the numbers of rows of a frame, or of an array."""
    return piece.to_numpy(dtype=dtype, na_value=np.nan) if hasattr(piece, "iloc") else piece


def joined_vector(pieces: Sequence[Any] | None, rows: int, role: str) -> Array | None:
    """Return targets or weights of so many rows as an array (rows,), or (rows, m) of several columns."""
    if pieces is None:
        return None
    found = [_vector(piece) for piece in pieces]
    check_length(sum(map(len, found)), rows, role)
    return found[0] if len(found) == 1 else np.concatenate(found)


def _vector(values: Any) -> Array:
    if isinstance(values, np.ndarray):
        return row_major(values)
    if values.ndim == 2:
        return stack_columns([_vector(column) for _, column in values.items()])
    plain = is_numeric_dtype(values.dtype) and not values.hasnans
    return values.to_numpy() if plain else values.to_numpy(dtype=object, na_value=None)


def check_length(there: int, rows: int, role: str) -> None:
    """Refuse a partition of X, y or w that is not as long as the first pass, or X, says."""
    if there == rows:
        return
    if role == "X":
        raise SourceChangedError(
            f"Got a Dask partition of {there} rows; wanted the {rows} of the first pass: the data changed in "
            "between. Persist the collection, or write it to Parquet."
        )
    refuse_length({"w": "sample_weight"}.get(role, role), there, rows)


def refuse_partitions(role: str, theirs: int, ours: int) -> NoReturn:
    raise DataError(
        got=f"{role} in {theirs} Dask partitions and X in {ours}",
        wanted=f"{role} partitioned like X",
        fix=f"Take {role} from the same Dask frame as X, or pass it as a NumPy array.",
    )


def refuse_length(role: str, entries: int, rows: int) -> NoReturn:
    raise DataError(
        got=f"{role} with {entries} entries for a partition of {rows} rows",
        wanted=f"partitions of {role} and X with the same rows",
        fix=f"Take {role} from the same Dask frame as X, or pass it as a NumPy array.",
    )
