"""Locally linear embedding, certified.

    min over Y (n, k), YᵀY = I, Yᵀ1 = 0 of  Σᵢ |yᵢ - Σⱼ vᵢⱼ yⱼ|²,     vᵢ the weights that best rebuild xᵢ

Each row is rebuilt from its nearest neighbours (`lle_neighbours`) with weights that sum to 1 (`lle_weights`); the
coordinates that the same weights rebuild best are the bottom eigenvectors of a sparse matrix (`lle_eigen`).
References: Roweis & Saul, Nonlinear dimensionality reduction by locally linear embedding (2000); Saul & Roweis, Think
globally, fit locally (2003); Zhang & Wang, MLLE: modified locally linear embedding using multiple weights (2006).
"""

from __future__ import annotations

from functools import partial
from typing import Any, Self

import numpy as np
from scipy.sparse import issparse
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from certifit.checkers.manifold import locally_linear as certificates
from certifit.core import Attributes, Certificate, Estimator, Objective
from certifit.core.settings import check_settings
from certifit.exceptions import DataError
from certifit.manifold.neighbours import APPROXIMATE, SEARCHES, check_connected, framed, joined, nearest, nearest_to
from certifit.manifold.reconstruction_weights import Local, barycentres, modified, standard
from certifit.manifold.smallest_eigenvectors import SMALL, Bottom, Krylov, rayleigh, smoothest
from certifit.numerics.matrix import column_signs
from certifit.rows import Array, Rows

CHOICES = {
    "method": ("standard", "modified"),
    "eigen_solver": ("auto", "arpack", "dense"),
    "neighbors_algorithm": ("auto", *SEARCHES),
    "disconnected": ("error", "join"),
}


