"""The principal axes of weighted rows: which matrix is decomposed, and by which method.

| solver | what it decomposes | when 'auto' takes it |
|---|---|---|
| 'covariance_eigh' | the covariance S (d, d), by LAPACK | at least as many rows as columns |
| 'full' | the rows or their triangular (QR) factor; squares nothing, the most accurate | fewer rows, dense |
| 'gram' | the Gram matrix of the centred rows (n, n), by LAPACK | fewer rows than columns, sparse |
| 'arpack' | by restarted Lanczos; see below | sparse, more than 4096 rows and columns, few axes |
| 'randomized' | by randomised block Krylov iteration; see below | the same, dense |
| 'power' | by power iteration and deflation; see below | never |

The last three decompose S or the Gram matrix, whichever is smaller, or beyond 4096 rows and columns S as an operator:
each product is then a pass over the rows. S and the Gram matrix are squares, so that variances below 1e-10 of the
largest are rounding in them; where such variances are asked for, 'full' is used instead.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.linalg import LinAlgError, eigh, qr, svd
from scipy.sparse.linalg import ArpackError, eigsh

from certifit.numerics.covariance import CentredRows, Covariance, column_moments
from certifit.numerics.krylov import block_krylov, power
from certifit.numerics.matrix import column_signs
from certifit.numerics.moments import MeanAndScatter, check_overflow, scatter, triangle
from certifit.rows import Array, Rows


@dataclass(frozen=True)
class PCATuning:
    """Numbers that steer how principal axes are found, never what they are."""

    largest_order: int = 4096  # rows and columns beyond which neither S nor the Gram matrix is formed
    krylov_depth: int = 8  # most products of block Krylov iteration where each is a pass; else 8 times as many
    rounding_share: float = 1e-10  # of the largest variance, below which variances from squares are rounding
    single_share: float = 1e-2  # of all variance, below which float32 squares have too few digits for what is asked


class AxesWanted(NamedTuple):
    """The principal axes that are asked for."""

    k: int  # number of leading axes
    tol: float = 0.0  # of the variance left out, that other axes may capture beyond these
    seed: int = 0  # of a random start
    centred: bool = True  # whether rows are centred at their mean; else at zero
    double: bool = False  # whether squares of float32 rows are summed in float64, whatever they are
    tuning: PCATuning = PCATuning()

    @property
    def rng(self) -> np.random.Generator:
        return np.random.default_rng(self.seed)


@dataclass(frozen=True)
class PrincipalAxes:
    """The principal axes of weighted, centred rows."""

    count: int  # rows with w > 0
    weight: float  # Σ w
    mean: Array  # (d,)
    values: Array  # (m,) variances Σ w (v·(x - mean))² / Σ w, descending; exactly 0 below rounding
    vectors: Array  # (m, d)
    total: float  # sum of all variances
    S: Array | None = None  # (d, d) covariance (divided by Σ w), where it was formed


# ------------------------------------------------------------------------------------------- eigenvectors
EigenSolver = Callable[[Any, AxesWanted], tuple[Array, Array]]  # values descending, vectors in columns


def _lapack(A: Array, wanted: AxesWanted) -> tuple[Array, Array]:
    """Return the k + 1 leading pairs, or all of them where that is as fast."""
    d = len(A)
    if wanted.k < d // 3:
        # LAPACK's selective driver can fail where eigenvalues coincide.
        with suppress(LinAlgError):
            values, vectors = eigh(A, subset_by_index=[d - wanted.k - 1, d - 1], driver="evr")
            return values[::-1], vectors[:, ::-1]
    values, vectors = eigh(A, driver="evd")
    return values[::-1], vectors[:, ::-1]


def _arpack(A: Any, wanted: AxesWanted) -> tuple[Array, Array]:
    start = wanted.rng.normal(size=A.shape[0])
    if isinstance(A, np.ndarray) and not A.any():
        # ARPACK refuses a matrix of zeros.
        return np.zeros(wanted.k), np.eye(len(A))[:, : wanted.k]
    try:
        values, vectors = eigsh(A, wanted.k, which="LA", v0=start, tol=_residual_allowed(A, wanted))
    except ArpackError as error:
        # Too few eigenvectors are of no use; other solvers find them all.
        raise LinAlgError("ARPACK found too few eigenvectors; choose another svd_solver") from error
    return values[::-1], vectors[:, ::-1]


def _randomised(A: Any, wanted: AxesWanted) -> tuple[Array, Array]:
    depth = wanted.tuning.krylov_depth * (1 if isinstance(A, Covariance) else 8)
    found = block_krylov(A, wanted.k, rng=wanted.rng, depth=depth, tol=_residual_allowed(A, wanted))
    return found.values, found.vectors


def _power(A: Any, wanted: AxesWanted) -> tuple[Array, Array]:
    found, _ = power(A, wanted.k, rng=wanted.rng, tol=_residual_allowed(A, wanted))
    return found.values, found.vectors


def _residual_allowed(A: Any, wanted: AxesWanted) -> float:
    """Return how large residuals may be: with a residual r, about r² of the variance is missed.

    Products with a matrix in memory are cheap, so that there the residual itself must be within the tolerance.
    """
    return float(np.sqrt(wanted.tol) / 10) if isinstance(A, Covariance) else wanted.tol


ITERATIVE: dict[str, EigenSolver] = {"arpack": _arpack, "randomized": _randomised, "power": _power}
SOLVERS = ("auto", "full", "covariance_eigh", "gram", *ITERATIVE)


# -------------------------------------------------------------------------------------------- the matrix
def decompose(rows: Rows, solver: str, wanted: AxesWanted) -> PrincipalAxes:
    """Return the k leading principal axes, and one more where it costs nothing."""
    n, d = rows.n_rows, rows.n_features
    solver = _choose_solver(rows, wanted) if solver == "auto" else solver
    if solver == "full":
        return _from_rows(rows, wanted)
    few = 0 < wanted.k < min(n, d) // 3
    eigen = ITERATIVE[solver] if solver in ITERATIVE and few else _lapack
    if eigen is not _lapack and min(n, d) > wanted.tuning.largest_order:
        return _from_operator(rows, eigen, wanted)
    if solver == "gram" or (n < d and solver != "covariance_eigh"):
        return _from_gram(rows, eigen, wanted)
    return _from_covariance(rows, eigen, wanted)


def _choose_solver(rows: Rows, wanted: AxesWanted) -> str:
    """Return the fastest solver that is exact; for very large tables, one that is accurate to the tolerance."""
    n, d = rows.n_rows, rows.n_features
    is_sparse = sparse.issparse(getattr(rows, "X", None))
    if min(n, d) > wanted.tuning.largest_order and wanted.k < min(n, d) // 3:
        # A pass over dense rows takes nearly as long for one vector as for sixty.
        return "arpack" if is_sparse else "randomized"
    if n < d:
        return "gram" if is_sparse else "full"
    return "covariance_eigh"


def _from_covariance(rows: Rows, eigen: EigenSolver, wanted: AxesWanted) -> PrincipalAxes:
    s = scatter(rows, wanted.centred, wanted.double)
    found = axes_from_scatter(s, wanted, eigen)
    if rows.dtype != np.float64 and not wanted.double and _is_faint(found, wanted):
        s = scatter(rows, wanted.centred, double=True)
        found = axes_from_scatter(s, wanted, eigen)
    if _is_rounding(found.values, min(wanted.k, int((np.diag(s.S) > 0).sum())), wanted.tuning):
        return _from_factor(s.count, s.weight, s.mean, triangle(rows, s.mean))
    return found


def axes_from_scatter(s: MeanAndScatter, wanted: AxesWanted, eigen: EigenSolver = _lapack) -> PrincipalAxes:
    """Return the axes from the scatter alone; variances below rounding are set to 0."""
    S = s.S / s.weight
    values, vectors = eigen(S, wanted)
    values = values.copy()
    # Constant columns have no variance; what LAPACK finds there is rounding.
    values[int((np.diag(S) > 0).sum()) :] = 0.0
    values[values <= 4 * len(S) * np.finfo(float).eps * values[0]] = 0.0
    return PrincipalAxes(s.count, s.weight, s.mean, values, fix_signs(vectors.T), float(np.trace(S)), S)


def _from_gram(rows: Rows, eigen: EigenSolver, wanted: AxesWanted) -> PrincipalAxes:
    """Return the axes from G = Z Zᵀ (n, n), Z the centred, weighted rows: if G u = λ u, Zᵀu points along an axis."""
    data = rows.load()
    columns = column_moments(data, wanted.centred)
    Z = CentredRows(data, columns)
    G = check_overflow(Z.gram())
    values, vectors = eigen(G, wanted)
    rank = columns.count - wanted.centred
    values = np.maximum(values, 0.0)
    values[rank:] = 0.0
    if _is_rounding(values, min(wanted.k, rank), wanted.tuning):
        return _from_factor(columns.count, columns.weight, columns.mean, Z.dense())
    Q, _ = qr(Z.adjoint(vectors[:, values > 0]), mode="economic")
    # A second decomposition makes the axes orthonormal where an iterative solver left residuals.
    _, sigma, turn = svd(Z.times(Q), full_matrices=False)
    values, axes = sigma**2 / columns.weight, fix_signs(turn @ Q.T)
    return PrincipalAxes(columns.count, columns.weight, columns.mean, values, axes, columns.total)


def _from_operator(rows: Rows, eigen: EigenSolver, wanted: AxesWanted) -> PrincipalAxes:
    """Return the axes from products with S, each of which is a pass over the rows."""
    columns = column_moments(rows, wanted.centred)
    values, vectors = eigen(Covariance(rows, columns), wanted)
    values, axes = np.maximum(values, 0.0), fix_signs(vectors.T)
    return PrincipalAxes(columns.count, columns.weight, columns.mean, values, axes, columns.total)


def _from_rows(rows: Rows, wanted: AxesWanted) -> PrincipalAxes:
    """Return the axes from the rows or their triangular factor.

    Errors are eps times the largest standard deviation; from S, they are eps times the largest variance.
    """
    if rows.n_rows < rows.n_features:
        data = rows.load()
        columns = column_moments(data, wanted.centred)
        return _from_factor(columns.count, columns.weight, columns.mean, CentredRows(data, columns).dense())
    s = scatter(rows, wanted.centred)
    return _from_factor(s.count, s.weight, s.mean, triangle(rows, s.mean))


def _from_factor(count: int, weight: float, mean: Array, R: Array) -> PrincipalAxes:
    """Return the axes from any matrix R for which RᵀR is the scatter."""
    _, sigma, vectors = svd(R, full_matrices=False)
    sigma[sigma <= 4 * max(R.shape) * np.finfo(float).eps * sigma[0]] = 0.0
    with np.errstate(over="ignore"):
        values = check_overflow(sigma**2) / weight
    return PrincipalAxes(count, weight, mean, values, fix_signs(vectors), float(values.sum()))


def _is_faint(axes: PrincipalAxes, wanted: AxesWanted) -> bool:
    """Say whether a variance that is kept, or what is left out, is small compared with all."""
    kept = axes.values[: wanted.k]
    left = axes.total - float(kept.sum())
    return min(float(kept.min(initial=np.inf)), left) < wanted.tuning.single_share * axes.total


def _is_rounding(values: Array, k: int, tuning: PCATuning) -> bool:
    """Say whether one of the k largest variances is so small that it is rounding of the squares."""
    return bool((values[:k] < tuning.rounding_share * values[0]).any())


def complete(values: Array, vectors: Array, k: int) -> tuple[Array, Array]:
    """Return k axes and their variances; where fewer have variance, add axes orthogonal to them.

    These are unit vectors, orthonormalised in order against all others: they depend on the span of the given axes
    alone, and not on rounding.
    """
    r = min(k, int((values > 0).sum()))
    basis = vectors[:r]
    if r == k:
        return values[:k].copy(), basis.copy()
    added: list[Array] = []
    # Unit vectors that lie within the span are not tried: what is left of them is rounding.
    open_columns = np.square(basis).sum(axis=0) < 1 - 1e-7
    for column in np.eye(vectors.shape[1])[open_columns]:
        if len(added) == k - r:
            break
        # Projecting twice makes them orthogonal to rounding.
        for _ in range(2):
            for known in (basis, np.array(added).reshape(-1, len(column))):
                column = column - known.T @ (known @ column)
        length = np.linalg.norm(column)
        if length > 1e-3:
            added.append(column / length)
    extra = fix_signs(np.array(added).reshape(-1, vectors.shape[1]))
    return np.append(values[:r], np.zeros(k - r)), np.concatenate([basis, extra])


def most_components(count: int, weight: float, d: int) -> int:
    """Return the most components there can be: as many as columns or rows, where weight 2 makes two rows."""
    return min(d, max(int(weight), count))


def fix_signs(vectors: Array) -> Array:
    """Return the rows, each with the sign that makes the first of its largest entries positive."""
    return vectors * column_signs(vectors.T)[:, None]
