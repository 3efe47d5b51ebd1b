"""Support vector machines whose setting is nu, a share of the rows, with their duality gap; and those of one class.

At most this share of the rows misses the margin, the tube or the level, and at least this share supports it.

| machine | problem |
|---|---|
| `NuSVC` | min ½ |f|² - ν W ρ + Σ w max(0, ρ - y (f + b)), then divided by its margin ρ |
| `NuSVR` | min ½ |f|² + C (ν W ε + Σ w max(0, |y - f - b| - ε)) |
| `OneClassSVM` | min ½ |f|² - ν W ρ + Σ w max(0, ρ - f) |

W is the weight of all rows. Solved in the dual by `svm.nu.nu_smo`.
References: Schölkopf, Smola, Williamson & Bartlett, New support vector algorithms (2000); Schölkopf, Platt,
Shawe-Taylor, Smola & Williamson, Estimating the support of a high-dimensional distribution (2001).
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
from sklearn.base import OutlierMixin

from certifit.checkers.plain.best_intercepts import middle_of_quantile
from certifit.checkers.svm import one_class
from certifit.checkers.svm.kernel import (
    KernelProblem,
    KernelSvm,
    NuClassMachine,
    NuTubeMachine,
    SvmValues,
    largest_nu,
    rounding_error,
)
from certifit.core import Attributes, Objective
from certifit.core.settings import Setting, Settings
from certifit.rows import Array, Rows, encode_labels
from certifit.svm.kernel.gram import kernel_rows
from certifit.svm.kernel.kernel_machine import KernelMachine
from certifit.svm.kernel.recheck import AnyMachine, plain_of, recheck
from certifit.svm.kernel.schemes import MulticlassScheme, OneVsOne, SvmRows, two_sided
from certifit.svm.kernel.svc import SVC
from certifit.svm.kernel.svr import SVR, regression_attributes
from certifit.svm.kernel.training import TrainedMachines, TrainingRows, TrainingTask
from certifit.svm.nu import nu_smo
from certifit.svm.nu.nu_training import train_each_nu

NU = Setting(float, above=0, most=1)


@dataclass(frozen=True)
class NuOneVsOne(OneVsOne):
    """A machine of nu for each pair of classes, and a vote of all."""

    nu: float = 0.5

    def train(self, task: TrainingTask, rows: SvmRows) -> TrainedMachines:
        blank = [two_sided(rows.code, rows.C, side) for side in self.sides(rows.k)]
        return train_each_nu(task, rows.data, blank, self.nu)

    def machines(self, rows: SvmRows, found: TrainedMachines) -> list[AnyMachine]:
        """As machines of C: that of a row is its weight divided by the machine's margin, which nu and β give."""
        out: list[AnyMachine] = []
        for i, side in enumerate(self.sides(rows.k)):
            blank = two_sided(rows.code, rows.C, side)
            beta = found.beta[blank.rows, i]
            weight, b = float(blank.C.sum()), float(found.intercept[i])
            nu = min(self.nu, largest_nu(blank.y, blank.C))
            C = blank.C * (float(np.abs(beta).sum()) / (nu * weight))
            out.append(NuClassMachine(blank.rows, blank.y, C, beta, b, None, nu, weight))
        return out


