"""The roles of named columns, in every kind of table: which are features, which the target, which the weights."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from certifit.exceptions import DataError
from certifit.rows.block import Array
from certifit.rows.checks import TableTerms

EMPTY = ("null", "null[pyarrow]")  # types of a column without any value, in Arrow and in pandas


@dataclass(frozen=True)
class ColumnRoles:
    """The names of the columns that are features, targets and row weights."""

    features: tuple[str, ...]
    y: tuple[str, ...] = ()
    w: str | None = None

    @property
    def all(self) -> list[str]:
        return list(dict.fromkeys(name for name in (*self.features, *self.y, self.w) if name is not None))


def choose_columns(
    names: Sequence[str], y: Any, sample_weight: Any, estimator: BaseEstimator, terms: TableTerms, reset: bool
) -> ColumnRoles:
    """Split named columns into features, targets and weights, and set or compare the estimator's features.

    A fitted estimator gets the columns it was fitted to, by name; others are ignored. A column that y names is never
    a feature, even where the estimator needs no target.
    """
    twice = sorted({name for name in names if list(names).count(name) > 1}) if len(set(names)) < len(names) else []
    if twice:
        raise DataError(got=f"several columns of the same name: {list_names(twice)}", wanted="a name for each column")
    targets = tuple(find_column(name, names, "y") for name in named_targets(y, terms.targets))
    w = find_column(sample_weight, names, "sample_weight") if isinstance(sample_weight, str) else None
    features = _features(names, (*targets, w), terms)
    if not reset and terms.columns is None:
        features = known_columns(estimator, names) or features
    _check_features(features)
    note_features(estimator, len(features), features, reset)
    return ColumnRoles(tuple(features), () if terms.target == "none" else targets, w)


def _check_features(features: Sequence[Any]) -> None:
    if not features:
        raise DataError(got="a table without feature columns", wanted="at least one column besides y and weights")


def _features(names: Sequence[Any], taken: Sequence[Any], terms: TableTerms) -> list[Any]:
    """Return the columns that are neither target nor weights, or those of them that were chosen by name."""
    if terms.columns is not None:
        return [find_column(name, names, "columns") for name in terms.columns]
    return [name for name in names if name not in taken]


def named_targets(y: Any, targets: int) -> tuple[str, ...]:
    """Return the names of columns in y: one name, or a list of them where `targets` > 1; () where y is data."""
    if isinstance(y, str):
        names: tuple[str, ...] = (y,)
    elif targets > 1 and isinstance(y, (list, tuple)) and all(isinstance(name, str) for name in y):
        names = tuple(y)
    else:
        return ()
    if len(names) != targets:
        raise DataError(
            got=f"{len(names)} target column(s): {list_names(names)}",
            wanted=f"{targets}",
            fix="Name them all in a list.",
        )
    return names


def stack_columns(columns: Sequence[Array]) -> Array:
    """Return target columns as one array: (rows,) of one, (rows, m) of several."""
    return columns[0] if len(columns) == 1 else np.column_stack(columns)


def side_by_side(columns: Sequence[Any]) -> Any:
    """Return columns of numbers as one table (n, m): a Dask array where one of them is, else a NumPy array."""
    if any(hasattr(column, "__dask_graph__") for column in columns):
        import dask.array as da

        return da.stack([da.asarray(column) for column in columns], axis=1)
    return np.column_stack([np.asarray(column, dtype=np.float64) for column in columns])


def find_column(name: str, names: Sequence[Any], role: str) -> str:
    """Return `name` if it is a column, else raise an error that lists the columns."""
    if name in names:
        return name
    near = nearest_names(name, names)
    raise DataError(
        got=f"{role}={name!r}, which is not a column of X",
        wanted=f"one of its columns {list_names(names)}",
        fix=f"Did you mean {' or '.join(repr(other) for other in near)}?" if near else "",
    )


def nearest_names(name: str, names: Iterable[Any], most: int = 3) -> list[str]:
    """Return the names that `name` may be a misspelling of: most letters are the same, whatever their case.

    >>> nearest_names("Specie", ["species", "sex"]), nearest_names("target", ["age", "t"])
    (['species'], [])
    """
    known = {str(other).lower(): str(other) for other in names}
    return [known[match] for match in difflib.get_close_matches(name.strip().lower(), known, n=most, cutoff=0.75)]


def known_columns(estimator: BaseEstimator, names: Sequence[Any]) -> list[str] | None:
    """Return the features that an estimator was fitted to, if the table has them all."""
    known = getattr(estimator, "feature_names_in_", None)
    return None if known is None or not set(known) <= set(names) else list(known)


def note_features(estimator: BaseEstimator, n_features: int, names: Iterable[str] | None, reset: bool) -> None:
    """Set (`reset`) or compare `n_features_in_` and `feature_names_in_`, in scikit-learn's own words."""
    header: Any = np.empty((0, n_features))
    if names is not None:
        import pyarrow as pa

        header = pa.table([pa.array([], pa.float64())] * n_features, names=list(names))
    validate_data(estimator, header, reset=reset, skip_check_array=True)


