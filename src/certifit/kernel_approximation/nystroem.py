"""Nyström features of any kernel: φ(x) = k(L, L)^(-½) k(L, x), so that φ(x)·φ(z) ≈ k(x, z).

They are the projection of the kernel's own features on those of landmarks L, which are rows (see `landmarks`).
Reference: Williams & Seeger, "Using the Nyström method to speed up kernel machines" (2001).
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.linalg import eigh
from scipy.spatial.distance import cdist

from certifit.checkers.kernel_approximation import kernel_error as certificates
from certifit.checkers.plain.blocks import dense
from certifit.checkers.plain.kernels import table_function
from certifit.core import Attributes, Certificate, certified
from certifit.core.settings import Setting, Settings
from certifit.exceptions import DataError, NoSolutionError
from certifit.kernel_approximation.base import KernelFeatures
from certifit.kernel_approximation.landmarks import RULES, LandmarkKernel, LandmarkTuning, choose_landmarks
from certifit.kernel_approximation.nystroem_problem import NystroemProblem, is_well_conditioned
from certifit.rows import Array, Block, Matrix, Rows
from certifit.rows.mapped import MappedRows
from certifit.svm.kernel.gram import evaluate
from certifit.svm.kernel.kernel_machine import KERNELS
from certifit.svm.kernel.kernels import RBF, Kernel, is_psd
from certifit.svm.linear.solve import PrimalSvmProblem

KernelFunction = Callable[[Any, Any], Any]
_one_at_a_time = threading.Lock()  # a user's function may not be safe on several threads


@dataclass(frozen=True)
class NystroemTuning:
    """Numbers that steer how Nyström features are made."""

    # eigenvalues of k(L, L) below this, times √m and its largest diagonal entry, are rounding
    dependent: float = 1e5 * float(np.finfo(float).eps)
    # |k(L, L)^(-½)| √k(x, x) up to which it may be applied to sums of kernel values without losing digits
    well_conditioned: float = 1e3
    by_product: float = 16.0  # γ |x - mean|² of landmarks up to which products keep the digits of their kernel values
    landmarks: LandmarkTuning = field(default_factory=LandmarkTuning)


@dataclass
class PolynomialShape:
    """What a kernel with a name needs besides gamma."""

    degree: float
    coef0: float


class Nystroem(KernelFeatures):
    """Features of any kernel from landmarks among the rows, with the largest error of a kernel value proved.

    Parameters
    ----------
    kernel : 'rbf', 'linear', 'poly' ('polynomial'), 'sigmoid' or callable, default='rbf'
        A callable gives k(x, z) for all rows of two tables, as of SVC, or for two rows.
    gamma : 'scale', 'auto', float or None, default=None
        'scale' and 'auto' as of SVC; None is 'auto', 1 / columns.
    coef0, degree : of 'poly' and 'sigmoid'; None, the default, is 1.0 and 3
        A power that is no whole number is tried on the landmarks: it may be no kernel.
    kernel_params : dict or None, default=None
        Further arguments of a callable kernel, by name.
    n_components : int, default=100
        Most landmarks; fewer are used where they give all rows exactly.
    landmarks : 'auto', 'rpcholesky' or 'uniform', default='auto'
        Draw each by the part of k(x, x) that those before it do not explain (randomly pivoted Cholesky), or all at
        once by weight; 'auto' tries both and keeps those that leave the smaller error.
    random_state : int, RandomState or None
    n_jobs : ignored
        Accepted so that scikit-learn's calls run.

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
    >>> model = Nystroem(gamma="scale", n_components=40, random_state=0).fit(X)
    >>> model.transform(X).shape, model.certificate_.kind, model.certificate_.holds
    ((150, 40), 'exact', True)
    >>> model.certificate_.facts["largest error of a kernel value"] < 1e-3
    True
    """

    settings: ClassVar[Settings] = {
        **KernelFeatures.settings,
        "gamma": Setting(float, least=0, below=np.inf, choices=("scale", "auto"), none=True),
        "kernel": Setting(choices=(*KERNELS, "polynomial"), other=callable, other_words="a callable"),
        "degree": Setting(float, least=0, below=np.inf, none=True),
        "landmarks": Setting(choices=tuple(RULES)),
    }
    ignored: ClassVar[tuple[str, ...]] = ("n_jobs",)
    differences: ClassVar[dict[str, str]] = {
        "kernel": "Other names of sklearn.metrics.pairwise, such as 'chi2', are passed as functions: chi2_kernel.",
        "random_state": "Landmarks are other rows for the same seed: they are drawn by what they leave unexplained.",
    }
    _tuning: ClassVar[NystroemTuning] = NystroemTuning()

    def __init__(
        self,
        kernel="rbf",
        *,
        gamma=None,
        coef0=None,
        degree=None,
        kernel_params=None,
        n_components=100,
        random_state=None,
        n_jobs=None,
        landmarks="auto",
    ):
        self.kernel = kernel
        self.gamma = gamma
        self.coef0 = coef0
        self.degree = degree
        self.kernel_params = kernel_params
        self.n_components = n_components
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.landmarks = landmarks

    def _check_settings(self) -> None:
        super()._check_settings()
        if self.kernel_params and not callable(self.kernel):
            raise DataError(
                got=f"kernel_params with kernel={self.kernel!r}",
                wanted="gamma, coef0 and degree for a kernel with a name",
                fix="kernel_params are for callables.",
            )

    def _fit(self, rows: Rows, previous: Attributes) -> Attributes:
        gamma = self._chosen_gamma(rows)
        kernel = self._kernel(gamma)
        index, L = choose_landmarks(
            rows,
            int(self.n_components),
            LandmarkKernel(partial(kernel_values, kernel), partial(own_kernel_values, kernel)),
            self.landmarks,
            self._seconds,
            np.random.default_rng(self._seed()),
            self._tuning.landmarks,
        )
        N = _inverse_root(kernel, landmark_gram(kernel, L), self._tuning.dependent)
        fitted = {"components_": L, "component_indices_": index, "normalization_": N, "gamma_": gamma}
        return {**fitted, "certificate_": certified(_certified, NystroemMap(kernel, L, N), rows)}

    def _kernel(self, gamma: float) -> KernelFunction:
        if callable(self.kernel):
            return table_function(self.kernel, self.kernel_params)
        shape = PolynomialShape(3 if self.degree is None else self.degree, 1.0 if self.coef0 is None else self.coef0)
        return KERNELS["poly" if self.kernel == "polynomial" else self.kernel](shape, gamma)

    def kernel_function(self) -> KernelFunction:
        """The kernel that the features approximate."""
        return self._kernel(self.gamma_)

    def _map(self) -> NystroemMap:
        return NystroemMap(self.kernel_function(), self.components_, self.normalization_)

    def feature_map(self) -> Callable[[Block], Array]:
        return self._map().features

    def problem(self, rows: Rows) -> Callable[..., PrimalSvmProblem]:
        phi = self._map()
        K = landmark_gram(phi.kernel, phi.L)
        if not is_well_conditioned(phi.N, K, self._tuning.well_conditioned):
            return super().problem(rows)
        kernel_rows = MappedRows(rows, phi.landmark_values, len(phi.N))
        return partial(NystroemProblem, kernel_rows=kernel_rows, N=phi.N, K=K)

    def _certificate(self, rows: Rows) -> Certificate:
        return _certified(self._map(), rows)

    @property
    def _n_features_out(self) -> int:
        return len(self.normalization_)


class NystroemMap(NamedTuple):
    """Nyström features as functions of a block of rows."""

    kernel: KernelFunction
    L: Matrix  # (m, d) landmarks
    N: Array  # (m, m) k(L, L)^(-½)

    def landmark_values(self, block: Block) -> Array:
        """k(x, L) (rows, m)."""
        return kernel_values(self.kernel, block.X, self.L)

    def features(self, block: Block) -> Array:
        """φ(x) (rows, m)."""
        return self.landmark_values(block) @ self.N.T

    def features_and_own(self, block: Block) -> Array:
        """φ(x) and k(x, x) beside it (rows, m + 1)."""
        out = np.empty((len(block.w), len(self.N) + 1))
        np.matmul(self.landmark_values(block), self.N.T, out=out[:, :-1])
        out[:, -1] = own_kernel_values(self.kernel, block.X)
        return out


def kernel_values(kernel: KernelFunction, A: Matrix, B: Matrix) -> Array:
    """k(x, z) (a, b) of the rows of A and B, float64 and finite."""
    if isinstance(kernel, RBF):
        return kernel(A, B)
    if isinstance(kernel, Kernel):
        return evaluate(kernel, A, B)
    with _one_at_a_time:
        return evaluate(kernel, A, B)


def landmark_gram(kernel: KernelFunction, L: Matrix, tuning: NystroemTuning = NystroemTuning()) -> Array:
    """k(L, L) (m, m), of a radial kernel by differences of rows wherever products would lose digits.

    The inverse root of this matrix makes much of its last digits, which those of other kernel values are not.
    """
    if isinstance(kernel, RBF):
        L = dense(L)
        squares = np.square(L - L.mean(axis=0)).sum(axis=1)
        if not kernel.gamma * float(squares.max(initial=0.0)) <= tuning.by_product:
            return np.exp(-kernel.gamma * cdist(L, L, "sqeuclidean"))
    return kernel_values(kernel, L, L)


def own_kernel_values(kernel: KernelFunction, A: Matrix, batch: int = 64) -> Array:
    """k(x, x) (a,) of each row of A; kernels know tables only, so that so many rows are taken at a time."""
    if isinstance(kernel, RBF):
        return np.ones(A.shape[0])
    parts = (A[i : i + batch] for i in range(0, A.shape[0], batch))
    return np.concatenate([np.diag(kernel_values(kernel, part, part)) for part in parts])


def _inverse_root(kernel: KernelFunction, K: Array, dependent: float) -> Array:
    """K^(-½) (m, m) on the range of K = k(L, L); eigenvalues that may be rounding count as 0."""
    answer = None if _is_proved(kernel) else is_psd((K + K.T) / 2)
    if answer is not None and answer.verdict == "no":
        raise NoSolutionError(
            "Got a kernel that is not positive semidefinite on its landmarks (the certificate carries a v with "
            "v'Kv < 0); wanted one, since features have no negative squares. Use another kernel.",
            answer.certificate,
        )
    found, V = eigh((K + K.T) / 2)
    keep = found > dependent * np.sqrt(len(K)) * np.diag(K).max()
    return (V[:, keep] / np.sqrt(found[keep])) @ V[:, keep].T


def _is_proved(kernel: KernelFunction) -> bool:
    """Whether a function is known to be a kernel, positive semidefinite on all rows."""
    return isinstance(kernel, Kernel) and kernel.valid


def _certified(phi: NystroemMap, rows: Rows) -> Certificate:
    found = MappedRows(rows, phi.features_and_own, len(phi.N) + 1).sum(certificates.feature_errors)
    status = certificates.KernelStatus.PROVED if _is_proved(phi.kernel) else certificates.KernelStatus.UNREFUTED
    K, tol = landmark_gram(phi.kernel, phi.L), certificates.KernelErrorTuning().feature_tol
    return certificates.nystroem_certificate(found, K, phi.N, tol, (), status)
