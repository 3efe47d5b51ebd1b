"""Locally linear embedding, certified.

    min over Y (n, k), YᵀY = I, Yᵀ1 = 0 of  Σᵢ |yᵢ - Σⱼ vᵢⱼ yⱼ|²,     vᵢ the weights that best rebuild xᵢ

Where the neighbour graph falls into parts of m rows, each part has this problem for itself, with YᵀY = (m / n) I:
then the columns are orthonormal and centred over all rows too, and rows of every part are spread alike.

| step | file |
|---|---|
| the nearest neighbours of each row | `neighbours` |
| weights, summing to 1, that rebuild each row from its neighbours | `reconstruction_weights` |
| the coordinates that these weights rebuild best: eigenvectors of a sparse matrix | `smallest_eigenvectors` |

References: Roweis & Saul, Nonlinear dimensionality reduction by locally linear embedding (2000); Saul & Roweis, Think
globally, fit locally (2003); Zhang & Wang, MLLE: modified locally linear embedding using multiple weights (2006). For
'hessian' and 'ltsa', whose local errors come from tangent spaces, see `tangent_spaces`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from scipy.sparse import issparse
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.neighbors import NearestNeighbors
from sklearn.utils.validation import check_is_fitted

from certifit.checkers.manifold import locally_linear as certificates
from certifit.checkers.manifold.adapter import embedding_spec
from certifit.checkers.manifold.local_systems import LocalErrors, unit_grams
from certifit.core import Attributes, Certificate, Estimator, Objective
from certifit.core.settings import TOL, Setting, Settings
from certifit.exceptions import DataError
from certifit.manifold.neighbours import (
    NeighbourTuning,
    centre_and_scale,
    check_connected,
    connected_parts,
    join_parts,
    nearest_others,
    nearest_rows,
    scale_rows,
    warn_of_parts,
)
from certifit.manifold.reconstruction_weights import (
    LocalSystems,
    LocalSystemTuning,
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
from certifit.manifold.tangent_spaces import TangentTuning, tangent_systems
from certifit.numerics.matrix import column_signs
from certifit.rows import Array, Rows


@dataclass(frozen=True)
class LocallyLinearTuning:
    """Numbers that steer the three steps of a fit."""

    neighbours: NeighbourTuning = field(default_factory=NeighbourTuning)
    local_systems: LocalSystemTuning = field(default_factory=LocalSystemTuning)
    tangents: TangentTuning = field(default_factory=TangentTuning)
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
    method : 'standard', 'modified', 'hessian' or 'ltsa'
        One set of weights for each row, or several; or, of a tangent space fitted to its neighbours, the quadratic
        part of their coordinates (Hessian eigenmaps) or all that is no affine function of tangent coordinates (local
        tangent space alignment) counts as error. 'hessian' needs more than n_components (n_components + 3) / 2
        neighbours.
    hessian_tol : ignored
        scikit-learn's name for a sum below which a column is not divided by it.
    modified_tol : ignored
        scikit-learn's name for the length below which a reflection counts as none: here it is exact at any length.
    neighbors_algorithm : 'auto', 'kd_tree', 'ball_tree', 'brute' or 'pynndescent'
        'pynndescent' (a package of its own) is approximate; the others give the nearest rows exactly.
    disconnected : 'embed', 'join' or 'error'
        What to do where the neighbour graph falls into parts: embed each by itself, with a warning; join each part to
        the next by its nearest pair of rows, which takes the place of a farthest neighbour; or refuse, naming them.
    random_state, n_jobs : ignored
        Nothing is random; for the number of threads see `set_threads`.

    Attributes
    ----------
    embedding_ : (n, k) orthonormal columns of mean 0; the first of each one's largest entries is positive. The same
        holds within each part of the neighbour graph, up to its share of the rows; parts lie about the same centre
    reconstruction_error_ : float, the sum of squared errors
    neighbors_ : (n, n_neighbors) row numbers, nearest first
    parts_ : (n,) the number of each row's part of the neighbour graph, 0 everywhere where there is one
    X_fit_ : (n, d) the rows, for `transform`
    nbrs_ : scikit-learn's NearestNeighbors of these rows
    n_iter_ : int, the most steps of block Lanczos for any part (diagnostic)
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
        "method": Setting(choices=("standard", "modified", "hessian", "ltsa")),
        "modified_tol": Setting(float, least=0),
        "neighbors_algorithm": Setting(choices=("auto", "kd_tree", "ball_tree", "brute", "pynndescent")),
        "disconnected": Setting(choices=("embed", "join", "error")),
    }
    diagnostics: ClassVar[tuple[str, ...]] = ("n_iter_",)
    ignored: ClassVar[tuple[str, ...]] = ("hessian_tol", "modified_tol", "random_state", "n_jobs")
    differences: ClassVar[dict[str, str]] = {
        "method": "'hessian' counts the quadratic part of coordinates alone, as Donoho & Grimes do; scikit-learn's "
        "also counts everything orthogonal to it, which is its 'ltsa'.",
    }
    _tuning: ClassVar[LocallyLinearTuning] = LocallyLinearTuning()

    embedding_: Array
    neighbors_: Array
    X_fit_: Array

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
        hessian_tol=1e-4,
        modified_tol=1e-12,
        neighbors_algorithm="auto",
        disconnected="embed",
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
        self.hessian_tol = hessian_tol
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
        nearest = nearest_others(X, int(self.n_neighbors), self.neighbors_algorithm, self._tuning.neighbours)
        neighbours = join_parts(X, nearest) if self.disconnected == "join" else nearest
        if self.disconnected == "embed":
            warn_of_parts(connected_parts(neighbours), int(self.n_neighbors))
        else:
            check_connected(neighbours)
        plain = scale_rows(kept)
        systems = self._local_systems(plain, neighbours)
        Y = np.zeros((len(X), int(self.n_components)))
        known: dict[str, Any] = {
            "neighbors_": neighbours,
            "X_fit_": kept.copy(),
            "embedding_": Y,
            "reconstruction_error_": 0.0,
        }
        found = []
        for part in _split_into_parts(systems, plain, neighbours):
            solved = self._solve(part, known)
            Y[part.rows] = solved.vectors * (column_signs(solved.vectors) * np.sqrt(part.share))
            known["reconstruction_error_"] += part.share * float(solved.values.sum())
            found.append((part, solved))
        return {
            **known,
            "n_iter_": max(1 if solved.loop is None else solved.loop.n_iter for _, solved in found),
            "certificate_": self._certificate(Y, systems, found, int((neighbours != nearest).any(axis=1).sum())),
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
        k = self.n_components
        fewest = {"hessian": k * (k + 3) // 2 + 1, "ltsa": k + 1}.get(self.method, 0)
        if self.n_neighbors < fewest:
            raise DataError(
                got=f"n_neighbors={self.n_neighbors} with method={self.method!r} and n_components={k}",
                wanted=f"at least {fewest}: for method='hessian', n_neighbors must be greater than "
                "[n_components * (n_components + 3) / 2], for 'ltsa' greater than n_components",
                fix="Use more neighbours.",
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
        if self.method in ("hessian", "ltsa"):
            components = int(self.n_components)
            return tangent_systems(X, neighbours, components, self.method == "hessian", self._tuning.tangents)
        return modified_systems(X, neighbours, reg, int(self.n_components), tuning)

    def _solve(self, part: ConnectedPart, known: Attributes) -> SmallestEigenvectors:
        """Find the coordinates of a part with the smallest errors, under watch."""
        F, k, tuning = part.F, int(self.n_components), self._tuning.eigenvectors
        dense = F.shape[1] <= tuning.dense_rows if self.eigen_solver == "auto" else self.eigen_solver == "dense"
        with self._watch.loop("eigenvectors", self.max_iter, partial(_attributes_so_far, part, k, known)) as watch:
            # coordinates with an error of `tol` have a sum of squared errors that is off by about its square
            return find_smallest(F, k, dense, LoopLimits(float(self.tol) ** 2, self.max_iter, watch), tuning)

    def _certificate(
        self, Y: Array, systems: LocalSystems, found: list[tuple[ConnectedPart, SmallestEigenvectors]], joins: int
    ) -> Certificate:
        parts = [
            _measure(Y[part.rows] / np.sqrt(part.share), part, solved, float(self.tol)) for part, solved in found
        ]
        sizes = tuple(len(part.rows) for part, _ in found)
        graph = certificates.GraphNumbers(systems.residual, sizes, joins, open=systems.open)
        error = float(sum(m.share * m.values.sum() for m in parts))
        return certificates.assemble(parts, graph, error, float(self.tol), embedding_spec(self))

    def transform(self, X: Any) -> Array:
        """Coordinates (rows, k) of new rows: their nearest fitted rows', with the weights that rebuild them."""
        rows = _dense_rows(self._rows(X))
        fitted = centre_and_scale(self.X_fit_)
        new = centre_and_scale(rows, like=self.X_fit_)
        neighbours = self._nearest_of_one_part(new, fitted)
        plain, like = scale_rows(rows, like=self.X_fit_), scale_rows(self.X_fit_)
        weights = barycentric_weights(plain, like, neighbours, float(self.reg), self._tuning.local_systems).weights
        found = np.einsum("ij,ijk->ik", weights, self.embedding_[neighbours])
        if self.method in ("hessian", "ltsa"):
            # Their coordinates are no weighted means: a fitted row has those that it was given.
            known = (new == fitted[neighbours[:, 0]]).all(axis=1)
            found[known] = self.embedding_[neighbours[known, 0]]
        return found

    def _nearest_of_one_part(self, new: Array, fitted: Array) -> Array:
        """Return the fitted rows (m, n_neighbors) next to new ones (m, d), all of the nearest one's part."""
        k, algorithm, tuning = int(self.n_neighbors), self.neighbors_algorithm, self._tuning.neighbours
        neighbours, label = nearest_rows(new, fitted, k, algorithm, tuning), self.parts_
        part = label[neighbours[:, 0]]
        for p in np.unique(part[(label[neighbours] != part[:, None]).any(axis=1)]):
            here, mixed = np.flatnonzero(label == p), np.flatnonzero(part == p)
            neighbours[mixed] = here[nearest_rows(new[mixed], fitted[here], k, algorithm, tuning)]
        return neighbours

    def _check_places(self) -> None:
        """Refuse neighbours, from a file, that are no fitted rows."""
        n, neighbours = len(self.X_fit_), np.asarray(self.neighbors_)
        if neighbours.dtype.kind not in "iu" or neighbours.ndim != 2 or len(neighbours) != n:
            raise ValueError("neighbours that are no numbers of rows")
        if len(self.embedding_) != n or ((neighbours < 0) | (neighbours >= n)).any():
            raise ValueError("neighbours that are not there")

    def objective(self, X: Any, y: Any = None, sample_weight: Any = None) -> Objective:
        """The sum of squared errors with which the fitted rows' coordinates are rebuilt."""
        rows = _dense_rows(self._rows(X))
        if rows.shape != self.X_fit_.shape or (rows != self.X_fit_).any():
            raise DataError(
                got="rows other than those it was fitted on", wanted="the fitted rows: it embeds only these"
            )
        F = self._local_systems(scale_rows(rows), self.neighbors_).F
        total = float(((F @ self.embedding_) ** 2).sum())
        return Objective(total, total, 0.0)

    @property
    def parts_(self) -> Array:
        """The part of the neighbour graph (n,) that each fitted row belongs to."""
        check_is_fitted(self)
        return connected_parts(self.neighbors_)

    @property
    def nbrs_(self) -> NearestNeighbors:
        """scikit-learn's search among the fitted rows, for code that asks it; nothing here depends on it."""
        check_is_fitted(self)
        exact = self.neighbors_algorithm in ("kd_tree", "ball_tree", "brute")
        search = NearestNeighbors(
            n_neighbors=self.n_neighbors, algorithm=self.neighbors_algorithm if exact else "auto"
        )
        return search.fit(self.X_fit_)

    @property
    def _n_features_out(self) -> int:
        check_is_fitted(self)
        return self.embedding_.shape[1]


