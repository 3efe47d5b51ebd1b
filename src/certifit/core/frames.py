"""Named columns: which are features, which is the target, which the weights; decided once for every kind of table."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from certifit.core.checks import Target
from certifit.core.errors import DataError


@dataclass(frozen=True)
class Columns:
    """The part each column plays."""

    features: tuple[str, ...]
    y: str | None = None
    w: str | None = None

    @property
    def all(self) -> list[str]:
        return [*self.features, *(name for name in (self.y, self.w) if name is not None)]


def choose_columns(
    names: Sequence[str], y: Any, sample_weight: Any, estimator: BaseEstimator, target: Target, reset: bool
) -> Columns:
    """Split named columns into features, target and weights; tell the estimator its features, or compare them.

    A fitted estimator gets exactly the columns it knows, by name, whatever else the table holds. A target column is
    never a feature, also where no target is asked for.
    """
    twice = sorted({name for name in names if list(names).count(name) > 1}) if len(set(names)) < len(names) else []
    if twice:
        raise DataError(got=f"several columns of the same name: {shown(twice)}", wanted="a name for each column")
    y = find_column(y, names, "y") if isinstance(y, str) else None
    w = find_column(sample_weight, names, "sample_weight") if isinstance(sample_weight, str) else None
    features = [name for name in names if name not in (y, w)]
    if not reset:
        features = known_columns(estimator, names) or features
    if not features:
        raise DataError(got="a table without feature columns", wanted="at least one column besides y and weights")
    note_features(estimator, len(features), features, reset)
    return Columns(tuple(features), None if target == "none" else y, w)


def find_column(name: str, names: Sequence[Any], role: str) -> str:
    """`name`, if it is a column; otherwise an error with the columns there are."""
    if name in names:
        return name
    near = difflib.get_close_matches(name, [str(other) for other in names], n=3, cutoff=0.6)
    raise DataError(
        got=f"{role}={name!r}, which is not a column of X",
        wanted=f"one of its columns {shown(names)}",
        fix=f"Did you mean {' or '.join(repr(other) for other in near)}?" if near else "",
    )


def known_columns(estimator: BaseEstimator, names: Sequence[Any]) -> list[str] | None:
    """The features a fitted estimator knows, if the table has them all."""
    known = getattr(estimator, "feature_names_in_", None)
    return None if known is None or not set(known) <= set(names) else list(known)


def note_features(estimator: BaseEstimator, n_features: int, names: Iterable[str] | None, reset: bool) -> None:
    """Set (`reset`) or compare `n_features_in_` and `feature_names_in_`, in scikit-learn's own words."""
    header: Any = np.empty((0, n_features))
    if names is not None:
        import pyarrow as pa

        header = pa.table([pa.array([], pa.float64())] * n_features, names=list(names))
    validate_data(estimator, header, reset=reset, skip_check_array=True)


def refuse_columns(types: Mapping[str, Any]) -> None:
    """Refuse feature columns that are not numbers, naming them and their types."""
    empty = [name for name, kind in types.items() if str(kind) == "null"]
    if empty:
        raise DataError(
            got=f"columns without any value: {shown(empty)}",
            wanted="numbers or booleans in every feature column",
            fix="Leave these columns out.",
        )
    if types:
        raise DataError(
            got="feature columns that are not numbers: " + ", ".join(f"{n!r} ({t})" for n, t in types.items()),
            wanted="numbers or booleans in every feature column",
            fix="Encode them (for instance with sklearn.preprocessing.OneHotEncoder), leave them out, "
            "or name the target column with y=.",
        )


def refuse_names(X: Any, **roles: Any) -> None:
    """Refuse names of columns where X has none."""
    for role, value in roles.items():
        if isinstance(value, str):
            raise DataError(
                got=f"{role}={value!r} with {type(X).__name__} as X, which has no column names",
                wanted=f"{role} as an array",
                fix="Or pass X as a table with named columns: a data frame, an Arrow table or a path.",
            )


def is_pandas(X: Any) -> bool:
    return type(X).__module__.partition(".")[0] == "pandas" and hasattr(X, "columns")


def pandas_parts(X: Any, y: Any, sample_weight: Any, estimator: BaseEstimator, reset: bool) -> tuple[Any, Any, Any]:
    """X, y and sample_weight of a pandas frame, the named ones taken out of it; features checked to be numbers.

    scikit-learn compares the names and their order afterwards.
    """
    names = list(X.columns)
    features = names
    if isinstance(y, str):
        y = X[find_column(y, names, "y")]
        features = [name for name in features if name != y.name]
    if isinstance(sample_weight, str):
        sample_weight = X[find_column(sample_weight, names, "sample_weight")]
        features = [name for name in features if name != sample_weight.name]
    known = None if reset else known_columns(estimator, names)
    if known is not None:
        features = [name for name in names if name in set(known)]
    if len(features) < len(names):
        X = X[features]
    refuse_columns(dict(not_numbers(X)))
    return X, y, sample_weight


def not_numbers(X: Any) -> list[tuple[str, Any]]:
    """Columns of a pandas frame that hold something else than numbers, with their types."""
    from pandas.api.types import infer_dtype, is_numeric_dtype

    numbers = {"integer", "floating", "mixed-integer-float", "boolean", "decimal", "empty"}

    def fine(name: Any, kind: Any) -> bool:
        if kind == np.dtype(object):
            values = X[name]  # a frame where the name stands twice: scikit-learn's matter
            return values.ndim > 1 or infer_dtype(values, skipna=True) in numbers
        return bool(is_numeric_dtype(kind))

    return [(name, kind) for name, kind in X.dtypes.items() if not fine(name, kind)]


def shown(names: Sequence[Any], most: int = 20) -> str:
    """Names for a message: all, or the first of many."""
    words = [repr(name) for name in names[:most]]
    return ", ".join(words) + (f", ... ({len(names)} in all)" if len(names) > most else "")
