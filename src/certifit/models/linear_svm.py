"""Linear support vector machines with a proved distance to the optimum.

    min over β, b of   ½ |β|² + C Σᵢ wᵢ φ(yᵢ (β·xᵢ + b))          φ the hinge, squared or Huberised; y = ±1
    min over β, b of   ½ |β|² + C Σᵢ wᵢ φ(yᵢ - β·xᵢ - b)          φ(r) = (|r| - ε)₊ or its square

The intercept b is free; scikit-learn penalises it, which `penalize_intercept` does too. More than two classes: one
against the rest, each on its own, or all at once (`models.joint_svm`). Separate machines are solved by
Newton's method on sums over rows, from any source (`models.linear_svm_solve`); those of tables with more than 2000
columns by dual coordinate ascent in memory (`models.linear_svm_dual`).
Reference: Vapnik, Statistical Learning Theory (1998), chapter 10.
"""

from __future__ import annotations

from abc import abstractmethod
from functools import partial
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils import check_random_state

from certifit.certificates.joint_svm import CLAIM as JOINT_CLAIM
from certifit.certificates.linear_svm import CLAIM, told
from certifit.core import (
    Array,
    ArrayRows,
    Block,
    Certificate,
    DataError,
    Estimator,
    Objective,
    Rows,
    Solution,
    apply_class_weight,
    check_settings,
    encode_labels,
)
from certifit.core.estimator import Attributes
from certifit.models.joint_svm import SHAPES, JointProblem, Shape, State, joint_objective, solve_jointly
from certifit.models.linear_rows import row_shift
from certifit.models.linear_svm_dual import Ascent, DualProblem, ascend
from certifit.models.linear_svm_pass import Against, Ramp, Split, Within
from certifit.models.linear_svm_solve import Aim, Machine, Problem, minimise
from certifit.models.logistic_solve import subsample

WIDE = 2000  # columns beyond which no Hessian is formed
HUBER = 0.5  # width of the Huberised hinge, as in certifit.losses
ROUNDING = 8 * np.finfo(float).eps  # of a slack, relative to its target
LOSSES = {"hinge": Ramp(np.inf), "squared_hinge": Ramp(2.0, 0.0, np.inf), "huberised_hinge": Ramp(0.5 / HUBER, HUBER)}
MULTI_CLASS: dict[str, Shape | None] = {"ovr": None, **SHAPES, "crammer_singer": SHAPES["crammer-singer"]}
RESIDUAL_LOSSES = {
    "epsilon_insensitive": LOSSES["hinge"],
    "squared_epsilon_insensitive": LOSSES["squared_hinge"],
}