class NuSVC(SVC):
    """Support vector classifier whose setting is nu: at most this share of the rows of a pair miss its margin.

    Parameters
    ----------
    nu : float in (0, 1], default=0.5
        At most this share of the weight of two classes misses the margin, and at least this share supports it. No
        machine has a nu above twice the share of the smaller class, which is then taken with a warning. Where nu is
        smaller than the share of rows that no function of the kernel can keep apart, the best margin is 0 and the
        certificate does not hold.
    kernel, degree, gamma, coef0, shrinking, probability, tol, cache_size, class_weight, max_iter, max_time,
        indefinite, decision_function_shape, break_ties, verbose, random_state : as in SVC

    Attributes
    ----------
    support_, support_vectors_, n_support_, dual_coef_, intercept_, classes_, class_weight_, gamma_, support_kinds_,
        support_codes_, shape_fit_, slacks_, kkt_residuals_, n_iter_, history_, certificate_ : as in SVC; every
        machine is divided by its margin, and is then the machine of C = nu W / (sum of |dual_coef_|), for rows of
        weight W

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from certifit import NuSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> model = NuSVC(nu=0.1).fit(X, y)
    >>> model.certificate_.kind, model.certificate_.holds
    ('optimal', True)
    >>> bool((model.slacks_ > 0).mean() <= 0.1)
    True
    """

    C = 1.0
    multi_class = "ovo"
    _one_class = "specified nu is infeasible"
    differences: ClassVar[dict[str, str]] = {
        **SVC.differences,
        "nu": "Where one class is too light for nu, the largest nu there is is taken with a warning.",
    }
    settings: ClassVar[Settings] = {
        "nu": NU,
        **{name: setting for name, setting in SVC.settings.items() if name not in ("C", "multi_class")},
    }

    def __init__(
        self,
        *,
        nu=0.5,
        kernel="rbf",
        degree=3,
        gamma="scale",
        coef0=0.0,
        shrinking=True,
        probability=False,
        tol=1e-3,
        cache_size=200,
        class_weight=None,
        verbose=False,
        max_iter=-1,
        max_time=None,
        indefinite="warn",
        decision_function_shape="ovr",
        break_ties=False,
        random_state=None,
    ):
        self.nu = nu
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.shrinking = shrinking
        self.probability = probability
        self.tol = tol
        self.cache_size = cache_size
        self.class_weight = class_weight
        self.verbose = verbose
        self.max_iter = max_iter
        self.max_time = max_time
        self.indefinite = indefinite
        self.decision_function_shape = decision_function_shape
        self.break_ties = break_ties
        self.random_state = random_state

    def _scheme(self, k: int) -> MulticlassScheme:
        return NuOneVsOne(float(self.nu))

    def objective(self, X: Any, y: Any = None, sample_weight: Any = None) -> Objective:
        """Half the squared distances that machines of this nu keep between classes of the weights of these rows."""
        labelled = encode_labels(self._rows(X, y, sample_weight, "classes"), self.classes_).rows.load()
        code, beta, total = np.asarray(labelled.y), self._beta(), 0.0
        squares = self._squares()
        for i, side in enumerate(NuOneVsOne().sides(len(self.classes_))):
            machine = two_sided(code, labelled.w * self.class_weight_[code], side)
            nu = min(float(self.nu), largest_nu(machine.y, machine.C))
            rho = nu * float(machine.C.sum()) / max(float(np.abs(beta[:, i]).sum()), 1e-300)
            total += 0.5 * rho**2 * squares[i]
        return Objective(total, 0.0, total)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # nu gives both classes equal shares, whatever their weights
        return tags


