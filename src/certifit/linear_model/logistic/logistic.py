"""Logistic and softmax regression with a proved distance to the optimum.

    min over β, b of   Σᵢ wᵢ [A(ηᵢ) - η_{i,yᵢ}] + (ρ |β|₁ + (1-ρ)/2 |β|²) / C,   ηᵢ = β xᵢ + b,   A(η) = log Σₖ exp ηₖ

ρ = l1_ratio. Two classes have one score (the other's is 0), more have one each. The intercept b is free. Which method
solves it is in the table of `solve`; Firth's penalty, for separable classes, is in `firth`.
Reference: Hastie, Tibshirani & Friedman, The Elements of Statistical Learning (2009), section 4.4.
"""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar

import numpy as np

from certifit.checkers.linear_model.inference import InferenceTuning
from certifit.core import Attributes, Certificate, Estimator, Objective, Solution
from certifit.core.settings import LOOP, Setting, Settings
from certifit.exceptions import DataError, warn_caller
from certifit.linear_model.inference import Inference, why_no_errors
from certifit.linear_model.linear_scores import LinearScores
from certifit.linear_model.logistic.firth import Firth
from certifit.linear_model.logistic.inference import covariance
from certifit.linear_model.logistic.problem import Likelihood, LogisticRows, LogisticTask, Penalised, data_loss
from certifit.linear_model.logistic.solve import LogisticLimits
from certifit.linear_model.logistic.stored_coefficients import stored_coefficients
from certifit.linear_model.logistic.tuning import LogisticTuning
from certifit.losses.softmax import all_log_probabilities, all_probabilities
from certifit.rows import Array, Rows, apply_class_weight, encode_labels


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
        Share of the penalty that is |β|₁; the rest is |β|²/2. None means 0.
    tol : float, default=1e-6
        Relative duality gap at which to stop: objective - minimum <= tol * objective is then proved. Beside |β|²,
        less than 1e-6 asks for digits of the coefficients: the fit goes on to the square of it, or 1e-12. With
        penalty='firth', how far the modified scores may be from 0, in standard errors.
    fit_intercept : bool, default=True
        The intercept is never penalised.
    class_weight : dict, 'balanced' or None
    solver : 'auto' or any of scikit-learn's
        'newton-cholesky' forms the Hessian, 'lbfgs' does not where the penalty allows it; all others mean 'auto'. The
        minimum is the same: 'liblinear' too leaves the intercept free here.
    covariance : 'classical', 'sandwich' or None
        How the standard errors of a fit without penalty are computed; None saves the time. Firth's are classical (the
        inverse information); intervals from profiles of the penalised likelihood are not computed.
    max_iter : int, default=1000
    max_time : float or None
        Seconds after which the best fit so far is returned, with what is proved about it.
    warm_start : bool, default=False
        Start from the previous fit's coefficients.
    dual, intercept_scaling, multi_class, n_jobs, random_state, verbose : ignored
        Accepted so that scikit-learn's calls run; the fit is deterministic. Several classes are one softmax model:
        multi_class='ovr', another problem, is refused.

    Attributes
    ----------
    coef_ : (1, d) or (k, d)
    intercept_ : (1,) or (k,)
    classes_ : (k,)
    n_iter_ : (1,) number of updates (diagnostic)
    history_ : objective, relative gap and seconds at every pass (diagnostic)
    certificate_ : Certificate; its `parameter_error` says how far each coefficient can be from the minimiser's
    covariance_ : (d1, d1) of (intercept, coefficients), or (k d1, k d1), class after class; None where not valid
    standard_errors_, p_values_ : (d1,) or (k d1,)
    no_errors_because_ : why there are no standard errors; empty where there are
    deviance_, loglikelihood_, aic_, bic_ : floats, without a penalty
    n_parameters_ : free parameters, without a penalty; collinear columns count as one where that was found out
    df_resid_ : sum of the weights less n_parameters_, without a penalty

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
    settings: ClassVar[Settings] = {
        **LOOP,
        "penalty": Setting(choices=("l2", "l1", "elasticnet", "firth", "deprecated"), none=True),
        "C": Setting(float, above=0, fix="Smaller C means more penalty."),
        "l1_ratio": Setting(float, least=0, most=1, none=True),
        "solver": Setting(choices=("auto", "newton-cholesky", "lbfgs", "newton-cg", "liblinear", "sag", "saga")),
        "multi_class": Setting(
            choices=("auto", "multinomial", "deprecated"),
            fix="For one model per class use sklearn.multiclass.OneVsRestClassifier(LogisticRegression()).",
        ),
        "covariance": Setting(choices=("classical", "sandwich"), none=True),
    }
    diagnostics: ClassVar[tuple[str, ...]] = ("n_iter_", "history_")
    ignored: ClassVar[tuple[str, ...]] = (
        "dual",
        "intercept_scaling",
        "multi_class",
        "n_jobs",
        "random_state",
        "verbose",
    )
    differences: ClassVar[dict[str, str]] = {
        "penalty": "The default 'l2' takes l1_ratio as it is, as 'deprecated' does there; it stays, for 'firth'.",
        "solver": "The default 'auto' chooses by the size; solver='liblinear' does not penalise the intercept here.",
        "tol": "A proved relative gap, 1e-6 by default, where scikit-learn's is the size of a gradient or a step.",
        "max_iter": "1000 by default: passes over the rows, of which a fit needs few.",
        "coef_": "float32 for float32 rows, but for fits without a penalty and where the certificate, which is about "
        "the numbers that are stored, would not hold; intercept_ is always float64.",
        "C=np.inf": "Separable classes have no maximum of the likelihood: an error that carries the direction.",
        "l1_ratio": "It counts whatever penalty= says, but for 'l1', 'firth' and None; nothing is deprecated.",
    }
    _tuning: ClassVar[LogisticTuning] = LogisticTuning()

    deviance_: float
    n_parameters_: int
    df_resid_: float

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
        dual=False,
        intercept_scaling=1,
        multi_class="auto",
        n_jobs=None,
        random_state=None,
        verbose=0,
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
        self.dual = dual
        self.intercept_scaling = intercept_scaling
        self.multi_class = multi_class
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _fit(self, rows: Rows, previous: Attributes) -> Attributes:
        data = LogisticRows.of(rows, self.class_weight, bool(self.fit_intercept), self._tuning)
        task = self._task(*data.shape)
        theta = data.start(previous if self.warm_start else {})
        attributes = partial(data.attributes, task.symmetric)
        with self._watch.loop("passes", self.max_iter, lambda state: attributes(state.x)) as watch:
            best = task.minimise(data, theta, LogisticLimits(self.tol, self.max_iter, self.max_time, watch))
        return self._fitted(data, task, best)

    def _fitted(self, data: LogisticRows, task: LogisticTask, best: Solution[Any]) -> Attributes:
        """The fitted attributes of a solution, with its certificate."""
        certificate = task.certificate(data, best, self.tol)
        fitted, certificate = stored_coefficients(data, task, best.params.x, certificate)
        return {
            **fitted,
            **self._evidence(data, task, data.stored(best.params.x.reshape(data.shape)), certificate),
            "n_iter_": np.array([best.n_iter]),
            "history_": best.history,
            "certificate_": certificate,
        }

    def _check_settings(self) -> None:
        super()._check_settings()
        if self.penalty == "firth" and self.covariance == "sandwich":
            raise DataError(got="covariance='sandwich' with penalty='firth'", wanted="'classical' or None")
        if self.penalty == "elasticnet" and self.l1_ratio is None:
            raise DataError(got="penalty='elasticnet' without l1_ratio", wanted="l1_ratio between 0 and 1")

    def _rows_to_fit(self, X: Any, y: Any, sample_weight: Any, reset: bool = True, targets: int = 1) -> Rows:
        if self.penalty is None and self.C != 1.0:
            warn_caller(f"Setting penalty=None will ignore the C={self.C:g}: it means maximum likelihood")
        if self.penalty == "l1" and self.l1_ratio not in (None, 0.0, 1.0):
            warn_caller(
                "l1_ratio parameter is only used when penalty is 'elasticnet'. Got (penalty=l1): "
                f"l1_ratio={self.l1_ratio:g} is left aside"
            )
        return super()._rows_to_fit(X, y, sample_weight, reset, targets)

    def _familiar_words(self) -> str:
        words = {
            "lbfgs": "lbfgs failed to converge",
            "newton-cg": "newton-cg failed to converge. Increase the number of iterations.",
            "newton-cholesky": f"Newton solver did not converge after {self.max_iter} iterations",
            "liblinear": "Liblinear failed to converge, increase the number of iterations.",
            "sag": "The max_iter was reached which means the coef_ did not converge",
            "saga": "The max_iter was reached which means the coef_ did not converge",
        }
        return f"scikit-learn would say: {words[self.solver]}" if self.solver in words else ""

    def strengths(self) -> tuple[float, float]:
        """The strengths λ₁ of |β|₁ and λ₂ of |β|²/2."""
        if self.penalty in ("firth", None):
            return 0.0, 0.0
        ratio = 1.0 if self.penalty == "l1" else float(self.l1_ratio or 0.0)
        return ratio / self.C, (1 - ratio) / self.C

    def _penalty_words(self) -> str:
        """The penalty that counts, whatever the settings call it."""
        lam1, lam2 = self.strengths()
        if lam1 + lam2 == 0:
            return "firth" if self.penalty == "firth" else "none"
        kind = "l2" if lam1 == 0 else "l1" if lam2 == 0 else f"elasticnet, l1_ratio={self.l1_ratio:g}"
        return f"{kind}, C={self.C:g}"

    def _needs_hessian(self, scores: int) -> str:
        """The penalty, in words, if it cannot be solved without the whole Hessian."""
        if self.penalty == "firth":
            return "penalty='firth'"
        return f"an L1 penalty and {scores} classes" if self.strengths()[0] > 0 and scores > 1 else ""

    def _task(self, scores: int, columns: int) -> LogisticTask:
        """What to minimise, over the parameters of so many scores."""
        most, size, why = self._tuning.hessian_parameters, scores * columns, self._needs_hessian(scores)
        if why and size > most:
            raise DataError(
                got=f"{size} parameters with {why}",
                wanted=f"at most {most}: the Hessian is formed",
                fix="Use penalty='l2', or fewer columns.",
            )
        if self.penalty == "firth":
            return Firth()
        lam1, lam2 = self.strengths()
        few = size <= self._tuning.newton_parameters
        by_size = self.solver not in ("newton-cholesky", "lbfgs") and few
        newton = lam1 > 0 or self.solver == "newton-cholesky" or by_size
        return Penalised(lam1, lam2, newton) if lam1 + lam2 > 0 else Likelihood(newton, self.covariance is not None)

    def _evidence(self, data: LogisticRows, task: LogisticTask, theta: Array, certificate: Certificate) -> Attributes:
        """Standard errors and, without a penalty, the likelihood."""
        C, parameters = None, max(1, len(theta) - 1) * theta.shape[1]
        if not self._why_no_errors(task, certificate, theta.size):
            C, parameters = covariance(data.rows, theta, data.shift, data.intercept, self.covariance)
        errors = {"covariance_": C}
        if not task.likelihood:
            return errors
        return {
            **errors,
            "deviance_": 2 * certificate.objective,
            "n_parameters_": parameters,
            "df_resid_": data.weight - parameters,
        }

    def _why_no_errors(self, task: LogisticTask, certificate: Certificate, size: int) -> str:
        """Why a fit of so many parameters has no covariance, whatever its columns are; empty where it has."""
        why = why_no_errors(not task.errors, certificate, self.covariance)
        if not why and self.class_weight is not None:
            why = "class weights count rows otherwise than they were drawn"
        most = InferenceTuning().covariance_parameters
        if not why and size > most:
            why = f"there are {size} parameters; the Hessian is formed for up to {most}"
        return why

    @property
    def no_errors_because_(self) -> str:
        """Why there are no standard errors; empty where there are."""
        k, d = self.coef_.shape
        columns = d + bool(self.fit_intercept)
        why = self._why_no_errors(self._task(k, columns), self.certificate_, k * columns)
        if why or self.covariance_ is not None:
            return why
        return "columns are combinations of others: their coefficients are not determined (or too small to square)"

    @property
    def loglikelihood_(self) -> float:
        """The log-likelihood, of a fit without penalty."""
        return -0.5 * self.deviance_

    @property
    def aic_(self) -> float:
        """Akaike's criterion, of a fit without penalty."""
        return 2 * self.n_parameters_ + self.deviance_

    @property
    def bic_(self) -> float:
        """The Bayesian criterion, of a fit without penalty."""
        return float(np.log(self.df_resid_ + self.n_parameters_)) * self.n_parameters_ + self.deviance_

    def _estimates(self) -> tuple[list[str], Array]:
        names = [*map(str, getattr(self, "feature_names_in_", [f"x{j}" for j in range(self.coef_.shape[1])]))]
        theta = self._dense_coef
        if self.fit_intercept:
            names, theta = ["intercept", *names], np.column_stack([self.intercept_, theta])
        if len(theta) == 1:
            return names, theta[0]
        return [f"{label}: {name}" for label in self._class_names for name in names], theta.ravel()

    @property
    def _class_names(self) -> list[str]:
        """The labels as words; a whole number is the same label whatever its type."""
        numbers = self.classes_.dtype.kind == "f"
        return [str(int(c)) if numbers and float(c).is_integer() else str(c) for c in self.classes_]

    def _facts(self) -> list[tuple[str, str]]:
        facts = [("classes", ", ".join(self._class_names)), ("penalty", self._penalty_words())]
        if hasattr(self, "loglikelihood_"):
            facts += [
                ("log-likelihood", f"{self.loglikelihood_:.6g}"),
                ("AIC, BIC", f"{self.aic_:.6g}, {self.bic_:.6g}"),
            ]
        return [*facts, ("proof", f"{self.certificate_.kind}: {self.certificate_.claim}")]

    def predict_proba(self, X: Any) -> Array:
        """Probability of each class, (n, k)."""
        return all_probabilities(self.decision_function(X))

    def predict_log_proba(self, X: Any) -> Array:
        """Log-probability of each class, (n, k); accurate where the probability itself underflows."""
        return all_log_probabilities(self.decision_function(X))

    def objective(self, X: Any, y: Any = None, sample_weight: Any = None) -> Objective:
        """Negative log-likelihood (data term) plus the penalty, on these rows."""
        rows = self._rows(X, y, sample_weight, target="classes")
        labels = encode_labels(rows, self.classes_)
        rows = apply_class_weight(labels, self.class_weight)
        theta = np.column_stack([self._dense_coef, self.intercept_])
        data = float(rows.sum(partial(data_loss, theta, None, True)))
        penalty = self._task(*theta.shape).penalty(rows, theta, bool(self.fit_intercept))
        return Objective(data + penalty, data, penalty)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = self.penalty != "firth"
        return tags


__all__ = ["LogisticRegression"]
