"""Logistic regression on a mixed table: numbers, dates, yes/no, categories, holes.

    min over β, b of   Σᵢ wᵢ loss(yᵢ, β xᵢ + b) + 1/(2C) |β|²,    xᵢ the encoded row i

The encoding (`certifit.table.columns`) is learnt from the training rows; the certificate is the one of the
logistic regression on the encoded rows. The whole table is held in memory.
"""

from __future__ import annotations

import hashlib
from typing import Any, NamedTuple, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.metrics import accuracy_score
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_is_fitted, column_or_1d

from certifit.core import Objective
from certifit.exceptions import DataError, warn_caller
from certifit.linear_model.logistic.logistic import LogisticRegression
from certifit.rows import Array
from certifit.rows.checks import check_weights
from certifit.table.columns import as_table, encode_columns, learn_columns, pick

MAX_NUMERIC_CLASSES = 50  # a target with more distinct numbers than this is a quantity, not a class


class Labelled(NamedTuple):
    """The rows that can be learnt from: those with a target and a positive weight."""

    table: pa.Table  # the columns that are neither target nor weight
    y: Array  # (n,) labels
    w: Array | None  # (n,) weights
    unlabelled: int  # rows left out because their target is missing


class Encoded(NamedTuple):
    """Labelled rows as numbers, ready for `model_` and for the checker."""

    X: Array  # (n, d)
    y: Array  # (n,) labels
    w: Array | None  # (n,) weights
    fingerprint: str  # SHA-256 of the three


