"""Ridge regression with a strength chosen by cross-validation, as a regressor and as a classifier of labels ±1.

    min over β, b of   Σ wᵢ (yᵢ - β·xᵢ - b)² + alpha |β|²

Without cv every row is left out once, by an identity that needs no further fit; with cv every fold is fitted.
Reference: Golub, Heath & Wahba, Generalized cross-validation as a method for choosing a good ridge parameter (1979).
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from certifit.checkers.linear_model.cross_validated.adapter import classifier_targets, regressor_targets
from certifit.checkers.linear_model.cross_validated.folds import StatedFolds, check_sides
from certifit.checkers.linear_model.cross_validated.ridge import (
    RidgeChoice,
    RidgeSearch,
    RidgeTargets,
    fold_scores,
    leave_one_out_scores,
    ridge_checks,
    weighted_squares,
)
from certifit.checkers.linear_model.ridge_classifier import label_signs, sign_problems
from certifit.checkers.linear_model.several_targets import only_column, pick_target, target_columns
from certifit.core import Attributes, Step
from certifit.core.estimator import with_callbacks
from certifit.core.settings import TOL, Setting, Settings
from certifit.exceptions import DataError
from certifit.linear_model.cross_validated.fold_paths import fit_ridges
from certifit.linear_model.cross_validated.leave_one_out import leave_one_out
from certifit.linear_model.cross_validated.strengths import refuse_strengths
from certifit.linear_model.regressors import PenalisedSquares, Ridge
from certifit.linear_model.ridge_classifier import RidgeClassifier, flat_coefficients
from certifit.linear_model.several_targets import fit_targets
from certifit.rows import Array, ArrayRows, Rows, apply_class_weight, encode_labels
from certifit.rows.folds import FITTED, fold_roles


def _are_strengths(alphas: Any) -> bool:
    """Whether a setting is an array of strengths."""
    given = np.asarray(alphas)
    return given.ndim == 1 and given.size > 0 and bool(((given >= 0) & (given < np.inf)).all())


class RidgeFound(NamedTuple):
    """The strength chosen, its score, and what the choice was made from."""

    choice: RidgeChoice
    attributes: Attributes


class _ChosenRidge:
    """How RidgeCV and RidgeClassifierCV choose the strength."""

    alphas: Any
    fit_intercept: Any
    cv: Any
    scoring: Any
    store_cv_results: Any
    tol: Any
    max_iter: Any
    alpha_per_target: Any = False
    _watch: Any

    alpha_: Any
    best_score_: Any
    cv_results_: Array
    fold_roles_: Array
    fold_coef_: Array
    fold_intercept_: Array

    @property
    def alpha(self) -> Any:
        """The strength chosen."""
        return self.alpha_

    def _search(self, targets: int) -> RidgeSearch:
        alphas = np.atleast_1d(np.asarray(self.alphas, dtype=np.float64))
        per_target = bool(self.alpha_per_target) and targets > 1
        return RidgeSearch(alphas, bool(self.fit_intercept), self.cv, self.scoring, per_target)

    def _refuse_together(self) -> None:
        """Refuse settings that do not go together."""
        refuse_strengths(self.alphas, positive=self.cv is None)
        for name in ("store_cv_results", "alpha_per_target"):
            if self.cv is not None and getattr(self, name):
                raise DataError(
                    got=f"{name}=True with cv={self.cv!r}",
                    wanted="cv=None, which leaves out each row once",
                    fix=f"cv!=None and {name}=True are incompatible: leave one of them out.",
                )

    def _choose(self, targets: RidgeTargets, data: ArrayRows) -> RidgeFound:
        """Choose the strength for these targets."""
        search = self._search(targets.Y.shape[1])
        if search.cv is not None:
            return self._choose_by_folds(search, targets, data)
        predicted = leave_one_out(data, targets.Y, search.alphas, search.free)
        scores = leave_one_out_scores(search, targets, data.w, predicted)
        best = scores.argmax(axis=0)
        if search.per_target:
            alpha: Any = search.alphas[best]
            score: Any = scores[best, np.arange(scores.shape[1])]
        else:
            alpha, score = float(search.alphas[best]), float(scores[best])
        table, kept = None, {}
        if self.store_cv_results:
            table = weighted_squares(targets, data.w, predicted) if search.scoring is None else predicted
            table = np.moveaxis(table, 0, -1)
            flat = targets.classes is None and targets.scored.ndim == 1
            kept = {"cv_results_": table[:, 0] if flat else table}
        return RidgeFound(RidgeChoice(alpha, score, table, None), {"alpha_": alpha, "best_score_": score, **kept})

    def _choose_by_folds(self, search: RidgeSearch, targets: RidgeTargets, data: ArrayRows) -> RidgeFound:
        roles = fold_roles(search.cv, data.X, targets.scored, classes=targets.classes is not None)
        check_sides(roles, data.w, search.cv)
        numbered, coef, intercept = ArrayRows(data.X, np.arange(data.n_rows), data.w), [], []
        with self._watch.loop("folds", len(roles), partial(_last_fit, targets)) as watch:
            for role in roles:
                watch.begin()
                fitted = numbered.take(np.flatnonzero(role & FITTED))
                made = fit_ridges(fitted, targets.Y[fitted.y], search.alphas, search.free)
                coef.append(made[0])
                intercept.append(made[1])
                if watch.end((made[0][-1], made[1][-1]), Step(None, float(data.n_rows), np.inf), self.tol):
                    break
        folds = StatedFolds(roles[: len(coef)], np.array(coef), np.array(intercept))
        scores = fold_scores(search, targets, folds, data).mean(axis=0)
        best = int(scores.argmax())
        alpha, score = float(search.alphas[best]), float(scores[best])
        attributes = {
            "alpha_": alpha,
            "best_score_": score,
            "fold_roles_": folds.roles,
            "fold_coef_": folds.coef,
            "fold_intercept_": folds.intercept,
        }
        return RidgeFound(RidgeChoice(alpha, score, None, folds), attributes)

    def _model(self, alpha: float) -> Ridge:
        """The model of all rows and one target with this strength."""
        return Ridge(alpha, fit_intercept=self.fit_intercept, tol=self.tol, max_iter=self.max_iter)

    def _with_choice(
        self, found: Attributes, chosen: RidgeFound, targets: RidgeTargets, data: ArrayRows
    ) -> Attributes:
        """The fitted attributes of all rows, with the choice and its checks."""
        search = self._search(targets.Y.shape[1])
        checks = ridge_checks(search, chosen.choice, targets, self.tol, data)
        certificate = found["certificate_"]
        return {
            **found,
            **chosen.attributes,
            "certificate_": replace(certificate, checks=(*certificate.checks, *checks)),
        }


def _last_fit(targets: RidgeTargets, last: tuple[Array, Array]) -> Attributes:
    """Fitted attributes after the last fit of a fold."""
    coef, intercept = last
    if targets.classes is not None:
        return {"coef_": coef, "intercept_": intercept, "classes_": targets.classes}
    flat = targets.scored.ndim == 1
    return {"coef_": coef[0] if flat else coef, "intercept_": intercept[0] if flat else intercept}


_SETTINGS: Settings = {
    "alphas": Setting(float, least=0, below=np.inf, other=_are_strengths, other_words="an array of such numbers"),
    "store_cv_results": Setting(bool),
    "tol": TOL,
    "max_iter": Setting(int, least=0, none=True),
}


class RidgeCV(_ChosenRidge, PenalisedSquares):
    """Ridge regression with the strength of its penalty chosen by leave-one-out or by folds.

    Parameters
    ----------
    alphas : array or float, default=(0.1, 1.0, 10.0)
        Strengths to try, of all rows together; above 0 without cv.
    fit_intercept : bool, default=True
        Whether to add an intercept, which is never penalised.
    scoring : name, callable or None, default=None
        What is largest at the best strength; None is minus the mean squared error, or R² with cv.
    cv : int, splitter, iterable or None, default=None
        Folds; None leaves out each row once, by an identity that needs no further fit.
    store_cv_results : bool, default=False
        Whether to keep `cv_results_`; without cv.
    alpha_per_target : bool, default=False
        Whether each target has a strength of its own; without cv.
    tol : float, default=1e-6
        Relative gap of the fit to all rows; fits of folds are proved to ten times that.
    max_iter : int or None, default=None
        Most passes over the rows of the fit to all of them; None means 1000, of which one or two are needed.
    gcv_mode : ignored
        Accepted so that scikit-learn's calls run: rows are decomposed by singular values.

    Attributes
    ----------
    alpha_ : float, or (targets,)
        The strength chosen.
    best_score_ : float, or (targets,)
        Its score.
    cv_results_ : (n, m), or (n, targets, m), with store_cv_results=True
        For each strength squared errors of the rows left out, times their weights; with scoring= predictions.
    coef_ : (d,), or (targets, d) where y has several columns
    intercept_ : float, or (targets,)
    deviance_ : float, or (targets,)
        The sum of squared residuals.
    collinear_ : (0,)
        No column is left out beside a penalty.
    fold_roles_ : (folds, n), with cv
        1 for the rows of a fold's fits, 2 for those held out of them.
    fold_coef_, fold_intercept_ : (folds, m, targets, d), (folds, m, targets), with cv
        Every fit of every fold, so that an audit can prove each without fitting anything.
    certificate_ : Certificate
        Of the fit to all rows, with checks of the scores, from the rows, and of the choice.
    n_iter_ : int, or (targets,)
        Number of updates (diagnostic).
    history_ : objective, relative gap and seconds at every pass (diagnostic)

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from certifit import RidgeCV
    >>> model = RidgeCV(alphas=[1e-3, 1e-2, 1e-1, 1]).fit(*load_diabetes(return_X_y=True))
    >>> model.alpha_, round(model.best_score_, 1), model.certificate_.holds
    (0.01, -3000.4, True)
    """

    penalty_per_row = False
    max_time = None
    warm_start = False
    settings: ClassVar[Settings] = {**_SETTINGS, "alpha_per_target": Setting(bool)}
    ignored: ClassVar[tuple[str, ...]] = ("gcv_mode",)
    differences: ClassVar[dict[str, str]] = {
        **{name: why for name, why in PenalisedSquares.differences.items() if name == "coef_"},
        "fit": "Metadata for splitter and scorer (groups) is not routed: pass the splits themselves as cv.",
        "fit(sample_weight)": "With cv, rows held out count by their weights too.",
    }

    def __init__(
        self,
        alphas=(0.1, 1.0, 10.0),
        *,
        fit_intercept=True,
        scoring=None,
        cv=None,
        gcv_mode=None,
        store_cv_results=False,
        alpha_per_target=False,
        tol=1e-6,
        max_iter=None,
    ):
        self.alphas = alphas
        self.fit_intercept = fit_intercept
        self.scoring = scoring
        self.cv = cv
        self.gcv_mode = gcv_mode
        self.store_cv_results = store_cv_results
        self.alpha_per_target = alpha_per_target
        self.tol = tol
        self.max_iter = max_iter

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:  # type: ignore[override]
        """Choose the penalty and fit to all rows of X, which are held in memory.

        Parameters
        ----------
        X : array, CSR matrix, data frame, Arrow table, path to Parquet or CSV, or Dask collection
        y : array of targets (n,) or (n, targets), or names of the target columns in X
        sample_weight : array of non-negative row weights, or the name of a column in X; 2 means the row twice
        """
        targets = target_columns(y)
        if targets is not None and targets > 1:
            return self._fit_rows(X, y, sample_weight, targets=targets)
        return self._fit_rows(X, only_column(y) if targets == 1 else y, sample_weight)

    def _check_settings(self) -> None:
        self._refuse_together()
        super()._check_settings()

    def _fit(self, rows: Rows, previous: Attributes) -> Attributes:  # type: ignore[override]
        data = rows.load()
        targets = regressor_targets(data)
        chosen = self._choose(targets, data)
        t = targets.Y.shape[1]
        models = [self._model(alpha) for alpha in _each(chosen.choice.alpha, t)]
        if targets.scored.ndim == 1:
            models[0]._watch = self._watch
            found = models[0]._fit(data, {})
        else:
            found = fit_targets(models, self._watch, data, [partial(pick_target, k) for k in range(t)], {})
        return self._with_choice(found, chosen, targets, data)


def _each(alpha: Any, targets: int) -> list[float]:
    """The strength of each target."""
    return [float(one) for one in np.broadcast_to(np.ravel(alpha), targets)]


class RidgeClassifierCV(_ChosenRidge, RidgeClassifier):
    """Ridge regression on labels of ±1 with the strength of its penalty chosen by leave-one-out or by folds.

    Parameters
    ----------
    alphas : array or float, default=(0.1, 1.0, 10.0)
        Strengths to try, of all rows together; above 0 without cv.
    fit_intercept : bool, default=True
        Whether to add an intercept, which is never penalised.
    scoring : name, callable or None, default=None
        What is largest at the best strength; None is minus the mean squared error of the labels, or accuracy with cv.
    cv : int, splitter, iterable or None, default=None
        Folds; None leaves out each row once, by an identity that needs no further fit.
    class_weight : dict, 'balanced' or None, default=None
    store_cv_results : bool, default=False
        Whether to keep `cv_results_`; without cv.
    tol : float, default=1e-6
        Relative gap of the fit to all rows; fits of folds are proved to ten times that.
    max_iter : int or None, default=None
        Most passes over the rows of the fit to all of them; None means 1000, of which one or two are needed.

    Attributes
    ----------
    alpha_ : float
        The strength chosen.
    best_score_ : float
        Its score.
    cv_results_ : (n, 1, m) or (n, k, m), with store_cv_results=True
        For each strength squared errors of the labels left out, times their weights; with scoring= scores.
    coef_ : (d,) for two classes, (k, d) for more
    intercept_ : (1,) or (k,)
    classes_ : (k,)
    fold_roles_ : (folds, n), with cv
        1 for the rows of a fold's fits, 2 for those held out of them.
    fold_coef_, fold_intercept_ : (folds, m, k, d), (folds, m, k), with cv
        Every fit of every fold, so that an audit can prove each without fitting anything.
    certificate_ : Certificate
        Of the fits to all rows, with checks of the scores, from the rows, and of the choice.
    n_iter_ : (1,) or (k,)
        Number of updates (diagnostic).
    history_ : for each class objective, relative gap and seconds at every pass (diagnostic)

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from certifit import RidgeClassifierCV
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = RidgeClassifierCV(alphas=[1e-3, 1e-2, 1e-1, 1]).fit(X, y)
    >>> round(model.score(X, y), 3), model.certificate_.holds
    (0.963, True)
    """

    max_time = None
    positive = False
    several_labels = False
    settings: ClassVar[Settings] = _SETTINGS
    ignored: ClassVar[tuple[str, ...]] = ()
    differences: ClassVar[dict[str, str]] = {
        "coef_": RidgeClassifier.differences["coef_"],
        "fit": "Several labels for each row are not taken; metadata for splitter and scorer is not routed.",
    }

    def __init__(
        self,
        alphas=(0.1, 1.0, 10.0),
        *,
        fit_intercept=True,
        scoring=None,
        cv=None,
        class_weight=None,
        store_cv_results=False,
        tol=1e-6,
        max_iter=None,
    ):
        self.alphas = alphas
        self.fit_intercept = fit_intercept
        self.scoring = scoring
        self.cv = cv
        self.class_weight = class_weight
        self.store_cv_results = store_cv_results
        self.tol = tol
        self.max_iter = max_iter

    def _check_settings(self) -> None:
        self._refuse_together()
        super()._check_settings()

    def _fit(self, rows: Rows, previous: Attributes, several: int = 1) -> Attributes:
        labels = encode_labels(rows)
        data = apply_class_weight(labels, self.class_weight).load()
        targets = classifier_targets(data, labels.classes)
        chosen = self._choose(targets, data)
        numbers = sign_problems(len(labels.classes))
        models = [self._model(chosen.choice.alpha) for _ in numbers]
        shared = {"classes_": labels.classes}
        found = fit_targets(models, self._watch, data, [partial(label_signs, k) for k in numbers], {}, shared)
        kept = ("coef_", "intercept_", "n_iter_", "history_", "certificate_")
        found = {**shared, **{name: found[name] for name in kept}, "coef_": flat_coefficients(found["coef_"])}
        return self._with_choice(found, chosen, targets, data)


__all__ = ["RidgeCV", "RidgeClassifierCV"]
