"""How many rows a table has, whatever it is."""

from __future__ import annotations

from typing import Any

from certifit.exceptions import DataError
from certifit.rows import Rows


def count_rows(X: Any) -> int:
    """Return the number of rows of an array, a frame, a sparse matrix, `Rows` or a list.

    >>> count_rows([[1, 2], [3, 4], [5, 6]])
    3
    """
    if isinstance(X, Rows):
        return X.n_rows
    shape = getattr(X, "shape", None)
    if isinstance(shape, tuple) and shape and isinstance(shape[0], int):
        n = shape[0]
    elif hasattr(X, "__len__") and not isinstance(X, str):
        n = len(X)
    else:
        raise DataError(
            got=f"a {type(X).__name__} as X", wanted="a table with a known number of rows",
            fix="Files and streams: as_rows(X) counts them, and split_rows of HashedSplit splits them.",
        )  # fmt: skip
    if n == 0:
        raise DataError(got="a table without rows", wanted="at least two rows to split")
    return n