class LinearMachine(Estimator):
    """What classification and regression share: the settings of the problem and its minimisation."""

    sparse = True
    losses: ClassVar[dict[str, Ramp]]
    flat: ClassVar[bool]  # one machine, whose coefficients are (d,)

    def _aim(self, shift: Array | None = None) -> Aim:
        """The objective, from checked settings."""
        check_settings(self, max_iter=0)
        if self.loss not in self.losses:
            raise DataError(got=f"loss={self.loss!r}", wanted=f"one of {', '.join(map(repr, self.losses))}")
        for name in ("C", "intercept_scaling"):
            value = getattr(self, name)
            if not isinstance(value, Real) or not 0 < float(value) < np.inf:
                raise DataError(got=f"{name}={value!r}", wanted="a positive, finite number")
        return Aim(self.losses[self.loss], float(self.C), self.intercept_weight(), shift)

    def intercept_weight(self) -> float | None:
        """Of b²/2 in the objective: 0 where the intercept is free, None where there is none."""
        if not self.fit_intercept:
            return None
        return float(self.intercept_scaling) ** -2 if self.penalize_intercept else 0.0

    def _minimise(self, rows: Rows, splits: tuple[Split, ...], fixed: Attributes) -> Attributes:
        return (self._by_newton if rows.n_features <= WIDE else self._by_ascent)(rows, splits, fixed)

    def _by_newton(self, rows: Rows, splits: tuple[Split, ...], fixed: Attributes) -> Attributes:
        sample = subsample(rows)
        unit, b, size = self._sizes(sample)
        aim = self._aim()
        if aim.rho == 0:
            aim = aim._replace(shift=row_shift(sample.X, sample.w))
        rounding = ROUNDING * aim.C * size * len(splits) * rows.n_rows / sample.n_rows
        problem = Problem(rows, aim, float(self.tol), rounding)
        attributes = partial(self._attributes, aim, rows.n_features, fixed)
        with self._watch.loop("passes", self.max_iter, attributes) as watch:
            best = minimise(problem, splits, unit, b, max_iter=self.max_iter, max_time=self.max_time, watcher=watch)
        found = attributes(best.params)
        return {**found, **self._found(best, rounding, found["coef_"])}

    def _by_ascent(self, rows: Rows, splits: tuple[Split, ...], fixed: Attributes) -> Attributes:
        aim = self._aim()
        rows = rows.load()
        problem = DualProblem(rows, splits, aim.loss, aim.C, aim.rho, float(self.tol), self._seed())
        attributes = partial(self._attributes, aim, rows.n_features, fixed)
        with self._watch.loop("passes", self.max_iter, attributes) as watch:
            best = ascend(
                problem, self._sizes(rows)[1], max_iter=self.max_iter, max_time=self.max_time, watcher=watch
            )
        found = {**attributes(best.params), "dual_coef_": problem.dual_coef(best.params)}
        return {**found, **self._found(best, 0.0, found["coef_"])}

    def _seed(self) -> int:
        return int(check_random_state(self.random_state or 0).randint(2**31))

    def _found(self, best: Solution[Any], rounding: float, coef: Array, claim: str = CLAIM) -> Attributes:
        value, tol = best.objective, float(self.tol)
        bound, limit = (1 - best.gain) * value - rounding, (tol + 1e-12) * value + rounding
        checks = (told(rounding, value, float(np.abs(coef).max(initial=0.0))),)
        certificate = Certificate("optimal", claim, value, bound, tol, limit, checks)
        return {"n_iter_": best.n_iter, "history_": best.history, "certificate_": certificate}

    def _attributes(self, aim: Aim, d: int, fixed: Attributes, machines: tuple[Machine | Ascent, ...]) -> Attributes:
        """Fitted attributes in the columns' own coordinates."""
        theta = np.stack([m.here for m in machines])
        coef, b = theta[:, :d].copy(), theta[:, d].copy() if aim.intercept else np.zeros(len(theta))
        if aim.shift is not None:
            b -= coef @ aim.shift
        return {**fixed, "coef_": coef[0] if self.flat else coef, "intercept_": b}

    @abstractmethod
    def _sizes(self, sample: ArrayRows) -> tuple[float, float, float]:
        """The size of a slack, an intercept to start from, and Σ w |q| over these rows."""

    def _scores(self, X: Any) -> Array:
        """(n, machines)."""
        return self._rows(X).map(partial(_scores, np.atleast_2d(self.coef_), self.intercept_))

    def _objective(self, rows: Rows, splits: tuple[Split, ...]) -> Objective:
        aim = self._aim()
        theta = np.atleast_2d(self.coef_)
        if aim.intercept:
            theta = np.column_stack([theta, self.intercept_])
        problem = Problem(rows, aim, 0.0, 0.0)
        data, penalty = problem.parts(splits, theta)
        return Objective(data + penalty, data, penalty)


