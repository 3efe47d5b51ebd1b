"""Logistic and softmax regression with a proved distance to the optimum.

    min over β, b of   Σᵢ wᵢ [A(ηᵢ) - η_{i,yᵢ}] + 1/(2C) |β|²,    ηᵢ = β xᵢ + b,    A(η) = log Σₖ exp ηₖ

Two classes have one score (the other's is 0), more have one each. The intercept b is free. Newton's method on block
sums for few parameters, limited-memory BFGS preconditioned by XᵀX beyond; both stop at the duality gap.
Reference: Hastie, Tibshirani & Friedman, The Elements of Statistical Learning (2009), section 4.4.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
from scipy.special import expit, log_expit, log_softmax, softmax
from sklearn.base import ClassifierMixin

from certifit.certificates import likelihood
from certifit.certificates.logistic import CLAIM
from certifit.core import (
    Array,
    Block,
    Certificate,
    DataError,
    Estimator,
    NoSolutionError,
    Objective,
    Rows,
    apply_class_weight,
    class_weight_vector,
    encode_labels,
)
from certifit.core.estimator import Attributes
from certifit.linalg.products import choose_shift
from certifit.models.logistic_loss import Want, measure
from certifit.models.logistic_solve import Problem, Separated, minimise, subsample

NEWTON_LIMIT = 800  # parameters up to which solver='auto' forms the Hessian
LONG = 2**18  # rows from which Newton starts at the subsample's solution
SEPARATION_LIMIT = 2**22  # entries (rows x parameters) up to which a linear program looks for a separating direction


class LogisticRegression(ClassifierMixin, Estimator):
    """Logistic (two classes) and softmax (more) regression, ridge-penalised or not.

    Parameters
    ----------
    penalty : 'l2' or None
        None is maximum likelihood, the same as C=np.inf.
    C : float, default=1.0
        Inverse of the penalty's strength.
    tol : float, default=1e-6
        Relative duality gap at which to stop: objective - minimum <= tol * objective is then proved.
    fit_intercept : bool, default=True
        The intercept is never penalised.
    class_weight : dict, 'balanced' or None
    solver : 'auto', 'newton-cholesky' or 'lbfgs'
    max_iter : int, default=1000
    max_time : float or None
        Seconds after which the best fit so far is returned, with what is proved about it.
    warm_start : bool, default=False
        Start from the previous fit's coefficients.
    random_state : ignored
        The fit is deterministic; accepted so that scikit-learn code runs unchanged.

    Attributes
    ----------
    coef_ : (1, d) or (k, d)
    intercept_ : (1,) or (k,)
    classes_ : (k,)
    n_iter_ : (1,) number of updates
    history_ : objective, relative gap and seconds at every pass
    certificate_ : Certificate

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from certifit import LogisticRegression
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LogisticRegression().fit(X, y)
    >>> model.certificate_.kind, model.certificate_.holds
    ('optimal', True)
    >>> round(model.score(X, y), 3)
    0.973
    """

    target = "classes"
    sparse = True

    def __init__(
        self,
        penalty="l2",
        *,
        C=1.0,
        tol=1e-6,
        fit_intercept=True,
        class_weight=None,
        solver="auto",
        max_iter=1000,
        max_time=None,
        warm_start=False,
        random_state=None,
    ):
        self.penalty = penalty
        self.C = C
        self.tol = tol
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.solver = solver
        self.max_iter = max_iter
        self.max_time = max_time
        self.warm_start = warm_start
        self.random_state = random_state

    def _fit(self, rows: Rows, previous: Attributes) -> Attributes:
        lam, intercept = self._lam(), bool(self.fit_intercept)
        labels = encode_labels(rows)
        rows = apply_class_weight(labels, self.class_weight)
        weight = float(labels.weight @ class_weight_vector(labels.classes, labels.weight, self.class_weight))
        k = len(labels.classes) if len(labels.classes) > 2 else 1
        shape = (k, rows.n_features + intercept)
        sample = subsample(rows)
        shift = choose_shift(sample.X, sample.w) if intercept else None
        theta = self._start(previous, labels.classes, shape, shift)
        if theta.any() and rows.sum(partial(_loss, theta, shift, intercept)) > weight * np.log(len(labels.classes)):
            theta = np.zeros(shape)  # an old answer that is worse than none
        newton = self._newton(shape)
        tol = max(self.tol, 1e-14) * (1.0 if lam > 0 else 0.5)  # a Newton step promises half of what is provable
        problem = Problem(rows, lam, intercept, shift, shape, tol)
        attributes = partial(_attributes, labels.classes, shape, shift, intercept)
        try:
            if newton and not theta.any() and rows.n_rows >= LONG:
                part = Problem(sample, lam * sample.w.sum() / weight, intercept, shift, shape, 1e-3)
                with suppress(Separated):  # separable in the sample says nothing of the whole
                    start = minimise(part, theta, newton=True, sample=sample, max_iter=self.max_iter)
                    theta = start.params.x.reshape(shape)
            with self._watch.loop("passes", self.max_iter, lambda state: attributes(state.x)) as watch:
                best = minimise(
                    problem,
                    theta,
                    newton=newton,
                    sample=sample,
                    max_iter=self.max_iter,
                    max_time=self.max_time,
                    watcher=watch,
                )
        except Separated as found:
            raise _no_solution(_unshift(found.theta, shift, intercept), intercept, rows) from None
        fitted = attributes(best.params.x)
        objective = best.objective
        if lam > 0:
            limit = (self.tol + 1e-12) * objective
            certificate = Certificate("optimal", CLAIM, objective, objective * (1 - best.gain), self.tol, limit)
        else:
            coef, b = fitted["coef_"], fitted["intercept_"]
            certificate = likelihood.certify(coef, b, intercept, self.tol, rows)
            small = rows.n_rows * shape[0] * shape[1] <= SEPARATION_LIMIT
            if not np.isfinite(certificate.gap) and small:
                direction = likelihood.separation(rows, len(labels.classes), intercept)
                error = None if direction is None else _no_solution(direction, intercept, rows)
                if error is not None and error.certificate.holds:
                    raise error
        return {**fitted, "n_iter_": np.array([best.n_iter]), "history_": best.history, "certificate_": certificate}

    def _lam(self) -> float:
        if self.penalty not in ("l2", None):
            raise DataError(got=f"penalty={self.penalty!r}", wanted="'l2' or None")
        if not self.C > 0:
            raise DataError(got=f"C={self.C!r}", wanted="a positive number", fix="Smaller C means more penalty.")
        return 0.0 if self.penalty is None else 1.0 / self.C

    def _newton(self, shape: tuple[int, int]) -> bool:
        choices = {"auto": shape[0] * shape[1] <= NEWTON_LIMIT, "newton-cholesky": True, "lbfgs": False}
        if self.solver not in choices:
            raise DataError(got=f"solver={self.solver!r}", wanted=f"one of {sorted(choices)}")
        return choices[self.solver]

    def _start(self, previous: Attributes, classes: Array, shape: tuple[int, int], shift: Array | None) -> Array:
        theta = np.zeros(shape)
        usable = self.warm_start and "coef_" in previous and np.array_equal(previous["classes_"], classes)
        if usable and previous["coef_"].shape == (shape[0], shape[1] - bool(self.fit_intercept)):
            theta[:, : previous["coef_"].shape[1]] = previous["coef_"]
            if self.fit_intercept:
                theta[:, -1] = previous["intercept_"] + (0.0 if shift is None else previous["coef_"] @ shift)
        return theta

    def decision_function(self, X: Any) -> Array:
        """Scores: (n,) for two classes, (n, k) for more."""
        rows = self._rows(X)
        eta = rows.map(partial(_scores, self.coef_, self.intercept_))
        return eta[:, 0] if len(self.coef_) == 1 else eta

    def predict(self, X: Any) -> Array:
        """The most probable class of each row."""
        eta = self.decision_function(X)
        return self.classes_[(eta > 0).astype(int) if eta.ndim == 1 else eta.argmax(axis=1)]

    def predict_proba(self, X: Any) -> Array:
        """Probability of each class, (n, k)."""
        eta = self.decision_function(X)
        return np.column_stack([expit(-eta), expit(eta)]) if eta.ndim == 1 else softmax(eta, axis=1)

    def predict_log_proba(self, X: Any) -> Array:
        """Log-probability of each class, (n, k); accurate where the probability itself underflows."""
        eta = self.decision_function(X)
        return np.column_stack([log_expit(-eta), log_expit(eta)]) if eta.ndim == 1 else log_softmax(eta, axis=1)

    def objective(self, X: Any, y: Any = None, sample_weight: Any = None) -> Objective:
        """Negative log-likelihood (data term) plus |β|²/(2C), on these rows."""
        rows = self._rows(X, y, sample_weight, target="classes")
        labels = encode_labels(rows, self.classes_)
        rows = apply_class_weight(labels, self.class_weight)
        theta = np.column_stack([self.coef_, self.intercept_])
        data = float(rows.sum(partial(_loss, theta, None, True)))
        penalty = 0.5 * self._lam() * float((self.coef_**2).sum())
        return Objective(data + penalty, data, penalty)


def _scores(coef: Array, intercept: Array, block: Block) -> Array:
    return block.X @ coef.T + intercept


def _loss(theta: Array, shift: Array | None, intercept: bool, block: Block) -> float:
    return measure(theta, shift, intercept, Want(hessian=False, totals=False), block).loss


def _unshift(theta: Array, shift: Array | None, intercept: bool) -> Array:
    """θ in the columns' own coordinates."""
    if shift is None or not intercept:
        return theta
    return np.column_stack([theta[:, :-1], theta[:, -1] - theta[:, :-1] @ shift])


def _attributes(classes: Array, shape: tuple[int, int], shift: Array | None, intercept: bool, x: Array) -> Attributes:
    theta = _unshift(x.reshape(shape), shift, intercept)
    b = theta[:, -1].copy() if intercept else np.zeros(shape[0])
    if len(b) > 1:
        b -= b.mean()  # a common shift changes nothing: the same answer, whichever way the solver went
    return {"classes_": classes, "coef_": theta[:, : shape[1] - intercept].copy(), "intercept_": b}


def _no_solution(direction: Array, intercept: bool, rows: Rows) -> NoSolutionError:
    certificate = likelihood.impossible(direction, intercept, rows)
    return NoSolutionError(
        "The classes are separable and there is no penalty: the likelihood has no maximum (coefficients grow without "
        "limit). Use penalty='l2' with some C, or drop the columns that separate. Separating direction: "
        f"{certificate.facts['separating direction']}",
        certificate,
    )


__all__ = ["LogisticRegression"]
