"""What SVC and SVR share: their settings, their kernel, and the values of their machines at new rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from certifit.core import Attributes, Estimator
from certifit.core.settings import check_choices, check_settings
from certifit.exceptions import DataError, NoSolutionError
from certifit.rows import Array, ArrayRows, Block, Rows
from certifit.rows.block import Matrix
from certifit.svm.kernel.gram import expansion, sample_gram
from certifit.svm.kernel.kernels import (
    RBF,
    Kernel,
    Linear,
    LinearFrom,
    Polynomial,
    Sigmoid,
    is_psd,
    projected,
    variance_of_entries,
)
from certifit.svm.kernel.training import Trained, Training, slopes

SAMPLE = 1500  # rows of a Gram matrix that are looked at for a witness against it
PROJECTED = 3000  # most rows of a Gram matrix that is decomposed
VALID = "positive semidefinite by construction"
INDEFINITE = ("refuse", "project")

KINDS = np.array(["none", "margin", "non-margin"])  # as certificates number them
KERNELS: dict[str, Callable[[KernelMachine, float], Kernel]] = {
    "linear": lambda model, gamma: Linear(),
    "poly": lambda model, gamma: Polynomial(model.degree, gamma, float(model.coef0)),
    "rbf": lambda model, gamma: RBF(gamma),
    "sigmoid": lambda model, gamma: Sigmoid(gamma, float(model.coef0)),
}
NAMES = (*KERNELS, "precomputed")


class KernelMachine(Estimator):
    """Settings, kernels and values; a subclass says which machines there are."""

    sparse = True
    positive: ClassVar[tuple[str, ...]] = ("C", "cache_size")  # settings that must be finite and above 0

    def _check_settings(self) -> None:
        for name in self.positive:
            value = getattr(self, name)
            if not isinstance(value, Real) or not 0 < float(value) < np.inf:
                raise DataError(got=f"{name}={value!r}", wanted="a finite number above 0")
        check_settings(self, max_iter=-1, degree=0)
        if not isinstance(self.coef0, Real) or not np.isfinite(float(self.coef0)):
            raise DataError(got=f"coef0={self.coef0!r}", wanted="a finite number")
        if not callable(self.kernel) and not (isinstance(self.kernel, str) and self.kernel in NAMES):
            raise DataError(
                got=f"kernel={self.kernel!r}", wanted=f"one of {', '.join(map(repr, NAMES))}, or a callable"
            )
        named = isinstance(self.gamma, str) and self.gamma in ("scale", "auto")
        if not named and not (isinstance(self.gamma, Real) and 0 <= float(self.gamma) < np.inf):
            raise DataError(got=f"gamma={self.gamma!r}", wanted="'scale', 'auto' or a number of at least 0")
        check_choices(self, indefinite=INDEFINITE)

    @property
    def _precomputed(self) -> bool:
        return isinstance(self.kernel, str) and self.kernel == "precomputed"

    def _training(self, loaded: ArrayRows) -> Training:
        if self._precomputed and sparse.issparse(loaded.X):
            loaded = ArrayRows(sparse.csr_array(loaded.X).toarray(), loaded.y, loaded.w)
        used = np.flatnonzero(loaded.w > 0)
        every = len(used) == loaded.n_rows
        X, w = (loaded.X, loaded.w) if every else (loaded.X[used], loaded.w[used])
        X = X[:, used] if self._precomputed and not every else X
        gamma = self._chosen_gamma(X, w)
        kernel = None if self._precomputed else self._kernel(gamma)
        if isinstance(kernel, Linear) and not sparse.issparse(X):
            kernel = LinearFrom(X.mean(axis=0, dtype=np.float64))
        known = {"gamma_": gamma, "shape_fit_": loaded.X.shape}
        data = Training(X, np.asarray(loaded.y)[used], w, used, known, kernel, True, VALID)
        return data if isinstance(kernel, Kernel) and kernel.valid else self._tried(data)

    def _tried(self, data: Training) -> Training:
        """With what is found out about a kernel that may be none."""
        n, project = data.X.shape[0], self.indefinite == "project"
        if project and n > PROJECTED:
            raise DataError(
                got=f"indefinite='project' and {n} rows",
                wanted=f"at most {PROJECTED}, whose kernel matrix is decomposed whole",
                fix="Use a kernel that is positive semidefinite by construction, or fewer rows.",
            )
        G, rows = sample_gram(data.X, data.kernel, n if project else SAMPLE)
        answer = is_psd(G)
        if answer.verdict == "no" and project:
            found = projected(G, data.X)
            return replace(data, X=found.gram, kernel=None, why=found.words, projected=found)
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

    def _kernel(self, gamma: float) -> Callable[[Any, Any], Any]:
        return self.kernel if callable(self.kernel) else KERNELS[self.kernel](self, gamma)

    def _chosen_gamma(self, X: Matrix, w: Array) -> float:
        """'scale' is 1 / (d · variance of all entries), rows counted by their weights."""
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
                fix="Rescale the columns, for instance to unit variance.",
            )
        return 1.0 / (d * variance) if variance > 0 else 1.0

    def fitted_attributes(self, data: Training, trained: Trained, support: Array) -> Attributes:
        """What every kernel machine has; `support` are the numbers of the support vectors among data's rows."""
        total = data.known["shape_fit_"][0]
        per_row = {"slacks_": trained.slacks, "kkt_residuals_": trained.residuals, "support_codes_": trained.kinds}
        found: dict[str, Any] = {**data.known, "support_": data.used[support].astype(np.int32)}
        for name, values in per_row.items():
            spread = np.zeros((total, values.shape[1]), values.dtype)  # nothing is known of rows without weight
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
        return KINDS[self.support_codes_]

    @property
    def coef_(self) -> Array:
        """Coefficients of the columns (machines, d), for a linear kernel."""
        if self.kernel != "linear":
            raise AttributeError("coef_ is there for kernel='linear' only: other kernels have none per column")
        check_is_fitted(self)
        return slopes(self.support_vectors_, self._beta())

    def _beta(self) -> Array:
        """Coefficients of the support vectors (s, machines)."""
        return self.dual_coef_.T

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
            return rows.map(partial(_linear_values, slopes(centres, beta))) + self.intercept_
        f = partial(_kernel_values, expansion(kernel, centres, beta))
        # somebody else's function may not be safe on several threads
        values = rows.map(f) if isinstance(kernel, Kernel) else np.concatenate([f(block) for block in rows])
        return values + self.intercept_

    def _penalty(self) -> float:
        """Half of |f|², of all machines."""
        beta = self._beta()
        if hasattr(self, "support_gram_"):
            return 0.5 * float((beta * (self.support_gram_ @ beta)).sum())
        kernel = self._kernel(self.gamma_)
        if isinstance(kernel, Linear):
            return 0.5 * float(np.square(slopes(self.support_vectors_, beta)).sum())
        values = expansion(kernel, self.support_vectors_, beta, exact=True)(self.support_vectors_)
        return 0.5 * float((beta * values).sum())

    def _check_width(self, rows: Rows) -> None:
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


def _kernel_values(f: Callable[[Matrix], Array], block: Block) -> Array:
    return f(block.X)


def _linear_values(coef: Array, block: Block) -> Array:
    return np.asarray(block.X @ coef.T, np.float64)


def _given_values(support: Array, beta: Array, block: Block) -> Array:
    X = block.X[:, support]
    return np.asarray(X.toarray() if sparse.issparse(X) else X, np.float64) @ beta