def _dense_rows(rows: Rows) -> Array:
    X: Any = rows.load().X
    return X.toarray() if issparse(X) else X


class ConnectedPart(NamedTuple):
    """A part of the neighbour graph, with its own local errors."""

    rows: Array  # (m,) row numbers
    share: float  # of all rows
    F: Any  # (q, m) CSR, the errors of its rows in terms of its rows
    X: Array  # (m, d)
    neighbours: Array  # (m, k) in the part's own numbers
    errors: LocalErrors


def _split_into_parts(systems: LocalSystems, X: Array, neighbours: Array) -> list[ConnectedPart]:
    """Take the local systems apart by connected parts: F is block-diagonal."""
    label = connected_parts(neighbours)
    n = len(label)
    if not label.any():
        return [ConnectedPart(np.arange(n), 1.0, systems.F, X, neighbours, systems.errors)]
    parts, place = [], np.empty(n, int)
    for p in range(int(label.max()) + 1):
        rows = np.flatnonzero(label == p)
        place[rows] = np.arange(len(rows))
        F = systems.F[label[systems.owner] == p][:, rows]
        errors = systems.errors.at(rows)
        parts.append(ConnectedPart(rows, len(rows) / n, F, X[rows], place[neighbours[rows]], errors))
    return parts


def _measure(Y: Array, part: ConnectedPart, found: SmallestEigenvectors, tol: float) -> certificates.PartNumbers:
    """Measure the orthonormal coordinates Y (m, k) of a part for its certificate."""
    F, m = part.F, len(Y)
    Q = np.linalg.qr(np.column_stack([np.ones(m), Y, found.spare])[:, : found.inside + 1])[0]
    FQ, FY = F @ Q, F @ Y
    theta = FQ.T @ FQ
    values = (FY**2).sum(axis=0)
    return certificates.PartNumbers(
        share=part.share,
        values=values,
        residuals=np.linalg.norm(F.T @ FY - Y * values, axis=0),
        theta=np.linalg.eigvalsh(theta),
        leak=float(np.linalg.norm(F.T @ FQ - Q @ theta)),
        constant=float((F.sum(axis=1) ** 2).sum()) / m,
        tau=found.tau,
        below=found.below,
        rounding=found.rounding,
        **found.sizes,
        moved=part.errors.moved(
            Y, part.neighbours, partial(unit_grams, part.X, part.neighbours), certificates.allowed_move(values, tol)
        ),
        shaken=part.errors.norm(part.neighbours),
        **certificates.offsets_of(Y),
    )


def _attributes_so_far(part: ConnectedPart, k: int, known: Attributes, at: KrylovBasis) -> Attributes:
    """The embedding as it would be if the loop ended here; rows of parts that come later are still at 0."""
    pairs = smallest_ritz_pairs(part.F, at.V, k)
    Y = known["embedding_"].copy()
    Y[part.rows] = pairs.vectors * (column_signs(pairs.vectors) * np.sqrt(part.share))
    error = known["reconstruction_error_"] + part.share * float(pairs.values.sum())
    return {**known, "embedding_": Y, "reconstruction_error_": error}
