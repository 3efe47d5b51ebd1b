"""Checks of the values of a table: finite features, a target in every row, and weights of at least 0.

A row of weight w counts as w equal rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Number
from typing import Any, Literal

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, validate_data

from certifit.exceptions import DataError
from certifit.rows.block import Array, Block

Target = Literal["none", "classes", "numbers"]


@dataclass(frozen=True)
class TableTerms:
    """What an estimator needs of a table, and what it allows."""

    target: Target = "none"
    targets: int = 1  # columns of y
    sparse: bool = False  # X may be sparse
    missing: bool = False  # X may have NaN
    finite: bool = True  # arrays in memory are checked at once; else by the model, as it reads them
    columns: tuple[str, ...] | None = None  # features by name; None for all columns beside target and weights


def check_block(block: Block, terms: TableTerms, names: Array | None, targets: Sequence[str] = ()) -> None:
    """Check a block that was just read from a file or a Dask partition; `names` are of X, `targets` of y."""
    check_finite(block, names, terms.missing)
    if not (block.w >= 0).all() or np.isinf(block.w).any():
        row = int(np.argmin((block.w >= 0) & np.isfinite(block.w)))
        raise DataError(
            got=f"sample_weight {block.w[row]:g} in row {block.start + row}",
            wanted="finite weights of at least 0",
            fix="A weight says how many times a row counts.",
        )
    if block.y is not None:
        _check_labels(block.y, targets, block.start)
        if terms.target == "classes":
            _check_one_kind(block.y)
            if block.y.dtype.kind == "f":
                check_classes(block.y)


def check_classes(y: Array) -> None:
    """Refuse targets that are amounts, with scikit-learn's words as well: filters of errors look for them."""
    try:
        check_classification_targets(y)
    except ValueError as error:
        raise DataError(got=f"targets such as {y.flat[0]!s:.40}", wanted="classes", fix=str(error)) from error


def _check_labels(y: Array, names: Sequence[str], start: int = 0, fix: str = "") -> None:
    """Refuse targets that are missing or infinite, and name the first of them."""
    if y.dtype.kind == "f":
        bad = ~np.isfinite(y)
    elif y.dtype.kind == "O" and any(_is_missing(label) for label in set(y.flat)):
        bad = np.array([_is_missing(label) for label in y.flat]).reshape(y.shape)
    else:
        return
    if bad.any():
        row, *column = (int(i) for i in np.argwhere(bad)[0])
        word = "infinity" if y.dtype.kind == "f" and np.isinf(y[row, *column]) else "no value"
        place = "".join(f", column {names[j] if names else j!r}" for j in column)
        raise DataError(
            got=f"{word} in row {start + row}{place} of the target",
            wanted="a finite number or a label in every row of y",
            fix=f"{fix}Drop the rows without a target.",
        )


def _check_one_kind(y: Array) -> None:
    """Refuse classes that have no order because words and numbers are mixed."""
    if y.dtype.kind == "O":
        words = {isinstance(label, str): label for label in y.flat}
        if len(words) == 2:
            raise DataError(
                got=f"a target with words and numbers, such as {words[True]!r} and {words[False]!r}",
                wanted="labels of one kind",
                fix="Make words of them all, for instance with y.astype(str).",
            )


def _is_missing(label: Any) -> bool:
    return label is None or bool(label != label)


def check_target(y: Any, n_rows: int, terms: TableTerms) -> Array | None:
    """Return a target that is no column of X as an array (n_rows,), or (n_rows, targets) where there are several."""
    if terms.target == "none":
        return None
    if y is None:
        raise DataError(
            got="no target",
            wanted="a target: this estimator requires y to be passed, but the target y is None",
            fix="Pass an array, or the name of the target column of X.",
        )
    names = [name for name in getattr(y, "columns", ()) if isinstance(name, str)]
    y = _as_one_column(y) if terms.targets == 1 else _as_columns(y, terms)
    if len(y) != n_rows:
        raise DataError(
            got=f"y of {len(y)} entries",
            wanted=f"one for each of the {n_rows} rows",
            fix=f"Found input variables with inconsistent numbers of samples: [{n_rows}, {len(y)}].",
        )
    _check_labels(y, names)
    if terms.target == "classes" and not _are_plain_classes(y):
        _check_one_kind(y)
        check_classes(y)
    return y


def _are_plain_classes(y: Array) -> bool:
    """Say whether y is a column of whole numbers, few of them distinct: scikit-learn's questions then say yes."""
    return y.ndim == 1 and y.dtype.kind in "biu" and 4 * len(np.unique(y)) < len(y)


def _as_one_column(y: Any) -> Array:
    if type(y) is np.ndarray and y.ndim == 1 and len(y) and y.dtype.kind in "biuf" and np.isfinite(y).all():
        return y
    try:
        return np.asarray(validate_data(BaseEstimator(), y=y))
    except ValueError as error:
        shape = np.shape(y)
        if len(shape) == 2 and shape[1] > 1:
            raise DataError(
                got=f"y with {shape[1]} columns", wanted="one target for each row",
                fix=f"{error} Fit one model for each column, for instance with sklearn.multioutput.",
            ) from error  # fmt: skip
        if len(shape) == 1 and np.asarray(y).dtype.kind in "fO":
            _check_labels(np.asarray(y), (), fix=f"{error} ")
        raise


