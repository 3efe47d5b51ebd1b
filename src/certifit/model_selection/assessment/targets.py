"""Targets that no estimator can learn, told in words before any is fitted; and which rows belong together."""

from __future__ import annotations

from typing import Any

import numpy as np

from certifit.checkers.model_selection.splits import row_keys
from certifit.exceptions import DataError
from certifit.rows import Array


def check_kind(target: Array, classes: bool) -> None:
    """Refuse labels that cannot be sorted, such as words and None, and words for a regressor."""
    if classes and target.dtype.kind == "O":
        kinds = sorted({type(value).__name__ for value in target.tolist()})
        if "NoneType" in kinds or (len(kinds) > 1 and "str" in kinds):
            raise DataError(
                got=f"targets of several types: {', '.join(kinds)}", wanted="labels of one type, none missing",
                fix="Leave rows without a label out, or make all labels words.",
            )  # fmt: skip
    if not classes and target.dtype.kind in "OUS":
        try:
            target.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise DataError(
                got=f"targets that are no numbers ({error})", wanted="numbers, for a regressor",
                fix="A classifier takes words.",
            ) from error  # fmt: skip


def check_groups(groups: Array, n: int) -> None:
    """Refuse groups that are not those of n rows, that are missing, or that cannot be told apart by sorting."""
    if groups.shape != (n,):
        raise DataError(got=f"groups of shape {groups.shape}", wanted=f"one for each of the {n} rows, or 'copies'")
    names = groups.tolist()
    missing = [i for i, name in enumerate(names) if name is None or name != name]
    if missing:
        raise DataError(
            got=f"row {missing[0]} without a group", wanted="the group of each row",
            fix="Give such rows a group of their own.",
        )  # fmt: skip
    kinds = sorted({type(name).__name__ for name in names})
    if len(kinds) > 1 and "str" in kinds:
        raise DataError(got=f"groups of several types: {', '.join(kinds)}", wanted="names of one type")


def groups_of_copies(X: Any) -> Array:
    """Return the group of each row (n,): rows that are equal in every column are of one.

    >>> groups_of_copies(np.array([[2.0, 1.0], [1.0, 0.0], [2.0, 1.0]])).tolist() in ([0, 1, 0], [1, 0, 1])
    True
    """
    return np.unique(row_keys(X), return_inverse=True)[1]
