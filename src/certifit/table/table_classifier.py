"""Logistic regression on a mixed table: numbers, dates, yes/no, categories, missing entries.

    min over β, b of   Σᵢ wᵢ loss(yᵢ, β xᵢ + b) + 1/(2C) |β|²,    xᵢ the encoded row i

The encoding (`table.columns`) is learnt from the training rows; the certificate is the one of the logistic regression
on the encoded rows. The whole table is held in memory.
"""

from __future__ import annotations

import warnings
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils.validation import check_is_fitted

from certifit.core import LOOP, Attributes, Estimator, Objective, Setting
from certifit.core.settings import Settings
from certifit.exceptions import CertificateWarning, DataError, warn_caller
from certifit.linear_model.logistic.logistic import LogisticRegression
from certifit.rows import Array, Rows
from certifit.table.columns import as_table, encode_columns
from certifit.table.labelled_table import EncodedRows, LabelledTable, labelled_table


class TableClassifier(ClassifierMixin, Estimator):
    """Classify the rows of a table whose columns may be text and may have missing entries.

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
    n_iter_ : number of updates (diagnostic)
    fingerprint_ : hash of the encoded training rows, labels and weights (diagnostic)

    >>> from certifit import load_penguins
    >>> model = TableClassifier().fit(load_penguins(), "species")
    >>> model.certificate_.holds, model.columns_[0].name, model.columns_[0].kind
    (True, 'island', 'category')
    """

    target = "classes"
    missing = True
    settings: ClassVar[Settings] = {
        "C": Setting(float, above=0, fix="Smaller C means more penalty."),
        "tol": LOOP["tol"],
        "max_iter": LOOP["max_iter"],
    }

    diagnostics: ClassVar[tuple[str, ...]] = ("n_iter_", "fingerprint_")

    def __init__(self, C: float = 1.0, *, class_weight: Any = None, tol: float = 1e-6, max_iter: int = 1000) -> None:
        self.C = C
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter

    def _rows_to_fit(self, X: Any, y: Any, sample_weight: Any, reset: bool = True, targets: int = 1) -> EncodedRows:
        """Labelled rows of a table (X may be a `LabelledTable` already), with the encoding learnt from them."""
        data = labelled_table(X, y, sample_weight)
        _check_learnable(data)
        self.n_features_in_ = data.table.num_columns
        if data.named:
            self.feature_names_in_ = np.array(data.table.column_names, dtype=object)
        return data.encode()

    def _fit(self, rows: Rows, previous: Attributes) -> Attributes:
        assert isinstance(rows, EncodedRows)
        model = LogisticRegression(C=self.C, class_weight=self.class_weight, tol=self.tol, max_iter=self.max_iter)
        with self._watch.inner_fit(model), warnings.catch_warnings():
            warnings.simplefilter("ignore", CertificateWarning)  # said once, by this estimator
            model.fit(rows)
        return {
            "columns_": rows.data.columns,
            "features_": rows.features,
            "model_": model,
            "classes_": model.classes_,
            "n_iter_": model.n_iter_,
            "target_": rows.data.target,
            "weight_": rows.data.weight,
            "n_rows_": rows.n_rows,
            "unlabelled_": rows.data.unlabelled,
            "fingerprint_": rows.fingerprint,
            "certificate_": model.certificate_,
        }

    def encode(self, X: Any) -> tuple[Array, list[str]]:
        """The matrix (n, d) that the model sees, and the names of its columns.

        Columns are found by name, so their order and further columns do not matter. What training did not see
        (new categories, missing entries in a column that had none) is counted in a warning.
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

    def encode_labelled(self, X: Any, y: Any = None, sample_weight: Any = None) -> EncodedRows:
        """Rows, labels and weights as `fit` encoded them; y and sample_weight default to the columns used there."""
        check_is_fitted(self)
        y = self.target_ if y is None else y
        sample_weight = self.weight_ if sample_weight is None else sample_weight
        data = labelled_table(X, y, sample_weight)
        matrix, features = self.encode(data.table)
        return EncodedRows(matrix, data, features)

    def encoding_changes(self, X: Any, y: Any = None, sample_weight: Any = None) -> list[str]:
        """What is not as a fit to this table would have left it, in words; `audit` asks for it.

        The encoding is learnt again. The order of the columns and how they are stored do not matter.
        """
        check_is_fitted(self)
        y = self.target_ if y is None else y
        sample_weight = self.weight_ if sample_weight is None else sample_weight
        data = labelled_table(X, y, sample_weight)
        again = {column.name: column for column in data.columns}
        found = [
            f"column {column.name!r} is encoded otherwise than these rows teach"
            for column in self.columns_
            if column.name not in again or not column.is_like(again[column.name])
        ]
        inner = self.model_
        same = {
            "features_ are not those of columns_": self.features_ == [f for c in self.columns_ for f in c.features],
            "classes_ are not those of model_": np.array_equal(self.classes_, inner.classes_),
            "n_rows_ is not the number of labelled rows": self.n_rows_ == len(data.y),
            "unlabelled_ is not the number of rows without a label": self.unlabelled_ == data.unlabelled,
            **{
                f"{name} is not that of model_": getattr(self, name) == getattr(inner, name)
                for name in ("C", "class_weight", "tol", "max_iter")
            },
            "model_ has another penalty": (inner.penalty, inner.l1_ratio, inner.fit_intercept) == ("l2", 0.0, True),
        }
        return found + [words for words, right in same.items() if not right]

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
        return float(accuracy_score(data.y, self.model_.predict(data.X), sample_weight=data.data.w))

    def objective(self, X: Any, y: Any = None, sample_weight: Any = None) -> Objective:
        """The fitted model's objective on these rows: total, data term and penalty."""
        data = self.encode_labelled(X, y, sample_weight)
        return self.model_.objective(data)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        return tags


def _check_learnable(data: LabelledTable) -> None:
    """Refuse a table with one class, or without a column that varies."""
    if len(np.unique(data.y)) < 2:
        raise DataError(
            got=f"a target with one class: {data.y[0].item()!r}",
            wanted="at least two classes",
            fix="Check that the right column is the target and that no filter removed the other classes.",
        )
    if all(column.kind == "left out" for column in data.columns):
        raise DataError(
            got="no column to learn from: " + ", ".join(f"{c.name!r} {c.done}" for c in data.columns),
            wanted="at least one column, beside the target, that varies",
        )
