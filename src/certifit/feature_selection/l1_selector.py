"""Selection of the columns that an L1-penalised fit uses, with proofs that others are 0 in every optimum.

The module `l1_path` states the problem, `checkers.feature_selection.screening` the proof.
"""

from __future__ import annotations

import time
import warnings
from functools import partial
from numbers import Integral
from typing import Any, ClassVar

import numpy as np

from certifit.checkers.feature_selection import l1_choice, screening
from certifit.core import MAX_TIME, TOL, Attributes, Objective, Setting, Step
from certifit.exceptions import DataError
from certifit.feature_selection.l1_path import (
    FoldPaths,
    L1Path,
    L1PathFit,
    L1PathProblem,
    L1PathTuning,
    as_path,
    fit_each,
    fit_folds,
    information_criterion,
    strengths,
)
from certifit.feature_selection.selector import Selector
from certifit.rows import Array, Rows, encode_labels
from certifit.rows.checks import Target


def _are_strengths(alphas: Any) -> bool:
    """Return whether a setting is a number of strengths, or an array of strengths."""
    given = np.ravel(alphas)
    return given.size > 0 and bool((given > 0).all() and np.isfinite(given).all())


class L1Selector(Selector):
    """Keep the columns that an L1-penalised fit uses, at a strength chosen along its path.

    Parameters
    ----------
    loss : 'auto', 'logistic' or 'squared', default='auto'
        For classes or for numbers. (Poisson and gamma losses are not smooth: no proof of this kind exists for them.)
        'auto' looks at y: fractions are numbers, and so are more than 20 whole numbers of which each occurs fewer
        than five times on average; everything else is classes.
    criterion : 'bic', 'ebic' or 'cv'
        How to choose the strength: the (extended) Bayesian information criterion, or the strongest penalty whose
        held-out loss is within one standard error of the best. At least one column is kept.
    alphas : int or array, default=30
        Strengths, per unit of weight, or how many, from the one that makes every coefficient 0 to `eps` times it.
    eps : float, default=0.01
    l1_ratio : float in (0, 1], default=1.0
        Share of the penalty that is |β|₁; the rest is |β|²/2.
    fit_intercept : bool, default=True
    cv : int, splitter or iterable, default=5
        At least two folds for criterion='cv', which holds all rows in memory and keeps every fit, so that an audit
        can prove each without fitting anything.
    tol : float, default=1e-6
        Relative gap of every fit. A smaller one proves more columns.
    max_time : float or None
        Seconds after which the path is cut short, at the earliest where some column is in use.

    Attributes
    ----------
    support_ : (d,) bool, columns with a coefficient that is not 0 at the strength chosen
    proved_zero_ : names of the columns proved to be 0 there in every optimum
    undecided_ : names of those that are 0 in the fit without such a proof
    alpha_ : float, the strength chosen
    coef_, intercept_ : of the fit at that strength, (k, d) and (k,); k = 1 for numbers and for two classes
    coef_path_, intercept_path_ : (m, k, d), (m, k) of every fit
    proved_path_ : (m, d) bool, columns proved 0 at each strength
    path_ : dict of arrays (m,): 'alpha', 'nonzero' and 'proved_zero' columns, relative 'gap', 'loss', 'criterion' and
        the 'error' of that
    loss_ : 'logistic' or 'squared', the loss of the fits
    classes_ : labels, for the logistic loss
    fold_roles_ : (folds, n) for criterion='cv': 1 for the rows of a fold's fits, 2 for those held out of them
    fold_coef_, fold_intercept_ : (folds, m, k, d), (folds, m, k) for criterion='cv': the fits of every fold
    certificate_ : Certificate

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> model = L1Selector(criterion="ebic").fit(X / X.std(), y)
    >>> model.get_feature_names_out().tolist()[:2], len(model.proved_zero_), len(model.undecided_)
    (['mean texture', 'mean concave points'], 20, 0)
    >>> model.certificate_.kind, model.certificate_.holds
    ('optimal', True)
    """

    settings: ClassVar[Any] = {
        "loss": Setting(choices=("auto", "logistic", "squared")),
        "criterion": Setting(choices=("bic", "ebic", "cv")),
        "alphas": Setting(other=_are_strengths, other_words="how many (at least 1), or positive numbers"),
        "eps": Setting(float, above=0, most=1),
        "l1_ratio": Setting(float, above=0, most=1),
        "tol": TOL,
        "max_time": MAX_TIME,
    }
    sparse = True
    _tuning: ClassVar[L1PathTuning] = L1PathTuning()

    proved_zero_: Array
    undecided_: Array
    alpha_: float
    classes_: Array
    coef_: Array
    intercept_: Array
    coef_path_: Array
    intercept_path_: Array
    proved_path_: Array
    path_: dict[str, Array]
    fold_roles_: Array
    fold_coef_: Array
    fold_intercept_: Array

    def __init__(
        self,
        loss="auto",
        criterion="bic",
        *,
        alphas=30,
        eps=0.01,
        l1_ratio=1.0,
        fit_intercept=True,
        cv=5,
        tol=1e-6,
        max_time=None,
    ):
        self.loss = loss
        self.criterion = criterion
        self.alphas = alphas
        self.eps = eps
        self.l1_ratio = l1_ratio
        self.fit_intercept = fit_intercept
        self.cv = cv
        self.tol = tol
        self.max_time = max_time

    @property
    def target(self) -> Target:  # type: ignore[override]
        """Return the kind of y that `fit` needs."""
        fitted = self.loss == "auto" and "coef_" in vars(self)
        return "numbers" if (self.loss_ if fitted else self.loss) == "squared" else "classes"

    @property
    def loss_(self) -> str:
        """Return the loss of the fits: those of classes have `classes_`."""
        if "coef_" not in vars(self):
            raise AttributeError("loss_ is known once the selector is fitted")
        return "logistic" if "classes_" in vars(self) else "squared"

    def _rows_to_fit(self, X: Any, y: Any, sample_weight: Any, reset: bool = True, targets: int = 1) -> Rows:
        """Return the rows to learn from; with loss='auto' y decides whether it is classes or numbers."""
        if self.loss == "auto":
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", UserWarning)  # of whole numbers that do not look like classes
                    rows = self._as_rows(X, y, sample_weight, "classes", targets, reset)
                    if l1_choice.loss_for(rows) == "logistic":
                        return rows
            except DataError as error:
                if error.wanted != "classes":  # of a target with fractions
                    raise
            return self._as_rows(X, y, sample_weight, "numbers", targets, reset)
        return super()._rows_to_fit(X, y, sample_weight, reset, targets)

    def _fit(self, rows: Rows, previous: Attributes) -> Attributes:
        began = time.perf_counter()
        classes, loss = np.zeros(0), l1_choice.loss_for(rows) if self.loss == "auto" else self.loss
        if loss == "logistic":
            labels = encode_labels(rows)
            rows, classes = labels.rows, labels.classes
        k = len(classes) if len(classes) > 2 else 1
        problem = L1PathProblem(loss, float(self.l1_ratio), bool(self.fit_intercept), float(self.tol), k)
        alphas = strengths(problem, rows, self.alphas, float(self.eps))
        if not alphas[0] > 0:
            raise DataError(
                got=f"columns none of which varies with the target (n_samples={rows.n_rows})",
                wanted="at least one column that says something about y",
                fix="Check that neither y nor all of X is constant.",
            )
        deadline = np.inf if self.max_time is None else began + self.max_time
        fits: list[L1PathFit] = []
        each = fit_each(problem, rows, alphas, self._tuning)
        with self._watch.loop("strengths", len(alphas) - 1, partial(_attributes_so_far, alphas, classes)) as watch:
            for _ in alphas:
                watch.begin()
                fits.append(next(each))
                stop = watch.end(fits, Step(None, fits[-1].screened.objective, np.inf), self.tol)
                if (stop or time.perf_counter() >= deadline) and fits[-1].coef.any():  # some column must be kept
                    break
        return self._attributes(problem, as_path(alphas, fits), rows, classes)

    def _attributes(self, problem: L1PathProblem, path: L1Path, rows: Rows, classes: Array) -> Attributes:
        value, error = information_criterion(problem, path, self.criterion == "ebic", rows), np.zeros(len(path))
        folds: FoldPaths | None = None
        if self.criterion == "cv":
            folds = fit_folds(problem, rows, path.alphas, self.cv, self._tuning)
            value, error = folds.mean, folds.error
        chosen = self._choose(path, value, error)
        nonzero, proved = path.nonzero, np.array([s.proved for s in path.screened])
        names = rows.names if rows.names is not None else np.array([f"x{j}" for j in range(rows.n_features)], object)
        asked = int(self.alphas) if isinstance(self.alphas, Integral) else len(self.alphas)
        used = (path.coef[chosen] != 0).any(axis=0)
        claim = screening.PathClaim(
            chosen, float(path.alphas[chosen]), proved, nonzero[chosen], used, asked - len(path)
        )
        return {
            "support_": nonzero[chosen],
            "proved_zero_": names[proved[chosen]],
            "undecided_": names[~proved[chosen] & ~nonzero[chosen]],
            "alpha_": float(path.alphas[chosen]),
            "coef_": path.coef[chosen],
            "intercept_": path.intercept[chosen],
            "coef_path_": path.coef,
            "intercept_path_": path.intercept,
            "proved_path_": proved,
            "path_": {
                "alpha": path.alphas,
                "nonzero": nonzero.sum(axis=1),
                "proved_zero": proved.sum(axis=1),
                "gap": np.array([s.relative_gap for s in path.screened]),
                "loss": np.array([s.loss for s in path.screened]),
                "criterion": value,
                "error": error,
            },
            **({"classes_": classes} if problem.loss == "logistic" else {}),
            **(_fold_attributes(folds) if folds is not None else {}),
            "certificate_": screening.certify_path(
                path.screened,
                claim,
                self.tol,
                rows.n_rows,
                () if folds is None else (l1_choice.fold_gap(folds.gap, self.tol, rows.n_rows),),
            ),
        }

    def _choose(self, path: L1Path, value: Array, error: Array) -> int:
        """Return the number of the strongest penalty within one standard error of the best that keeps a column."""
        some = path.nonzero.any(axis=1)
        if not some.any():
            raise DataError(
                got=f"no column with a coefficient that is not 0 at {len(path)} strengths from {path.alphas[0]:.3g}",
                wanted="a path that reaches some column",
                fix="Use smaller alphas or a smaller eps.",
            )
        best = int(np.argmin(np.where(some, value, np.inf)))
        return int(np.flatnonzero(some & (value <= value[best] + error[best]))[0])

    def objective(self, X: Any, y: Any = None, sample_weight: Any = None) -> Objective:
        """Return loss (data term) and penalty of the fit at the chosen strength, on these rows."""
        rows = self._rows(X, y, sample_weight, target=self.target)
        if self.loss_ == "logistic":
            rows = encode_labels(rows, self.classes_).rows
        problem = screening.screening_problem(self.loss_, bool(self.fit_intercept), rows)
        p = problem.at(self.alpha_, float(self.l1_ratio))
        found = screening.screen(p, self.coef_, self.intercept_, rows)
        return Objective(found.objective, found.loss, found.objective - found.loss)


def _attributes_so_far(alphas: Array, classes: Array, fits: list[L1PathFit]) -> Attributes:
    """Return the fitted attributes after the last of these fits."""
    coef, intercept, _ = fits[-1]
    kept = (coef != 0).any(axis=0)
    alpha = float(alphas[len(fits) - 1])
    return {"support_": kept, "coef_": coef, "intercept_": intercept, "alpha_": alpha, "classes_": classes}


def _fold_attributes(folds: FoldPaths) -> Attributes:
    return {"fold_roles_": folds.roles, "fold_coef_": folds.coef, "fold_intercept_": folds.intercept}
