"""What values must be: finite features, a target for every row, weights that say how often a row counts."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, validate_data

from certifit.core.errors import DataError
from certifit.core.rows import Array, Block

Target = Literal["none", "classes", "numbers"]


def check_block(block: Block, names: Array | None, target: Target) -> None:
    """Check a block that was just read; sources that stay outside memory do this on every pass."""
    check_finite(block, names)
    if not (block.w >= 0).all() or np.isinf(block.w).any():
        row = int(np.argmin((block.w >= 0) & np.isfinite(block.w)))
        raise DataError(
            got=f"sample_weight {block.w[row]:g} in row {block.start + row}",
            wanted="finite weights of at least 0",
            fix="A weight says how many times a row counts.",
        )
    if block.y is not None:
        _check_labels(block.y, block.start, target)


def _check_labels(y: Array, start: int, target: Target) -> None:
    if target == "numbers" and y.dtype.kind not in "biuf":
        refuse_targets(y.dtype)
    if y.dtype.kind == "f":
        bad = ~np.isfinite(y)
    elif y.dtype.kind == "O" and any(_is_hole(label) for label in set(y)):
        bad = np.array([_is_hole(label) for label in y])
    else:
        return
    if bad.any():
        row = int(bad.argmax())
        word = "infinity" if y.dtype.kind == "f" and np.isinf(y[row]) else "no value"
        raise DataError(
            got=f"{word} in row {start + row} of the target",
            wanted="a finite number or a label in every row of y",
            fix="Drop the rows without a target.",
        )
    if target == "classes":
        check_classification_targets(y)


def _is_hole(label: Any) -> bool:
    return label is None or bool(label != label)


def check_target(y: Any, n_rows: int, target: Target) -> Array | None:
    """A target that came apart from X, as an array (n_rows,)."""
    if target == "none":
        return None
    if y is None:
        raise DataError(
            got="no target (y is None)",
            wanted="a target: this estimator requires y to be passed",
            fix="Pass an array, or the name of the target column of X.",
        )
    y = validate_data(BaseEstimator(), y=y, y_numeric=target == "numbers")
    if len(y) != n_rows:
        raise DataError(got=f"y of {len(y)} entries", wanted=f"one for each of the {n_rows} rows")
    if target == "classes":
        check_classification_targets(y)
    return y


def check_weights(sample_weight: Any, n_rows: int) -> Array | None:
    """Row weights as float64 (n_rows,): finite, none negative, not all zero. None means 1 for every row."""
    if sample_weight is None:
        return None
    if np.isscalar(sample_weight):
        sample_weight = np.full(n_rows, sample_weight)
    w = check_array(
        sample_weight, ensure_2d=False, dtype=np.float64, input_name="sample_weight", ensure_min_samples=0
    )
    if w.ndim != 1:
        raise DataError(got=f"sample_weight with {w.ndim} dimensions", wanted="one number per row (1-D)")
    if len(w) != n_rows:
        raise DataError(got=f"sample_weight of {len(w)} entries", wanted=f"one for each of the {n_rows} rows")
    if (w < 0).any():
        raise DataError(
            got=f"negative sample_weight ({w.min():g} in row {int(w.argmin())})",
            wanted="weights of at least 0",
            fix="A weight says how many times a row counts.",
        )
    if not (w > 0).any():
        refuse_zero_weights()
    return w


def refuse_zero_weights() -> None:
    raise DataError(got="sample_weight that is zero for every row", wanted="at least one positive weight")


def refuse_weights(name: str, kind: Any) -> None:
    raise DataError(got=f"weights in column {name!r} of type {kind}", wanted="numbers of at least 0")


def refuse_targets(kind: Any) -> None:
    raise DataError(
        got=f"a target of type {kind}", wanted="numbers", fix="Encode it as numbers, or use a classifier."
    )


def check_finite(block: Block, names: Array | None = None) -> None:
    """Refuse NaN and infinities, naming the first one."""
    values = block.X.data if sparse.issparse(block.X) else block.X
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(values.sum()):
            return
    bad = ~np.isfinite(values)
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
        "Drop these rows, fill the holes (for instance with sklearn.impute.SimpleImputer), "
        "or use a model that takes missing values."
    )
    got = f"{word} in row {block.start + row}, {name} of X"
    if len(block.w) > 1 and not sparse.issparse(block.X) and np.isnan(values[:, column]).all():
        got = f"NaN in every row from {block.start} to {block.start + len(block.w) - 1} of {name} of X"
        fix = "If the column is empty throughout, leave it out; else " + fix[0].lower() + fix[1:]
    raise DataError(got=got, wanted="finite numbers (no NaN, no inf)", fix=fix)
