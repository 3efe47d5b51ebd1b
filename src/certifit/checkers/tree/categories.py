"""Columns of categories: which they are, and their labels as numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from certifit.exceptions import DataError
from certifit.rows import Array
from certifit.rows.named_columns import is_number, is_pandas, list_names

Labels = dict[str, Array]  # of each column of a frame whose categories are no numbers


def learn_labels(X: Any, asked: Any, beside: tuple[Any, ...] = ()) -> Labels:
    """The labels of the columns of a pandas frame that hold categories in words, in ascending order.

    `asked` is what `categorical_features` says; columns that y or sample_weight name are not looked at.
    """
    if asked is None or not is_pandas(X):
        return {}
    taken = [name for name in beside if isinstance(name, str)]
    features = [name for name in X.columns if name not in taken]
    chosen = np.flatnonzero(categorical_columns(asked, np.array(features, dtype=object), len(features), X))
    labels = {}
    for name in (features[j] for j in chosen):
        kind = X[name].dtype
        if is_number(kind) and str(kind) != "category":
            continue
        known = X[name].dropna()
        try:
            labels[str(name)] = np.array(sorted(known.unique().tolist()), dtype=object)
        except TypeError as error:
            raise DataError(
                got=f"categories of several types in column {name!r}", wanted="words or numbers, not both"
            ) from error
    return labels


def encode_labels_of(X: Any, labels: Mapping[str, Array]) -> Any:
    """A frame whose labelled columns are numbers 0, 1, …; labels that are not known count as missing."""
    if not labels or not is_pandas(X):
        return X
    X = X.copy(deep=False)
    for name, known in labels.items():
        if name in X.columns:
            place = {label: float(code) for code, label in enumerate(known.tolist())}
            X[name] = np.array([place.get(label, np.nan) for label in X[name].tolist()])
    return X


def categorical_columns(asked: Any, names: Array | None, d: int, X: Any = None) -> Array:
    """Which of d columns hold categories (d,), by `categorical_features`: numbers, names, a mask or 'from_dtype'."""
    mask = np.zeros(d, bool)
    if asked is None:
        return mask
    if isinstance(asked, str) and asked == "from_dtype":
        if is_pandas(X) and names is not None:
            mask[:] = [str(X[name].dtype) == "category" for name in names]
        return mask
    found = np.atleast_1d(np.asarray(asked))
    if found.dtype.kind == "b" and found.shape == (d,):
        return found.astype(bool)
    if found.dtype.kind in "iu" and found.size and found.min() >= 0 and found.max() < d:
        mask[found] = True
        return mask
    if found.size == 0:
        return mask
    if found.dtype.kind in "UO" and names is not None and set(found.tolist()) <= set(names.tolist()):
        mask[[names.tolist().index(name) for name in found.tolist()]] = True
        return mask
    known = "" if names is None else f" or names among {list_names(names.tolist())}"
    raise DataError(
        got=f"categorical_features={asked!r}",
        wanted=f"numbers of columns from 0 to {d - 1}, a mask of {d}, 'from_dtype'{known}",
    )
