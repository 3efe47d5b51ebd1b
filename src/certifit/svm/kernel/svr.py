"""Support vector regression with kernels, with its duality gap.

    min over f, b of   ½ |f|² + C Σᵢ wᵢ max(0, |yᵢ - f(xᵢ) - b| - ε),     f in the space of the kernel

Errors up to ε cost nothing. Solved in the dual, with two variables a row, by the solver of `svm.kernel.svc`.
Reference: Smola & Schölkopf, A tutorial on support vector regression (2004).
"""

from __future__ import annotations

import math
import time
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from sklearn.base import RegressorMixin

from certifit.checkers.svm.kernel import KernelSvm, price
from certifit.core import Attributes, Objective
from certifit.core.settings import Setting, Settings
from certifit.rows import Array, Rows
from certifit.svm.kernel.kernel_machine import KernelMachine, refuse_losses
from certifit.svm.kernel.recheck import recheck
from certifit.svm.kernel.training import TrainedMachines, TrainingRows, train_each


class SVR(RegressorMixin, KernelMachine):
    """Support vector regression with a kernel.

    Parameters
    ----------
    kernel, degree, gamma, coef0, C, tol, shrinking, cache_size, max_iter, max_time, indefinite, verbose : as in SVC
    epsilon : float, default=0.1
        Error up to which a row costs nothing.

    Attributes
    ----------
    support_ : (s,) row numbers of the support vectors
    support_vectors_ : (s, d); empty for a precomputed kernel
    n_support_ : (1,)
    dual_coef_ : (1, s); sparse, like support_vectors_ and coef_, where X was
    intercept_ : (1,); where several are best, the middle of them
    gamma_ : float
    support_kinds_ : (n,) words: 'margin' (on the edge of the tube), 'non-margin' (outside it) or 'none' (inside)
    slacks_, kkt_residuals_ : (n,) losses, and by how much each row misses its optimality condition
    support_codes_ : `support_kinds_` as small numbers
    shape_fit_ : (n, d) of the table
    n_iter_ : int, rounds
    history_ : (1,) the objective, relative gap and seconds at every round
    certificate_ : Certificate

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import SVR
    >>> x = np.linspace(0, 6, 60)[:, None]
    >>> model = SVR(C=10.0, epsilon=0.05).fit(x, np.sin(x[:, 0]))
    >>> model.certificate_.kind, model.certificate_.holds
    ('optimal', True)
    >>> bool(np.abs(model.predict(x) - np.sin(x[:, 0])).max() < 0.1)
    True
    """

    target = "numbers"
    settings: ClassVar[Settings] = {
        "C": Setting(float, above=0),
        **KernelMachine.settings,
        "epsilon": Setting(float, least=0, below=math.inf),
    }

    def __init__(
        self,
        *,
        kernel="rbf",
        degree=3,
        gamma="scale",
        coef0=0.0,
        tol=1e-3,
        C=1.0,
        epsilon=0.1,
        shrinking=True,
        cache_size=200,
        max_iter=-1,
        max_time=None,
        indefinite="warn",
        verbose=False,
    ):
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.tol = tol
        self.C = C
        self.epsilon = epsilon
        self.shrinking = shrinking
        self.cache_size = cache_size
        self.max_iter = max_iter
        self.max_time = max_time
        self.indefinite = indefinite
        self.verbose = verbose

    def _fit(self, rows: Rows, previous: Attributes) -> Attributes:
        began = time.perf_counter()
        self._check_square(rows)
        data = self._training_rows(rows.load())
        n = len(data.y)
        machine = KernelSvm(
            np.arange(n), data.y, price(float(self.C)) * data.w, np.zeros(n), 0.0, float(self.epsilon)
        )
        attributes = partial(regression_attributes, self, data)
        found = train_each(self._task("rounds", began, attributes), data, [machine])
        refuse_losses(float(self.C), found.beta, machine.C)
        fitted = replace(machine, beta=found.beta[:, 0], intercept=float(found.intercept[0]))
        return attributes(recheck(data, [fitted], found, float(self.tol), self._tuning))

    def predict(self, X: Any) -> Array:
        """The predicted number of each row (n,)."""
        return self._values(self._rows(X))[:, 0]

    def objective(self, X: Any, y: Any = None, sample_weight: Any = None) -> Objective:
        """Half the squared norm, and C times the losses on these rows."""
        rows = self._rows(X, y, sample_weight, "numbers")
        values = self._values(rows)[:, 0]
        y = np.concatenate([np.asarray(block.y) for block in rows])
        w = np.concatenate([block.w for block in rows])
        loss = price(float(self.C)) * float(w @ np.maximum(0.0, np.abs(y - values) - self.epsilon))
        penalty = self._penalty()
        return Objective(loss + penalty, loss, penalty)


def regression_attributes(model: KernelMachine, data: TrainingRows, trained: TrainedMachines) -> Attributes:
    """Fitted attributes of a model of one machine."""
    support = np.flatnonzero(trained.beta[:, 0])
    return {
        **model.fitted_attributes(data, trained, support),
        "n_support_": np.array([len(support)], np.int32),
        "dual_coef_": model.as_given(trained.beta[support].T, data),
        "n_iter_": sum(loop.n_iter for loop in trained.loops),
    }
