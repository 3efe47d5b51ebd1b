"""Support vector classification with kernels, one machine for each pair of classes, with its duality gap.

    min over f, b of   ½ |f|² + C Σᵢ wᵢ max(0, 1 - yᵢ (f(xᵢ) + b)),     y = ±1,  f in the space of the kernel

Solved in the dual by batches of rows (`solvers.smo`) until the gap between the two problems is small: that gap is the
certificate. Kernel values are not sums over rows, so the rows are taken into memory, whatever their source.
References: Cortes & Vapnik, Support-vector networks (1995); Schölkopf & Smola, Learning with Kernels (2002).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from certifit.certificates import svc as certificates
from certifit.core import Array, DataError, Objective, Rows, class_weight_vector, encode_labels
from certifit.core.estimator import Attributes
from certifit.models.svm_machine import KernelMachine, Trained, Training

SHAPES = ("ovr", "ovo")


class SVC(ClassifierMixin, KernelMachine):
    """Support vector classifier with a kernel; more than two classes vote pair by pair, as in scikit-learn.

    Parameters
    ----------
    C : float, default=1.0
        Price of a row's slack; the box of its coefficient is C times its weight.
    kernel : 'rbf', 'linear', 'poly', 'sigmoid', 'precomputed' or callable(A, B), default='rbf'
        A callable gives k(x, z) for all rows of A and B, for instance a `certifit.models.svm_kernels.Kernel`; it is
        asked for a part of the rows at a time. One that is not proved positive semidefinite is tried on up to 1500
        rows, and refused where these show that it is not.
    degree, coef0 : of 'poly' and 'sigmoid', default=3 and 0.0
    gamma : 'scale', 'auto' or float, default='scale'
        'scale' is 1 / (columns · variance of all entries), rows counted by their weights; 'auto' is 1 / columns.
    tol : float, default=1e-3
        Relative duality gap at which to stop: objective - minimum <= tol * objective is then proved.
    class_weight : dict, 'balanced' or None
    cache_size : float, default=200
        Megabytes of kernel values kept.
    shrinking : ignored
        Rounds only ever touch the rows of a batch; accepted so that scikit-learn code runs unchanged.
    max_iter : int, default=-1
        Most rounds (batches of up to 512 rows) for each pair of classes; -1 is no limit. A fit that gets nowhere in
        300 rounds (huge C, columns of very different scales) ends by itself and says what it has proved.
    max_time : float or None, default=None
        Seconds after which the best machines so far are returned, with what is proved about them.
    decision_function_shape : 'ovr' or 'ovo'
    break_ties : bool, default=False
        Decide between classes of equally many votes by the values of `decision_function`, not by their order.
    random_state : ignored
        The fit is deterministic.

    Attributes
    ----------
    support_ : (s,) row numbers of the support vectors, class after class
    support_vectors_ : (s, d); empty for a precomputed kernel
    n_support_ : (k,) how many in each class
    dual_coef_ : (k-1, s) coefficients y α, in scikit-learn's layout
    intercept_ : (machines,)
    classes_ : (k,)
    class_weight_ : (k,)
    gamma_ : float
    support_kinds_ : (n,) or (n, machines) words: 'margin' (0 < α < C), 'non-margin' (α = C) or 'none' (α = 0)
    slacks_, kkt_residuals_ : (n,) or (n, machines), losses and by how much each row misses its optimality condition
    n_iter_ : (machines,) rounds
    history_ : for each machine its objective, relative gap and seconds at every round
    certificate_ : Certificate

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from certifit import SVC
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SVC().fit(X, y)
    >>> model.certificate_.kind, model.certificate_.holds
    ('optimal', True)
    >>> round(model.score(X, y), 3)
    0.973
    """

    target = "classes"

    def __init__(
        self,
        *,
        C=1.0,
        kernel="rbf",
        degree=3,
        gamma="scale",
        coef0=0.0,
        shrinking=True,
        tol=1e-3,
        cache_size=200,
        class_weight=None,
        max_iter=-1,
        max_time=None,
        decision_function_shape="ovr",
        break_ties=False,
        random_state=None,
    ):
        self.C = C
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.shrinking = shrinking
        self.tol = tol
        self.cache_size = cache_size
        self.class_weight = class_weight
        self.max_iter = max_iter
        self.max_time = max_time
        self.decision_function_shape = decision_function_shape
        self.break_ties = break_ties
        self.random_state = random_state

    def _fit(self, rows: Rows, previous: Attributes) -> Attributes:  # noqa: ARG002
        began = time.perf_counter()
        self._check_settings()
        self._check_width(rows)
        if self.decision_function_shape not in SHAPES:
            raise DataError(
                got=f"decision_function_shape={self.decision_function_shape!r}", wanted=f"one of {SHAPES}"
            )
        labels = encode_labels(rows)
        factor = class_weight_vector(labels.classes, labels.weight, self.class_weight)
        data = self._training(labels.rows.load())
        code = data.y
        pairs = _pairs(len(labels.classes))
        known = {**data.known, "classes_": labels.classes, "class_weight_": factor}
        attributes = partial(_attributes, self, data, code, known, machines=len(pairs))
        trained: list[Trained] = []
        for i, pair in enumerate(pairs):
            machine = _machine(code, self.C * data.w * factor[code], *pair)
            so_far = partial(_with_last, attributes, trained)
            trained.append(self._train(data, machine, f"machine {i + 1} of {len(pairs)}", began, so_far))
        return {**attributes(trained), **self._evidence(data, trained)}

    def _beta(self) -> Array:
        """Coefficients of the support vectors (s, machines)."""
        k = len(self.classes_)
        ends = np.concatenate([[0], np.cumsum(self.n_support_)])
        beta = np.zeros((self.dual_coef_.shape[1], k * (k - 1) // 2))
        for column, (i, j) in enumerate(_pairs(k)):
            for own, other in ((i, j), (j, i)):
                part = slice(ends[own], ends[own + 1])
                beta[part, column] = self.dual_coef_[_line(k, own, other), part]
        return beta

    def _pair_values(self, X: Any) -> Array:
        """(n, machines): above 0 for the first class of a pair; of only two classes, for the second."""
        return self._values(self._rows(X), self._beta()) + self.intercept_

    def decision_function(self, X: Any) -> Array:
        """Values (n,) for two classes, above 0 for the second; else (n, k), or (n, pairs) of shape 'ovo'."""
        values = self._pair_values(X)
        if len(self.classes_) == 2:
            return values[:, 0]
        return values if self.decision_function_shape == "ovo" else _votes(values, len(self.classes_))

    def predict(self, X: Any) -> Array:
        """The class of each row (n,)."""
        check_is_fitted(self)
        if self.break_ties and self.decision_function_shape == "ovo":
            raise DataError(got="break_ties=True with decision_function_shape='ovo'", wanted="'ovr' to break ties")
        values, k = self._pair_values(X), len(self.classes_)
        if k == 2:
            return self.classes_[(values[:, 0] > 0).astype(int)]
        votes = _votes(values, k)
        return self.classes_[(votes if self.break_ties else np.rint(votes)).argmax(axis=1)]

    def objective(self, X: Any, y: Any = None, sample_weight: Any = None) -> Objective:
        """Half the squared norms of all machines, and C times their losses on these rows."""
        rows = self._rows(X, y, sample_weight, "classes")
        labelled = encode_labels(rows, self.classes_).rows
        code = np.concatenate([np.asarray(block.y) for block in labelled])
        w = np.concatenate([block.w for block in labelled])
        beta = self._beta()
        values = self._values(rows, beta) + self.intercept_
        box = self.C * w * self.class_weight_[code]
        loss = 0.0
        for column, pair in enumerate(_pairs(len(self.classes_))):
            machine = _machine(code, box, *pair)
            loss += machine.C @ np.maximum(0.0, 1.0 - machine.y * values[machine.rows, column])
        penalty = 0.5 * float(self._norms(beta).sum())
        return Objective(float(loss) + penalty, float(loss), penalty)


def _with_last(
    attributes: Callable[[list[Trained]], Attributes], trained: list[Trained], last: Trained
) -> Attributes:
    return attributes([*trained, last])


def _pairs(k: int) -> list[tuple[int, int]]:
    """(first, second): the class with y = +1 and the one with -1, as scikit-learn has them."""
    return [(1, 0)] if k == 2 else list(combinations(range(k), 2))


def _machine(code: Array, box: Array, first: int, second: int) -> certificates.Machine:
    """The machine for two classes, not trained yet."""
    rows = np.flatnonzero((code == first) | (code == second))
    y = np.where(code[rows] == first, 1.0, -1.0)
    return certificates.Machine(rows, y, box[rows], np.zeros(len(rows)), 0.0)


def _attributes(
    model: SVC, data: Training, code: Array, known: Attributes, trained: list[Trained], machines: int
) -> Attributes:
    """Fitted attributes of these machines; those that are missing of so many have no support vectors yet."""
    k = len(known["classes_"])
    beta, intercept = np.zeros((len(code), machines)), np.zeros(machines)
    for i, machine in enumerate(t.machine for t in trained):
        beta[machine.rows, i], intercept[i] = machine.beta, machine.intercept
    support = np.flatnonzero(beta.any(axis=1))
    support = support[np.argsort(code[support], kind="stable")]
    kind = code[support]
    dual_coef = np.zeros((k - 1, len(support)))
    for i, (first, second) in enumerate(_pairs(k)):
        for own, other in ((first, second), (second, first)):
            here = kind == own
            dual_coef[_line(k, own, other), here] = beta[support[here], i]
    return {
        **known,
        **model.row_attributes(data, trained, machines),
        **model.support_attributes(data, support),
        "n_support_": np.bincount(kind, minlength=k).astype(np.int32),
        "dual_coef_": dual_coef,
        "intercept_": intercept,
    }


def _line(k: int, own: int, other: int) -> int:
    """The row of `dual_coef_` that has the coefficients of class `own` in its machine with class `other`."""
    return 0 if k == 2 else other - (other > own)


def _votes(values: Array, k: int) -> Array:
    """Votes of the pairs for each class (n, k), and less than half a vote for the sum of its values."""
    votes, sums = np.zeros((len(values), k)), np.zeros((len(values), k))
    for column, (i, j) in enumerate(_pairs(k)):
        wins = values[:, column] > 0
        votes[:, i] += wins
        votes[:, j] += ~wins
        sums[:, i] += values[:, column]
        sums[:, j] -= values[:, column]
    return votes + sums / (3 * (np.abs(sums) + 1))
