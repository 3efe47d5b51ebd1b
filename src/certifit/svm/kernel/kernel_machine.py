"""What SVC and SVR share: their settings, their kernel, and the values of their machines at new rows."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from certifit.checkers.svm.adapter import counted
from certifit.checkers.svm.kernel import no_loss_checks
from certifit.core import Attributes, Estimator
from certifit.core.settings import MAX_TIME, TOL, Setting, Settings
from certifit.exceptions import DataError, NoSolutionError, warn_caller
from certifit.rows import Array, ArrayRows, Block, Rows
from certifit.rows.block import Matrix
from certifit.svm.kernel.expansion import expansion
from certifit.svm.kernel.gram import sample_gram
from certifit.svm.kernel.kernels import (
    KERNELS,
    CentredLinear,
    Kernel,
    Linear,
    check_squares,
    is_psd,
    projected_gram,
    variance_of_entries,
)
from certifit.svm.kernel.training import (
    KernelMachineTuning,
    ToAttributes,
    TrainedMachines,
    TrainingRows,
    TrainingTask,
    slopes,
)


class IndefiniteKernelWarning(UserWarning):
    """A kernel matrix is not positive semidefinite: machines are stationary, and others may be better."""


class KernelMachine(Estimator):
    """Settings, kernels and values of kernel machines; a subclass says which machines there are."""

    sparse = True
    settings: ClassVar[Settings] = {
        "cache_size": Setting(float, above=0, below=math.inf),
        "max_iter": Setting(int, least=-1),
        "degree": Setting(int, least=0),
        "tol": TOL,
        "max_time": MAX_TIME,
        "coef0": Setting(
            other=lambda value: isinstance(value, Real) and math.isfinite(value), other_words="a finite number"
        ),
        "kernel": Setting(choices=(*KERNELS, "precomputed"), other=callable, other_words="a callable"),
        "gamma": Setting(float, least=0, below=math.inf, choices=("scale", "auto")),
        "indefinite": Setting(choices=("warn", "refuse", "project")),
    }
    ignored: ClassVar[tuple[str, ...]] = ("shrinking", "verbose")
    differences: ClassVar[dict[str, str]] = {
        "tol": "A proved relative duality gap, where scikit-learn's is the largest violation of a row.",
        "max_iter": "Counts rounds of up to 1024 rows, where scikit-learn's counts pairs of rows.",
    }
    # whether coefficients have the sum 0, so that a linear kernel may measure rows from anywhere
    balanced: ClassVar[bool] = True
    _tuning: ClassVar[KernelMachineTuning] = KernelMachineTuning()

    @property
    def _precomputed(self) -> bool:
        return isinstance(self.kernel, str) and self.kernel == "precomputed"

    def _rows_to_fit(self, X: Any, y: Any, sample_weight: Any, reset: bool = True, targets: int = 1) -> Rows:
        return super()._rows_to_fit(X, y, _without_negative(sample_weight), reset, targets)

    def _training_rows(self, loaded: ArrayRows) -> TrainingRows:
        """The rows with a positive weight and their kernel, which is refused or projected if it is none."""
        if self._precomputed and sparse.issparse(loaded.X):
            loaded = ArrayRows(sparse.csr_array(loaded.X).toarray(), loaded.y, loaded.w)
        used = np.flatnonzero(loaded.w > 0)
        every = len(used) == loaded.n_rows
        X, w = (loaded.X, loaded.w) if every else (loaded.X[used], loaded.w[used])
        X = X[:, used] if self._precomputed and not every else X
        gamma = self._chosen_gamma(X, w)
        kernel = None if self._precomputed else self._kernel(gamma)
        if isinstance(kernel, Kernel):
            check_squares(X)
        if isinstance(kernel, Linear) and self.balanced and not sparse.issparse(X):
            kernel = CentredLinear(X.mean(axis=0, dtype=np.float64))
        known = {"gamma_": gamma, "shape_fit_": loaded.X.shape}
        y = np.zeros(len(used)) if loaded.y is None else np.asarray(loaded.y)[used]  # one class has none
        valid, values = "positive semidefinite by construction", self._tuning.values
        data = TrainingRows(X, y, w, used, known, kernel, True, valid, tuning=values)
        return data if isinstance(kernel, Kernel) and kernel.valid else self._with_tried_kernel(data)

    def _with_tried_kernel(self, data: TrainingRows) -> TrainingRows:
        """The same rows, with what a sample of their Gram matrix shows about a function that may be no kernel."""
        n, project, most = data.X.shape[0], self.indefinite == "project", self._tuning.projected_rows
        if project and n > most:
            raise DataError(
                got=f"indefinite='project' and {n} rows",
                wanted=f"at most {most}, whose kernel matrix is decomposed whole",
                fix="Use a kernel that is positive semidefinite by construction, or fewer rows.",
            )
        G, rows = sample_gram(data.X, data.kernel, n if project else self._tuning.witness_rows)
        answer = is_psd(G)
        if answer.verdict == "no" and project:
            found = projected_gram(G, data.X)
            return replace(data, X=found.gram, kernel=None, why=found.words, projected=found)
        if answer.verdict == "no" and self._takes_indefinite:
            warn_caller(
                f"{type(self).__name__}: the kernel matrix is not positive semidefinite (over {rows} rows): its "
                "machines are stationary, and others may be better. indefinite='project' takes the nearest matrix "
                "that has one best machine.",
                IndefiniteKernelWarning,
            )
            return replace(data, proved=False, why="not positive semidefinite: the objective has no bound")
        if answer.verdict == "no":
            raise NoSolutionError(
                "Got a kernel matrix that is not positive semidefinite (the certificate carries a v with v'Gv < 0, "
                f"over {rows} rows); wanted a kernel, for which there is one best machine. Use another kernel, or "
                "indefinite='project' for the nearest one that is.",
                answer.certificate,
            )
        if answer and rows == n:
            return replace(data, why="positive semidefinite on these rows")
        return replace(data, proved=False, why=f"not refuted on {rows} of {n} rows")

    @property
    def _takes_indefinite(self) -> bool:
        """Whether machines are trained though the kernel is none."""
        return self.indefinite == "warn"

    def _task(self, name: str, began: float, attributes: ToAttributes) -> TrainingTask:
        """What training needs to know of this estimator."""
        return TrainingTask(
            float(self.tol),
            int(self.max_iter),
            self.max_time,
            float(self.cache_size),
            began,
            self._watch,
            name,
            attributes,
            self._tuning,
        )

    def _kernel(self, gamma: float) -> Callable[[Any, Any], Any]:
        return self.kernel if callable(self.kernel) else KERNELS[self.kernel](self, gamma)

    def _chosen_gamma(self, X: Matrix, w: Array) -> float:
        """Gamma as a number: 'scale' is 1 / (d · variance of all entries), rows counted by their weights."""
        d = X.shape[1]
        if not isinstance(self.gamma, str):
            return float(self.gamma)
        if self.gamma == "auto" or self._precomputed:
            return 1.0 / d
        with np.errstate(over="ignore", invalid="ignore"):  # refused below
            variance = variance_of_entries(X, w)
        if not np.isfinite(variance):
            raise DataError(
                got="values so large that their squares overflow",
                wanted="a table whose variance is a finite number",
                fix="Rescale the columns, for instance to unit variance. (The dual coefficients or intercepts are "
                "not finite.)",
            )
        return 1.0 / (d * variance) if variance > 0 else 1.0

    def as_given(self, coef: Array, data: TrainingRows) -> Matrix:
        """Coefficients, sparse where the rows are: what reads scikit-learn's models finds the type it expects."""
        return sparse.csr_array(coef) if sparse.issparse(data.rows) and not self._precomputed else coef

    def fitted_attributes(self, data: TrainingRows, trained: TrainedMachines, support: Array) -> Attributes:
        """Attributes that every kernel machine has; `support` (s,) are numbers of data's rows."""
        total = data.known["shape_fit_"][0]
        per_row = {"slacks_": trained.slacks, "kkt_residuals_": trained.residuals, "support_codes_": trained.kinds}
        found: dict[str, Any] = {**data.known, "support_": data.used[support].astype(np.int32)}
        for name, values in per_row.items():
            spread = np.zeros((total, values.shape[1]), values.dtype)  # rows without weight have 0
            spread[data.used] = values
            found[name] = spread[:, 0] if values.shape[1] == 1 else spread
        if data.kernel is None:
            found["support_gram_"] = np.asarray(data.X[np.ix_(support, support)], np.float64)
        found["support_vectors_"] = np.empty((0, 0)) if self._precomputed else data.rows[support]
        if data.projected is not None:
            found["expansion_"] = data.used if self._precomputed else data.rows
            found["expansion_coef_"] = data.projected.onto[:, support] @ trained.beta[support]
        return {
            **found,
            "intercept_": trained.intercept,
            "n_iter_": np.array([loop.n_iter for loop in trained.loops]),
            "history_": tuple(loop.history for loop in trained.loops),
            "certificate_": trained.certificate,
        }

    @property
    def support_kinds_(self) -> Array:
        """What each row is to each machine, in words."""
        check_is_fitted(self)
        return np.array(["none", "margin", "non-margin"])[self.support_codes_]  # in the order of `RowKind`

    @property
    def coef_(self) -> Array:
        """Coefficients of the columns (machines, d), for a linear kernel; sparse where the table was."""
        if self.kernel != "linear":
            raise AttributeError("coef_ is there for kernel='linear' only: other kernels have none per column")
        check_is_fitted(self)
        found = self._slopes(self.support_vectors_, self._beta())
        found.flags.writeable = False  # it follows from dual_coef_: to change it would change no prediction
        if not sparse.issparse(self.support_vectors_):
            return found
        table = sparse.csr_array(found)
        table.data.flags.writeable = False
        return table

    @property
    def fit_status_(self) -> int:
        """0 where the certificate holds, else 1."""
        check_is_fitted(self)
        return int(not self.certificate_.holds)

    def _slopes(self, X: Matrix, beta: Array) -> Array:
        return slopes(X, beta) if self.balanced else np.asarray(beta.T @ X)

    def _beta(self) -> Array:
        """Coefficients of the support vectors (s, machines)."""
        return self._dense_dual_coef.T

    @property
    def _dense_dual_coef(self) -> Array:
        return self.dual_coef_.toarray() if sparse.issparse(self.dual_coef_) else self.dual_coef_

    def _values(self, rows: Rows) -> Array:
        """Values (n, machines) at these rows."""
        centres, beta = self.support_vectors_, self._beta()
        if hasattr(self, "expansion_"):
            centres, beta = self.expansion_, self.expansion_coef_
        elif self._precomputed:
            centres = self.support_
        if self._precomputed:
            return rows.map(partial(_given_values, centres, beta)) + self.intercept_
        kernel = self._kernel(self.gamma_)
        if isinstance(kernel, Linear):
            return rows.map(partial(_linear_values, self._slopes(centres, beta))) + self.intercept_
        f = partial(_kernel_values, expansion(kernel, centres, beta, tuning=self._tuning.values))
        # a user's function may not be safe on several threads
        values = rows.map(f) if isinstance(kernel, Kernel) else np.concatenate([f(block) for block in rows])
        return values + self.intercept_

    def _penalty(self) -> float:
        """Half of |f|², added up over all machines."""
        return 0.5 * float(self._squares().sum())

    def _squares(self) -> Array:
        """|f|² of each machine (machines,)."""
        beta = self._beta()
        if hasattr(self, "support_gram_"):
            return np.asarray((beta * (self.support_gram_ @ beta)).sum(axis=0))
        kernel = self._kernel(self.gamma_)
        if isinstance(kernel, Linear):
            return np.asarray(np.square(self._slopes(self.support_vectors_, beta)).sum(axis=1))
        f = expansion(kernel, self.support_vectors_, beta, float64=True, tuning=self._tuning.values)
        return np.asarray((beta * f(self.support_vectors_)).sum(axis=0))

    def _check_square(self, rows: Rows) -> None:
        """Refuse a precomputed kernel that is not a square matrix."""
        if self._precomputed and rows.n_rows != rows.n_features:
            raise DataError(
                got=f"a precomputed kernel of shape ({rows.n_rows}, {rows.n_features})",
                wanted="a square matrix: k(x, z) for every two rows",
                fix="Pass kernel(X, X) to fit, kernel(new, X) to predict.",
            )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._precomputed
        tags.input_tags.sparse = not self._precomputed
        return tags