def refuse_columns(types: Mapping[str, Any], missing: bool) -> None:
    """Refuse feature columns of types other than numbers; columns without any value pass where `missing`."""
    empty = [name for name, kind in types.items() if str(kind) in EMPTY]
    if empty and not missing:
        raise DataError(
            got=f"columns without any value: {list_names(empty)}",
            wanted="numbers or booleans in every feature column",
            fix="Leave these columns out.",
        )
    odd = [f"{name!r} ({kind})" for name, kind in types.items() if name not in empty]
    if odd:
        raise DataError(
            got="feature columns that are not numbers: " + ", ".join(odd),
            wanted="numbers or booleans in every feature column",
            fix="Encode them (for instance with sklearn.preprocessing.OneHotEncoder), leave them out, "
            "or name the target column with y=.",
        )


def refuse_names(X: Any, y: Any, sample_weight: Any, terms: TableTerms) -> None:
    """Refuse column names for y or sample_weight where the columns of X have no names."""
    if terms.columns is not None:
        raise DataError(
            got=f"columns={list(terms.columns)} with {type(X).__name__} as X, which has no column names",
            wanted="a table with named columns: a data frame, an Arrow table or a path",
            fix="Of an array take the columns by number: X[:, [0, 2]].",
        )
    for role, value, targets in (("y", y, terms.targets), ("sample_weight", sample_weight, 1)):
        if named_targets(value, targets):
            raise DataError(
                got=f"{role}={value!r} with {type(X).__name__} as X, which has no column names",
                wanted=f"{role} as an array",
                fix="Or pass X as a table with named columns: a data frame, an Arrow table or a path.",
            )


def is_pandas(X: Any) -> bool:
    return type(X).__module__.partition(".")[0] == "pandas" and hasattr(X, "columns")


def pandas_parts(
    X: Any, y: Any, sample_weight: Any, estimator: BaseEstimator, terms: TableTerms, reset: bool
) -> tuple[Any, Any, Any]:
    """Return features, target and weights of a pandas frame. scikit-learn compares names and their order later."""
    names = list(X.columns)
    taken = [find_column(name, names, "y") for name in named_targets(y, terms.targets)]
    if taken:
        y = X[taken] if terms.targets > 1 else X[y]
    if isinstance(sample_weight, str):
        taken.append(find_column(sample_weight, names, "sample_weight"))
        sample_weight = X[sample_weight]
    features = _features(names, taken, terms)
    known = None if reset or terms.columns is not None else known_columns(estimator, names)
    if known is not None:
        # The same columns in another order are a mistake, as in scikit-learn; among others they are found by name.
        others = {*names} - {*known, *taken}
        features = list(known) if others else [name for name in names if name in set(known)]
    _check_features(features)
    if features != names:
        X = X[features]
    refuse_columns(dict(not_numbers(X)), terms.missing)
    # NumPy does not know pandas.NA.
    if any(str(kind).endswith(("object", "[pyarrow]")) for kind in X.dtypes):
        values = X.where(X.notna(), np.nan).to_numpy(dtype=np.float64, na_value=np.nan)
        X = type(X)(values, columns=X.columns, copy=False)
    return X, y, sample_weight


def not_numbers(X: Any) -> list[tuple[str, Any]]:
    """Return the columns of a pandas frame that hold anything but numbers, with their types."""
    from pandas.api.types import infer_dtype

    numbers = {"integer", "floating", "mixed-integer-float", "boolean", "decimal", "empty"}

    def holds_numbers(name: Any, kind: Any) -> bool:
        if kind == np.dtype(object):
            # A name that occurs twice gives a frame; scikit-learn refuses that later.
            values = X[name]
            return values.ndim > 1 or infer_dtype(values, skipna=True) in numbers
        return is_number(kind)

    return [(name, kind) for name, kind in X.dtypes.items() if not holds_numbers(name, kind)]


def is_number(kind: Any) -> bool:
    """Say whether a column of this pandas type holds numbers or booleans."""
    from pandas.api.types import is_complex_dtype, is_numeric_dtype

    return bool(is_numeric_dtype(kind) and not is_complex_dtype(kind)) or str(kind) == "bool[pyarrow]"


def list_names(names: Sequence[Any], most: int = 20) -> str:
    """Return names for a message: all of them, or the first `most`."""
    words = [repr(name) for name in names[:most]] or ["(it has none)"]
    return ", ".join(words) + (f", ... ({len(names)} in all)" if len(names) > most else "")
