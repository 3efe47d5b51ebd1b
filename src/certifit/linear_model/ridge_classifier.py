"""Ridge regression on labels as a classifier.

    min over β, b of   Σᵢ wᵢ (yᵢ - β·xᵢ - b)² / 2 + alpha/2 |β|²,    y = 1 for rows of a class, -1 for all others

Two classes need one such problem, more one for each class; the class with the highest score is chosen. Several
columns of 0 and 1 are labels of which a row may have any number: one problem for each, and a label where its score is
above 0.
Reference: Rifkin, Yeo & Poggio, "Regularized least-squares classification" (2003).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse

from certifit.checkers.linear_model.ridge_classifier import column_signs, label_signs, sign_problems
from certifit.checkers.linear_model.several_targets import target_columns
from certifit.core import Attributes, Estimator, Objective
from certifit.core.estimator import with_callbacks
from certifit.core.settings import LOOP, Setting, Settings
from certifit.exceptions import DataError
from certifit.linear_model.linear_scores import LinearScores
from certifit.linear_model.regressors import Ridge
from certifit.linear_model.several_targets import fit_targets
from certifit.rows import Array, Block, Rows, apply_class_weight, encode_labels
from certifit.rows.rows import Relabel


class RidgeClassifier(LinearScores, Estimator):
    """Least squares on labels of ±1, with the penalty alpha |β|².

    Parameters
    ----------
    alpha : float, default=1.0
        Strength of the penalty, of all rows together.
    fit_intercept : bool, default=True
        Whether to add an intercept, which is never penalised.
    max_iter : int or None, default=None
        Most passes over the rows; None means 1000, of which one or two are needed.
    tol : float, default=1e-6
        Relative gap at which to stop: objective - minimum <= tol * objective is then proved for every class.
    class_weight : dict, 'balanced' or None, default=None
    positive : bool, default=False
        Hold all coefficients at 0 or above; the intercept stays free.
    max_time : float or None, default=None
        Seconds for each class after which the best fit so far is taken, with what is proved about it.
    copy_X, random_state, solver : ignored
        Accepted so that scikit-learn's calls run; X is never changed, and the fit is deterministic.

    Attributes
    ----------
    coef_ : (d,) for two classes, (k, d) for more, or for k labels
    intercept_ : (1,) or (k,)
    classes_ : (k,)
        Of several labels the numbers of their columns.
    multilabel_ : bool
        Whether y had several columns.
    solver_ : str
        The name that `solver` asks for, 'newton' for 'auto'. Whatever it is, the fit is by Newton's method.
    certificate_ : Certificate
        Of all classes together; each class's gap is in it.
    n_iter_ : (1,) or (k,)
        Number of updates (diagnostic).
    history_ : for each class objective, relative gap and seconds at every pass (diagnostic)

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from certifit import RidgeClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = RidgeClassifier().fit(X, y)
    >>> round(model.score(X, y), 3), model.certificate_.holds
    (0.853, True)
    """

    target = "classes"
    sparse = True
    settings: ClassVar[Settings] = {
        **LOOP,
        "max_iter": Setting(int, least=0, none=True),
        "alpha": Setting(float, least=0, below=np.inf),
        "positive": Setting(bool),
    }
    several_labels: ClassVar[bool] = True  # whether y may have several columns
    diagnostics: ClassVar[tuple[str, ...]] = ("n_iter_", "history_")
    ignored: ClassVar[tuple[str, ...]] = ("copy_X", "random_state", "solver")
    differences: ClassVar[dict[str, str]] = {
        **Ridge.differences,
        "coef_": "float64 also for float32 rows: the certificate is about the numbers that are stored.",
        "class_weight": "Not taken for several labels for each row (a y of 0 and 1 with several columns).",
    }

    def __init__(
        self,
        alpha=1.0,
        *,
        fit_intercept=True,
        copy_X=True,
        max_iter=None,
        tol=1e-6,
        class_weight=None,
        solver="auto",
        positive=False,
        random_state=None,
        max_time=None,
    ):
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.copy_X = copy_X
        self.max_iter = max_iter
        self.tol = tol
        self.class_weight = class_weight
        self.solver = solver
        self.positive = positive
        self.random_state = random_state
        self.max_time = max_time

    solver_ = Ridge.solver_

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit to rows and their classes; several columns of 0 and 1 are labels of which a row has any number.

        Parameters
        ----------
        X, y, sample_weight : as in every `fit` of certifit
        """
        y = y.toarray() if sparse.issparse(y) else y
        several = (target_columns(y) or 1) if self.several_labels else 1
        more = {"several": several} if several > 1 else {}
        return self._fit_rows(X, y, sample_weight, targets=several, **more)

    def _fit(self, rows: Rows, previous: Attributes, several: int = 1) -> Attributes:
        if several > 1 and self.class_weight is not None:
            raise DataError(
                got=f"class_weight={self.class_weight!r} for {several} labels of each row",
                wanted="class_weight=None", fix="Weight the rows by sample_weight.",
            )  # fmt: skip
        if several > 1:
            classes, numbers, signs = np.arange(several), [*range(several)], column_signs
        else:
            labels = encode_labels(rows)
            rows = apply_class_weight(labels, self.class_weight)
            classes, numbers, signs = labels.classes, sign_problems(len(labels.classes)), label_signs
        limits = {"tol": self.tol, "max_iter": self.max_iter, "max_time": self.max_time}
        models = [
            Ridge(self.alpha, fit_intercept=self.fit_intercept, positive=self.positive, **limits) for _ in numbers
        ]
        shared = {"classes_": classes, "multilabel_": several > 1}
        found = fit_targets(models, self._watch, rows, [partial(signs, k) for k in numbers], {}, shared)
        kept = ("coef_", "intercept_", "n_iter_", "history_", "certificate_")
        return {**shared, **{name: found[name] for name in kept}, "coef_": flat_coefficients(found["coef_"])}

    def predict(self, X: Any) -> Array:
        """The class of the highest score of each row; of several labels 1 for those with a score above 0."""
        if not getattr(self, "multilabel_", False):
            return super().predict(X)
        return (self.decision_function(X) > 0).astype(int)

    def objective(self, X: Any, y: Any = None, sample_weight: Any = None) -> Objective:
        """Half the squared residuals of the labels ±1 (data term) plus the penalty, on these rows."""
        several = len(self.classes_) if getattr(self, "multilabel_", False) else 1
        rows = self._rows(X, y, sample_weight, target="classes", targets=several)
        coef = self._dense_coef
        if several == 1:
            rows = apply_class_weight(encode_labels(rows, self.classes_), self.class_weight)
        targets = [partial(column_signs, k) for k in range(several)] if several > 1 else [
            partial(label_signs, k) for k in sign_problems(len(self.classes_))
        ]  # fmt: skip
        data = float(rows.sum(partial(_half_squares, coef, self.intercept_, targets)))
        penalty = 0.5 * float(self.alpha) * float((coef**2).sum())
        return Objective(data + penalty, data, penalty)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = tags.target_tags.multi_output = self.several_labels
        return tags


def flat_coefficients(coef: Array) -> Array:
    """Coefficients (k, d) of all scores, or (d,) of a single one, as scikit-learn has them."""
    return coef[0] if len(coef) == 1 else coef


def _half_squares(coef: Array, intercept: Array, targets: Sequence[Relabel], block: Block) -> float:
    """Half the weighted squared residuals of a block, of all classes with a score."""
    residuals = block.X @ coef.T + intercept
    for column, signs in enumerate(targets):
        residuals[:, column] -= signs(block.y, block.w)[0]
    return 0.5 * float(block.w @ (residuals**2).sum(axis=1))


__all__ = ["RidgeClassifier"]
