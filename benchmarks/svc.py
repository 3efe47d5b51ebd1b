"""Kernel machines, everybody at the loosest tolerance that reaches one duality gap.

RBF kernels of many rows; a linear kernel, which needs no kernel values; ten classes of few rows with a large C, where
LIBSVM's rounds are short and a machine's fixed costs count.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import combinations
from types import SimpleNamespace
from typing import Any

import numpy as np
from sklearn import svm
from sklearn.datasets import make_classification

from benchmarks.datasets import Array, mnist, shape
from benchmarks.harness import Case, Contestant, Options
from benchmarks.logistic import grid
from benchmarks.peers import estimator
from certifit import SVC

C = 1.0
PACKAGES = {"certifit": "certifit", "scikit-learn": "sklearn.svm"}
QUALITY = 1e-3
EPS = float(np.finfo(float).eps)
OURS, STOCK, INTEL = "certifit.svm.kernel.svc:SVC", "sklearn.svm:SVC", "sklearnex.svm:SVC"


def svc_mnist(options: Options) -> Iterator[Case]:
    X, y, _ = mnist(options)
    n = options.rows(10_000)
    X, y = X[:n], (y[:n] > 4).astype(np.int64)
    yield from cases(X, y, f"MNIST, the first rows, {shape(X)}, digits 0-4 against 5-9", target=1.0)


def svc_predict(options: Options) -> Iterator[Case]:
    """decision_function of machines that each library has fitted itself."""
    X, y, _ = mnist(options)
    n = options.rows(10_000)
    X, y, new = X[:n], (y[:n] > 4).astype(np.int64), X[n : 2 * n]
    models = {"certifit": SVC(C=C).fit(X, y), "scikit-learn": svm.SVC(C=C, tol=0.01).fit(X, y)}
    contestants = [Contestant(name, PACKAGES[name], partial(_decide, model, new)) for name, model in models.items()]
    counts = " and ".join(str(len(model.support_)) for model in models.values())
    what = f"MNIST, {shape(new)} new rows, {counts} support vectors, objective: mean size of a decision value"
    yield Case("decision_function", what, contestants, _mean_size, 0.01, 0.3)


def _decide(model: Any, X: Array, _: Any) -> Any:
    return SimpleNamespace(f=model.decision_function(X))


def _mean_size(found: Any) -> float:
    return float(np.abs(found.f).mean())


def svc_narrow(options: Options) -> Iterator[Case]:
    X, y = make_classification(options.rows(20_000), 20, n_informative=10, n_redundant=5, flip_y=0.05, random_state=0)
    yield from cases(X, y, f"overlapping clusters {shape(X)}, two classes", target=1.0)


def svc_linear(options: Options) -> Iterator[Case]:
    X, y = make_classification(options.rows(20_000), 20, n_informative=10, n_redundant=5, flip_y=0.05, random_state=0)
    what = f"overlapping clusters {shape(X)}, two classes, C = {C:g}, judged by primal / dual objective"
    linear: dict[str, Any] = {"kernel": "linear", "C": C}
    found = [
        estimator("certifit", OURS, X, y, **linear, tols=grid(2, 4)),
        estimator("certifit, default tol", OURS, X, y, **linear),
        estimator("scikit-learn (LIBSVM)", STOCK, X, y, **linear, tols=grid(0, 3, 2)),
        estimator("scikit-learn-intelex", INTEL, X, y, **linear, tols=grid(0, 3, 2)),
    ]
    yield Case("linear", what, found, LinearMachine(X, y), QUALITY, 1.0, lambda: (1.0, EPS), patience=10.0)


def svc_classes(options: Options) -> Iterator[Case]:
    n = options.rows(525)
    X, y = make_classification(n, 20, n_informative=12, n_redundant=0, n_classes=10, random_state=0)
    large: dict[str, Any] = {"C": 1e4}
    found = [
        estimator("certifit", OURS, X, y, **large, tols=grid(1, 4)),
        estimator("certifit, default tol", OURS, X, y, **large),
        estimator("scikit-learn (LIBSVM)", STOCK, X, y, **large, tols=grid(2, 7, 2)),
        estimator("scikit-learn-intelex", INTEL, X, y, **large, tols=grid(2, 7, 2)),
    ]
    what = f"clusters {shape(X)}, ten classes, RBF, gamma='scale', C = 1e4, judged by primal / dual objective"
    yield Case("ten classes", what, found, PairMachines(X, y, 1e4), QUALITY, 1.0, lambda: (1.0, EPS))


def cases(X: Array, y: Array, words: str, target: float) -> Iterator[Case]:
    judge = Machine(X, y)
    what = f"{words}, RBF, gamma='scale', C = {C:g}, judged by primal / dual objective"
    for dtype in ("float64", "float32"):
        yield Case(dtype, what, contestants(X.astype(dtype), y), judge, QUALITY, target, lambda: (1.0, EPS))


def contestants(X: Array, y: Array) -> list[Contestant]:
    return [
        estimator("certifit", OURS, X, y, C=C, tols=grid(2, 4)),
        estimator("certifit, default tol", OURS, X, y, C=C),
        estimator("scikit-learn (LIBSVM)", STOCK, X, y, C=C, tols=grid(0, 3, 2), slow=True),
        estimator("scikit-learn-intelex", INTEL, X, y, C=C, tols=grid(0, 3, 2)),
    ]


class Machine:
    """Primal / dual objective of a model's own coefficients, in float64: 1 at the optimum, larger elsewhere."""

    def __init__(self, X: Array, y: Array, C: float = C) -> None:
        self.sign, self.C = np.where(y == y.max(), 1.0, -1.0), C
        self.U = self.coordinates(X)
        self.half = (self.U**2).sum(axis=1) / 2.0

    def coordinates(self, X: Array) -> Array:
        """The rows, in the unit of the kernel's width."""
        return (X - X.mean(axis=0)) * np.sqrt(2.0 / (X.shape[1] * X.var()))

    def __call__(self, model: Any) -> float:
        primal, dual = self.objectives(np.asarray(model.support_), np.asarray(model.dual_coef_, np.float64)[0])
        return primal / dual

    def objectives(self, support: Array, coefficients: Array) -> tuple[float, float]:
        """Primal and dual objective where these rows have these coefficients, cut to the box."""
        alpha = np.zeros(len(self.U))
        alpha[support] = np.clip(self.sign[support] * coefficients, 0.0, self.C)
        f = self.values(support, self.sign[support] * alpha[support])
        square = float((self.sign * alpha) @ f)
        b = np.sort(self.sign - f)[int((self.sign > 0).sum()) - 1]  # as many losses fall as rise with b
        loss = np.maximum(0.0, 1.0 - self.sign * (f + b))
        return 0.5 * square + self.C * float(loss.sum()), float(alpha.sum()) - 0.5 * square

    def values(self, support: Array, beta: Array) -> Array:
        """Σ β k(·, x) at every row (n,), without intercept."""
        f = np.empty(len(self.U))
        for start in range(0, len(f), 2048):
            rows = slice(start, start + 2048)
            power = self.U[rows] @ self.U[support].T - self.half[rows, None] - self.half[support]
            f[rows] = np.exp(np.minimum(power, 0.0)) @ beta
        return f


