"""What a fitted model says of a Dask collection, as a lazy one: computed when it is needed, by its workers."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from certifit.exceptions import DataError
from certifit.rows.block import Array
from certifit.rows.named_columns import is_pandas


def lazy_answer(ask: Callable[[Any], Any], X: Any) -> Any:
    """Return `ask(part)` of every partition of X as a Dask array, (rows,) or (rows, k), or as a Dask frame.

    It is a frame where scikit-learn's `set_output` asks for pandas. Two made-up rows say at once which type and width
    the answer has, and whether the columns are the right ones.
    """
    given = _asked(ask, X._meta_nonempty if hasattr(X, "columns") else np.ones((2, X.shape[1]), X.dtype))
    if is_pandas(given) and hasattr(X, "columns"):
        return X.map_partitions(partial(_frame, ask, given.iloc[:0]), meta=given.iloc[:0], enforce_metadata=False)
    if hasattr(given, "columns") and not is_pandas(given):
        raise DataError(
            got=f"a Dask collection to answer as a frame of {type(given).__module__.partition('.')[0]}",
            wanted="frames that Dask knows",
            fix="set_output(transform='pandas') gives a Dask frame, set_output(transform='default') a Dask array.",
        )
    like = np.asarray(given)
    empty = np.empty((0, *like.shape[1:]), like.dtype)
    if hasattr(X, "columns"):
        return X.map_partitions(partial(_answer, ask, empty), meta=empty, enforce_metadata=False)
    X = X.rechunk({1: -1})
    shape: dict[str, Any] = {"drop_axis": 1} if like.ndim == 1 else {"chunks": (X.chunks[0], (like.shape[1],))}
    answers = X.map_blocks(partial(_answer, ask, empty), dtype=like.dtype, meta=empty, **shape)
    if not is_pandas(given):
        return answers
    from dask import dataframe

    return dataframe.from_dask_array(answers, columns=list(given.columns))


def _asked(ask: Callable[[Any], Any], rows: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # words of the made-up rows are new to any model
        return ask(rows)


def _frame(ask: Callable[[Any], Any], empty: Any, part: Any) -> Any:
    found = ask(part) if len(part) else empty
    # A worker does not know what `sklearn.set_config` was told on the client.
    return found if is_pandas(found) else type(empty)(np.asarray(found), part.index, empty.columns)


def _answer(ask: Callable[[Any], Any], empty: Array, part: Any) -> Array:
    return np.asarray(ask(part)) if len(part) else empty
