"""The rows of a table that can be learnt from: their columns, labels and weights, and how the columns are encoded."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import column_or_1d

from certifit.exceptions import DataError
from certifit.rows import Array, ArrayRows
from certifit.rows.checks import check_weights
from certifit.table.columns import Column, TableTuning, as_table, encode_columns, learn_columns, pick


@dataclass(frozen=True)
class LabelledTable:
    """Rows with a label and a positive weight."""

    table: pa.Table  # the columns that are neither target nor weight
    y: Array  # (n,) labels
    w: Array | None  # (n,) row weights
    unlabelled: int  # rows left out because their target is missing
    named: bool  # whether the columns came with names of their own
    target: str | None = None  # name of the target column
    weight: str | None = None  # name of the weight column

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """What becomes of every column, learnt once from these rows."""
        return learn_columns(self.table, np.ones(len(self.y)) if self.w is None else self.w)

    def encode(self) -> EncodedRows:
        """The rows as numbers, by the encoding learnt from these rows."""
        X, features, _ = encode_columns(self.columns, self.table)
        return EncodedRows(X, self, features)


class EncodedRows(ArrayRows):
    """Labelled rows as numbers, with the table they come from."""

    def __init__(self, X: Array, data: LabelledTable, features: list[str]) -> None:
        super().__init__(X, data.y, data.w)
        self.data, self.features = data, features

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the rows, labels and weights."""
        return fingerprint(self.X, self.data.y, self.data.w)


def labelled_table(X: Any, y: Any = None, sample_weight: Any = None) -> LabelledTable:
    """Split a table into columns, target and weights; leave out rows without a target or with weight 0."""
    if isinstance(X, LabelledTable):
        if y is not None or sample_weight is not None:
            raise DataError(
                got="y or sample_weight beside labelled rows", wanted="labelled rows that carry their own"
            )
        return X
    table = as_table(X)
    if table.num_rows == 0:
        raise DataError(got="a table with no rows", wanted="at least one row")
    named = [name for name in (y, sample_weight) if isinstance(name, str)]
    target = pick(table, y, "target column") if isinstance(y, str) else _target_array(y, table.num_rows)
    w = _weights(table, sample_weight)
    features = table.drop_columns(named)
    known = pc.is_valid(target).to_numpy(zero_copy_only=False)
    keep = known if w is None else known & (w > 0)
    if not keep.any():
        raise DataError(got="a target that is missing in every row", wanted="rows with a label")
    if not keep.all():
        features, target, w = features.filter(keep), target.filter(keep), None if w is None else w[keep]
    names = (name if isinstance(name, str) else None for name in (y, sample_weight))
    return LabelledTable(
        features, _labels(target, TableTuning()), w, int((~known).sum()), hasattr(X, "__arrow_c_stream__"), *names
    )


def _target_array(y: Any, n_rows: int) -> pa.Array:
    if y is None:
        raise DataError(
            got="no target: this estimator requires y to be passed, but the target y is None",
            wanted="the name of the target column or an array of labels",
        )
    y = column_or_1d(y, warn=True)
    if len(y) != n_rows:
        raise DataError(got=f"{len(y)} labels for {n_rows} rows", wanted="one label for each row")
    try:
        return pa.array(y, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise DataError(got=f"labels of mixed types ({error})", wanted="all text or all numbers") from error


def _weights(table: pa.Table, sample_weight: Any) -> Array | None:
    if isinstance(sample_weight, str):
        column = pick(table, sample_weight, "weight column")
        if column.null_count:
            raise DataError(
                got=f"{column.null_count} missing weight(s) in column {sample_weight!r}",
                wanted="a weight for every row",
                fix="Set them to 0 to leave those rows out.",
            )
        sample_weight = column.to_numpy()
    return check_weights(sample_weight, table.num_rows)


def _labels(target: pa.Array | pa.ChunkedArray, tuning: TableTuning) -> Array:
    """Labels as an array of text, whole numbers or booleans; a quantity is refused."""
    if pa.types.is_dictionary(target.type):
        target = target.cast(target.type.value_type)
    y = np.asarray(target.to_numpy(zero_copy_only=False) if isinstance(target, pa.Array) else target.to_numpy())
    if y.dtype == object and all(isinstance(label, str) for label in y):
        y = y.astype(str)
    if y.dtype.kind not in "biufU":
        raise DataError(
            got=f"a target of type {target.type}",
            wanted="classes: text, whole numbers or true/false",
            fix="Convert the target column to text.",
        )
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        raise DataError(got="a target with infinite values: y contains infinity", wanted="classes")
    distinct = len(np.unique(y))
    kind = type_of_target(y)
    if kind == "continuous" or (y.dtype.kind in "iuf" and distinct > tuning.most_numeric_classes):
        raise DataError(
            got=f"a target that is a quantity, with {distinct:,} different numbers (Unknown label type: continuous)",
            wanted=f"classes: text, true/false, or at most {tuning.most_numeric_classes} different whole numbers",
            fix="This version fits classifiers only; regression is not there yet. Predict a class made from the "
            "quantity (above or below its median, say), or convert the column to text if its numbers are codes.",
        )
    return y


def fingerprint(X: Array, y: Array, w: Array | None) -> str:
    """SHA-256 of encoded rows, labels and weights."""
    digest = hashlib.sha256(repr((X.shape, y.dtype.str)).encode())
    for part in (X, y, np.ones(0) if w is None else w):
        digest.update(np.ascontiguousarray(part).data)
    return digest.hexdigest()