def _as_columns(y: Any, terms: TableTerms) -> Array:
    kind = None if terms.target == "classes" else np.float64  # labels stay what they are
    try:
        y = check_array(y, dtype=kind, ensure_2d=False, ensure_all_finite=False, input_name="y")
    except (TypeError, ValueError) as error:
        raise DataError(
            got=f"y that is not a table of numbers ({error})", wanted=_columns_wanted(terms.targets)
        ) from error
    check_width(y.shape, terms.targets)
    return y


def check_width(shape: Sequence[int], targets: int) -> None:
    """Refuse a y with another number of columns than `targets`."""
    if len(shape) != 2 or shape[1] != targets:
        got = f"y with {shape[1]} columns" if len(shape) == 2 else f"y with {len(shape)} dimensions"
        raise DataError(got=got, wanted=_columns_wanted(targets), fix="Join columns with numpy.column_stack.")


def _columns_wanted(targets: int) -> str:
    return f"{targets} columns of numbers: an array (n, {targets}), or the names of {targets} columns of X"


def as_numbers(y: Array | None, w: Array) -> tuple[Array | None, Array]:
    """Return targets as float64, whatever type they were read in, and the weights as they are."""
    if y is not None and y.dtype.kind == "O" and all(isinstance(value, Number) for value in y.flat):
        # Decimals, or numbers of several types.
        y = y.astype(np.float64)
    if y is not None and y.dtype.kind not in "biuf":
        refuse_targets(y.dtype)
    return None if y is None else np.ascontiguousarray(y, dtype=np.float64), w


def check_weights(sample_weight: Any, n_rows: int) -> Array | None:
    """Return row weights as float64 (n_rows,): finite, none negative, not all zero. None means 1 for every row."""
    if sample_weight is None:
        return None
    if np.isscalar(sample_weight):
        sample_weight = np.full(n_rows, sample_weight)
    w = sample_weight
    if not (type(w) is np.ndarray and w.dtype == np.float64 and np.isfinite(w).all()):
        w = check_array(w, ensure_2d=False, dtype=np.float64, input_name="sample_weight", ensure_min_samples=0)
    if w.ndim != 1:
        raise DataError(
            got=f"sample_weight with {w.ndim} dimensions",
            wanted="one number per row (1-D)",
            fix="Sample weights must be 1D array or scalar.",
        )
    if len(w) != n_rows:
        raise DataError(got=f"sample_weight of {len(w)} entries", wanted=f"one for each of the {n_rows} rows")
    if len(w) and not (w > 0).any():
        refuse_zero_weights("zero" if not w.any() else "zero or negative")
    if (w < 0).any():
        raise DataError(
            got=f"negative sample_weight ({w.min():g} in row {int(w.argmin())})",
            wanted="weights of at least 0",
            fix="A weight says how many times a row counts.",
        )
    return w


def refuse_zero_weights(kind: str = "zero") -> None:
    raise DataError(
        got=f"sample_weight that is {kind} for every row",
        wanted="at least one positive weight",
        fix="Invalid input - all samples have zero or negative weights.",
    )


def refuse_weights(name: str, kind: Any) -> None:
    raise DataError(got=f"weights in column {name!r} of type {kind}", wanted="numbers of at least 0")


def refuse_targets(kind: Any) -> None:
    raise DataError(
        got=f"a target of type {kind}", wanted="numbers", fix="Encode it as numbers, or use a classifier."
    )


def check_finite(block: Block, names: Array | None = None, missing: bool = False) -> None:
    """Refuse infinities and, unless `missing`, NaN; the message names the first one."""
    values = block.X.data if sparse.issparse(block.X) else block.X
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(values.sum()):
            return
    bad = np.isinf(values) if missing else ~np.isfinite(values)
    if not bad.any():
        return
    if sparse.issparse(block.X):
        entry = int(np.flatnonzero(bad)[0])
        row, column = int(np.searchsorted(block.X.indptr, entry, "right")) - 1, int(block.X.indices[entry])
        value = values[entry]
    else:
        row, column = (int(i) for i in np.argwhere(bad)[0])
        value = values[row, column]
    word = "NaN" if np.isnan(value) else "infinity"
    name = f"column {column}" if names is None else f"column {names[column]!r}"
    fix = (
        "Drop these rows, fill the missing entries (for instance with sklearn.impute.SimpleImputer), "
        "or use a model that takes missing values."
    )
    got = f"{word} in row {block.start + row}, {name} of X"
    if len(block.w) > 1 and not sparse.issparse(block.X) and np.isnan(values[:, column]).all():
        got = f"NaN in every row from {block.start} to {block.start + len(block.w) - 1} of {name} of X"
        fix = "If the column is empty throughout, leave it out; else " + fix[0].lower() + fix[1:]
    wanted = "finite numbers (no NaN, no inf)"
    if missing:
        wanted, fix = "finite numbers, or NaN for a missing entry", "Drop these rows, or make the entries NaN."
    raise DataError(got=got, wanted=wanted, fix=f"{fix} (Input X contains {word}.)")