class TableClassifier(CallbackSupportMixin, ClassifierMixin, BaseEstimator):
    """Classify the rows of a table whose columns may be text and may have holes.

    Parameters
    ----------
    C : inverse strength of the penalty, as in LogisticRegression
    class_weight : mapping from class to weight, 'balanced' or None
    tol : relative duality gap at which the fit stops
    max_iter : most iterations of the fit

    Attributes
    ----------
    columns_ : what was found in each column and what becomes of it
    features_ : names of the columns of numbers that the model sees
    model_ : the fitted LogisticRegression
    certificate_ : what is proved about the fit
    classes_ : the labels
    target_, weight_ : names of the target and weight columns (None where arrays were given)
    n_rows_, unlabelled_ : rows learnt from; rows left out because their target was missing
    fingerprint_ : hash of the encoded training rows, labels and weights

    >>> from certifit import load_penguins
    >>> model = TableClassifier().fit(load_penguins(), "species")
    >>> model.certificate_.holds, model.columns_[0].name, model.columns_[0].kind
    (True, 'island', 'category')
    """

    def __init__(self, C: float = 1.0, *, class_weight: Any = None, tol: float = 1e-6, max_iter: int = 1000) -> None:
        self.C = C
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn the encoding and the model.

        Parameters
        ----------
        X : Arrow table, pandas or polars frame, or 2-D array
        y : name of the target column in X, or an array of labels
        sample_weight : name of a column in X, or an array of weights
        """
        for name in [name for name in self.__dict__ if name.endswith("_")]:
            del self.__dict__[name]
        context = self._init_callback_context(max_subtasks=1)
        context.call_on_fit_task_begin(estimator=self, X=X, y=y)
        data = labelled(X, y, sample_weight)
        if len(np.unique(data.y)) < 2:
            raise DataError(
                got=f"a target with one class: {data.y[0].item()!r}",
                wanted="at least two classes",
                fix="Check that the right column is the target and that no filter removed the other classes.",
            )
        w = np.ones(len(data.y)) if data.w is None else data.w
        columns = learn_columns(data.table, w)
        if all(column.kind == "left out" for column in columns):
            raise DataError(
                got="no column to learn from: " + ", ".join(f"{c.name!r} {c.done}" for c in columns),
                wanted="at least one column, beside the target, that varies",
            )
        matrix, features, _ = encode_columns(columns, data.table)
        model = LogisticRegression(C=self.C, class_weight=self.class_weight, tol=self.tol, max_iter=self.max_iter)
        with context.subcontext(task_name="fit").propagate_callback_context(model):
            model.fit(matrix, data.y, data.w)
        if hasattr(X, "__arrow_c_stream__"):  # a table with names, not an array
            self.feature_names_in_ = np.array(data.table.column_names, dtype=object)
        self.n_features_in_ = data.table.num_columns
        self.columns_, self.features_, self.model_ = columns, features, model
        self.classes_, self.certificate_, self.n_iter_ = model.classes_, model.certificate_, model.n_iter_
        self.target_ = y if isinstance(y, str) else None
        self.weight_ = sample_weight if isinstance(sample_weight, str) else None
        self.n_rows_, self.unlabelled_ = len(data.y), data.unlabelled
        self.fingerprint_ = _fingerprint(matrix, data.y, data.w)
        context.call_on_fit_task_end(estimator=self, X=X, y=y)
        return self

    def encode(self, X: Any) -> tuple[Array, list[str]]:
        """The matrix (n, d) that the model sees, and the names of its columns.

        Columns are found by name, so their order and further columns do not matter. What training did not see
        (new categories, holes in a column that had none) is counted in a warning.
        """
        check_is_fitted(self)
        table = as_table(X)
        d = self.n_features_in_
        if not hasattr(self, "feature_names_in_") and table.num_columns != d:  # fitted to an array
            raise DataError(
                got=f"an array of another width: X has {table.num_columns} features, but TableClassifier is "
                f"expecting {d} features as input",
                wanted=f"the {d} columns of the training array",
            )
        matrix, names, surprises = encode_columns(self.columns_, table)
        for sentence in surprises:
            warn_caller(f"TableClassifier: {sentence}")
        return matrix, names

    def encode_labelled(self, X: Any, y: Any = None, sample_weight: Any = None) -> Encoded:
        """Rows, labels and weights as `fit` encoded them; y and sample_weight default to the columns used there."""
        check_is_fitted(self)
        y = self.target_ if y is None else y
        sample_weight = self.weight_ if sample_weight is None else sample_weight
        data = labelled(X, y, sample_weight)
        matrix, _ = self.encode(data.table)
        return Encoded(matrix, data.y, data.w, _fingerprint(matrix, data.y, data.w))

    def decision_function(self, X: Any) -> Array:
        """Scores before the probabilities: (n,) for two classes, (n, k) for more."""
        matrix, _ = self.encode(X)
        return self.model_.decision_function(matrix)

    def predict_proba(self, X: Any) -> Array:
        """(n, k) probabilities of the classes."""
        matrix, _ = self.encode(X)
        return self.model_.predict_proba(matrix)

    def predict(self, X: Any) -> Array:
        """(n,) most probable labels."""
        matrix, _ = self.encode(X)
        return self.model_.predict(matrix)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Share of the labelled rows classified correctly."""
        data = self.encode_labelled(X, y, sample_weight)
        return float(accuracy_score(data.y, self.model_.predict(data.X), sample_weight=data.w))

    def objective(self, X: Any, y: Any = None, sample_weight: Any = None) -> Objective:
        """The fitted model's objective on these rows: total, data term and penalty."""
        data = self.encode_labelled(X, y, sample_weight)
        return self.model_.objective(data.X, data.y, data.w)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        return tags


def labelled(X: Any, y: Any, sample_weight: Any = None) -> Labelled:
    """Split a table into columns, target and weights; leave out rows without a target or with weight 0."""
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
    return Labelled(features, _labels(target), w, int((~known).sum()))


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


def _labels(target: pa.Array | pa.ChunkedArray) -> Array:
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
    if kind == "continuous" or (y.dtype.kind in "iuf" and distinct > MAX_NUMERIC_CLASSES):
        raise DataError(
            got=f"a target that is a quantity, with {distinct:,} different numbers (Unknown label type: continuous)",
            wanted=f"classes: text, true/false, or at most {MAX_NUMERIC_CLASSES} different whole numbers",
            fix="This version fits classifiers only; regression is not there yet. Predict a class made from the "
            "quantity (above or below its median, say), or convert the column to text if its numbers are codes.",
        )
    return y


def _fingerprint(X: Array, y: Array, w: Array | None) -> str:
    digest = hashlib.sha256(repr((X.shape, y.dtype.str)).encode())
    for part in (X, y, np.ones(0) if w is None else w):
        digest.update(np.ascontiguousarray(part).data)
    return digest.hexdigest()
