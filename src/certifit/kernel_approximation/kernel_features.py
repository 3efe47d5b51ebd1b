"""Explicit features for kernels: φ(x)·φ(z) ≈ k(x, z), so that linear models of φ(x) stand for kernel machines.

    Nyström:         φ(x) = k(L, L)^(-½) k(L, x), the projection of the kernel's own features on those of landmarks L
    Random Fourier:  φ(x) = √(2/m) cos(xW + b) for k(x, z) = exp(-γ |x - z|²), columns of W drawn from N(0, 2γI)

Frequencies are orthogonal and come in pairs of a cosine and a sine: as unbiased as independent ones, and closer.
References: Williams & Seeger, "Using the Nyström method to speed up kernel machines" (2001); Rahimi & Recht,
"Random features for large-scale kernel machines" (2007); Yu, Suresh, Choromanski, Holtmann-Rice & Kumar, "Orthogonal
random features" (2016); Sutherland & Schneider, "On the error of random Fourier features" (2015).
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scipy.linalg import eigh

from certifit.checkers.kernel_approximation import kernel_error as certificates
from certifit.core import Attributes, Certificate
from certifit.core.settings import check_settings
from certifit.exceptions import DataError, NoSolutionError
from certifit.kernel_approximation.base import KernelFeatures
from certifit.kernel_approximation.landmarks import RULES, choose
from certifit.kernel_approximation.problem import NystroemProblem, is_tame
from certifit.rows import Array, Block, Matrix, Rows
from certifit.rows.mapped import MappedRows
from certifit.svm.kernel.expansion import evaluate
from certifit.svm.kernel.kernels import KERNELS, RBF, Kernel, is_psd
from certifit.svm.linear.solve import PrimalSvmProblem

SHARP = 1e5 * np.finfo(float).eps  # eigenvalues of k(L, L) below this, times √m and its diagonal, are rounding
SEVERAL = 64  # rows whose own kernel values are computed at a time
_turn = threading.Lock()  # somebody else's function may not be safe on several threads

Values = Callable[[Any, Any], Any]


class Nystroem(KernelFeatures):
    """Features of any kernel from landmarks among the rows, with the largest error of a kernel value proved.

    Parameters
    ----------
    kernel : 'rbf', 'linear', 'poly', 'sigmoid' or callable(A, B), default='rbf'
        As of SVC.
    gamma : 'scale', 'auto' or float, default='scale'
        As of SVC.
    coef0, degree : of 'poly' and 'sigmoid', default=0.0 and 3
    n_components : int, default=300
        Most landmarks; fewer are used where they give all rows exactly.
    landmarks : 'auto', 'rpcholesky' or 'uniform', default='auto'
        Draw each by what the ones before it leave over (randomly pivoted Cholesky), or all alike; 'auto' tries both
        and keeps those that leave less over.
    random_state : int, RandomState or None

    Attributes
    ----------
    components_ : (m, d) landmarks
    component_indices_ : (m,) their row numbers
    normalization_ : (m, m) k(L, L)^(-½), on the range of k(L, L) where that is singular
    gamma_ : float
    certificate_ : Certificate; its objective is the mean of k(x, x) - |φ(x)|²

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from certifit import Nystroem
    >>> X, _ = load_iris(return_X_y=True)
    >>> model = Nystroem(n_components=40, random_state=0).fit(X)
    >>> model.transform(X).shape, model.certificate_.kind, model.certificate_.holds
    ((150, 40), 'exact', True)
    >>> model.certificate_.facts["largest error of a kernel value"] < 1e-3
    True
    """

    def __init__(
        self,
        kernel="rbf",
        *,
        gamma="scale",
        coef0=0.0,
        degree=3,
        n_components=300,
        landmarks="auto",
        random_state=None,
    ):
        self.kernel = kernel
        self.gamma = gamma
        self.coef0 = coef0
        self.degree = degree
        self.n_components = n_components
        self.landmarks = landmarks
        self.random_state = random_state

    def _fit(self, rows: Rows, previous: Attributes) -> Attributes:
        check_settings(self, (), degree=0)
        if not (callable(self.kernel) or self.kernel in KERNELS):
            known = ", ".join(map(repr, KERNELS))
            raise DataError(got=f"kernel={self.kernel!r}", wanted=f"one of {known}, or a callable")
        if self.landmarks not in RULES:
            raise DataError(got=f"landmarks={self.landmarks!r}", wanted=f"one of {', '.join(map(repr, RULES))}")
        gamma = self._chosen_gamma(rows)
        kernel = self._kernel(gamma)
        index, L = choose(
            rows,
            int(self.n_components),
            partial(values, kernel),
            partial(own_values, kernel),
            self.landmarks,
            self._seconds,
            np.random.default_rng(self._seed()),
        )
        fitted = {
            "components_": L,
            "component_indices_": index,
            "normalization_": _normalization(values(kernel, L, L)),
            "gamma_": gamma,
        }
        return {**fitted, "certificate_": _certified(kernel, L, fitted["normalization_"], rows)}

    def _kernel(self, gamma: float) -> Values:
        return self.kernel if callable(self.kernel) else KERNELS[self.kernel](self, gamma)

    def kernel_function(self) -> Values:
        """The kernel that the features stand for."""
        return self._kernel(self.gamma_)

    def feature_map(self) -> Callable[[Block], Array]:
        return partial(_nystroem, self.kernel_function(), self.components_, self.normalization_)

    def problem(self, rows: Rows) -> Callable[..., PrimalSvmProblem]:
        kernel, L, N = self.kernel_function(), self.components_, self.normalization_
        K = values(kernel, L, L)
        if not is_tame(N, K):
            return super().problem(rows)
        kernel_rows = MappedRows(rows, partial(_kernel_values, kernel, L), len(N))
        return partial(NystroemProblem, kernel_rows=kernel_rows, N=N, K=K)

    def _certificate(self, rows: Rows) -> Certificate:
        return _certified(self.kernel_function(), self.components_, self.normalization_, rows)

    @property
    def _n_features_out(self) -> int:
        return len(self.normalization_)


class RBFSampler(KernelFeatures):
    """Random Fourier features of exp(-γ |x - z|²), with their error measured on pairs of rows.

    Parameters
    ----------
    gamma : 'scale', 'auto' or float, default='scale'
        As of SVC.
    n_components : int, default=300
    random_state : int, RandomState or None

    Attributes
    ----------
    random_weights_ : (d, m) frequencies, each for a cosine and a sine
    random_offset_ : (m,) 0 for the cosine, -π/2 for the sine; the last cosine of an odd number has a random one
    seed_ : int, from which the frequencies can be drawn again
    gamma_ : float
    certificate_ : Certificate; its objective is the mean error of kernel values, over random pairs of rows

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from certifit import RBFSampler
    >>> X, _ = load_iris(return_X_y=True)
    >>> model = RBFSampler(n_components=1000, random_state=0).fit(X)
    >>> model.certificate_.kind, model.certificate_.holds, model.certificate_.objective < 0.02
    ('statistical', True, True)
    """

    def __init__(self, *, gamma="scale", n_components=300, random_state=None):
        self.gamma = gamma
        self.n_components = n_components
        self.random_state = random_state

    def _fit(self, rows: Rows, previous: Attributes) -> Attributes:
        gamma, seed = self._chosen_gamma(rows), self._seed()
        W, b = _frequencies(np.random.default_rng(seed), gamma, rows.n_features, int(self.n_components))
        fitted = {"random_weights_": W, "random_offset_": b, "seed_": seed, "gamma_": gamma}
        return {**fitted, "certificate_": _measured(W, b, gamma, rows)}

    def feature_map(self) -> Callable[[Block], Array]:
        return partial(_fourier, self.random_weights_, self.random_offset_)

    def _certificate(self, rows: Rows) -> Certificate:
        return _measured(self.random_weights_, self.random_offset_, self.gamma_, rows)

    @property
    def _n_features_out(self) -> int:
        return len(self.random_offset_)


# ------------------------------------------------------------------------------------------------ Nyström
def values(kernel: Values, A: Matrix, B: Matrix) -> Array:
    """k(x, z) of the rows of A and B, float64 and finite."""
    if isinstance(kernel, RBF):
        return kernel(A, B)
    if isinstance(kernel, Kernel):
        return evaluate(kernel, A, B)
    with _turn:
        return evaluate(kernel, A, B)


def own_values(kernel: Values, A: Matrix) -> Array:
    """k(x, x) of each row."""
    if isinstance(kernel, RBF):
        return np.ones(A.shape[0])
    parts = (A[i : i + SEVERAL] for i in range(0, A.shape[0], SEVERAL))
    return np.concatenate([np.diag(values(kernel, part, part)) for part in parts])


def _kernel_values(kernel: Values, L: Matrix, block: Block) -> Array:
    return values(kernel, block.X, L)


def _nystroem(kernel: Values, L: Matrix, N: Array, block: Block) -> Array:
    return values(kernel, block.X, L) @ N.T


def _with_own(kernel: Values, L: Matrix, N: Array, block: Block) -> Array:
    """φ(x) and k(x, x) beside it (rows, m + 1)."""
    out = np.empty((len(block.w), len(N) + 1))
    np.matmul(values(kernel, block.X, L), N.T, out=out[:, :-1])
    out[:, -1] = own_values(kernel, block.X)
    return out


def _normalization(K: Array) -> Array:
    """K^(-½) on the range of K, as far as rounding lets it be known."""
    answer = is_psd((K + K.T) / 2)
    if answer.verdict == "no":
        raise NoSolutionError(
            "Got a kernel that is not positive semidefinite on its landmarks (the certificate carries a v with "
            "v'Kv < 0); wanted one, since features have no negative squares. Use another kernel.",
            answer.certificate,
        )
    found, V = eigh((K + K.T) / 2)
    keep = found > SHARP * np.sqrt(len(K)) * np.diag(K).max()
    return (V[:, keep] / np.sqrt(found[keep])) @ V[:, keep].T


def _certified(kernel: Values, L: Matrix, N: Array, rows: Rows) -> Certificate:
    found = MappedRows(rows, partial(_with_own, kernel, L, N), len(N) + 1).sum(certificates.errors)
    why = certificates.PROVED if isinstance(kernel, Kernel) and kernel.valid else certificates.UNREFUTED
    return certificates.assemble(found, values(kernel, L, L), N, certificates.TOL, (), why)


# ------------------------------------------------------------------------------------------------ Fourier
def _frequencies(rng: np.random.Generator, gamma: float, d: int, m: int) -> tuple[Array, Array]:
    """Frequencies (d, m) and offsets (m,): see RBFSampler."""
    half = (m + 1) // 2
    W = np.empty((d, half))
    for first in range(0, half, d):
        part = slice(first, min(first + d, half))
        Q, R = np.linalg.qr(rng.normal(size=(d, part.stop - first)))
        W[:, part] = Q * (np.sign(np.diag(R)) * np.sqrt(2 * gamma * rng.chisquare(d, part.stop - first)))
    random = rng.uniform(0, 2 * np.pi)
    b = np.where(np.arange(m) < half, 0.0, -np.pi / 2)
    if m % 2:
        b[half - 1] = random
    return np.hstack([W, W[:, : m - half]]), b


def _fourier(W: Array, b: Array, block: Block) -> Array:
    phases = np.asarray(block.X @ W, dtype=np.float64)
    phases += b
    np.cos(phases, out=phases)
    phases *= np.sqrt(2 / len(b))
    return phases


def _measured(W: Array, b: Array, gamma: float, rows: Rows) -> Certificate:
    """The checker's own measurement: a few rows, of which nothing is to be had faster."""
    return certificates.certify_fourier(W, b, gamma, certificates.TOL, rows, (), certificates.SEEDED)