class LinearSVC(ClassifierMixin, LinearMachine):
    """Linear support vector classification; more than two classes one against the rest, or all at once.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the losses against ½ |coef|².
    loss : 'squared_hinge', 'hinge' or 'huberised_hinge'
        The last is the hinge with its kink rounded over 1 ± ½.
    multi_class : 'ovr', 'weston-watkins' or 'crammer-singer' (also 'crammer_singer')
        One machine for each class against the rest; or one problem for all classes, with the sum of the slacks
        max(0, 2 + f_k - f_y) of the wrong classes k as a row's loss, or with the largest of max(0, 1 + f_k - f_y).
        The last two need n k numbers in memory, and `loss` is not used (as in scikit-learn). With two classes
        Weston-Watkins is the machine of 'ovr' with loss='hinge' and the same C, Crammer-Singer that with 2C.
    penalize_intercept : bool, default=False
        Count intercept² / (2 intercept_scaling²) in the objective, as scikit-learn does.
    intercept_scaling : float, default=1.0
    fit_intercept : bool, default=True
    class_weight : dict, 'balanced' or None
    tol : float, default=1e-4
        Relative duality gap at which to stop: objective - minimum <= tol * objective is then proved.
    max_iter : int, default=200
        Passes over the data.
    max_time : float or None
        Seconds after which the best fit so far is returned, with what is proved about it.
    random_state : int or None
        Order of the rows where there are more than 2000 columns and multi_class='ovr'; None means 0. The others
        need no chance.

    Attributes
    ----------
    coef_ : (1, d) or (k, d)
    intercept_ : (1,) or (k,)
    classes_ : (k,)
    dual_coef_ : (1, n) or (k, n), the certificate's witness: for all classes at once, or over 2000 columns
    n_iter_ : number of updates
    history_ : objective, relative gap and seconds at every pass
    certificate_ : Certificate, of the sum of the objectives where there are several

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from certifit import LinearSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LinearSVC(loss="hinge").fit(X, y)
    >>> model.certificate_.kind, model.certificate_.holds, model.coef_.shape
    ('optimal', True, (3, 4))
    """

    target = "classes"
    losses = LOSSES
    flat = False

    def __init__(
        self,
        C=1.0,
        *,
        loss="squared_hinge",
        multi_class="ovr",
        penalize_intercept=False,
        intercept_scaling=1.0,
        fit_intercept=True,
        class_weight=None,
        tol=1e-4,
        max_iter=200,
        max_time=None,
        random_state=None,
    ):
        self.C = C
        self.loss = loss
        self.multi_class = multi_class
        self.penalize_intercept = penalize_intercept
        self.intercept_scaling = intercept_scaling
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.random_state = random_state

    def _fit(self, rows: Rows, previous: Attributes) -> Attributes:  # noqa: ARG002
        self._aim()
        labels = encode_labels(rows)
        rows = apply_class_weight(labels, self.class_weight)
        shape, fixed = self._shape(), {"classes_": labels.classes}
        if shape is None:
            return self._minimise(rows, _against(len(labels.classes)), fixed)
        return self._jointly(rows, shape, fixed)

    def _shape(self) -> Shape | None:
        """The loss of all classes at once; None where each has a machine of its own."""
        if self.multi_class not in MULTI_CLASS:
            raise DataError(
                got=f"multi_class={self.multi_class!r}", wanted=f"one of {', '.join(map(repr, MULTI_CLASS))}"
            )
        return MULTI_CLASS[self.multi_class]

    def _jointly(self, rows: Rows, shape: Shape, fixed: Attributes) -> Attributes:
        aim, k = self._aim(), len(fixed["classes_"])
        problem = JointProblem(rows, k, shape, aim.C, aim.rho, float(self.tol))

        def attributes(at: State) -> Attributes:
            beta, b = problem.coefficients(at)
            if k == 2:  # one machine says it all
                beta, b = beta[1:] - beta[:1], b[1:] - b[:1]
            return {**fixed, "coef_": beta, "intercept_": b, "dual_coef_": problem.dual_coef(at)}

        with self._watch.loop("passes", self.max_iter, attributes) as watch:
            best = solve_jointly(problem, max_iter=self.max_iter, max_time=self.max_time, watcher=watch)
        found = attributes(best.params)
        return {**found, **self._found(best, problem.rounding, found["coef_"], JOINT_CLAIM)}

    def _sizes(self, sample: ArrayRows) -> tuple[float, float, float]:
        return 1.0, 0.0, float(sample.w.sum())

    def decision_function(self, X: Any) -> Array:
        """Scores: (n,) for two classes, (n, k) for more."""
        eta = self._scores(X)
        return eta[:, 0] if eta.shape[1] == 1 else eta

    def predict(self, X: Any) -> Array:
        """The class of the highest score of each row."""
        eta = self.decision_function(X)
        return self.classes_[(eta > 0).astype(int) if eta.ndim == 1 else eta.argmax(axis=1)]

    def objective(self, X: Any, y: Any = None, sample_weight: Any = None) -> Objective:
        """C times the weighted losses (data term) plus the penalty, added up over the machines."""
        labels = encode_labels(self._rows(X, y, sample_weight, target="classes"), self.classes_)
        rows, shape = apply_class_weight(labels, self.class_weight), self._shape()
        if shape is None:
            return self._objective(rows, _against(len(self.classes_)))
        return joint_objective(rows, shape, self.coef_, self.intercept_, float(self.C), self.intercept_weight())


