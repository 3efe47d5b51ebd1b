"""A generalised linear model, or another regression, of a table with numbers, dates, yes/no, categories and holes.

    min over β, b of   Σᵢ wᵢ d(yᵢ, μᵢ) / 2 + alpha/2 |β|²,    g(μᵢ) = β xᵢ + b,    xᵢ the encoded row i

d is the unit deviance of a family that is chosen from y (`table.targets`), g its link.
"""

from __future__ import annotations

import warnings
from typing import Any, ClassVar

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score

from certifit.core import Attributes, Setting
from certifit.core.settings import Settings
from certifit.exceptions import warn_caller
from certifit.linear_model.glm.glm import CollinearWarning, GeneralizedLinearRegressor
from certifit.rows import Array, Rows
from certifit.table.labelled_table import LabelledRows
from certifit.table.overdispersion import (
    OverdispersionTuning,
    PredictedCounts,
    likeliest_theta,
    score_statistic,
)
from certifit.table.table_model import LabelledData, TableModel

FAMILIES = ("auto", "gaussian", "poisson", "negative_binomial", "gamma")


class TableRegressor(RegressorMixin, TableModel):
    """Predict a quantity from a table whose columns may be text and may have missing entries.

    The family is chosen from y unless it is named. Whole numbers from 0 up (three different ones or more, some below
    10, their mean at most 1000) are counts: Poisson with a log link, or negative binomial where they vary more than
    Poisson's law allows (Dean and Lawless's score test above 3), its theta the likeliest. Amounts that are all
    positive and skewed to the right (skewness above 1) are gamma's with a log link. Anything else is fitted by least
    squares. `family_` and `family_because_` say what was chosen and why.

    Parameters
    ----------
    alpha : float, default=1.0
        Strength of the penalty alpha/2 |β|² beside half of the deviance, as in Ridge; 0 gives maximum likelihood,
        with standard errors in `model_`.
    family : 'auto', 'gaussian', 'poisson', 'negative_binomial' or 'gamma'
    tol : relative gap at which the fit stops
    max_iter : most iterations of the fit
    keep : names of columns to use though they only tell the rows apart
        Row numbers, columns without a name and identifiers are left out otherwise; `left_out_` names them.
    categorical : names of columns of numbers that are categories
    missing_words : words that stand for missing entries, beside ?, -, n/a and the like; -999 also as a number
    dates : columns of text to read as dates: "name", day before month where both orders fit, or "name=format"
    estimator : another of certifit's regressors to fit to the encoded columns; None for a generalised linear model
        alpha, family, tol and max_iter are then its own.

    Attributes
    ----------
    columns_ : what was found in each column and what becomes of it
    left_out_ : the columns that are not used, and why
    features_ : names of the columns of numbers that the model sees
    model_ : the fitted GeneralizedLinearRegressor, or the fitted copy of `estimator`
    family_ : the family of the model, unless an estimator was given
    family_because_ : why this family (diagnostic)
    certificate_ : what is proved about the fit
    target_, weight_ : names of the target and weight columns (None where arrays were given)
    n_rows_, unlabelled_ : rows learnt from; rows left out because their target was missing
    n_iter_ : number of updates of the last fit (diagnostic)
    fingerprint_ : hash of the encoded training rows, targets and weights (diagnostic)

    Examples
    --------
    >>> from certifit import load_penguins
    >>> model = TableRegressor().fit(load_penguins(), "body_mass_g")
    >>> model.certificate_.holds, model.family_, model.unlabelled_
    (True, 'gaussian', 2)
    """

    target = "numbers"
    task = "regression"
    settings: ClassVar[Settings] = {
        **TableModel.settings,
        "alpha": Setting(float, least=0, below=np.inf),
        "family": Setting(choices=FAMILIES),
    }
    diagnostics: ClassVar[tuple[str, ...]] = (*TableModel.diagnostics, "family_because_")
    _tuning: ClassVar[OverdispersionTuning] = OverdispersionTuning()

    family_because_: str

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        family: str = "auto",
        tol: float = 1e-6,
        max_iter: int = 1000,
        keep: Any = (),
        categorical: Any = (),
        missing_words: Any = (),
        dates: Any = (),
        estimator: Any = None,
    ) -> None:
        self.alpha = alpha
        self.family = family
        self.tol = tol
        self.max_iter = max_iter
        self.keep = keep
        self.categorical = categorical
        self.missing_words = missing_words
        self.dates = dates
        self.estimator = estimator

    def _fit(self, rows: Rows, previous: Attributes) -> Attributes:
        assert isinstance(rows, LabelledRows)
        if self.estimator is not None:
            return self._fitted(rows, self._fit_estimator(rows))
        family, why = (self.family, "as asked") if self.family != "auto" else rows.data.choose_family()
        model = self._fit_family(rows, "poisson" if family == "negative_binomial" else family)
        if family == "poisson" and self.family == "auto":
            statistic = score_statistic(PredictedCounts(rows, model))
            if statistic > self._tuning.significant:
                family, why = "negative_binomial", f"{why}, and more varied than Poisson's (score {statistic:.2g})"
        if family == "negative_binomial":
            model = self._fit_theta(rows, model)
        return {**self._fitted(rows, model), "family_because_": why}

    def _fit_family(self, rows: Any, family: str, theta: float = 1.0) -> GeneralizedLinearRegressor:
        model = GeneralizedLinearRegressor(
            family, alpha=self._alpha_per_row(rows.data), theta=theta, tol=self.tol, max_iter=self.max_iter
        )
        with self._inner_fit(model), warnings.catch_warnings():
            warnings.simplefilter("ignore", CollinearWarning)  # it would speak of columns by number
            model.fit(rows)
        if len(model.collinear_):
            lost = ", ".join(repr(rows.features[j]) for j in model.collinear_)
            words = "combinations of the columns before them, left out (coefficient 0)"
            warn_caller(f"TableRegressor: {lost}: {words}", CollinearWarning)
        return model

    def _fit_theta(self, rows: Any, model: GeneralizedLinearRegressor) -> GeneralizedLinearRegressor:
        """Fit means and theta in turn until theta stays (Venables & Ripley, Modern Applied Statistics with S)."""
        theta = 0.0
        for _ in range(self._tuning.rounds):
            found = likeliest_theta(PredictedCounts(rows, model), self._tuning, theta)
            if abs(found - theta) <= self._tuning.close * theta or not np.isfinite(found):
                break
            theta = found
            model = self._fit_family(rows, "negative_binomial", theta)
        return model

    def _alpha_per_row(self, data: LabelledData) -> float:
        """The penalty's strength beside the mean over rows, as the model inside takes it."""
        return float(self.alpha / data.total_weight)

    @property
    def family_(self) -> str:
        """The family of the fitted model."""
        if self.estimator is not None:
            raise AttributeError("the estimator that was given has no family")
        return str(self.model_.family)

    def _inner_agreement(self, data: LabelledData) -> dict[str, bool]:
        inner = self.model_
        alpha = self._alpha_per_row(data)
        found = {
            "alpha is not that of model_": bool(abs(inner.alpha - alpha) <= 1e-12 * alpha),
            "model_ has another penalty or link": (inner.l1_ratio, inner.link, inner.fit_intercept)
            == (0.0, "auto", True),
            "the family is not the one that the target asks for": self._is_right_family(data),
        }
        if inner.family == "negative_binomial":
            theta = likeliest_theta(self._counts(data), self._tuning)
            found["theta is not the likeliest"] = abs(theta - inner.theta) <= 1e-3 * inner.theta
        return found

    def _is_right_family(self, data: LabelledData) -> bool:
        fitted = self.model_.family
        if self.family != "auto":
            return fitted == self.family or (self.family, fitted) == ("negative_binomial", "poisson")
        wanted = data.choose_family().family
        if wanted != "poisson":
            return fitted == wanted
        statistic, limit = score_statistic(self._counts(data)), self._tuning.significant
        if fitted == "poisson":
            return statistic <= limit * (1 + 1e-3)
        # The test was made at Poisson's means; at those of the other family it says the same, but for its border.
        return fitted == "negative_binomial" and statistic > limit / 2

    def _counts(self, data: LabelledData) -> Any:
        return PredictedCounts(data.encode_as(self.columns_), self.model_)

    def predict_interval(self, X: Any, coverage: float = 0.9) -> Array:
        """(n, 2) ends of an interval around each prediction, as wide as errors of unseen rows were.

        For models of `certifit.fit`, which knows such rows; about 1 - coverage of all new rows are outside.
        """
        reach, middle = self.unseen_radius(coverage), np.asarray(self.predict(X))
        return np.column_stack([middle - reach, middle + reach])

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """D², the share of the deviance that is explained: R² for least squares and for a given estimator."""
        rows = self.encode_labelled(X, y, sample_weight)
        if self.estimator is None:
            return self.model_.score(rows, None)
        said, true, w = self._said_and_true(rows)
        return float(r2_score(true, said, sample_weight=w))
