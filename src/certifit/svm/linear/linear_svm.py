"""Linear support vector machines with a proved distance to the optimum.

    min over β, b of   ½ |β|² + C Σᵢ wᵢ φ(yᵢ (β·xᵢ + b))          φ the hinge, squared or Huberised; y = ±1
    min over β, b of   ½ |β|² + C Σᵢ wᵢ φ(yᵢ - β·xᵢ - b)          φ(r) = (|r| - ε)₊ or its square

The intercept b is penalised too, as LIBLINEAR does, unless `penalize_intercept=False`. More than two classes: one
against the rest, each on its own (`svm.linear.base`), or all at once (`svm.joint_linear.proximal_multipliers`).
Reference: Vapnik, Statistical Learning Theory (1998), chapter 10.
"""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar

import numpy as np
from sklearn.base import RegressorMixin

from certifit.checkers.plain.hinges import PLAIN_MULTICLASS_HINGES
from certifit.checkers.svm.joint import CLAIM as JOINT_CLAIM
from certifit.checkers.svm.joint import ClaimedJointSvm
from certifit.checkers.svm.joint_linear import certify as certify_jointly
from certifit.checkers.svm.linear_machines.l1 import ClaimedL1Svm
from certifit.checkers.svm.linear_machines.l1 import certify as certify_l1
from certifit.core import Attributes, Certificate, Objective, certified
from certifit.core.settings import Setting, Settings
from certifit.exceptions import DataError
from certifit.linear_model.linear_scores import LinearScores, score_rows
from certifit.losses.hinges import HINGES, RESIDUAL_HINGES
from certifit.losses.multiclass.multiclass_hinges import MULTICLASS_HINGES, MulticlassHinge
from certifit.rows import Array, ArrayRows, Rows, apply_class_weight, encode_labels
from certifit.svm.joint_linear.proximal_multipliers import (
    JointSvmObjective,
    JointSvmProblem,
    JointSvmState,
    joint_objective,
    solve_jointly,
)
from certifit.svm.joint_linear.tuning import JointSvmTuning
from certifit.svm.linear.base import LinearSvmEstimator, LinearSvmProof, TargetSizes, shift_error
from certifit.svm.linear.l1_newton import L1Machine, L1NewtonTuning, minimise_l1
from certifit.svm.linear.slacks import EpsilonTube, one_against_rest

_TOL = "A proved relative gap, where scikit-learn's is the size of a gradient."