class LocallyLinearEmbedding(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Estimator):
    """Locally linear embedding.

    Works in memory, whatever the source of the rows: neighbours are not a sum over rows. Rows have no weights.

    Parameters
    ----------
    n_neighbors : int, default=5
        Rows from which each row is rebuilt.
    n_components : int, default=2
        Coordinates of the embedding.
    reg : float, default=1e-3
        Added to the diagonal of the local systems, relative to their trace.
    eigen_solver : 'auto', 'arpack' or 'dense'
        scikit-learn's names. 'dense' solves the whole eigenproblem with LAPACK, 'arpack' by block Lanczos on the
        inverse; 'auto' is 'dense' up to 300 rows.
    tol : float, default=1e-6
        What the certificate must prove: sum of squared errors above the smallest, relative. Coordinates are found
        with an error of about this size.
    max_iter : int, default=100
        Most steps of block Lanczos; about ten are usual.
    method : 'standard' or 'modified'
        One set of weights for each row, or several.
    modified_tol : float, default=1e-12
        Length below which a reflection of the modified method counts as none.
    neighbors_algorithm : 'auto', 'kd_tree', 'ball_tree', 'brute' or 'pynndescent'
        'pynndescent' (a package of its own) is approximate; the others give the nearest rows exactly.
    disconnected : 'error' or 'join'
        What to do where the neighbour graph falls into parts: refuse, naming them, or join each part to the next by
        its nearest pair of rows, which takes the place of a farthest neighbour.
    random_state, n_jobs : ignored
        Nothing is random; for the number of threads see `set_threads`.

    Attributes
    ----------
    embedding_ : (n, k) orthonormal columns of mean 0; the first of each one's largest entries is positive
    reconstruction_error_ : float, the sum of squared errors
    neighbors_ : (n, n_neighbors) row numbers, nearest first
    X_fit_ : (n, d) the rows, for `transform`
    n_iter_ : int
    certificate_ : Certificate

    Examples
    --------
    >>> from sklearn.datasets import make_swiss_roll
    >>> from certifit import LocallyLinearEmbedding
    >>> X, along = make_swiss_roll(1000, random_state=0)
    >>> model = LocallyLinearEmbedding(n_neighbors=12).fit(X)
    >>> model.embedding_.shape, model.certificate_.kind, model.certificate_.holds
    ((1000, 2), 'optimal', True)
    >>> bool(abs(np.corrcoef(model.embedding_[:, 0], along)[0, 1]) > 0.9)
    True
    """

    sparse = True

    def __init__(
        self,
        *,
        n_neighbors=5,
        n_components=2,
        reg=1e-3,
        eigen_solver="auto",
        tol=1e-6,
        max_iter=100,
        method="standard",
        modified_tol=1e-12,
        neighbors_algorithm="auto",
        disconnected="error",
        random_state=None,
        n_jobs=None,
    ):
        self.n_neighbors = n_neighbors
        self.n_components = n_components
        self.reg = reg
        self.eigen_solver = eigen_solver
        self.tol = tol
        self.max_iter = max_iter
        self.method = method
        self.modified_tol = modified_tol
        self.neighbors_algorithm = neighbors_algorithm
        self.disconnected = disconnected
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit to the rows of X.

        Parameters
        ----------
        X : array, CSR matrix, data frame, Arrow table, path to Parquet or CSV, or Dask collection
        y : ignored

        Returns
        -------
        self : the fitted estimator; `certificate_` says what is proved about it
        """
        return super().fit(X, y)

    def fit_transform(self, X: Any, y: Any = None) -> Array:
        """Fit, and the embedding (n, k) of the rows."""
        return self.fit(X, y).embedding_.copy()

    def _fit(self, rows: Rows, previous: Attributes) -> Attributes:
        self._check(rows)
        kept = _in_memory(rows)
        X = framed(kept)
        if not X.any():
            raise DataError(
                got=f"rows that are all the same (n_samples={rows.n_rows})",
                wanted="rows that differ: no row is nearer than another",
            )
        neighbours = nearest(X, int(self.n_neighbors), self.neighbors_algorithm)
        if self.disconnected == "join":
            neighbours = joined(X, neighbours)
        check_connected(neighbours)
        local = self._local(X, neighbours)
        dense = len(X) <= SMALL if self.eigen_solver == "auto" else self.eigen_solver == "dense"
        known = {"neighbors_": neighbours, "X_fit_": kept.copy()}
        attributes = partial(_attributes, local.F, int(self.n_components), known)
        with self._watch.loop("eigenvectors", self.max_iter, attributes) as watch:
            found = smoothest(local.F, int(self.n_components), dense, float(self.tol) ** 2, self.max_iter, watch)
        Y = found.vectors * column_signs(found.vectors)
        return {
            **known,
            "embedding_": Y,
            "reconstruction_error_": float(found.values.sum()),
            "n_iter_": 1 if found.loop is None else found.loop.n_iter,
            "certificate_": self._certificate(Y, local, found),
        }

    def _check(self, rows: Rows) -> None:
        check_settings(self, ("reg", "tol", "modified_tol"), n_neighbors=1, n_components=1, max_iter=0)
        if not np.isfinite(self.reg):
            raise DataError(got=f"reg={self.reg!r}", wanted="a finite number of at least 0")
        for name, known in CHOICES.items():
            if getattr(self, name) not in known:
                raise DataError(got=f"{name}={getattr(self, name)!r}", wanted=f"one of {known}")
        if self.n_neighbors >= rows.n_rows:
            raise DataError(
                got=f"n_neighbors={self.n_neighbors} and n_samples={rows.n_rows}",
                wanted="fewer neighbours than rows: a row is not its own neighbour",
                fix="Use fewer neighbours.",
            )
        most = min(rows.n_features, self.n_neighbors)
        if self.n_components > most:
            raise DataError(
                got=f"n_components={self.n_components} with n_features={rows.n_features} feature(s) and "
                f"n_neighbors={self.n_neighbors}",
                wanted=f"at most {most}, the smaller of the two: neighbours span no more directions",
                fix="Use fewer components or more neighbours.",
            )

        if self.reg == 0 and self.n_neighbors > rows.n_features:
            raise DataError(
                got=f"reg=0 with n_neighbors={self.n_neighbors} > n_features={rows.n_features}",
                wanted="local systems with one solution: more neighbours than columns have many",
                fix="Use reg > 0, for instance the default 1e-3.",
            )

    def _local(self, X: Array, neighbours: Array) -> Local:
        reg = float(self.reg)
        if self.method == "standard":
            return standard(X, neighbours, reg)
        return modified(X, neighbours, reg, int(self.n_components), float(self.modified_tol))

    def problem_spec(self) -> certificates.Spec:
        """The problem, for its checker."""
        approximate = self.neighbors_algorithm in APPROXIMATE or self.disconnected == "join"
        return certificates.Spec(self.method == "modified", float(self.reg), float(self.modified_tol), approximate)

    def _certificate(self, Y: Array, local: Local, found: Bottom) -> Certificate:
        n, F = len(Y), local.F
        Q = np.linalg.qr(np.column_stack([np.ones(n), Y, found.spare]))[0]
        FQ, FY = F @ Q, F @ Y
        theta = FQ.T @ FQ
        values = (FY**2).sum(axis=0)
        measured = certificates.Measured(
            objective=float(values.sum()),
            values=values,
            residuals=np.linalg.norm(F.T @ FY - Y * values, axis=0),
            theta=np.linalg.eigvalsh(theta),
            leak=float(np.linalg.norm(F.T @ FQ - Q @ theta)),
            constant=float((F.sum(axis=1) ** 2).sum()) / n,
            tau=found.tau,
            below=found.below,
            rounding=found.rounding,
            size=float((F.multiply(F)).sum(axis=0).max()),
            local=local.residual,
            parts=1,
        )
        return certificates.assemble(measured, Y, float(values.sum()), float(self.tol), self.problem_spec())

    def transform(self, X: Any) -> Array:
        """Coordinates (rows, k) of new rows: their nearest fitted rows', with the weights that rebuild them."""
        rows = _in_memory(self._rows(X))
        fitted = framed(self.X_fit_)
        new = framed(rows, like=self.X_fit_)
        neighbours = nearest_to(new, fitted, int(self.n_neighbors), self.neighbors_algorithm)
        weights, _ = barycentres(new, fitted, neighbours, float(self.reg))
        return np.einsum("ij,ijk->ik", weights, self.embedding_[neighbours])

    def objective(self, X: Any, y: Any = None, sample_weight: Any = None) -> Objective:
        """The sum of squared errors with which the fitted rows' coordinates are rebuilt."""
        rows = _in_memory(self._rows(X))
        if rows.shape != self.X_fit_.shape or (rows != self.X_fit_).any():
            raise DataError(
                got="rows other than those it was fitted on", wanted="the fitted rows: it embeds only these"
            )
        total = float(((self._local(framed(rows), self.neighbors_).F @ self.embedding_) ** 2).sum())
        return Objective(total, total, 0.0)

    @property
    def _n_features_out(self) -> int:
        check_is_fitted(self)
        return self.embedding_.shape[1]


def _in_memory(rows: Rows) -> Array:
    X: Any = rows.load().X
    return X.toarray() if issparse(X) else X


def _attributes(F: Any, k: int, known: Attributes, at: Krylov) -> Attributes:
    """The embedding as it would be if the loop ended here."""
    ritz = rayleigh(F, at.V, k)
    return {
        **known,
        "embedding_": ritz.vectors * column_signs(ritz.vectors),
        "reconstruction_error_": float(ritz.values.sum()),
    }
