"""Logistic and softmax regression with a proved distance to the optimum.

    min over β, b of   Σᵢ wᵢ [A(ηᵢ) - η_{i,yᵢ}] + (ρ |β|₁ + (1-ρ)/2 |β|²) / C,   ηᵢ = β xᵢ + b,   A(η) = log Σₖ exp ηₖ

ρ = l1_ratio. Two classes have one score (the other's is 0), more have one each. The intercept b is free. Newton's
method on block sums for few parameters (proximal where there is an L1 term), limited-memory BFGS preconditioned by
XᵀX beyond; both stop at the duality gap. Firth's penalty, for separable classes, is in `linear_model.logistic.firth`.
Reference: Hastie, Tibshirani & Friedman, The Elements of Statistical Learning (2009), section 4.4.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from scipy.special import expit, log_expit, log_softmax, softmax

from certifit.core import Attributes, Certificate, Estimator, Objective
from certifit.core.settings import check_settings
from certifit.exceptions import DataError
from certifit.linear_model.inference import Inference, why_no_errors
from certifit.linear_model.linear_scores import LinearScores
from certifit.linear_model.logistic.firth import Firth
from certifit.linear_model.logistic.inference import KINDS, covariance
from certifit.linear_model.logistic.problem import Labelled, Likelihood, Limits, Penalised, Task, data_loss
from certifit.rows import Array, Rows, apply_class_weight, encode_labels

PENALTIES = ("l2", "l1", "elasticnet", "firth", None)
NEWTON_LIMIT = 800  # parameters up to which solver='auto' forms the Hessian
HESSIAN_LIMIT = 4000  # parameters up to which it is formed where there is no other way


class LogisticRegression(Inference, LinearScores, Estimator):
    """Logistic (two classes) and softmax (more) regression: penalised, or maximum likelihood with standard errors.

    Parameters
    ----------
    penalty : 'l2', 'l1', 'elasticnet', 'firth' or None
        'l2' and 'elasticnet' take `l1_ratio` as it is, 'l1' means l1_ratio=1. None is maximum likelihood, the same as
        C=np.inf. 'firth' (two classes) takes the first-order bias off maximum likelihood and keeps the coefficients
        finite where the classes are separable; C is then ignored.
    C : float, default=1.0
        Inverse of the penalty's strength.
    l1_ratio : float between 0 and 1, default=0.0
        Share of the penalty that is |β|₁; the rest is |β|²/2.
    tol : float, default=1e-6
        Relative duality gap at which to stop: objective - minimum <= tol * objective is then proved. With
        penalty='firth', how far the modified scores may be from 0, in standard errors.
    fit_intercept : bool, default=True
        The intercept is never penalised.
    class_weight : dict, 'balanced' or None
    solver : 'auto', 'newton-cholesky' or 'lbfgs'
    covariance : 'classical', 'sandwich' or None
        How the standard errors of a fit without penalty are computed; None saves the time. Firth's are classical (the
        inverse information); intervals from profiles of the penalised likelihood are not computed.
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
    covariance_ : (d1, d1) of (intercept, coefficients), or (k d1, k d1), class after class; None where not valid
    standard_errors_, p_values_ : (d1,) or (k d1,)
    deviance_, loglikelihood_, aic_, bic_ : floats, without a penalty

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from certifit import LogisticRegression
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LogisticRegression().fit(X, y)
    >>> model.certificate_.kind, model.certificate_.holds
    ('optimal', True)
    >>> round(model.score(X, y), 3)
    0.973

    A 2 x 2 table with an empty cell has no maximum likelihood fit; Firth's is that of ½ more in every cell:

    >>> x, y, counts = [[0], [0], [1], [1]], [0, 1, 0, 1], [6, 4, 0, 5]
    >>> model = LogisticRegression("firth").fit(x, y, sample_weight=counts)
    >>> float(np.exp(model.coef_[0, 0]).round(3)), round(5.5 * 6.5 / (0.5 * 4.5), 3)
    (15.889, 15.889)
    """

    target = "classes"
    sparse = True

    def __init__(
        self,
        penalty="l2",
        *,
        C=1.0,
        l1_ratio=0.0,
        tol=1e-6,
        fit_intercept=True,
        class_weight=None,
        solver="auto",
        covariance="classical",
        max_iter=1000,
        max_time=None,
        warm_start=False,
        random_state=None,
    ):
        self.penalty = penalty
        self.C = C
        self.l1_ratio = l1_ratio
        self.tol = tol
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.solver = solver
        self.covariance = covariance
        self.max_iter = max_iter
        self.max_time = max_time
        self.warm_start = warm_start
        self.random_state = random_state

    def _fit(self, rows: Rows, previous: Attributes) -> Attributes:
        self._check_settings()
        data = Labelled.of(rows, self.class_weight, bool(self.fit_intercept))
        task = self._task(data.shape[0] * data.shape[1])
        theta = data.start(previous if self.warm_start else {})
        attributes = partial(data.attributes, task.symmetric)
        with self._watch.loop("passes", self.max_iter, lambda state: attributes(state.x)) as watch:
            best = task.minimise(data, theta, Limits(self.tol, self.max_iter, self.max_time, watch))
        certificate = task.certificate(data, best, self.tol)
        return {
            **attributes(best.params.x),
            **self._evidence(data, task, best.params.x.reshape(data.shape), certificate),
            "n_iter_": np.array([best.n_iter]),
            "history_": best.history,
            "certificate_": certificate,
        }

    def _check_settings(self) -> None:
        check_settings(self, max_iter=0)
        if self.penalty not in PENALTIES:
            raise DataError(got=f"penalty={self.penalty!r}", wanted=f"one of {PENALTIES}")
        if not self.C > 0:
            raise DataError(got=f"C={self.C!r}", wanted="a positive number", fix="Smaller C means more penalty.")
        if not 0 <= self.l1_ratio <= 1:
            raise DataError(got=f"l1_ratio={self.l1_ratio!r}", wanted="a number between 0 and 1")
        if self.covariance not in (*KINDS, None):
            raise DataError(got=f"covariance={self.covariance!r}", wanted=f"one of {KINDS} or None")
        if self.penalty == "firth" and self.covariance == "sandwich":
            raise DataError(got="covariance='sandwich' with penalty='firth'", wanted="'classical' or None")

    def strengths(self) -> tuple[float, float]:
        """λ₁ of |β|₁ and λ₂ of |β|²/2."""
        if self.penalty in ("firth", None):
            return 0.0, 0.0
        ratio = 1.0 if self.penalty == "l1" else float(self.l1_ratio)
        return ratio / self.C, (1 - ratio) / self.C

    def _task(self, size: int) -> Task:
        """What to minimise, over this many parameters."""
        choices = {"auto": size <= NEWTON_LIMIT, "newton-cholesky": True, "lbfgs": False}
        if self.solver not in choices:
            raise DataError(got=f"solver={self.solver!r}", wanted=f"one of {sorted(choices)}")
        lam1, lam2 = self.strengths()
        if self.penalty == "firth":
            self._check_hessian(size, "penalty='firth'")
            return Firth()
        if lam1 > 0:
            self._check_hessian(size, "an L1 penalty")
            return Penalised(lam1, lam2, newton=True)
        if lam2 > 0:
            return Penalised(lam1, lam2, choices[self.solver])
        return Likelihood(choices[self.solver], self.covariance is not None)

    def _check_hessian(self, size: int, penalty: str) -> None:
        if self.solver == "lbfgs":
            raise DataError(got=f"solver='lbfgs' with {penalty}", wanted="'auto' or 'newton-cholesky'")
        if size > HESSIAN_LIMIT:
            raise DataError(
                got=f"{size} parameters with {penalty}",
                wanted=f"at most {HESSIAN_LIMIT}: the Hessian is formed",
                fix="Use penalty='l2', or fewer columns.",
            )

    def _evidence(self, data: Labelled, task: Task, theta: Array, certificate: Certificate) -> Attributes:
        """Standard errors and, without a penalty, the likelihood."""
        why = why_no_errors(not task.errors, certificate, self.covariance)
        if not why and self.class_weight is not None:
            why = "class weights count rows otherwise than they were drawn"
        if not why and theta.size > HESSIAN_LIMIT:
            why = f"there are {theta.size} parameters; the Hessian is formed for up to {HESSIAN_LIMIT}"
        C, parameters = None, max(1, len(theta) - 1) * theta.shape[1]
        if not why:
            C, parameters = covariance(data.rows, theta, data.shift, data.intercept, self.covariance)
            why = "" if C is not None else "columns are combinations of others: their coefficients are not determined"
        errors = {"covariance_": C, "no_errors_because_": why}
        if not task.likelihood:
            return errors
        deviance = 2 * certificate.objective
        return {
            **errors,
            "deviance_": deviance,
            "loglikelihood_": -certificate.objective,
            "aic_": 2 * parameters + deviance,
            "bic_": float(np.log(data.weight)) * parameters + deviance,
        }

    def _estimates(self) -> tuple[list[str], Array]:
        names = [*map(str, getattr(self, "feature_names_in_", [f"x{j}" for j in range(self.coef_.shape[1])]))]
        theta = self.coef_
        if self.fit_intercept:
            names, theta = ["intercept", *names], np.column_stack([self.intercept_, theta])
        if len(theta) == 1:
            return names, theta[0]
        return [f"{label}: {name}" for label in self.classes_ for name in names], theta.ravel()

    def _facts(self) -> list[tuple[str, str]]:
        facts = [("classes", ", ".join(map(str, self.classes_))), ("penalty", str(self.penalty))]
        if hasattr(self, "loglikelihood_"):
            facts += [
                ("log-likelihood", f"{self.loglikelihood_:.6g}"),
                ("AIC, BIC", f"{self.aic_:.6g}, {self.bic_:.6g}"),
            ]
        return [*facts, ("proof", f"{self.certificate_.kind}: {self.certificate_.claim}")]

    def predict_proba(self, X: Any) -> Array:
        """Probability of each class, (n, k)."""
        eta = self.decision_function(X)
        return np.column_stack([expit(-eta), expit(eta)]) if eta.ndim == 1 else softmax(eta, axis=1)

    def predict_log_proba(self, X: Any) -> Array:
        """Log-probability of each class, (n, k); accurate where the probability itself underflows."""
        eta = self.decision_function(X)
        return np.column_stack([log_expit(-eta), log_expit(eta)]) if eta.ndim == 1 else log_softmax(eta, axis=1)

    def objective(self, X: Any, y: Any = None, sample_weight: Any = None) -> Objective:
        """Negative log-likelihood (data term) plus the penalty, on these rows."""
        rows = self._rows(X, y, sample_weight, target="classes")
        labels = encode_labels(rows, self.classes_)
        rows = apply_class_weight(labels, self.class_weight)
        theta = np.column_stack([self.coef_, self.intercept_])
        data = float(rows.sum(partial(data_loss, theta, None, True)))
        penalty = self._task(theta.size).penalty(rows, theta, bool(self.fit_intercept))
        return Objective(data + penalty, data, penalty)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = self.penalty != "firth"
        return tags


__all__ = ["LogisticRegression"]