class LinearSVC(LinearScores, LinearSvmEstimator):
    """Linear support vector classification; more than two classes one against the rest, or all at once.

    Parameters
    ----------
    penalty : 'l2' or 'l1', default='l2'
        'l1' puts |coef| in the place of ½ |coef|², which leaves many coefficients 0, and |intercept| /
        intercept_scaling in that of the intercept's square; with loss='squared_hinge' and multi_class='ovr' only.
    loss : 'squared_hinge', 'hinge' or 'huberised_hinge'
        The last is the hinge with its kink rounded over 1 ± ½.
    C : float, default=1.0
        Weight of the losses against ½ |coef|².
    multi_class : 'ovr', 'weston-watkins' or 'crammer-singer' (also 'crammer_singer')
        One machine for each class against the rest; or one problem for all classes, with the sum of the slacks
        max(0, 2 + f_k - f_y) of the wrong classes k as a row's loss, or with the largest of max(0, 1 + f_k - f_y).
        The last two need n k numbers in memory, and `loss` is not used (as in scikit-learn). With two classes
        Weston-Watkins is the machine of 'ovr' with loss='hinge' and the same C, Crammer-Singer that with 2C.
    penalize_intercept : bool, default=True
        Count intercept² / (2 intercept_scaling²) in the objective, as scikit-learn does. A free intercept
        (False) does not depend on where the columns have their zero.
    intercept_scaling : float, default=1.0
    fit_intercept : bool, default=True
    class_weight : dict, 'balanced' or None
    tol : float, default=1e-4
        Relative duality gap at which to stop: objective - minimum <= tol * objective is then proved.
    max_iter : int, default=1000
        Passes over the data.
    max_time : float or None
        Seconds after which the best fit so far is returned, with what is proved about it.
    random_state : int or None
        Order of the rows where there are more than 2000 columns and multi_class='ovr'; None means 0. All other fits
        draw no random numbers.
    dual, verbose : ignored
        Accepted so that scikit-learn's calls run.

    Attributes
    ----------
    coef_ : (1, d) or (k, d)
    intercept_ : (1,) or (k,); where several free ones are best, the middle of them
    classes_ : (k,)
    dual_coef_ : (1, n) or (k, n), where the certificate's bound comes from: for all classes at once, or over 2000
        columns (diagnostic)
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
    losses = HINGES
    single = False
    multiclass_hinges: ClassVar[dict[str, MulticlassHinge | None]] = {
        "ovr": None,
        **MULTICLASS_HINGES,
        "crammer_singer": MULTICLASS_HINGES["crammer-singer"],
    }
    settings: ClassVar[Settings] = {
        **LinearSvmEstimator.settings,
        "penalty": Setting(choices=("l2", "l1")),
        "loss": Setting(choices=losses),
        "multi_class": Setting(choices=multiclass_hinges),
    }
    ignored: ClassVar[tuple[str, ...]] = ("dual", "verbose")
    differences: ClassVar[dict[str, str]] = {
        "tol": _TOL,
        "class_weight": "Of three or more classes, every machine weights each row by its class; LIBLINEAR weights a "
        "machine's own class and leaves all others at 1.",
    }
    _l1_tuning: ClassVar[L1NewtonTuning] = L1NewtonTuning()
    _joint_tuning: ClassVar[JointSvmTuning] = JointSvmTuning()

    def __init__(
        self,
        penalty="l2",
        loss="squared_hinge",
        *,
        dual="auto",
        tol=1e-4,
        C=1.0,
        multi_class="ovr",
        fit_intercept=True,
        intercept_scaling=1.0,
        penalize_intercept=True,
        class_weight=None,
        verbose=0,
        random_state=None,
        max_iter=1000,
        max_time=None,
    ):
        super().__init__(
            C, loss, penalize_intercept, intercept_scaling, fit_intercept, tol, max_iter, max_time, random_state
        )
        self.penalty = penalty
        self.multi_class = multi_class
        self.class_weight = class_weight
        self.dual = dual
        self.verbose = verbose

    def _check_settings(self) -> None:
        super()._check_settings()
        if self.penalty == "l1" and (self.loss != "squared_hinge" or self.multi_class != "ovr"):
            raise DataError(
                got=f"penalty='l1' with loss={self.loss!r} and multi_class={self.multi_class!r}",
                wanted="loss='squared_hinge' and multi_class='ovr'",
                fix=f"Unsupported set of arguments: penalty='l1', loss={self.loss!r}, dual={self.dual}.",
            )

    def _fit(self, rows: Rows, previous: Attributes) -> Attributes:
        labels = encode_labels(rows)
        rows = apply_class_weight(labels, self.class_weight)
        if self.penalty == "l1":
            return self._minimise_l1(rows, {"classes_": labels.classes})
        joint, fixed = self._joint_objective(), {"classes_": labels.classes}
        if joint is None:
            return self._minimise(rows, one_against_rest(len(labels.classes)), fixed)
        return self._minimise_jointly(rows, joint, fixed)

    def _minimise_l1(self, rows: Rows, fixed: Attributes) -> Attributes:
        """Fitted attributes of machines with an L1 penalty, one after another."""
        d, k = rows.n_features, len(fixed["classes_"])
        claimed, codes = self._claimed_l1(), range(k) if k > 2 else (1,)
        ones = None if claimed.tau is None else 1.0 / claimed.tau if claimed.tau else 1.0
        lam = np.ones(d) if ones is None else np.append(np.ones(d), float(bool(claimed.tau)))
        theta, loops = np.zeros((len(codes), len(lam))), []

        def attributes(at: np.ndarray) -> Attributes:
            b = np.zeros(len(at)) if ones is None else ones * at[:, d]
            return {**fixed, "coef_": at[:, :d].copy(), "intercept_": b}

        for c, code in enumerate(codes):
            machine = L1Machine(rows, code, claimed.C, ones, lam, 0.1 * float(self.tol), self._l1_tuning)
            name = "passes" if len(codes) == 1 else f"passes, machine {c + 1} of {len(codes)}"
            with self._watch.loop(name, self.max_iter, lambda _: attributes(theta)) as watch:
                loops.append(minimise_l1(machine, self.max_iter, self.max_time, watch))
            theta[c] = loops[-1].params.theta
        found = attributes(theta)
        certificate = certified(certify_l1, found["coef_"], found["intercept_"], claimed, float(self.tol), rows)
        history = tuple(mark for loop in loops for mark in loop.history)
        n_iter = max(loop.n_iter for loop in loops)
        return {**found, "n_iter_": n_iter, "history_": history, "certificate_": certificate}

    def _claimed_l1(self) -> ClaimedL1Svm:
        """The problem with an L1 penalty as the checker has it."""
        tau = 1.0 / float(self.intercept_scaling) if self.penalize_intercept else 0.0
        return ClaimedL1Svm(float(self.C), tau if self.fit_intercept else None)

    @property
    def _scheme(self) -> str:
        return str(self.multi_class).replace("_", "-")  # scikit-learn says crammer_singer

    def _joint_objective(self) -> JointSvmObjective | None:
        """What is minimised for all classes at once; None where each has a machine of its own."""
        hinge = self.multiclass_hinges[self.multi_class]
        return None if hinge is None else JointSvmObjective(hinge, float(self.C), self.intercept_weight())

    def _minimise_jointly(self, rows: Rows, joint: JointSvmObjective, fixed: Attributes) -> Attributes:
        k = len(fixed["classes_"])
        problem = JointSvmProblem(rows, k, joint, float(self.tol), self._joint_tuning)

        def attributes(at: JointSvmState) -> Attributes:
            beta, b = problem.coefficients(at)
            if joint.rho == 0:
                b = b - b.mean()  # free biases are known up to a constant for all classes
            if k == 2:  # the difference of the two says it all
                beta, b = beta[1:] - beta[:1], b[1:] - b[:1]
            return {**fixed, "coef_": beta, "intercept_": b, "dual_coef_": problem.dual_coef(at)}

        solve = partial(solve_jointly, problem)
        intercept_error = partial(shift_error, problem.columns.shift, float(problem.mass.sum()))
        # Two classes have β = ∓ coef_ / 2: the objective contains ½ · ½ |coef_|².
        proof = LinearSvmProof(
            joint.rho,
            problem.bound_rounding,
            problem.rounding,
            intercept_error,
            problem.score_rounding,
            JOINT_CLAIM,
            2.0 if k == 2 else 1.0,
        )
        claimed = ClaimedJointSvm(PLAIN_MULTICLASS_HINGES[self._scheme], joint.C, joint.rho)

        def checked(found: Attributes) -> Certificate:
            coef, b, dual = (found[name] for name in ("coef_", "intercept_", "dual_coef_"))
            return certify_jointly(coef, b, claimed, float(self.tol), rows, dual)

        proof = proof._replace(checked=checked)
        return self._solve_and_certify(solve, attributes, proof)

    def _slack_sizes(self, sample: ArrayRows) -> TargetSizes:
        return TargetSizes(1.0, 0.0, float(sample.w.sum()))

    def objective(self, X: Any, y: Any = None, sample_weight: Any = None) -> Objective:
        """C times the weighted losses (data term) plus the penalty, added up over the machines."""
        self._check_settings()
        labels = encode_labels(self._rows(X, y, sample_weight, target="classes"), self.classes_)
        rows, joint = apply_class_weight(labels, self.class_weight), self._joint_objective()
        if self.penalty == "l1":
            claimed = self._claimed_l1()
            total = certify_l1(self.coef_, self.intercept_, claimed, float(self.tol), rows).objective
            penalty = float(np.abs(self.coef_).sum() + (claimed.tau or 0.0) * np.abs(self.intercept_).sum())
            return Objective(total, total - penalty, penalty)
        if joint is None:
            return self._fitted_objective(rows, one_against_rest(len(self.classes_)))
        return joint_objective(rows, joint, self.coef_, self.intercept_)


class LinearSVR(RegressorMixin, LinearSvmEstimator):
    """Linear support vector regression: errors up to epsilon cost nothing.

    Parameters
    ----------
    epsilon : float, default=0.0
    C : float, default=1.0
        Weight of the losses against ½ |coef|².
    loss : 'epsilon_insensitive' or 'squared_epsilon_insensitive'
    penalize_intercept, intercept_scaling, fit_intercept, tol, max_iter, max_time, random_state : see LinearSVC
    dual, verbose : ignored
        Accepted so that scikit-learn's calls run.

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
    losses = RESIDUAL_HINGES
    single = True
    settings: ClassVar[Settings] = {
        **LinearSvmEstimator.settings,
        "loss": Setting(choices=losses),
        "epsilon": Setting(float, least=0, below=np.inf),
    }
    ignored: ClassVar[tuple[str, ...]] = LinearSVC.ignored
    differences: ClassVar[dict[str, str]] = {"tol": _TOL}

    def __init__(
        self,
        *,
        epsilon=0.0,
        tol=1e-4,
        C=1.0,
        loss="epsilon_insensitive",
        fit_intercept=True,
        intercept_scaling=1.0,
        penalize_intercept=True,
        dual="auto",
        verbose=0,
        random_state=None,
        max_iter=1000,
        max_time=None,
    ):
        super().__init__(
            C, loss, penalize_intercept, intercept_scaling, fit_intercept, tol, max_iter, max_time, random_state
        )
        self.epsilon = epsilon
        self.dual = dual
        self.verbose = verbose

    def _fit(self, rows: Rows, previous: Attributes) -> Attributes:
        return self._minimise(rows, (EpsilonTube(float(self.epsilon)),), {})

    def _slack_sizes(self, sample: ArrayRows) -> TargetSizes:
        assert sample.y is not None
        b = float(np.median(sample.y))
        size = 2 * float(sample.w @ (np.abs(sample.y) + self.epsilon))
        return TargetSizes(float(np.abs(sample.y - b).mean()) or 1.0, b, size)

    def predict(self, X: Any) -> Array:
        """β·x + b of each row."""
        return self._rows(X).map(partial(score_rows, self.coef_[None], self.intercept_))[:, 0]

    def objective(self, X: Any, y: Any = None, sample_weight: Any = None) -> Objective:
        """C times the weighted losses (data term) plus the penalty."""
        self._check_settings()
        rows = self._rows(X, y, sample_weight, target="numbers")
        return self._fitted_objective(rows, (EpsilonTube(float(self.epsilon)),))
