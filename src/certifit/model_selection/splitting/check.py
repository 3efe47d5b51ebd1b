"""The certificate of a split: what a splitter declares, found from its class, and proved by the checker."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from sklearn.model_selection import check_cv

from certifit.checkers.model_selection.splits import Split, SplitDeclaration, certify_splits, row_keys
from certifit.core import Certificate
from certifit.exceptions import DataError
from certifit.model_selection.splitting.shapes import count_rows
from certifit.rows import Array


def check_splits(
    cv: Any, X: Any, y: Any = None, groups: Any = None, *, time: Any = None, duplicates: bool = True
) -> Certificate:
    """Prove that splits are what they should be: nothing tested was fitted, every row is used as declared.

    What a splitter declares follows from its class: `KFold` and its relatives test every row once, repeated ones as
    often as they repeat. The certificate also says how many tested rows equal a fitted one in every column, which
    makes a test too easy; its witness has (split, tested row, fitted row) of the first hundred. Its fingerprint is
    the same for the same rows, split in the same way.

    Parameters
    ----------
    cv : a splitter, a number of folds, or a list of pairs (row numbers to fit, row numbers to test)
    X, y : as for the splitter's `split`; X may also be `Rows` (`as_rows`) of any file
    groups : the group of each row: no group may be on both sides of a split
    time : the time of each row: tested rows must be later than all that are fitted
    duplicates : whether equal rows may stand on both sides of a border; False makes them a failure

    Returns
    -------
    Certificate : of kind `exact`; `holds` says whether the splits are sound

    Examples
    --------
    >>> from certifit.model_selection import KFold
    >>> print(check_splits(KFold(3), [[1.0], [2.0], [3.0], [4.0], [5.0], [1.0]]))
    exact: no row is fitted and tested in the same split; every row is tested once
      row numbers outside the table      0 <= 0
      rows both fitted and tested        0 <= 0
      splits with an empty side          0 <= 0
      rows not tested 1 times            0 <= 0
      rows on neither side of a split    0 <= 0
      splits                             3
      rows                               6
      rows fitted                        4
      rows tested                        2
      tested rows equal to a fitted row  2
      fingerprint                        ...
      holds                              yes
    """
    n = count_rows(X)
    members, times = _column("groups", groups, n), _column("time", time, n)
    splitter, splits = list_splits(cv, X, y, groups)
    terms = SplitDeclaration(*_declared(splitter), members, times, duplicates)
    return certify_splits(splits, row_keys(X), terms)


def list_splits(cv: Any, X: Any, y: Any, groups: Any) -> tuple[Any, list[Split]]:
    """Return the splitter that `cv` stands for (None for a list of pairs), and its splits of this table."""
    if isinstance(cv, Iterable) and not hasattr(cv, "split"):
        splits = [*cv]
        if not all(isinstance(pair, tuple | list) and len(pair) == 2 for pair in splits):
            raise DataError(got="a list as cv", wanted="pairs (row numbers to fit, row numbers to test)")
        return None, [(_numbers(train), _numbers(test)) for train, test in splits]
    splitter = check_cv(cv, y)
    places = np.zeros((count_rows(X), 1))
    table = X if getattr(splitter, "time", None) is not None else places
    return splitter, [(_numbers(train), _numbers(test)) for train, test in splitter.split(table, y, groups)]


def _numbers(side: Any) -> Array:
    found = np.asarray(side)
    if found.dtype == bool:
        found = np.flatnonzero(found)
    if found.ndim != 1 or (found.size and found.dtype.kind not in "iu"):
        raise DataError(got=f"a side of a split of type {found.dtype}", wanted="row numbers (m,), or a mask (n,)")
    return found.astype(np.intp)


def _column(name: str, values: Any, n: int) -> Array | None:
    if values is None:
        return None
    found = np.asarray(values)
    if found.shape != (n,):
        raise DataError(got=f"{name} of shape {found.shape}", wanted=f"one for each of the {n} rows")
    return found


def _declared(splitter: Any) -> tuple[int | None, bool]:
    """Return how often a splitter of this class tests each row (None: undeclared), and whether it uses every row."""
    name = type(splitter).__name__
    if name in ("RepeatedKFold", "RepeatedStratifiedKFold"):
        return int(splitter.n_repeats), True
    once = ("KFold", "StratifiedKFold", "GroupKFold", "StratifiedGroupKFold", "LeaveOneOut", "LeaveOneGroupOut")
    if name in (*once, "HashedKFold"):
        return 1, True
    return None, name in ("HashedSplit", "PredefinedSplit")