class LinearMachine(Machine):
    """The same of a linear kernel."""

    def coordinates(self, X: Array) -> Array:
        return X

    def values(self, support: Array, beta: Array) -> Array:
        return np.asarray(self.U @ (beta @ self.U[support]))


class PairMachines:
    """Primal / dual objective of the machines of all pairs of classes together, in LIBSVM's layout."""

    def __init__(self, X: Array, y: Array, C: float) -> None:
        self.y, self.classes, self.machines = y, np.unique(y), {}
        whole = Machine(X, y)
        for i, j in combinations(self.classes, 2):
            rows = np.flatnonzero((y == i) | (y == j))
            machine = Machine(X[rows], (y[rows] == i).astype(np.int64), C)
            machine.U, machine.half = whole.U[rows], whole.half[rows]  # one width for all pairs
            self.machines[i, j] = rows, machine

    def __call__(self, model: Any) -> float:
        support, coefficients = np.asarray(model.support_), np.asarray(model.dual_coef_, np.float64)
        primal = dual = 0.0
        for (i, j), (rows, machine) in self.machines.items():
            held = np.flatnonzero(np.isin(support, rows))
            first = self.y[support[held]] == i
            own = np.where(first, coefficients[j - 1, held], coefficients[i, held])  # a class has no row for itself
            found = machine.objectives(np.searchsorted(rows, support[held]), own)
            primal, dual = primal + found[0], dual + found[1]
        return primal / dual
