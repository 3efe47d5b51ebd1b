"""Logistic and softmax regression with a penalty chosen by cross-validation.

    min over β, b of   Σᵢ wᵢ [A(ηᵢ) - η_{i,yᵢ}] + (ρ |β|₁ + (1-ρ)/2 |β|²) / C

for many C (and ρ) on the rows of every fold; those with the largest score on the rows held out, summed over the
folds, are taken, and the model fitted to all rows.
Reference: Hastie, Tibshirani & Friedman, The Elements of Statistical Learning (2009), sections 4.4 and 7.10.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from numbers import Integral
from typing import Any, ClassVar

import numpy as np

from certifit.checkers.linear_model.cross_validated.absent_classes import present_classes, renumbered
from certifit.checkers.linear_model.cross_validated.elastic_net import SearchTuning
from certifit.checkers.linear_model.cross_validated.folds import StatedFolds, check_sides
from certifit.checkers.linear_model.cross_validated.logistic import (
    LogisticChoice,
    LogisticSearch,
    ScoredRows,
    best_place,
    complete_folds,
    fold_places,
    held_out_scores,
    logistic_checks,
    mean_certificate,
)
from certifit.core import Attributes, Estimator, Step
from certifit.core.scoring import find_scorer
from certifit.core.settings import TOL, Setting, Settings
from certifit.exceptions import DataError, warn_caller
from certifit.linear_model.cross_validated.absent_classes import only_class, present_problem, with_absent
from certifit.linear_model.cross_validated.ridge_logistic_path import ridge_path
from certifit.linear_model.logistic.logistic import LogisticRegression
from certifit.linear_model.logistic.problem import LogisticRows
from certifit.linear_model.logistic.solve import LogisticLimits
from certifit.rows import Array, ArrayRows, Rows, apply_class_weight, encode_labels
from certifit.rows.folds import FITTED, UsualFolds, fold_roles


def _are_inverse_strengths(Cs: Any) -> bool:
    given = np.asarray(Cs)
    return given.ndim == 1 and given.size > 0 and bool((given > 0).all())


def _are_shares(ratios: Any) -> bool:
    given = np.asarray([0.0 if ratio is None else ratio for ratio in ratios])
    return given.ndim == 1 and given.size > 0 and bool(((given >= 0) & (given <= 1)).all())


class LogisticRegressionCV(LogisticRegression):
    """Logistic (two classes) and softmax (more) regression with the penalty chosen by cross-validation.

    Parameters
    ----------
    Cs : int or array, default=10
        How many inverse strengths of the penalty to try, from 1e-4 to 1e4, equally far apart in their logarithms; or
        the inverse strengths themselves.
    l1_ratios : array or None, default=None
        Shares of the penalty that are |β|₁, of which the best is chosen; None, or 'warn', means 0.
    fit_intercept : bool, default=True
        The intercept is never penalised.
    cv : int, splitter, iterable or None, default=None
        Folds; None means 5, fewer where no class has 5 rows, not shuffled, each with nearly the same share of every
        class.
    penalty : 'l2', 'l1', 'elasticnet' or 'deprecated', default='deprecated'
        'l1' means l1_ratios=(1,), 'l2' l1_ratios=(0,); the others take l1_ratios as they are.
    scoring : name, callable or None, default=None
        What is largest at the best penalty; None, or 'warn', is accuracy.
    tol : float, default=1e-6
        Relative gap of the fit to all rows; fits of folds are proved to ten times that.
    max_iter : int, default=1000
        Most passes over the rows of each fit.
    class_weight : dict, 'balanced' or None
        From all rows, for every fold.
    refit : bool, default=True
        Whether to fit the best penalty to all rows; else coefficients are means over the folds of each fold's best
        fit, and so are C_ and l1_ratio_.
    use_legacy_attributes : bool or 'warn', default='warn'
        Whether C_, l1_ratio_, scores_ and coefs_paths_ have the shapes that scikit-learn gives them with True, which
        'warn' means too; False gives a number, a number and two arrays.
    solver : 'auto' or any of scikit-learn's
        'newton-cholesky' forms the Hessian, 'lbfgs' does not where the penalty allows it; all others mean 'auto'.
    dual, intercept_scaling, n_jobs, random_state, verbose : ignored
        Accepted so that scikit-learn's calls run; the fit is deterministic.

    Attributes
    ----------
    C_, l1_ratio_ : (1,) or (k,), or floats
        Inverse strength and share chosen, the same for each class.
    Cs_ : (m,)
    l1_ratios_ : (r,)
    scores_ : dict of (folds, m) or (folds, m, r) by class, or (folds, r, m)
        Scores on the rows held out, the same for each class.
    coefs_paths_ : dict of (folds, m, d1) or (folds, m, r, d1) by class, or (folds, r, m, k, d1)
        The fits of the folds, intercepts last.
    coef_ : (1, d) or (k, d)
    intercept_ : (1,) or (k,)
    classes_ : (k,)
    fold_roles_ : (folds, n)
        1 for the rows of a fold's fits, 2 for those held out of them.
    fold_coef_, fold_intercept_ : (folds, r, m, k, d), (folds, r, m, k)
        Every fit of every fold, so that an audit can prove each without fitting anything.
    fold_scores_ : (folds, r, m)
    n_iter_ : (1, folds, m), (1, folds, m, r) or (folds, r, m) numbers of updates (diagnostic)
    certificate_ : Certificate
        Of the fit to all rows, with checks of every fold's fits, of their scores and of the choice.
    history_ : objective, relative gap and seconds at every pass of the fit to all rows (diagnostic)

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from certifit import LogisticRegressionCV
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LogisticRegressionCV(scoring="neg_log_loss").fit(X, y)
    >>> round(float(model.C_[0]), 3), model.certificate_.holds
    (166.81, True)
    """

    covariance = None
    warm_start = False
    max_time = None
    multi_class = "auto"
    settings: ClassVar[Settings] = {
        "Cs": Setting(int, least=1, other=_are_inverse_strengths, other_words="an array of numbers above 0"),
        "l1_ratios": Setting(
            choices=("warn",), none=True, other=_are_shares, other_words="an array of numbers between 0 and 1"
        ),
        "penalty": Setting(choices=("l2", "l1", "elasticnet", "deprecated")),
        "solver": LogisticRegression.settings["solver"],
        "tol": TOL,
        "max_iter": Setting(int, least=0),
        "refit": Setting(bool),
        "use_legacy_attributes": Setting(bool, choices=("warn",)),
    }
    diagnostics: ClassVar[tuple[str, ...]] = ("n_iter_", "history_")
    ignored: ClassVar[tuple[str, ...]] = ("dual", "intercept_scaling", "n_jobs", "random_state", "verbose")
    differences: ClassVar[dict[str, str]] = {
        **{
            name: why
            for name, why in LogisticRegression.differences.items()
            if name in ("tol", "max_iter", "coef_", "solver")
        },
        "l1_ratios": "The default None means 0, without a warning; scikit-learn's 'warn' means the same.",
        "scoring": "The default None is accuracy, without a warning; scikit-learn's 'warn' means the same.",
        "fit": "Metadata for splitter and scorer (groups) is not routed: pass the splits themselves as cv.",
        "cv": "Fits of folds whose other rows lack a class give it probability 0, with a warning, where the "
        "intercept is free; with refit=False the means are over the other folds.",
    }

    fold_roles_: Array
    fold_coef_: Array
    fold_intercept_: Array
    fold_scores_: Array
    C_: Any
    l1_ratio_: Any

    def __init__(
        self,
        *,
        Cs=10,
        l1_ratios=None,
        fit_intercept=True,
        cv=None,
        dual=False,
        penalty="deprecated",
        scoring=None,
        solver="auto",
        tol=1e-6,
        max_iter=1000,
        class_weight=None,
        n_jobs=None,
        verbose=0,
        refit=True,
        intercept_scaling=1.0,
        random_state=None,
        use_legacy_attributes="warn",
    ):
        self.Cs = Cs
        self.l1_ratios = l1_ratios
        self.fit_intercept = fit_intercept
        self.cv = cv
        self.dual = dual
        self.penalty = penalty
        self.scoring = scoring
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.class_weight = class_weight
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.refit = refit
        self.intercept_scaling = intercept_scaling
        self.random_state = random_state
        self.use_legacy_attributes = use_legacy_attributes

    def _check_settings(self) -> None:
        Estimator._check_settings(self)  # those of LogisticRegression are other ones
        if self.penalty == "elasticnet" and (self.l1_ratios is None or isinstance(self.l1_ratios, str)):
            raise DataError(
                got="penalty='elasticnet' without l1_ratios", wanted="an l1_ratio between 0 and 1, or more"
            )

    @property
    def C(self) -> float:
        """The inverse strength chosen."""
        return self._chosen("C_")

    @property
    def l1_ratio(self) -> float:
        """The share chosen."""
        return self._chosen("l1_ratio_")

    def _chosen(self, name: str) -> float:
        """C_ or l1_ratio_, of which all classes have the same; an error where they have not."""
        values = np.ravel(getattr(self, name))
        if len({*values.tolist()}) != 1 or len(values) != self._copies:
            raise DataError(got=f"{name} = {values.tolist()}", wanted=f"{self._copies} times the same number")
        return float(values[0])

    @property
    def _copies(self) -> int:
        """How often a number that all classes share is stated."""
        return len(self.coef_) if self._legacy else 1

    @property
    def _legacy(self) -> bool:
        return self.use_legacy_attributes in ("warn", True)

    @property
    def _shares(self) -> Array:
        """The shares tried (r,)."""
        if self.penalty in ("l1", "l2"):
            return np.array([float(self.penalty == "l1")])
        if self.l1_ratios is None or isinstance(self.l1_ratios, str):
            return np.zeros(1)
        return np.array([0.0 if ratio is None else float(ratio) for ratio in self.l1_ratios])

    @property
    def _inverse_strengths(self) -> Array:
        """The C tried (m,)."""
        if isinstance(self.Cs, Integral):
            return np.logspace(-4, 4, int(self.Cs))
        return np.asarray(self.Cs, dtype=np.float64)

    def _search(self) -> LogisticSearch:
        scoring = None if isinstance(self.scoring, str) and self.scoring == "warn" else self.scoring
        cv = UsualFolds() if self.cv is None else self.cv
        return LogisticSearch(
            self._inverse_strengths, self._shares, bool(self.fit_intercept), cv, scoring, bool(self.refit)
        )

    def strengths(self) -> tuple[float, float]:
        """The strengths λ₁ of |β|₁ and λ₂ of |β|²/2 that were chosen."""
        return self.l1_ratio / self.C, (1 - self.l1_ratio) / self.C

    def _fit(self, rows: Rows, previous: Attributes) -> Attributes:
        search, labels = self._search(), encode_labels(rows)
        data = apply_class_weight(labels, self.class_weight).load()
        w = labels.rows.load().w
        scored = ScoredRows(data, labels.classes, None if (w == 1).all() else w)
        folds, passes, unproved = self._fit_folds(search, data, labels.classes)
        scores = held_out_scores(search, folds, scored)
        if search.refit:
            share, place = best_place(scores)
            C, ratio = float(search.Cs[place]), float(search.l1_ratios[share])
            found = dict(self._final(C, ratio)._fit(data, {}))
        else:
            found, C, ratio = _means(search, folds, scores)
        choice = LogisticChoice(scores, C, ratio, folds, found["coef_"], found["intercept_"])
        checks = logistic_checks(search, choice, scored, unproved, scores=scores)
        if search.refit:
            certificate = replace(found["certificate_"], checks=(*found["certificate_"].checks, *checks))
        else:
            certificate = mean_certificate(search, choice, checks)
        copies = len(found["coef_"]) if self._legacy else 1
        table = np.moveaxis(passes, 1, 2)[None] if self._legacy else passes
        flat = self._legacy and (self.l1_ratios is None or isinstance(self.l1_ratios, str))
        return {
            "coef_": found["coef_"],
            "intercept_": found["intercept_"],
            "classes_": labels.classes,
            "C_": np.full(copies, C) if self._legacy else C,
            "l1_ratio_": np.full(copies, ratio) if self._legacy else ratio,
            "fold_scores_": scores,
            "fold_roles_": folds.roles,
            "fold_coef_": folds.coef,
            "fold_intercept_": folds.intercept,
            "covariance_": None,
            "n_iter_": table[..., 0] if flat else table,
            "history_": found.get("history_", ()),
            "certificate_": certificate,
        }

    def _final(self, C: float, ratio: float) -> LogisticRegression:
        """The model of all rows with the penalty chosen, which reports to this one's callbacks."""
        model = self._model(C, ratio)
        model._watch = self._watch
        return model

    def _model(self, C: float, ratio: float) -> LogisticRegression:
        return LogisticRegression(
            "l2",
            C=C,
            l1_ratio=ratio,
            tol=self.tol,
            fit_intercept=self.fit_intercept,
            solver=self.solver,
            covariance=None,
            max_iter=self.max_iter,
        )

    def _fit_folds(self, search: LogisticSearch, data: ArrayRows, classes: Array) -> tuple[StatedFolds, Array, int]:
        """The fits of every fold, their numbers of passes, and how many are not proved."""
        roles = fold_roles(search.cv, data.X, classes[data.y], classes=True)
        check_sides(roles, data.w, self.cv)
        self._warn_of_absent(roles, data, classes)
        found, unproved = [], 0
        with self._watch.loop("folds", len(roles), partial(_last_fit, classes)) as watch:
            for role in roles:
                watch.begin()
                fitted = data.take(np.flatnonzero(role & FITTED))
                paths = [
                    self._fit_present(search, ratio, fitted, len(classes)) for ratio in search.l1_ratios.tolist()
                ]
                unproved += sum(path[3] for path in paths)
                found.append([np.array([path[i] for path in paths]) for i in range(3)])
                step: Step[None] = Step(None, float(data.n_rows), np.inf)
                if watch.end((found[-1][0][-1, -1], found[-1][1][-1, -1]), step, self.tol):
                    break
        coef, intercept, passes = (np.array([part[i] for part in found]) for i in range(3))
        return StatedFolds(roles[: len(coef)], coef, intercept), passes, unproved

    def _warn_of_absent(self, roles: Array, data: ArrayRows, classes: Array) -> None:
        """Say which folds are fitted to rows that lack a class."""
        assert data.y is not None
        counts = data.w > 0
        there = [np.bincount(data.y[counts & (role & FITTED > 0)], minlength=len(classes)) for role in roles]
        lacking = sum(not present.all() for present in there)
        if lacking:
            never = ", which their fits then never expect" if self.fit_intercept else ""
            means = "" if self.refit or not self.fit_intercept else " Coefficients are means over the other folds."
            warn_caller(
                f"The rows of {lacking} of {len(roles)} folds lack a class{never}: their scores say little about "
                f"C.{means} Use fewer folds, StratifiedKFold, or shuffled rows."
            )

    def _fit_present(
        self, search: LogisticSearch, ratio: float, fitted: ArrayRows, k: int
    ) -> tuple[Any, Any, Any, int]:
        """The path of `_fit_path`; classes that the rows lack have probability 0."""
        there = present_classes(fitted)
        if len(there) == k or not search.free:
            return self._fit_path(search, ratio, fitted, k)
        if len(there) == 1:
            coef, intercept = only_class(there, k, len(search.Cs), fitted.n_features)
            return coef, intercept, np.zeros(len(search.Cs), int), 0
        problem = present_problem(search, ratio, there)
        coef, intercept, passes, unproved = self._fit_path(*problem, renumbered(fitted, there), len(there))
        return *with_absent(coef, intercept, there, k), passes, unproved

    def _fit_path(self, search: LogisticSearch, ratio: float, fitted: ArrayRows, k: int) -> tuple[Any, Any, Any, int]:
        """Coefficients (m, k, d), intercepts (m, k) and numbers of passes (m,), and how many are not proved."""
        if k == 2 and ratio == 0 and self.solver != "lbfgs":
            found = ridge_path(fitted, search.Cs, search.free, (self.tol, self.max_iter))
            if found is not None:
                return *found, 0
        data = LogisticRows.numbered(fitted, k, search.free, self._tuning)
        limits = LogisticLimits(self.tol, self.max_iter)
        previous: Attributes = {}
        coef, intercept, passes, unproved = [], [], [], 0
        for C in search.Cs.tolist():
            model = self._model(C, ratio)
            task = model._task(*data.shape)
            previous = model._fitted(data, task, task.minimise(data, data.start(previous), limits))
            certificate = previous["certificate_"]
            wider = replace(certificate, limit=certificate.limit * SearchTuning().fold_tol)
            unproved += not (certificate.holds or wider.holds)
            coef.append(np.asarray(previous["coef_"], dtype=np.float64))
            intercept.append(previous["intercept_"])
            passes.append(int(previous["n_iter_"][0]))
        return np.array(coef), np.array(intercept), np.array(passes), unproved

    # What scikit-learn calls the same numbers ----------------------------------------------------------------------
    def _score_table(self) -> Array:
        """The scores (folds, r, m) as they are stated."""
        return np.asarray(self.fold_scores_, dtype=np.float64)

    @property
    def Cs_(self) -> Array:
        """The inverse strengths tried."""
        self.fold_scores_  # noqa: B018 - known once it is fitted
        return self._inverse_strengths

    @property
    def l1_ratios_(self) -> Array:
        """The shares tried."""
        self.fold_scores_  # noqa: B018 - known once it is fitted
        return self._shares

    @property
    def scores_(self) -> Any:
        """Scores of the folds in scikit-learn's shape."""
        if not self._legacy:
            return self.fold_scores_
        table = np.moveaxis(self.fold_scores_, 1, 2)
        return self._by_class([table[..., 0] if self._flat else table] * len(self.coef_))

    @property
    def coefs_paths_(self) -> Any:
        """Fits of the folds in scikit-learn's shape, intercepts last where there are any."""
        free = [self.fold_intercept_[..., None]] if self.fit_intercept else []
        table = np.concatenate([self.fold_coef_, *free], axis=-1)
        if not self._legacy:
            return table
        table = np.moveaxis(table, (3, 1), (0, 3))
        return self._by_class([one[:, :, 0] if self._flat else one for one in table])

    @property
    def _flat(self) -> bool:
        """Whether scikit-learn leaves out the axis of the shares."""
        return self.l1_ratios is None or isinstance(self.l1_ratios, str)

    def _by_class(self, tables: list[Array]) -> dict[Any, Array]:
        labels = self.classes_[1:] if len(self.classes_) == 2 else self.classes_
        return dict(zip(labels, tables, strict=True))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The score by `scoring`; accuracy where that is None."""
        scoring = self._search().scoring
        if scoring is None:
            return super().score(X, y, sample_weight)
        more = {} if sample_weight is None else {"sample_weight": sample_weight}
        return float(find_scorer(self, scoring)(self, X, y, **more))


def _means(search: LogisticSearch, folds: StatedFolds, scores: Array) -> tuple[dict[str, Any], float, float]:
    """Coefficients that are means over the folds of each fold's best fit, and its C and share.

    Folds whose rows lack a class know nothing of it, and are left out.
    """
    whole = complete_folds(folds)
    if not whole.any():
        raise DataError(
            got="refit=False and no fold whose other rows have every class",
            wanted="a fold whose coefficients are known for all classes",
            fix="Use fewer folds, StratifiedKFold or refit=True.",
        )
    folds, scores = StatedFolds(folds.roles[whole], folds.coef[whole], folds.intercept[whole]), scores[whole]
    places = fold_places(scores)
    coef = np.mean([folds.coef[f][place] for f, place in enumerate(places)], axis=0)
    intercept = np.mean([folds.intercept[f][place] for f, place in enumerate(places)], axis=0)
    C = float(np.mean([search.Cs[C] for _, C in places]))
    return (
        {"coef_": coef, "intercept_": intercept},
        C,
        float(np.mean([search.l1_ratios[share] for share, _ in places])),
    )


def _last_fit(classes: Array, last: tuple[Array, Array]) -> Attributes:
    """Fitted attributes after the last fit of a fold."""
    return {"coef_": last[0], "intercept_": last[1], "classes_": classes}


__all__ = ["LogisticRegressionCV"]