class LinearSVR(RegressorMixin, LinearMachine):
    """Linear support vector regression: errors up to epsilon cost nothing.

    Parameters
    ----------
    epsilon : float, default=0.0
    C : float, default=1.0
        Weight of the losses against ½ |coef|².
    loss : 'epsilon_insensitive' or 'squared_epsilon_insensitive'
    penalize_intercept, intercept_scaling, fit_intercept, tol, max_iter, max_time, random_state : see LinearSVC

    Attributes
    ----------
    coef_ : (d,)
    intercept_ : (1,)
    dual_coef_, n_iter_, history_, certificate_ : see LinearSVC

    Examples
    --------
    >>> from certifit import LinearSVR
    >>> model = LinearSVR(C=100.0).fit([[0.0], [1.0], [2.0], [3.0]], [1.0, 3.0, 5.0, 100.0])
    >>> model.predict([[4.0]]).round(2), model.certificate_.holds
    (array([9.]), True)
    """

    target = "numbers"
    losses = RESIDUAL_LOSSES
    flat = True

    def __init__(
        self,
        *,
        epsilon=0.0,
        C=1.0,
        loss="epsilon_insensitive",
        penalize_intercept=False,
        intercept_scaling=1.0,
        fit_intercept=True,
        tol=1e-4,
        max_iter=200,
        max_time=None,
        random_state=None,
    ):
        self.epsilon = epsilon
        self.C = C
        self.loss = loss
        self.penalize_intercept = penalize_intercept
        self.intercept_scaling = intercept_scaling
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.random_state = random_state

    def _fit(self, rows: Rows, previous: Attributes) -> Attributes:  # noqa: ARG002
        self._aim()
        if not 0 <= self.epsilon < np.inf:
            raise DataError(got=f"epsilon={self.epsilon!r}", wanted="a finite number of at least 0")
        return self._minimise(rows, (Within(float(self.epsilon)),), {})

    def _sizes(self, sample: ArrayRows) -> tuple[float, float, float]:
        assert sample.y is not None
        b = float(np.median(sample.y))
        size = 2 * float(sample.w @ (np.abs(sample.y) + self.epsilon))
        return float(np.abs(sample.y - b).mean()) or 1.0, b, size

    def predict(self, X: Any) -> Array:
        """β·x + b of each row."""
        return self._scores(X)[:, 0]

    def objective(self, X: Any, y: Any = None, sample_weight: Any = None) -> Objective:
        """C times the weighted losses (data term) plus the penalty."""
        return self._objective(self._rows(X, y, sample_weight, target="numbers"), (Within(float(self.epsilon)),))


def _against(k: int) -> tuple[Split, ...]:
    return tuple(Against(code) for code in range(k)) if k > 2 else (Against(1),)


def _scores(coef: Array, intercept: Array, block: Block) -> Array:
    return block.X @ coef.T + intercept
