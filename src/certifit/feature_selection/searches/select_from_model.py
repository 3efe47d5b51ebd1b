"""Selection of the columns that matter to a fitted model: those whose importance reaches a threshold."""

from __future__ import annotations

from copy import copy, deepcopy
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from certifit.checkers.feature_selection.from_model import (
    FromModelChoice,
    certify_choice,
    check_model,
    check_unseen_rows,
    columns_kept,
    importances_of,
    threshold_of,
)
from certifit.core import Attributes, Certificate, Check, Objective, Setting
from certifit.core.scoring import fit_copy
from certifit.exceptions import DataError
from certifit.feature_selection.searches.subset_search import SubsetSearch
from certifit.rows import ArrayRows, Rows


class SelectFromModel(SubsetSearch):
    """Keep the columns whose importance in a fitted model reaches a threshold.

    Parameters
    ----------
    estimator : estimator with coef_ or feature_importances_ once fitted; it sees arrays without names
    threshold : float, 'mean', 'median', such as '1.25*mean', or None, default=None
        The importance that a column must reach; None is 1e-5 beside an L1 penalty, which makes coefficients 0, and
        the mean of all importances otherwise.
    prefit : bool, default=False
        Whether the estimator is fitted already: it is then copied as it is.
    norm_order : int, inf or -inf, default=1
        The norm over scores, where a column has a coefficient for each of several.
    max_features : int, function of X or None, default=None
        The most columns to keep; threshold=-np.inf keeps exactly so many.
    importance_getter : 'auto', str or callable
        The path of an attribute of the fitted estimator, or a function of it.

    Attributes
    ----------
    estimator_ : the fitted estimator
    support_ : (d,) bool, the columns kept
    threshold_ : float, the importance that they reach
    max_features_ : int, with max_features
    certificate_ : Certificate
        `exact`: the columns are those of the importances, and the estimator passes its own audit. One that audit does
        not know is fitted again and compared.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from certifit import LogisticRegression, SelectFromModel
    >>> X, y = load_wine(return_X_y=True)
    >>> model = SelectFromModel(LogisticRegression()).fit(X / X.std(axis=0), y)
    >>> model.get_support(indices=True), round(model.threshold_, 3)
    (array([ 0,  2,  3,  6,  9, 10, 11, 12]), 1.365)
    >>> model.certificate_.kind, model.certificate_.holds
    ('exact', True)
    """

    settings: ClassVar[Any] = {
        "threshold": Setting(float, none=True, text=True),
        "prefit": Setting(bool),
        "norm_order": Setting(float),
        "max_features": Setting(int, least=0, none=True, other=callable, other_words="a function of X"),
    }
    differences: ClassVar[dict[str, str]] = {
        "fit": "There is no metadata routing: weights are sample_weight.",
        "partial_fit": "Not there: a proof is about all rows that were seen.",
        "prefit": "With prefit=True too, fit comes before transform; it fits nothing but says what is proved.",
    }
    # what other searches have as settings
    cv: Any = None
    scoring: Any = None

    estimator_: Any
    max_features_: int

    def __init__(
        self, estimator, *, threshold=None, prefit=False, norm_order=1, max_features=None, importance_getter="auto"
    ):
        self.estimator = estimator
        self.threshold = threshold
        self.prefit = prefit
        self.norm_order = norm_order
        self.max_features = max_features
        self.importance_getter = importance_getter

    @property
    def missing(self) -> bool:  # type: ignore[override]
        """Return whether X may have NaN: in a fit the estimator decides, such as a pipeline that fills them."""
        return "support_" not in vars(self) or bool(get_tags(self.estimator).input_tags.allow_nan)

    @property
    def finite(self) -> bool:  # type: ignore[override]
        """Return whether infinities are looked for first: as `fit` reads rows, the estimator refuses them."""
        return "support_" in vars(self)

    def _rows_to_fit(self, X: Any, y: Any, sample_weight: Any, reset: bool = True, targets: int = 1) -> Rows:
        self._most = self.max_features(X) if callable(self.max_features) else self.max_features
        if self._most is not None and (not isinstance(self._most, Integral) or self._most < 0):
            raise DataError(got=f"max_features of {self._most!r}", wanted="a whole number of at least 0")
        return super()._rows_to_fit(X, y, sample_weight, reset, targets)

    def _rows_of_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> ArrayRows:
        """Return rows as `fit` reads them: what the estimator sees is for it to refuse, the others are looked at."""
        unfitted = copy(self)
        del unfitted.__dict__["support_"]
        return self._looked_at(unfitted._rows(X, y, sample_weight, target=self.target))

    def _looked_at(self, rows: Rows) -> ArrayRows:
        data = rows.load()
        if not self.prefit:
            allowed = bool(get_tags(self.estimator).input_tags.allow_nan)
            check_unseen_rows(data, getattr(self, "feature_names_in_", None), allowed)
        return data

    def _fit(self, rows: Rows, previous: Attributes) -> Attributes:
        data, most = self._looked_at(rows), self.__dict__.pop("_most")
        self.__dict__["estimator_"] = fitted = self._fitted_estimator(data)
        try:
            inner, facts = self._inner_checks(data)
        finally:
            del self.__dict__["estimator_"]
        importances = importances_of(fitted, self.importance_getter, self.norm_order)
        support = columns_kept(importances, threshold_of(fitted, importances, self.threshold), most)
        choice = FromModelChoice(fitted, support, self.threshold, most, self.importance_getter, self.norm_order)
        return {
            "estimator_": fitted,
            "support_": support,
            **({} if most is None else {"max_features_": int(most)}),
            "certificate_": certify_choice(choice, inner, facts),
        }

    def _fitted_estimator(self, data: ArrayRows) -> Any:
        if self.prefit:
            check_is_fitted(self.estimator)
            return deepcopy(self.estimator)
        even = bool((data.w == 1).all())
        if not even and not has_fit_parameter(self.estimator, "sample_weight"):
            raise DataError(
                got=f"sample_weight, and a {type(self.estimator).__name__} whose fit takes none",
                wanted="an estimator that takes sample_weight",
                fix="Repeat rows instead, or leave the weights out.",
            )
        used = np.flatnonzero(data.w)
        y = None if data.y is None else data.y[used]
        return fit_copy(self.estimator, data.X[used], y, None if even else data.w[used])

    def _inner_checks(self, data: ArrayRows) -> Any:
        """Return the checks of the estimator: its own certificate, where it has one, says what an audit would."""
        own = getattr(self.estimator_, "certificate_", None)
        if self.prefit or not isinstance(own, Certificate):
            return check_model(self, data, None)
        words = {"estimator_": f"{own.kind}: {own.claim}"}
        return (Check("estimator_ fails its own audit (1: yes)", float(not own.holds), 0.0),), words

    @property
    def threshold_(self) -> float:
        """Return the importance that the columns kept reach."""
        importances = importances_of(self.estimator_, self.importance_getter, self.norm_order)
        return threshold_of(self.estimator_, importances, self.threshold)

    def objective(self, X: Any, y: Any = None, sample_weight: Any = None) -> Objective:
        """Return minus the score of the fitted estimator, with all columns, on these rows."""
        data = self._rows(X, y, sample_weight, target=self.target).load()
        more = {} if (data.w == 1).all() else {"sample_weight": data.w}
        loss = -float(self.estimator_.score(data.X, data.y, **more))
        return Objective(loss, loss, 0.0)

    def __sklearn_tags__(self) -> Any:
        tags, inner = super().__sklearn_tags__(), get_tags(self.estimator)
        tags.target_tags.required = inner.target_tags.required
        tags.input_tags.allow_nan = inner.input_tags.allow_nan
        return tags


__all__ = ["SelectFromModel"]
