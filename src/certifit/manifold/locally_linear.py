"""Locally linear embedding, certified.

    min over Y (n, k), YᵀY = I, Yᵀ1 = 0 of  Σᵢ |yᵢ - Σⱼ vᵢⱼ yⱼ|²,     vᵢ the weights that best rebuild xᵢ

| step | file |
|---|---|
| the nearest neighbours of each row | `neighbours` |
| weights, summing to 1, that rebuild each row from its neighbours | `reconstruction_weights` |
| the coordinates that these weights rebuild best: eigenvectors of a sparse matrix | `smallest_eigenvectors` |

References: Roweis & Saul, Nonlinear dimensionality reduction by locally linear embedding (2000); Saul & Roweis, Think
globally, fit locally (2003); Zhang & Wang, MLLE: modified locally linear embedding using multiple weights (2006).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from scipy.sparse import issparse
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from certifit.checkers.manifold import locally_linear as certificates
from certifit.checkers.manifold.adapter import embedding_spec
from certifit.core import Attributes, Certificate, Estimator, Objective
from certifit.core.settings import TOL, Setting, Settings
from certifit.exceptions import DataError
from certifit.manifold.neighbours import (
    NeighbourTuning,
    centre_and_scale,
    check_connected,
    join_parts,
    nearest_others,
    nearest_rows,
)
from certifit.manifold.reconstruction_weights import (
    LocalSystems,
    LocalSystemTuning,
    ModifiedMethod,
    barycentric_weights,
    modified_systems,
    standard_systems,
)
from certifit.manifold.smallest_eigenvectors import (
    EigenvectorTuning,
    KrylovBasis,
    LoopLimits,
    SmallestEigenvectors,
    find_smallest,
    smallest_ritz_pairs,
)
from certifit.numerics.matrix import column_signs
from certifit.rows import Array, Rows


@dataclass(frozen=True)
class LocallyLinearTuning:
    """Numbers that steer the three steps of a fit."""

    neighbours: NeighbourTuning = field(default_factory=NeighbourTuning)
    local_systems: LocalSystemTuning = field(default_factory=LocalSystemTuning)
    eigenvectors: EigenvectorTuning = field(default_factory=EigenvectorTuning)


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
    settings: ClassVar[Settings] = {
        "n_neighbors": Setting(int, least=1),
        "n_components": Setting(int, least=1),
        "reg": Setting(float, least=0, below=math.inf),
        "eigen_solver": Setting(choices=("auto", "arpack", "dense")),
        "tol": TOL,
        "max_iter": Setting(int, least=0),
        "method": Setting(choices=("standard", "modified")),
        "modified_tol": Setting(float, least=0),
        "neighbors_algorithm": Setting(choices=("auto", "kd_tree", "ball_tree", "brute", "pynndescent")),
        "disconnected": Setting(choices=("error", "join")),
    }
    _tuning: ClassVar[LocallyLinearTuning] = LocallyLinearTuning()

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

    def fit(self, X: Any, y: Any = None) -> Self:  # type: ignore[override]  # no sum over rows, so no weights
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
        self._check_sizes(rows)
        kept = _dense_rows(rows)
        X = centre_and_scale(kept)
        if not X.any():
            raise DataError(
                got=f"rows that are all the same (n_samples={rows.n_rows})",
                wanted="rows that differ: no row is nearer than another",
            )
        neighbours = nearest_others(X, int(self.n_neighbors), self.neighbors_algorithm, self._tuning.neighbours)
        if self.disconnected == "join":
            neighbours = join_parts(X, neighbours)
        check_connected(neighbours)
        systems = self._local_systems(X, neighbours)
        known = {"neighbors_": neighbours, "X_fit_": kept.copy()}
        found = self._solve(systems, known)
        Y = found.vectors * column_signs(found.vectors)
        return {
            **known,
            "embedding_": Y,
            "reconstruction_error_": float(found.values.sum()),
            "n_iter_": 1 if found.loop is None else found.loop.n_iter,
            "certificate_": self._certificate(Y, systems, found),
        }

    def _check_sizes(self, rows: Rows) -> None:
        """Refuse numbers of neighbours and components that rows of this shape do not allow."""
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

    def _local_systems(self, X: Array, neighbours: Array) -> LocalSystems:
        reg, tuning = float(self.reg), self._tuning.local_systems
        if self.method == "standard":
            return standard_systems(X, neighbours, reg, tuning)
        method = ModifiedMethod(int(self.n_components), float(self.modified_tol))
        return modified_systems(X, neighbours, reg, method, tuning)

    def _solve(self, systems: LocalSystems, known: Attributes) -> SmallestEigenvectors:
        """Find the coordinates with the smallest errors, under watch."""
        F, k, tuning = systems.F, int(self.n_components), self._tuning.eigenvectors
        dense = F.shape[1] <= tuning.dense_rows if self.eigen_solver == "auto" else self.eigen_solver == "dense"
        with self._watch.loop("eigenvectors", self.max_iter, partial(_attributes_so_far, F, k, known)) as watch:
            # coordinates with an error of `tol` have a sum of squared errors that is off by about its square
            return find_smallest(F, k, dense, LoopLimits(float(self.tol) ** 2, self.max_iter, watch), tuning)

    def _certificate(self, Y: Array, systems: LocalSystems, found: SmallestEigenvectors) -> Certificate:
        n, F = len(Y), systems.F
        Q = np.linalg.qr(np.column_stack([np.ones(n), Y, found.spare]))[0]
        FQ, FY = F @ Q, F @ Y
        theta = FQ.T @ FQ
        values = (FY**2).sum(axis=0)
        measured = certificates.EmbeddingNumbers(
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
            local=systems.residual,
            parts=1,
        )
        return certificates.assemble(measured, Y, float(values.sum()), float(self.tol), embedding_spec(self))

    def transform(self, X: Any) -> Array:
        """Coordinates (rows, k) of new rows: their nearest fitted rows', with the weights that rebuild them."""
        rows = _dense_rows(self._rows(X))
        fitted = centre_and_scale(self.X_fit_)
        new = centre_and_scale(rows, like=self.X_fit_)
        k, algorithm, tuning = int(self.n_neighbors), self.neighbors_algorithm, self._tuning
        neighbours = nearest_rows(new, fitted, k, algorithm, tuning.neighbours)
        weights, _ = barycentric_weights(new, fitted, neighbours, float(self.reg), tuning.local_systems)
        return np.einsum("ij,ijk->ik", weights, self.embedding_[neighbours])

    def objective(self, X: Any, y: Any = None, sample_weight: Any = None) -> Objective:
        """The sum of squared errors with which the fitted rows' coordinates are rebuilt."""
        rows = _dense_rows(self._rows(X))
        if rows.shape != self.X_fit_.shape or (rows != self.X_fit_).any():
            raise DataError(
                got="rows other than those it was fitted on", wanted="the fitted rows: it embeds only these"
            )
        F = self._local_systems(centre_and_scale(rows), self.neighbors_).F
        total = float(((F @ self.embedding_) ** 2).sum())
        return Objective(total, total, 0.0)

    @property
    def _n_features_out(self) -> int:
        check_is_fitted(self)
        return self.embedding_.shape[1]


def _dense_rows(rows: Rows) -> Array:
    X: Any = rows.load().X
    return X.toarray() if issparse(X) else X


def _attributes_so_far(F: Any, k: int, known: Attributes, at: KrylovBasis) -> Attributes:
    """The embedding as it would be if the loop ended here."""
    pairs = smallest_ritz_pairs(F, at.V, k)
    return {
        **known,
        "embedding_": pairs.vectors * column_signs(pairs.vectors),
        "reconstruction_error_": float(pairs.values.sum()),
    }
