"""What users say of columns: which hold categories, which are monotone, and which may meet in a branch."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np

from certifit.exceptions import DataError
from certifit.rows import Array
from certifit.rows.named_columns import is_pandas


def _places(asked: Any, d: int, names: Array | None, word: str) -> Array:
    """Column numbers from numbers, names, or a mask."""
    found = np.asarray(list(asked))
    if not len(found):
        return np.empty(0, np.int64)
    if found.dtype.kind == "b":
        if found.shape != (d,):
            raise DataError(got=f"{word} of shape {found.shape}", wanted=f"a mark for each of the {d} columns")
        return np.flatnonzero(found)
    if found.dtype.kind in "UO":
        known = {} if names is None else {str(name): j for j, name in enumerate(names)}
        missing = [str(name) for name in found if str(name) not in known]
        if missing:
            raise DataError(got=f"{word} with {missing}", wanted="names of columns of X, or their numbers")
        return np.array([known[str(name)] for name in found])
    if found.dtype.kind not in "iu" or found.min() < 0 or found.max() >= d:
        raise DataError(got=f"{word}={asked!r}", wanted=f"numbers of columns from 0 to {d - 1}, names, or a mask")
    return found.astype(np.int64)


def categorical_mask(asked: Any, d: int, names: Array | None, labelled: Any) -> Array:
    """Which columns hold categories (d,); `labelled` are the columns of a frame whose type says so."""
    mask = np.zeros(d, bool)
    if isinstance(asked, str) and asked == "from_dtype":
        asked = list(labelled)
    if asked is not None:
        mask[_places(asked, d, names, "categorical_features")] = True
    return mask


def monotone_directions(asked: Any, d: int, names: Array | None, categorical: Array) -> Array | None:
    """-1, 0 or 1 for each column (d,), or None where no column is monotone."""
    if asked is None:
        return None
    found = np.zeros(d, np.int64)
    if isinstance(asked, dict):
        for name, direction in asked.items():
            (place,) = _places([name], d, names, "monotonic_cst")
            if found[place] and direction != found[place]:
                raise DataError(
                    got=f"monotonic_cst={asked!r}, which says two things of column {place}",
                    wanted="one direction for each column",
                )
            found[place] = direction
    else:
        given = np.asarray(asked)
        if given.shape != (d,):
            raise DataError(
                got=f"monotonic_cst of shape {given.shape}", wanted=f"-1, 0 or 1 for each of the {d} columns"
            )
        found[:] = given
    if not np.isin(found, (-1, 0, 1)).all():
        raise DataError(
            got=f"monotonic_cst={asked!r}", wanted="-1, 0 or 1 for each column",
            fix="1: predictions rise with the column, -1: they fall, 0: anything.",
        )  # fmt: skip
    if (found[categorical] != 0).any():
        raise DataError(got="monotonic_cst for a column of categories", wanted="0 there: categories have no order")
    return found if found.any() else None


def interaction_groups(asked: Any, d: int, names: Array | None) -> Array | None:
    """Groups of columns that may meet in a branch (g, d), or None where all may."""
    if asked is None:
        return None
    if isinstance(asked, str):
        if asked not in ("pairwise", "no_interactions"):
            raise DataError(
                got=f"interaction_cst={asked!r}", wanted="'pairwise', 'no_interactions' or sets of columns"
            )
        sets: list[tuple[int, ...]] = (
            list(combinations(range(d), 2)) if asked == "pairwise" and d > 1 else [(j,) for j in range(d)]
        )
    else:
        sets = [tuple(_places(group, d, names, "interaction_cst")) for group in asked]
        if not all(sets):
            raise DataError(
                got=f"interaction_cst={asked!r} with a set of no columns", wanted="sets of at least one column",
                fix="Columns that are in no set may meet each other: leave the empty set out.",
            )  # fmt: skip
        rest = sorted(set(range(d)) - {j for group in sets for j in group})
        sets += [tuple(rest)] if rest else []
    groups = np.zeros((len(sets), d), bool)
    for g, group in enumerate(sets):
        groups[g, list(group)] = True
    return groups


def frame_categories(X: Any, known: dict[str, list[Any]] | None) -> tuple[Any, dict[str, list[Any]]]:
    """A frame whose columns of categories are numbers, their places among the labels; and the labels."""
    if not is_pandas(X):
        return X, {} if known is None else known
    if known is None:
        known = {str(name): list(X[name].cat.categories) for name in X.columns if str(X[name].dtype) == "category"}
    codes = {}
    for name, labels in known.items():
        if name in X.columns:
            place = {label: float(k) for k, label in enumerate(labels)}
            codes[name] = np.array([place.get(value, np.nan) for value in X[name]], dtype=np.float64)
    return (X.assign(**codes) if codes else X), known
