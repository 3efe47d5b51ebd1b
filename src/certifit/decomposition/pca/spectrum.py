"""The principal axes of weighted rows: which matrix to decompose, and how.

The matrix is the covariance S (d, d), the Gram matrix of the centred rows (n, n) where there are fewer rows than
columns, or S as an operator where neither can be held. Any of them goes to LAPACK, ARPACK, randomised block Krylov or
the power method. The most accurate way squares nothing: triangular (QR) factors of the rows, merged over blocks.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.linalg import LinAlgError, eigh, qr, svd
from scipy.sparse.linalg import ArpackNoConvergence, eigsh

from certifit.numerics.covariance import CentredRows, Covariance, centre
from certifit.numerics.krylov import block_krylov, power
from certifit.numerics.matrix import signed as signs
from certifit.numerics.moments import Scatter, check_overflow, scatter, triangle
from certifit.rows import Array, Rows

DROWNED = 1e-10  # variance relative to the largest below which the covariance's rounding shows
DEPTH = 8  # products of the randomised solver, where each is a pass over the rows
WIDE = 4096  # rows and columns beyond which neither S nor the Gram matrix is formed


@dataclass(frozen=True)
class Spectrum:
    """The principal axes of weighted, centred rows."""

    count: int  # rows with w > 0
    weight: float  # Σ w
    mean: Array  # (d,)
    values: Array  # (m,) variances Σ w (v·(x - mean))² / Σ w, descending; exactly 0 where rounding is all there is
    vectors: Array  # (m, d)
    total: float  # sum of all variances
    S: Array | None = None  # (d, d) covariance (divided by Σ w), where it was formed


class Ask(NamedTuple):
    """What is wanted of a decomposition."""

    k: int  # leading axes
    tol: float = 0.0  # variance that may be given away, relative to the total
    seed: int = 0  # of a random start
    centred: bool = True

    @property
    def rng(self) -> np.random.Generator:
        return np.random.default_rng(self.seed)


# ------------------------------------------------------------------------------------------- eigenvectors
Eigen = Callable[[Any, Ask], tuple[Array, Array]]  # matrix, what -> values descending, vectors in columns


def _lapack(A: Array, ask: Ask) -> tuple[Array, Array]:
    """The k + 1 leading pairs; all of them where that is as quick."""
    d = len(A)
    if ask.k < d // 3:
        with suppress(LinAlgError):  # LAPACK's selective driver can fail where eigenvalues coincide
            values, vectors = eigh(A, subset_by_index=[d - ask.k - 1, d - 1], driver="evr")
            return values[::-1], vectors[:, ::-1]
    values, vectors = eigh(A, driver="evd")
    return values[::-1], vectors[:, ::-1]


def _arpack(A: Any, ask: Ask) -> tuple[Array, Array]:
    """Restarted Lanczos."""
    start = ask.rng.normal(size=A.shape[0])
    try:
        values, vectors = eigsh(A, ask.k, which="LA", v0=start, tol=_residual(A, ask))
    except ArpackNoConvergence as error:  # what converged is no answer; the others go further
        raise LinAlgError("ARPACK found too few eigenvectors; choose another svd_solver") from error
    return values[::-1], vectors[:, ::-1]


def _randomised(A: Any, ask: Ask) -> tuple[Array, Array]:
    depth = DEPTH if isinstance(A, Covariance) else 8 * DEPTH
    found = block_krylov(A, ask.k, rng=ask.rng, depth=depth, tol=_residual(A, ask))
    return found.values, found.vectors


def _power(A: Any, ask: Ask) -> tuple[Array, Array]:
    found, _ = power(A, ask.k, rng=ask.rng, tol=_residual(A, ask))
    return found.values, found.vectors


def _residual(A: Any, ask: Ask) -> float:
    """How small residuals must be: r leaves about r² of the variance; products with a matrix at hand are cheap."""
    return float(np.sqrt(ask.tol) / 10) if isinstance(A, Covariance) else ask.tol


ITERATIVE: dict[str, Eigen] = {"arpack": _arpack, "randomized": _randomised, "power": _power}
SOLVERS = ("auto", "full", "covariance_eigh", "gram", *ITERATIVE)


# -------------------------------------------------------------------------------------------- the matrix
def decompose(rows: Rows, solver: str, ask: Ask) -> Spectrum:
    """The k leading principal axes (and one more value, where it is free)."""
    n, d = rows.n_rows, rows.n_features
    solver = _choose(rows, ask) if solver == "auto" else solver
    if solver == "full":
        return _accurate(rows, ask)
    few = 0 < ask.k < min(n, d) // 3
    eigen = ITERATIVE[solver] if solver in ITERATIVE and few else _lapack
    if eigen is not _lapack and min(n, d) > WIDE:
        return _implicit(rows, eigen, ask)
    if solver == "gram" or (n < d and solver != "covariance_eigh"):
        return _gram(rows, eigen, ask)
    return _covariance(rows, eigen, ask)


def _choose(rows: Rows, ask: Ask) -> str:
    """The cheapest way that gives the exact answer; beyond `WIDE` one that gives it to the tolerance."""
    n, d = rows.n_rows, rows.n_features
    thin = sparse.issparse(getattr(rows, "X", None))
    if min(n, d) > WIDE and ask.k < min(n, d) // 3:
        return "arpack" if thin else "randomized"  # a dense pass costs one vector nearly as much as sixty
    if n < d:
        return "gram" if thin else "full"
    return "covariance_eigh"


def _covariance(rows: Rows, eigen: Eigen, ask: Ask) -> Spectrum:
    s = scatter(rows, ask.centred)
    found = from_scatter(s, ask, eigen)
    if _drowned(found.values, min(ask.k, int((np.diag(s.S) > 0).sum()))):
        return _from_factor(s.count, s.weight, s.mean, triangle(rows, s.mean))
    return found


def from_scatter(s: Scatter, ask: Ask, eigen: Eigen = _lapack) -> Spectrum:
    """From the sums alone, where directions of very little variance cannot be told from rounding."""
    S = s.S / s.weight
    values, vectors = eigen(S, ask)
    values = values.copy()
    values[int((np.diag(S) > 0).sum()) :] = 0.0  # constant columns
    values[values <= 4 * len(S) * np.finfo(float).eps * values[0]] = 0.0
    return Spectrum(s.count, s.weight, s.mean, values, signed(vectors.T), float(np.trace(S)), S)


def _gram(rows: Rows, eigen: Eigen, ask: Ask) -> Spectrum:
    """From G = Z Zᵀ (n, n), Z the centred, weighted rows: where G u = λ u, Zᵀu points along the axis."""
    data = rows.load()
    about = centre(data, ask.centred)
    Z = CentredRows(data, about)
    G = check_overflow(Z.gram())
    values, vectors = eigen(G, ask)
    rank = about.count - ask.centred
    values = np.maximum(values, 0.0)
    values[rank:] = 0.0
    if _drowned(values, min(ask.k, rank)):
        return _from_factor(about.count, about.weight, about.mean, Z.dense())
    Q, _ = qr(Z.adjoint(vectors[:, values > 0]), mode="economic")
    _, sigma, turn = svd(Z.times(Q), full_matrices=False)  # orthonormal also where an iterative solver left residuals
    return Spectrum(about.count, about.weight, about.mean, sigma**2 / about.weight, signed(turn @ Q.T), about.total)


def _implicit(rows: Rows, eigen: Eigen, ask: Ask) -> Spectrum:
    """From products with S alone, each a pass over the rows."""
    about = centre(rows, ask.centred)
    values, vectors = eigen(Covariance(rows, about), ask)
    return Spectrum(about.count, about.weight, about.mean, np.maximum(values, 0.0), signed(vectors.T), about.total)


def _accurate(rows: Rows, ask: Ask) -> Spectrum:
    """From the rows or their triangular factor: accurate relative to the largest deviation, not the variance."""
    if rows.n_rows < rows.n_features:
        data = rows.load()
        about = centre(data, ask.centred)
        return _from_factor(about.count, about.weight, about.mean, CentredRows(data, about).dense())
    s = scatter(rows, ask.centred)
    return _from_factor(s.count, s.weight, s.mean, triangle(rows, s.mean))


def _from_factor(count: int, weight: float, mean: Array, R: Array) -> Spectrum:
    """From R with RᵀR the scatter."""
    _, sigma, vectors = svd(R, full_matrices=False)
    sigma[sigma <= 4 * max(R.shape) * np.finfo(float).eps * sigma[0]] = 0.0
    with np.errstate(over="ignore"):
        values = check_overflow(sigma**2) / weight
    return Spectrum(count, weight, mean, values, signed(vectors), float(values.sum()))


def _drowned(values: Array, k: int) -> bool:
    return bool((values[:k] < DROWNED * values[0]).any())


def complete(values: Array, vectors: Array, k: int) -> tuple[Array, Array]:
    """The k leading axes; where fewer have variance, the rest is a basis that depends on the space they span alone.

    Columns of the projector on what is left are orthonormalised in order, so that rounding does not choose.
    """
    r = min(k, int((values > 0).sum()))
    basis = vectors[:r]
    rest: list[Array] = []
    for column in np.eye(vectors.shape[1]) if k > r else ():
        if len(rest) == k - r:
            break
        for _ in range(2):  # twice is enough for orthogonality to rounding
            for known in (basis, np.array(rest).reshape(-1, len(column))):
                column = column - known.T @ (known @ column)
        length = np.linalg.norm(column)
        if length > 1e-3:
            rest.append(column / length)
    extra = signed(np.array(rest).reshape(-1, vectors.shape[1]))
    return np.append(values[:r], np.zeros(k - r)), np.concatenate([basis, extra])


def signed(vectors: Array) -> Array:
    """Rows with the first of each one's largest entries positive."""
    return vectors * signs(vectors.T)[:, None]
