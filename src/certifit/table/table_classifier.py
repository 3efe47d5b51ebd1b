"""Logistic regression, or another classifier, on a mixed table: numbers, dates, yes/no, categories, missing entries.

min over β, b of   Σᵢ wᵢ loss(yᵢ, β xᵢ + b) + 1/(2C) |β|²,    xᵢ the encoded row i
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from certifit.core import Attributes, Setting
from certifit.core.settings import Settings
from certifit.exceptions import DataError
from certifit.linear_model.logistic.logistic import LogisticRegression
from certifit.rows import Array, Rows
from certifit.table.labelled_table import LabelledRows
from certifit.table.portfolio.calibration import strangeness
from certifit.table.table_model import LabelledData, TableModel


def _answers(method: str) -> Callable[[Any], bool]:
    """Whether the estimator that was given has a method; logistic regression has all."""
    return lambda model: model.estimator is None or hasattr(getattr(model, "model_", model.estimator), method)


class TableClassifier(ClassifierMixin, TableModel):
    """Classify the rows of a table whose columns may be text and may have missing entries.

    A fit takes any table: a data frame, an Arrow table, the path of a CSV or Parquet file, a query, an array.
    `fit("t.csv", "kind")` names the target column.

    Parameters
    ----------
    C : inverse strength of the penalty, as in LogisticRegression
    class_weight : mapping from class to weight, 'balanced' or None
    tol : relative duality gap at which the fit stops
    max_iter : most iterations of the fit
    keep : names of columns to use though they only tell the rows apart
        Row numbers, columns without a name and identifiers are left out otherwise; `left_out_` names them.
    categorical : names of columns of numbers that are categories
    missing_words : words that stand for missing entries, beside ?, -, n/a and the like; -999 also as a number
    dates : columns of text to read as dates: "name", day before month where both orders fit, or "name=format"
    estimator : another of certifit's classifiers to fit to the encoded columns; None for logistic regression
        C, class_weight, tol and max_iter are then its own.

    Attributes
    ----------
    columns_ : what was found in each column and what becomes of it
    left_out_ : the columns that are not used, and why
    features_ : names of the columns of numbers that the model sees
    model_ : the fitted LogisticRegression, or the fitted copy of `estimator`
    certificate_ : what is proved about the fit
    classes_ : the labels
    target_, weight_ : names of the target and weight columns (None where arrays were given)
    n_rows_, unlabelled_ : rows learnt from; rows left out because their target was missing
    n_iter_ : number of updates (diagnostic)
    fingerprint_ : hash of the encoded training rows, labels and weights (diagnostic)

    Examples
    --------
    >>> from certifit import load_penguins
    >>> model = TableClassifier().fit(load_penguins(), "species")
    >>> model.certificate_.holds, model.columns_[0].name, model.columns_[0].kind
    (True, 'island', 'category')
    """

    target = "classes"
    task = "classification"
    settings: ClassVar[Settings] = {
        **TableModel.settings,
        "C": Setting(float, above=0, fix="Smaller C means more penalty."),
    }

    def __init__(
        self,
        C: float = 1.0,
        *,
        class_weight: Any = None,
        tol: float = 1e-6,
        max_iter: int = 1000,
        keep: Any = (),
        categorical: Any = (),
        missing_words: Any = (),
        dates: Any = (),
        estimator: Any = None,
    ) -> None:
        self.C = C
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.keep = keep
        self.categorical = categorical
        self.missing_words = missing_words
        self.dates = dates
        self.estimator = estimator

    def _check_learnable(self, data: LabelledData) -> None:
        if len(data.labels) < 2:
            raise DataError(
                got=f"a target with one class: {data.labels[0].item()!r}",
                wanted="at least two classes",
                fix="Check that the right column is the target and that no filter removed the other classes.",
            )
        super()._check_learnable(data)

    def _fit(self, rows: Rows, previous: Attributes) -> Attributes:
        assert isinstance(rows, LabelledRows)
        if self.estimator is not None:
            model = self._fit_estimator(rows)
        else:
            model = LogisticRegression(C=self.C, class_weight=self.class_weight, tol=self.tol, max_iter=self.max_iter)
            with self._inner_fit(model):
                model.fit(rows)
        return {**self._fitted(rows, model), "classes_": model.classes_}

    def disagreements(self, X: Any, y: Any = None, sample_weight: Any = None) -> list[str]:
        found = super().disagreements(X, y, sample_weight)
        same = np.array_equal(self.classes_, self.model_.classes_)
        return found + ([] if same else ["classes_ are not those of model_"])

    def _inner_agreement(self, data: LabelledData) -> dict[str, bool]:
        inner = self.model_
        return {
            "C is not that of model_": self.C == inner.C,
            "class_weight is not that of model_": self.class_weight == inner.class_weight,
            "model_ has another penalty": (inner.penalty, inner.l1_ratio, inner.fit_intercept) == ("l2", 0.0, True),
        }

    @available_if(_answers("decision_function"))
    def decision_function(self, X: Any) -> Array:
        """Scores before the probabilities: (n,) for two classes, (n, k) for more."""
        check_is_fitted(self)
        return self._map_blocks(X, self.model_.decision_function)

    @available_if(_answers("predict_proba"))
    def predict_proba(self, X: Any) -> Array:
        """(n, k) probabilities of the classes."""
        check_is_fitted(self)
        return self._map_blocks(X, self.model_.predict_proba)

    def predict_set(self, X: Any, coverage: float = 0.9) -> Array:
        """(n, k) which classes are in each row's set: those no stranger than true classes of unseen rows were.

        For models of `certifit.fit`, which knows such rows; a set is wrong for about 1 - coverage of all new rows.
        """
        limit, method = self.unseen_radius(coverage), "predict_proba"
        if not hasattr(self, method):
            method = "decision_function"
        return strangeness({method: getattr(self, method)(X)}) <= limit

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Share of the labelled rows classified correctly."""
        said, true, w = self._said_and_true(self.encode_labelled(X, y, sample_weight))
        return float(accuracy_score(true, said, sample_weight=w))
