"""Principal component analysis in the feature space of a kernel, certified.

    K v = λ v,     K the Gram matrix of the fitted rows, centred in feature space,     z(x) = Σᵢ k(x, xᵢ) vᵢ / √λ

These are the coordinates of φ(x) along the directions in which the rows' φ vary most. `inverse_transform` is the
kernel ridge regression of the rows on their coordinates.
References: Schölkopf, Smola & Müller, Kernel principal component analysis (1997); Bakır, Weston & Schölkopf, Learning
to find pre-images (2004).
"""

from __future__ import annotations

import math
import warnings
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse
from scipy.linalg import LinAlgError, LinAlgWarning, eigh, solve
from scipy.sparse.linalg import eigsh
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from certifit.checkers.decomposition import kernel_pca as checker
from certifit.checkers.decomposition.kernel_adapter import (
    component_terms,
    fitted_kernel,
    gram_rounding,
    plain_kernel,
)
from certifit.core import Attributes, Estimator, Objective, Setting, certified
from certifit.core.settings import Settings
from certifit.decomposition.kernel.centred_gram import (
    Cosine,
    DenseRBF,
    PairFunction,
    centre_gram,
    centre_values,
    own_values,
)
from certifit.exceptions import DataError, NotSupportedError
from certifit.numerics.krylov import block_krylov
from certifit.numerics.matrix import column_signs
from certifit.rows import Array, Block, Matrix, Rows
from certifit.svm.kernel.kernels import KERNELS, RBF, CentredLinear, Kernel, Linear, check_squares, squared_lengths


class KernelPCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Estimator):
    """Kernel principal component analysis.

    Works in memory, whatever the source of the rows: a Gram matrix is not a sum over rows. Rows have no weights.

    Parameters
    ----------
    n_components : int or None
        The number of components; None: all whose eigenvalue is not zero.
    kernel : 'linear', 'poly', 'rbf', 'sigmoid', 'cosine', 'precomputed', a certifit kernel or callable(x, z)
        Inner products in feature space; a callable is given two rows, as in scikit-learn.
    gamma : float or None
        Of 'poly', 'rbf' and 'sigmoid'; None: 1 / n_features.
    degree, coef0 : float, default=3, 1
        Of 'poly' and 'sigmoid'.
    kernel_params : dict or None
        Further arguments of a callable kernel.
    alpha : float, default=1.0
        Penalty of the ridge regression that `inverse_transform` learns.
    fit_inverse_transform : bool, default=False
        Whether to learn it.
    eigen_solver : 'auto', 'dense', 'arpack' or 'randomized'
        LAPACK, restarted Lanczos, or block Krylov iteration; 'auto' is 'arpack' for fewer than 10 components of more
        than 200 rows.
    tol : float, default=0
        Residuals of eigenpairs, relative to the largest eigenvalue, that are allowed beyond rounding.
    remove_zero_eig : bool, default=False
        Leave out components whose eigenvalue is zero, also where n_components is given.
    random_state : int, RandomState or None
        Seed of the start of iterative solvers.
    max_iter, iterated_power, copy_X, n_jobs : ignored
        Solvers iterate until `tol`, and the input is never changed; accepted so that scikit-learn's calls run.

    Attributes
    ----------
    eigenvalues_ : (k,) of the centred Gram matrix, descending; those below 1e-12 of the largest are 0
    eigenvectors_ : (n, k) orthonormal columns; the first of each one's largest entries is positive
    gamma_ : float, as used
    X_fit_ : (n, d) the rows, or the Gram matrix given
    gram_means_ : (n,) means of the Gram matrix's columns, which centre the kernel values of new rows
    dual_coef_ : (n, d) of the inverse transform, where it was learnt
    X_transformed_fit_ : (n, k) coordinates of the rows, where it was learnt
    certificate_ : Certificate

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from certifit import KernelPCA
    >>> X, _ = load_iris(return_X_y=True)
    >>> model = KernelPCA(2, kernel="rbf", gamma=0.1).fit(X)
    >>> model.transform(X).shape, model.certificate_.kind, model.certificate_.holds
    ((150, 2), 'optimal', True)
    """

    sparse = True
    settings: ClassVar[Settings] = {
        "n_components": Setting(int, least=1, none=True),
        "kernel": Setting(choices=(*KERNELS, "cosine", "precomputed"), other=callable, other_words="a callable"),
        "gamma": Setting(float, least=0, below=math.inf, none=True),
        "degree": Setting(float, least=0, below=math.inf),
        "coef0": Setting(float, above=-math.inf, below=math.inf),
        "alpha": Setting(float, least=0, below=math.inf),
        "fit_inverse_transform": Setting(bool),
        "eigen_solver": Setting(choices=("auto", "dense", "arpack", "randomized")),
        "tol": Setting(float, least=0, below=math.inf),
        "remove_zero_eig": Setting(bool),
    }
    ignored: ClassVar[tuple[str, ...]] = ("max_iter", "iterated_power", "copy_X", "n_jobs")

    eigenvalues_: Array
    eigenvectors_: Array
    X_fit_: Matrix
    gram_means_: Array

    def __init__(
        self,
        n_components=None,
        *,
        kernel="linear",
        gamma=None,
        degree=3,
        coef0=1,
        kernel_params=None,
        alpha=1.0,
        fit_inverse_transform=False,
        eigen_solver="auto",
        tol=0,
        max_iter=None,
        iterated_power="auto",
        remove_zero_eig=False,
        random_state=None,
        copy_X=True,
        n_jobs=None,
    ):
        self.n_components = n_components
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.alpha = alpha
        self.fit_inverse_transform = fit_inverse_transform
        self.eigen_solver = eigen_solver
        self.tol = tol
        self.max_iter = max_iter
        self.iterated_power = iterated_power
        self.remove_zero_eig = remove_zero_eig
        self.random_state = random_state
        self.copy_X = copy_X
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any = None) -> Self:  # type: ignore[override]  # no sum over rows, so no weights
        """Fit to the rows of X.

        Parameters
        ----------
        X : array, CSR matrix, data frame, Arrow table, path to Parquet or CSV, or Dask collection; with
            kernel='precomputed' the Gram matrix (n, n)
        y : ignored

        Returns
        -------
        self : the fitted estimator; `certificate_` says what is proved about it
        """
        return super().fit(X, y)

    def fit_transform(self, X: Any, y: Any = None) -> Array:
        """Fit, and the coordinates (n, k) of the rows."""
        self.fit(X, y)
        return self.eigenvectors_ * np.sqrt(self.eigenvalues_)

    @property
    def _precomputed(self) -> bool:
        return isinstance(self.kernel, str) and self.kernel == "precomputed"

    def _check_settings(self) -> None:
        super()._check_settings()
        if self._precomputed and self.fit_inverse_transform:
            raise DataError(
                got="kernel='precomputed' and fit_inverse_transform=True",
                wanted="a kernel of rows: Cannot fit_inverse_transform with a precomputed kernel",
            )

    def _fit(self, rows: Rows, previous: Attributes) -> Attributes:
        X = rows.load().X
        self._check_table(X)
        gamma = 1.0 / X.shape[1] if self.gamma is None else float(self.gamma)
        gram = centre_gram(self._gram(X, gamma))
        n = len(gram.K)
        k = n if self.n_components is None else min(n, int(self.n_components))
        values, V = self._eigenpairs(gram.K, k)
        values = _without_rounding(values, n * gram.size)
        if self.n_components is None or self.remove_zero_eig:
            values, V = values[values > 0], V[:, values > 0]
        fitted: dict[str, Any] = {
            "eigenvalues_": values,
            "eigenvectors_": V * column_signs(V),
            "gamma_": gamma,
            "X_fit_": X.copy(),
            "gram_means_": gram.means,
        }
        claim = checker.KernelPCAClaim(values, fitted["eigenvectors_"], gram.means)
        rounding = gram_rounding(fitted_kernel(self, X, gamma), X)
        measured = checker.GramMeasured(gram.K, gram.means, rounding)
        certificate = certified(checker.certify, claim, measured, component_terms(self), min(float(self.tol), 1e-2))
        if self.fit_inverse_transform:
            if sparse.issparse(X):
                raise NotSupportedError(
                    got="fit_inverse_transform=True with sparse rows",
                    wanted="dense rows: Inverse transform not implemented for sparse matrices!",
                )
            Z = fitted["eigenvectors_"] * np.sqrt(values)
            fitted["dual_coef_"] = self._ridge_coefficients(Z, X, gamma)
            inverse = checker.InverseClaim(fitted["dual_coef_"], Z, X, float(self.alpha))
            certificate = certified(checker.with_inverse, certificate, inverse, plain_kernel(self, gamma))
        return {**fitted, "certificate_": certificate}

    def _check_table(self, X: Matrix) -> None:
        if self._precomputed and X.shape[0] != X.shape[1]:
            raise DataError(
                got=f"a precomputed kernel of shape {X.shape}", wanted="a square matrix, a column for each row"
            )
        check_squares(X)

    def _gram(self, X: Matrix, gamma: float) -> Array:
        if self._precomputed:
            return np.array(X.toarray() if sparse.issparse(X) else X, dtype=np.float64)
        kernel = self._fitted_kernel(X, gamma)
        return np.array(kernel(X, X), dtype=np.float64)

    def _fitted_kernel(self, X: Matrix, gamma: float) -> Kernel:
        """The kernel of rows; the linear one about their mean, where nothing cancels."""
        if isinstance(self.kernel, str) and self.kernel == "linear" and not sparse.issparse(X):
            return CentredLinear(np.asarray(X.mean(axis=0, dtype=np.float64)))
        kernel = self._kernel(gamma)
        near = (
            sparse.issparse(X) and isinstance(kernel, RBF) and kernel.gamma * squared_lengths(X).max(initial=0.0) <= 8
        )
        return DenseRBF(kernel.gamma) if isinstance(kernel, RBF) and not near else kernel

    def _kernel(self, gamma: float) -> Kernel:
        if isinstance(self.kernel, Kernel):
            return self.kernel
        if callable(self.kernel):
            return PairFunction(self.kernel, dict(self.kernel_params or {}))
        if self.kernel == "cosine":
            return Cosine()
        return Linear() if self.kernel == "linear" else KERNELS[self.kernel](self, gamma)

    def _eigenpairs(self, K: Array, k: int) -> tuple[Array, Array]:
        """The k largest eigenvalues of the centred Gram matrix, descending, and their vectors (n, k)."""
        n, solver = len(K), self.eigen_solver
        if solver == "auto":
            solver = "arpack" if n > 200 and k < 10 else "dense"
        rng = check_random_state(self.random_state)
        if solver == "arpack" and k < n - 1:
            values, V = eigsh(K, k, which="LA", tol=float(self.tol), v0=rng.uniform(-1, 1, n))
        elif solver == "randomized" and 3 * (k + 10) < n:
            ritz = block_krylov(K, k, rng=np.random.default_rng(rng.randint(2**31)), depth=n // (k + 10), tol=1e-9)
            values, V = ritz.values[:k], ritz.vectors[:, :k]
        else:
            values, V = eigh(K, subset_by_index=(n - k, n - 1))
        order = np.argsort(-values, kind="stable")
        return values[order], V[:, order]

    def _ridge_coefficients(self, Z: Array, X: Array, gamma: float) -> Array:
        """(k(Z, Z) + α I)⁻¹ X, which predicts rows from coordinates."""
        G = np.array(self._kernel(gamma)(Z, Z), dtype=np.float64)
        G.flat[:: len(G) + 1] += float(self.alpha)
        with warnings.catch_warnings():  # how well these solve their equations is in the certificate
            warnings.simplefilter("ignore", LinAlgWarning)
            try:
                return solve((G + G.T) / 2, X.astype(np.float64), assume_a="sym")
            except LinAlgError as error:
                raise DataError(
                    got=f"a kernel matrix of coordinates that is singular beside alpha={self.alpha:g}",
                    wanted="one that fit_inverse_transform can solve with",
                    fix="Raise alpha, or rescale the columns.",
                ) from error

    def transform(self, X: Any) -> Array:
        """Coordinates (rows, k) of rows; with kernel='precomputed', of their kernel values with the fitted ones."""
        rows = self._rows(X)
        return rows.map(self._projection())

    def _projection(self) -> Any:
        kernel = None if self._precomputed else self._fitted_kernel(self.X_fit_, float(self.gamma_))
        root = np.sqrt(self.eigenvalues_)
        inverse = np.divide(1.0, root, out=np.zeros_like(root), where=root > 0)
        return partial(_coordinates, kernel, self.X_fit_, self.gram_means_, self.eigenvectors_ * inverse)

    def inverse_transform(self, X: Any) -> Array:
        """Rows (m, d) whose coordinates are near these (m, k), by the ridge regression that `fit` learnt."""
        check_is_fitted(self)
        if not self.fit_inverse_transform:
            raise NotFittedError(
                "Got fit_inverse_transform=False; wanted True at the time of fit: the inverse is learnt there."
            )
        Z = np.asarray(X.toarray() if sparse.issparse(X) else X, dtype=np.float64)
        return self._kernel(float(self.gamma_))(Z, self.X_transformed_fit_) @ self.dual_coef_

    @property
    def X_transformed_fit_(self) -> Array:
        """The coordinates (n, k) of the fitted rows, where the inverse transform was learnt."""
        if not self.fit_inverse_transform:
            raise AttributeError("X_transformed_fit_ is there with fit_inverse_transform=True only")
        return self.eigenvectors_ * np.sqrt(self.eigenvalues_)

    def objective(self, X: Any, y: Any = None, sample_weight: Any = None) -> Objective:
        """The mean squared distance in feature space of these rows to the span of the components."""
        rows = self._rows(X)
        data: Any = rows.load().X
        if self._precomputed:
            values = np.array(data.toarray() if sparse.issparse(data) else data, dtype=np.float64)
            own = np.diag(values)
        else:
            kernel = self._fitted_kernel(self.X_fit_, float(self.gamma_))
            own, values = own_values(kernel, data), np.array(kernel(data, self.X_fit_))
        squares = own - 2 * values.mean(axis=1) + float(self.gram_means_.mean())
        error = float((squares - (self.transform(X) ** 2).sum(axis=1)).mean())
        return Objective(error, error, 0.0)

    @property
    def _n_features_out(self) -> int:
        return len(self.eigenvalues_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._precomputed
        tags.input_tags.sparse = not self.fit_inverse_transform
        return tags


def _without_rounding(values: Array, size: float) -> Array:
    """Eigenvalues with 0 in place of those that are rounding; a negative one that is not is refused."""
    largest = float(np.abs(values).max(initial=0.0))
    if values.min(initial=0.0) < -max(1e-5 * largest, 1e-10 * min(1.0, largest)):
        raise DataError(
            got=f"an eigenvalue of {values.min():.3g} among the largest asked for (the largest is {largest:.3g})",
            wanted="a positive semidefinite kernel. There are significant negative eigenvalues",
            fix="Ask for fewer components, or use another kernel.",
        )
    rounding = np.finfo(np.float64).eps * size
    return np.where(values > max(1e-12 * largest, rounding), values, 0.0)


def _coordinates(kernel: Kernel | None, fitted: Matrix, means: Array, vectors: Array, block: Block) -> Array:
    X = block.X.toarray() if kernel is None and sparse.issparse(block.X) else block.X
    values = np.array(X if kernel is None else kernel(X, fitted), dtype=np.float64)
    return centre_values(values, means) @ vectors


__all__ = ["KernelPCA"]