class NuSVR(SVR):
    """Support vector regression whose setting is nu: its tube is so wide that at most this share of rows leaves it.

    Parameters
    ----------
    nu : float in (0, 1], default=0.5
    C : float, default=1.0
    kernel, degree, gamma, coef0, shrinking, tol, cache_size, verbose, max_iter, max_time, indefinite : as in SVR

    Attributes
    ----------
    support_, support_vectors_, n_support_, dual_coef_, intercept_, gamma_, support_kinds_, slacks_, kkt_residuals_,
        support_codes_, shape_fit_, n_iter_, history_, certificate_ : as in SVR
    epsilon_ : float, half the width of the tube

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import NuSVR
    >>> x = np.linspace(0, 6, 60)[:, None]
    >>> model = NuSVR(nu=0.2, C=10.0).fit(x, np.sin(x[:, 0]))
    >>> model.certificate_.kind, model.certificate_.holds
    ('optimal', True)
    >>> bool((model.slacks_ > 1e-9).mean() <= 0.2)
    True
    """

    settings: ClassVar[Settings] = {
        "nu": NU,
        **{name: setting for name, setting in SVR.settings.items() if name != "epsilon"},
        "C": Setting(float, above=0, below=np.inf),
    }

    epsilon_: float

    def __init__(
        self,
        *,
        nu=0.5,
        C=1.0,
        kernel="rbf",
        degree=3,
        gamma="scale",
        coef0=0.0,
        shrinking=True,
        tol=1e-3,
        cache_size=200,
        verbose=False,
        max_iter=-1,
        max_time=None,
        indefinite="warn",
    ):
        self.nu = nu
        self.C = C
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.shrinking = shrinking
        self.tol = tol
        self.cache_size = cache_size
        self.verbose = verbose
        self.max_iter = max_iter
        self.max_time = max_time
        self.indefinite = indefinite

    @property
    def epsilon(self) -> float:
        """The tube that the fit found, by its name in SVR."""
        return self.epsilon_

    def _fit(self, rows: Rows, previous: Attributes) -> Attributes:
        began = time.perf_counter()
        self._check_square(rows)
        data = self._training_rows(rows.load())
        n = len(data.y)
        machine = KernelSvm(np.arange(n), data.y, self.C * data.w, np.zeros(n), 0.0, 0.0)
        attributes = partial(_tube_attributes, self, data)
        found = train_each_nu(self._task("rounds", began, attributes), data, [machine], float(self.nu))
        values = data.values(machine.rows, machine.rows, found.beta)[:, 0] + found.intercept[0]
        b, tube = float(found.intercept[0]), _tube(self, data, values)
        fitted = NuTubeMachine(machine.rows, machine.y, machine.C, found.beta[:, 0], b, tube, float(self.nu))
        return attributes(recheck(data, [fitted], found, float(self.tol), self._tuning))

    def objective(self, X: Any, y: Any = None, sample_weight: Any = None) -> Objective:
        """Half the squared norm, and C times the losses on these rows and nu of their weight times the tube."""
        found = super().objective(X, y, sample_weight)
        weight = sum(float(block.w.sum()) for block in self._rows(X, y, sample_weight, "numbers"))
        data = found.data + float(self.C) * float(self.nu) * weight * self.epsilon_
        return Objective(data + found.penalty, data, found.penalty)


def _tube(model: NuSVR, data: TrainingRows, values: Array) -> float:
    """Half the width of the tube that is best for these values (n,): nu of the weight lies outside."""
    off = np.abs(data.y - values)
    return max(0.0, -middle_of_quantile(-off, data.w, float(model.nu) * float(data.w.sum())))


def _tube_attributes(model: NuSVR, data: TrainingRows, trained: TrainedMachines) -> Attributes:
    values = data.values(np.arange(len(data.y)), np.arange(len(data.y)), trained.beta)[:, 0] + trained.intercept[0]
    return {**regression_attributes(model, data, trained), "epsilon_": _tube(model, data, values)}