def refuse_losses(C: float, beta: Array, box: Array) -> None:
    """Refuse machines of C=inf with a row that misses its margin or leaves the tube, whatever that costs."""
    if not all(check.passed for check in no_loss_checks(C, beta, box)):
        raise DataError(
            got="C=inf, and rows that every machine of this kernel has on the wrong side",
            wanted="classes that can be separated, or numbers that a function with a tube of epsilon can follow",
            fix="Give a finite C, or another kernel; HardMarginSVC names rows that prove it for two classes.",
        )


def _without_negative(sample_weight: Any) -> Any:
    """Weights with 0 for those below it, of which LIBSVM leaves the rows out too; a warning counts them."""
    kept = counted(sample_weight)
    if kept is not sample_weight:
        below = int((np.asarray(sample_weight) < 0).sum())
        warn_caller(f"Rows of negative weight ({below}) are left out, as if it were 0.")
    return kept


def _kernel_values(f: Callable[[Matrix], Array], block: Block) -> Array:
    return f(block.X)


def _linear_values(coef: Array, block: Block) -> Array:
    return np.asarray(block.X @ coef.T, np.float64)


def _given_values(support: Array, beta: Array, block: Block) -> Array:
    X = block.X[:, support]
    return np.asarray(X.toarray() if sparse.issparse(X) else X, np.float64) @ beta
