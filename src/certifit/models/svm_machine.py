"""What SVC and SVR share: their kernel, the machines they are made of, and the values of these at new rows."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from numbers import Real
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from certifit.certificates import svc as certificates
from certifit.core import (
    Array,
    ArrayRows,
    Block,
    DataError,
    Estimator,
    NoSolutionError,
    Rows,
    Solution,
    check_settings,
)
from certifit.core.estimator import Attributes
from certifit.core.rows import Matrix
from certifit.models.svm_kernels import RBF, Kernel, Linear, Polynomial, Sigmoid, is_psd, variance_of_entries
from certifit.models.svm_rows import Cache, GivenGram, Gram, evaluate, gram_of
from certifit.solvers import smo

SAMPLE = 1500  # rows of a Gram matrix that are looked at for a witness against it
PRECISE = 2000  # rows up to which kernel values are float64: they cost nothing there
LOOSE = 1e-4  # relative gap from which float32 kernel values do
MODEST = 10.0  # largest C for which they do
CHUNK = 4_000_000  # kernel values held at a time by `decision_function`

KINDS = np.array(["none", "margin", "non-margin"])  # as certificates number them
KERNELS: dict[str, Callable[[KernelMachine, float], Kernel]] = {
    "linear": lambda model, gamma: Linear(),  # noqa: ARG005
    "poly": lambda model, gamma: Polynomial(model.degree, gamma, float(model.coef0)),
    "rbf": lambda model, gamma: RBF(gamma),  # noqa: ARG005
    "sigmoid": lambda model, gamma: Sigmoid(gamma, float(model.coef0)),
}


@dataclass(frozen=True)
class Training:
    """Rows that have weight, and what is needed to make kernel values of them."""

    X: Matrix  # (n, d); for a precomputed kernel (n, n)
    y: Array  # (n,)
    w: Array  # (n,) > 0
    used: Array  # (n,) their numbers in the whole table
    known: Attributes  # what is fitted already
    kernel: Callable[[Any, Any], Any] | None  # None: precomputed
    proved: bool  # the kernel is positive semidefinite
    why: str

    def gram(self, rows: Array, single: bool) -> Gram:
        """The kernel matrix of some rows."""
        if self.kernel is None:
            return GivenGram(self.X[np.ix_(rows, rows)] if len(rows) < len(self.X) else self.X)
        return gram_of(self.X if len(rows) == self.X.shape[0] else self.X[rows], self.kernel, single)


@dataclass(frozen=True)
class Trained:
    """One machine on its rows, judged."""

    machine: certificates.Machine
    judged: certificates.Judged
    loop: Solution[Any] | None


class KernelMachine(Estimator):
    """Settings, kernels and values; a subclass says which machines there are."""

    sparse = True

    def _check_settings(self) -> None:
        check_settings(self, ("C", "cache_size", "tol", "max_time"), max_iter=-1, degree=0)
        for name in ("C", "cache_size"):
            if not 0 < float(getattr(self, name)) < np.inf:
                raise DataError(got=f"{name}={getattr(self, name)!r}", wanted="a finite number above 0")
        if not (callable(self.kernel) or self.kernel in (*KERNELS, "precomputed")):
            known = ", ".join(map(repr, (*KERNELS, "precomputed")))
            raise DataError(got=f"kernel={self.kernel!r}", wanted=f"one of {known}, or a callable")
        named = isinstance(self.gamma, str) and self.gamma in ("scale", "auto")
        if not named and not (isinstance(self.gamma, Real) and 0 <= float(self.gamma) < np.inf):
            raise DataError(got=f"gamma={self.gamma!r}", wanted="'scale', 'auto' or a number of at least 0")

    @property
    def _precomputed(self) -> bool:
        return isinstance(self.kernel, str) and self.kernel == "precomputed"

    def _training(self, loaded: ArrayRows) -> Training:
        used = np.flatnonzero(loaded.w > 0)
        every = len(used) == loaded.n_rows
        X, w = (loaded.X, loaded.w) if every else (loaded.X[used], loaded.w[used])
        X = X[:, used] if self._precomputed and not every else X
        gamma = self._chosen_gamma(X, w)
        kernel = None if self._precomputed else self._kernel(gamma)
        if isinstance(kernel, Kernel) and kernel.valid:
            proved, why = True, "positive semidefinite by construction"
        else:
            proved, why = _validity(X, kernel)
        known = {"gamma_": gamma, "shape_fit_": loaded.X.shape}
        return Training(X, np.asarray(loaded.y)[used], w, used, known, kernel, proved, why)

    def _kernel(self, gamma: float) -> Callable[[Any, Any], Any]:
        return self.kernel if callable(self.kernel) else KERNELS[self.kernel](self, gamma)

    def _chosen_gamma(self, X: Matrix, w: Array) -> float:
        """'scale' is 1 / (d · variance of all entries), rows counted by their weights."""
        d = X.shape[1]
        if not isinstance(self.gamma, str):
            return float(self.gamma)
        if self.gamma == "auto" or self._precomputed:
            return 1.0 / d
        variance = variance_of_entries(X, w)
        return 1.0 / (d * variance) if variance > 0 else 1.0

    def _train(
        self, data: Training, machine: certificates.Machine, name: str, began: float, attributes: Callable[..., Any]
    ) -> Trained:
        """Solve for one machine, whose coefficients and intercept are still open, on some of data's rows."""
        single = len(machine.rows) > PRECISE and self.tol >= LOOSE and machine.C.max() <= MODEST
        gram = data.gram(machine.rows, single)
        dual, m = _dual(machine), len(machine.rows)
        left = None if self.max_time is None else max(0.0, self.max_time - (time.perf_counter() - began))
        limit = self.max_iter if self.max_iter >= 0 else smo.FOREVER

        def trained(point: smo.Point, loop: Solution[Any] | None) -> Trained:
            beta = np.bincount(dual.row, dual.y * point.alpha, m)
            fitted = _replaced(machine, beta, smo.measure(dual, point).intercept)
            return Trained(fitted, certificates.judge(fitted, point.f, beta, point.f), loop)

        with self._watch.loop(name, limit, lambda point: attributes(trained(point, None))) as watch:
            # float32 values leave the last per cent of the tolerance to rounding
            tol = self.tol * (0.99 if gram.dtype == np.float32 else 1.0)
            cache = Cache(gram, float(self.cache_size))
            found = smo.solve(dual, cache, tol=tol, max_iter=self.max_iter, max_time=left, watcher=watch)
        return trained(found.params, found)

    def row_attributes(self, data: Training, trained: list[Trained], machines: int) -> Attributes:
        """What is known of each row in each machine; nothing of rows without weight."""
        shape = (data.known["shape_fit_"][0], machines)
        slacks, residuals, codes = np.zeros(shape), np.zeros(shape), np.zeros(shape, np.int8)
        for i, (machine, judged) in enumerate((t.machine, t.judged) for t in trained):
            rows = data.used[machine.rows]
            slacks[rows, i], residuals[rows, i], codes[rows, i] = judged.slacks, judged.residuals, judged.kinds
        named = {"slacks_": slacks, "kkt_residuals_": residuals, "support_codes_": codes}
        return {name: values[:, 0] if machines == 1 else values for name, values in named.items()}

    def support_attributes(self, data: Training, support: Array) -> Attributes:
        """The support vectors, by their numbers among data's rows."""
        found: dict[str, Any] = {"support_": data.used[support].astype(np.int32)}
        if data.kernel is None:
            found["support_gram_"] = np.asarray(data.X[np.ix_(support, support)], np.float64)
        return {**found, "support_vectors_": np.empty((0, 0)) if data.kernel is None else data.X[support]}

    def _evidence(self, data: Training, trained: list[Trained]) -> Attributes:
        judged, loops = [t.judged for t in trained], [t.loop for t in trained if t.loop is not None]
        return {
            "n_iter_": np.array([loop.n_iter for loop in loops]),
            "history_": tuple(loop.history for loop in loops),
            "certificate_": certificates.assemble(judged, float(self.tol), data.proved, data.why),
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
        return np.asarray(self._beta().T @ self.support_vectors_)

    def _beta(self) -> Array:
        """Coefficients of the support vectors (s, machines)."""
        return self.dual_coef_.T

    def _values(self, rows: Rows, beta: Array) -> Array:
        """Values (n, machines) at these rows, without intercepts; beta (support vectors, machines)."""
        if self._precomputed:
            return rows.map(partial(_given_values, self.support_, beta))
        kernel = self._kernel(self.gamma_)
        f = partial(_kernel_values, kernel, self.support_vectors_, beta)
        # somebody else's function may not be safe on several threads
        return rows.map(f) if isinstance(kernel, Kernel) else np.concatenate([f(block) for block in rows])

    def _norms(self, beta: Array) -> Array:
        """|f|² of every machine; beta (support vectors, machines)."""
        if self._precomputed:
            return np.einsum("ij,ij->j", beta, self.support_gram_ @ beta)
        blocks = _chunks(self.support_vectors_, len(beta))
        values = [evaluate(self._kernel(self.gamma_), part, self.support_vectors_) @ beta for part in blocks]
        return np.einsum("ij,ij->j", beta, np.concatenate(values)) if values else np.zeros(beta.shape[1])

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


def _validity(X: Matrix, kernel: Callable[[Any, Any], Any] | None) -> tuple[bool, str]:
    """Is the Gram matrix positive semidefinite, and how do we know? Refused where rows show that it is not."""
    n = X.shape[0]
    rows = np.unique(np.linspace(0, n - 1, min(n, SAMPLE)).astype(np.int64))
    G = np.asarray(X[np.ix_(rows, rows)] if kernel is None else evaluate(kernel, X[rows], X[rows]), np.float64)
    off = np.abs(G - G.T).max()
    if off > 1e-5 * np.abs(G).max():
        raise DataError(
            got=f"a kernel matrix that is not symmetric (by {off:.3g})",
            wanted="k(x, z) = k(z, x)",
            fix="Average it with its transpose.",
        )
    answer = is_psd((G + G.T) / 2)
    if answer.verdict == "no":
        raise NoSolutionError(
            "Got a kernel matrix that is not positive semidefinite (the certificate carries a v with v'Gv < 0, over "
            f"{len(rows)} rows); wanted a kernel, for which there is one best machine. Use another kernel, or "
            "pass kernel='precomputed' and certifit.models.svm_kernels.project(G), the nearest valid matrix.",
            answer.certificate,
        )
    if answer and len(rows) == n:
        return True, "positive semidefinite on these rows"
    return False, f"not refuted on {len(rows)} of {n} rows"


def _dual(machine: certificates.Machine) -> smo.Dual:
    """The machine's dual in the solver's form. Numbers have two variables a row: too low and too high."""
    rows = np.arange(len(machine.y))
    if machine.epsilon is None:
        return smo.Dual(rows, machine.y, -np.ones(len(rows)), machine.C)
    sign = np.repeat([1.0, -1.0], len(rows))
    y, C = np.tile(machine.y, 2), np.tile(machine.C, 2)
    return smo.Dual(np.tile(rows, 2), sign, machine.epsilon - sign * y, C)


def _replaced(machine: certificates.Machine, beta: Array, intercept: float) -> certificates.Machine:
    return certificates.Machine(machine.rows, machine.y, machine.C, beta, intercept, machine.epsilon)


def _chunks(X: Matrix, width: int) -> Iterator[Matrix]:
    step = max(1, CHUNK // max(1, width))
    return (X[i : i + step] for i in range(0, X.shape[0], step))


def _kernel_values(kernel: Callable[[Any, Any], Any], centres: Matrix, beta: Array, block: Block) -> Array:
    if not len(beta):
        return np.zeros((len(block.w), beta.shape[1]))
    return np.concatenate([evaluate(kernel, part, centres) @ beta for part in _chunks(block.X, len(beta))])


def _given_values(support: Array, beta: Array, block: Block) -> Array:
    return np.asarray(block.X[:, support], np.float64) @ beta