class OneClassSVM(OutlierMixin, KernelMachine):
    """Machine of one class: a function that is above its level at most rows, and small elsewhere.

    Parameters
    ----------
    kernel, degree, gamma, coef0, tol, shrinking, cache_size, verbose, max_iter, max_time, indefinite : as in SVC
    nu : float in (0, 1], default=0.5
        At most this share of the rows is below the level, and at least this share supports it.

    Attributes
    ----------
    support_ : (s,) row numbers of the support vectors
    support_vectors_ : (s, d); empty for a precomputed kernel
    n_support_ : (1,)
    dual_coef_ : (1, s), from 0 to a row's weight; their sum is nu times the weight of all rows
    intercept_ : (1,) minus the level; where several are best, the middle of them
    offset_ : (1,) the level
    gamma_, support_kinds_, support_codes_, shape_fit_, slacks_, kkt_residuals_, n_iter_, history_,
        certificate_ : as in SVR

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import OneClassSVM
    >>> X = np.array([[0.0], [0.44], [0.45], [0.46], [1.0]])
    >>> model = OneClassSVM(gamma="auto").fit(X)
    >>> model.predict(X).tolist(), model.certificate_.holds
    ([-1, 1, 1, 1, -1], True)
    """

    balanced = False
    settings: ClassVar[Settings] = {"nu": NU, **KernelMachine.settings}
    differences: ClassVar[dict[str, str]] = {
        **KernelMachine.differences,
        "decision_function": "Is 0 where a value is within a millionth of the level, as at rows that support it.",
    }

    def __init__(
        self,
        *,
        kernel="rbf",
        degree=3,
        gamma="scale",
        coef0=0.0,
        tol=1e-3,
        nu=0.5,
        shrinking=True,
        cache_size=200,
        verbose=False,
        max_iter=-1,
        max_time=None,
        indefinite="warn",
    ):
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.tol = tol
        self.nu = nu
        self.shrinking = shrinking
        self.cache_size = cache_size
        self.verbose = verbose
        self.max_iter = max_iter
        self.max_time = max_time
        self.indefinite = indefinite

    def _fit(self, rows: Rows, previous: Attributes) -> Attributes:
        began = time.perf_counter()
        self._check_square(rows)
        data = self._training_rows(rows.load())
        n, nu = len(data.w), float(self.nu)
        every, zeros = np.arange(n), np.zeros(n)
        dual = nu_smo.NuDual(every, np.ones(n), zeros, data.w, nu * float(data.w.sum()), unit_margin=False)
        attributes = partial(_level_attributes, self, data, dual)
        task = self._task("rounds", began, lambda _: {})
        gram = task.gram(data, every, data.w)
        lengths, kept = gram.lengths(), kernel_rows(gram, task.cache_size)
        limit = int(self.max_iter) if self.max_iter >= 0 else 10**9
        with self._watch.loop("rounds", limit, lambda point: attributes(point, lengths, None)) as watch:
            found = nu_smo.solve(dual, kept, task.limits(gram), watch, task.tuning.smo, task.tuning.rounds)
        return attributes(found.params, lengths, found)

    @property
    def offset_(self) -> Array:
        """The level (1,): decision values are the function's less this."""
        return -np.asarray(self.intercept_)

    def decision_function(self, X: Any) -> Array:
        """The function's values less its level (n,): below 0 for rows unlike the others.

        Rows that support the level lie on it: within a millionth of it, the difference is 0.
        """
        values = self._values(self._rows(X))[:, 0]
        return np.where(np.abs(values) <= 1e-6 * abs(float(self.offset_[0])), 0.0, values)

    def score_samples(self, X: Any) -> Array:
        """The function's values (n,): the larger, the more like the rows of the fit."""
        return self.decision_function(X) + self.offset_

    def predict(self, X: Any) -> Array:
        """1 for each row (n,) at the level or above, -1 for the others."""
        return np.where(self.decision_function(X) >= 0, 1, -1)

    def objective(self, X: Any, y: Any = None, sample_weight: Any = None) -> Objective:
        """Half the squared distance of the shares' mean from the origin, whatever the rows."""
        self._rows(X, sample_weight=sample_weight)  # refused where they are not of the fitted form
        total = self._penalty()
        return Objective(total, 0.0, total)


def _level_attributes(
    model: OneClassSVM, data: TrainingRows, dual: nu_smo.NuDual, point: nu_smo.SvmDualPoint, lengths: Array, loop: Any
) -> Attributes:
    """Fitted attributes at a point of the dual; what they claim is recomputed once the loop has ended."""
    found, n = nu_smo.measure_gap(dual, point), len(data.w)
    machine = one_class.OneClassMachine(np.arange(n), data.w, point.alpha, found.intercept, float(model.nu))
    if loop is None:
        error = rounding_error(point.alpha, lengths)
        values = SvmValues(point.f, point.alpha, point.f, error, float(lengths.max(initial=0)))
        findings = one_class.assess(machine, values)
        certificate = one_class.one_class_certificate(findings, float(model.tol), data.proved, data.why)
    else:
        X, kernel = plain_of(data)
        problem = KernelProblem(X, kernel, data.proved, data.why)
        certificate, findings = one_class.certify(machine, problem, float(model.tol))
    trained = TrainedMachines(
        point.alpha[:, None],
        np.array([found.intercept]),
        findings.slacks[:, None],
        findings.residuals[:, None],
        findings.kinds[:, None],
        () if loop is None else (loop,),
        certificate,
    )
    return regression_attributes(model, data, trained)
