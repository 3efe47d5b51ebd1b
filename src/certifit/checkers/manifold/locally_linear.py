"""Locally linear embedding re-checked from the data: neighbours, weights, coordinates, and that none are smoother.

With D the differences of a row's neighbours to it in the embedding Y, the objective is Σ tr(DᵀBD) = tr(YᵀMY), each B
(k, k) from the row's own weights. M - τ I is factored; its negative pivots count the eigenvalues of M below τ. Where
there are as many as columns in Q (orthonormal, the constant vector and Y among them), with Θ = QᵀMQ, C = MQ - QΘ,

    λ_j >= θ_j - |C|² / (μ - θ_j),     μ = τ - |C|² / (τ - θ_max),

since the Schur complement of Θ - τ I in M - τ I then has no negative eigenvalue (Haynsworth 1968).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh, splu

from certifit.checkers.plain.blocks import dense
from certifit.core import Certificate, Check
from certifit.exceptions import DataError
from certifit.rows import Array, Block, Rows

EPS = float(np.finfo(float).eps)


@dataclass(frozen=True)
class EmbeddingCheckTuning:
    """How much work the checker does."""

    most_vectors: int = 40  # eigenvalues below τ up to which their eigenvectors are computed for a better bound
    distances: int = 2**23  # held at a time


class EmbeddingSpec(NamedTuple):
    """The problem that was solved."""

    modified: bool
    reg: float
    small: float = 1e-12  # modified: length below which a reflection is the identity
    approximate: bool = False  # neighbours may be others than the nearest
    inclusive: bool = True  # modified: a share equal to the median of all rows counts as small


@dataclass(frozen=True)
class EmbeddingNumbers:
    """What the checks and the bound are made of."""

    objective: float  # tr YᵀMY of Y as it is
    values: Array  # (k,) diag YᵀMY
    residuals: Array  # (k,) |M y - value y|
    theta: Array  # (q,) eigenvalues of QᵀMQ, ascending
    leak: float  # |C|_F
    constant: float  # 1ᵀM1 / n
    tau: float
    below: int  # eigenvalues of M below τ
    rounding: float  # by which τ may be off
    size: float  # largest diagonal entry of M
    local: float  # largest residual of the local systems, relative
    parts: int  # of the neighbour graph
    # share of rows with a nearer row that is not their neighbour; None where the checker did not search
    further: float | None = None


class ClaimedEmbedding(NamedTuple):
    """An embedding as its model states it."""

    Y: Array  # (n, k) coordinates
    error: float  # sum of squared local errors
    neighbours: Array  # (n, size) row numbers


def certify(
    claimed: ClaimedEmbedding,
    spec: EmbeddingSpec,
    tol: float,
    rows: Rows,
    tuning: EmbeddingCheckTuning = EmbeddingCheckTuning(),
) -> Certificate:
    """Check the coordinates, their error and the neighbours on these rows."""
    Y, error, neighbours = claimed
    # measured from the first row, so that an offset common to all does not cost digits
    X = rows.map(partial(_rows_from, dense(next(iter(rows)).X[:1])))
    X = X - X.mean(axis=0)
    X = X / (np.abs(X).max() or 1.0)
    n, k = Y.shape
    if len(X) != n:
        raise DataError(got=f"an embedding of {n} rows and a table of {len(X)}", wanted="the rows it was fitted on")
    if neighbours.shape[0] != n or neighbours.min() < 0 or neighbours.max() >= n:
        raise DataError(got=f"neighbours {neighbours.shape} of {n} rows", wanted="row numbers for each row")
    B, local = local_forms(X, neighbours, k, spec)
    M = assemble_matrix(B, neighbours)
    form = partial(_inner_products, B, neighbours)
    values = np.diag(form(Y))
    theta, leak = _ritz_values(M, form, np.column_stack([np.ones(n), Y]))
    counted = _count_below(M, 1.02 * float(theta[-1]) + 8 * EPS * float(M.diagonal().max()))
    found = EmbeddingNumbers(
        objective=float(values.sum()),
        values=values,
        residuals=np.linalg.norm(M @ Y - Y * values, axis=0),
        theta=theta,
        leak=leak,
        constant=0.0,  # differences of a constant vector are 0
        tau=counted.tau,
        below=counted.below,
        rounding=counted.rounding,
        size=float(M.diagonal().max()),
        local=local,
        further=_share_with_nearer_rows(X, neighbours, float(np.finfo(rows.dtype).eps), tuning.distances),
        parts=_count_parts(neighbours),
    )
    most = min(tuning.most_vectors, n - 2)
    if found.objective - lower_bound(found, k) > tol * found.objective and k < counted.below <= most:
        # Where Y is not what it should be, or other eigenvalues are close, a better basis than Y proves more.
        with suppress(ArpackNoConvergence):
            theta, leak = _ritz_values(M, form, counted.vectors(M))
            found = replace(found, theta=theta, leak=leak)
    return assemble(found, Y, error, tol, spec)


def _inner_products(B: Array, neighbours: Array, Q: Array) -> Array:
    """QᵀMQ from differences, which keep the digits that products with M lose where M Q is small."""
    D = Q[neighbours] - Q[:, None]
    return np.einsum("iac,iae->ce", D, B @ D)


def _ritz_values(M: Any, form: Callable[[Array], Array], basis: Array) -> tuple[Array, float]:
    """Eigenvalues of QᵀMQ, ascending, and |C|_F, for an orthonormal Q with the span of the basis (n, q)."""
    Q = np.linalg.qr(basis)[0]
    inner = form(Q)
    return np.linalg.eigvalsh((inner + inner.T) / 2), float(np.linalg.norm(M @ Q - Q @ inner))


def assemble(m: EmbeddingNumbers, Y: Array, error: float, tol: float, spec: EmbeddingSpec) -> Certificate:
    """Make the certificate of coordinates Y (n, k) from measured numbers.

    The rounding allowed for in Y is that of the type it comes in.
    """
    n, k = Y.shape
    fine = 64 * float(np.finfo(Y.dtype).eps)
    Y = np.asarray(Y, np.float64)
    rounding = 8 * EPS * m.size
    loose = max(tol, fine)
    limit = loose * m.objective + k * rounding
    smooth = np.sqrt(loose) * float(m.values.max()) + fine * m.size
    checks = [
        Check("columns orthonormal to", float(np.abs(Y.T @ Y - np.eye(k)).max()), max(1e-9, fine)),
        Check("columns' mean, relative", float(np.abs(Y.mean(axis=0)).max() * np.sqrt(n)), max(loose, 1e-9)),
        Check("eigenvector residuals", float(m.residuals.max()), smooth),
        Check(
            "columns out of order: error falls by", float(np.maximum(-np.diff(m.values), 0.0).max(initial=0.0)), limit
        ),
        Check("reconstruction error off by", abs(error - m.objective), limit),
        Check("local systems solved to", m.local, 1e-9),
        Check("parts of the neighbour graph", float(m.parts), 1.0),
    ]
    facts: dict[str, float | str] = {"eigenvalues below": f"{m.below} below {m.tau:.4g}"}
    if spec.approximate:
        facts["neighbours"] = "approximate or joined: the claim is for these, which need not be the nearest"
    bound = max(0.0, lower_bound(m, k) - k * rounding)
    if m.further is not None and not spec.approximate:
        checks.append(Check("share of rows with a nearer row left out", m.further, 0.0))
        bound = 0.0 if m.further > 0 else bound  # other neighbours make another problem
    claim = (
        "sum of squared local errors of the coordinates within gap of the smallest that orthonormal, centred ones "
        "reach"
    )
    return Certificate("optimal", claim, m.objective, bound, tol, limit, tuple(checks), facts)


def lower_bound(m: EmbeddingNumbers, k: int) -> float:
    """A lower bound on the objective of any k orthonormal columns that are orthogonal to the constant vector."""
    tau = m.tau - m.rounding
    room = tau - m.theta[-1]
    if m.below == len(m.theta) and room > 0:
        rest = tau - m.leak**2 / room - m.theta[: k + 1]
        if rest[-1] > 0:
            return float((m.theta[: k + 1] - m.leak**2 / rest).sum()) - m.constant
    return max(0, k + 1 - m.below) * max(0.0, tau) - m.constant


def _rows_from(origin: Array, block: Block) -> Array:
    return dense(block.X) - origin


def local_forms(X: Array, neighbours: Array, k: int, spec: EmbeddingSpec) -> tuple[Array, float]:
    """Solve the local systems row by row: B (n, size, size) of every row, and the largest residual."""
    n, size = neighbours.shape
    weights, residual = np.empty((n, size)), 0.0
    grams = np.empty((n, size, size))
    for i, near in enumerate(neighbours):
        Z = X[near] - X[i]
        G = Z @ Z.T
        trace = np.trace(G)
        grams[i] = G / trace if trace > 0 else np.eye(size) / size
        A = grams[i] + spec.reg * np.eye(size)
        v = np.linalg.solve(A, np.ones(size))
        residual = max(residual, float(np.abs(A @ v - 1).max() / np.abs(v).sum()))
        weights[i] = v / v.sum()
    if not spec.modified:
        return weights[:, :, None] * weights[:, None, :], residual
    return _modified_forms(weights, grams, min(size, X.shape[1]), k, spec), residual


def _modified_forms(weights: Array, grams: Array, rank: int, k: int, spec: EmbeddingSpec) -> Array:
    """B (n, size, size) of the modified method.

    Zhang & Wang's weights W = V H + (1 - α) v 1ᵀ enter as W Wᵀ only, which depends on V by its projector VVᵀ alone:
    H Vᵀ1 = α 1 gives V H 1 = VVᵀ1 / α.
    """
    size = weights.shape[1]
    values, vectors = np.linalg.eigh(grams)
    values = values[:, ::-1][:, :rank]
    values = np.where(values > 16 * EPS * size, values, 0.0)  # smaller ones are rounding
    shares = [values[:, j:].sum(axis=1) / values[:, :j].sum(axis=1) for j in range(1, rank)]
    eta = np.median(shares[k - 1]) if k < rank else 0.0
    eta *= 1 + (1e-10 if spec.inclusive else -1e-10)
    B = np.empty_like(grams)
    for i, v in enumerate(weights):
        flat = max(1, sum(share[i] <= eta for share in shares) + size - rank)
        V = vectors[i][:, :flat]
        ones = V.sum(axis=0)
        alpha = np.linalg.norm(ones) / np.sqrt(flat)
        p = V @ ones / alpha if np.linalg.norm(alpha - ones) >= spec.small else V.sum(axis=1)
        B[i] = V @ V.T + (1 - alpha) * (np.outer(p, v) + np.outer(v, p)) + (1 - alpha) ** 2 * flat * np.outer(v, v)
    return B


def assemble_matrix(B: Array, neighbours: Array) -> Any:
    """M (n, n) in CSC with yᵀMy = Σ dᵀBd, d the differences of a row's neighbours to it."""
    n, size = neighbours.shape
    own = np.arange(n)[:, None]
    every = np.concatenate([own, neighbours], axis=1)
    to_own = -B.sum(axis=1)
    full = np.empty((n, size + 1, size + 1))
    full[:, 1:, 1:], full[:, 0, 1:], full[:, 1:, 0], full[:, 0, 0] = B, to_own, to_own, -to_own.sum(axis=1)
    i, j = np.repeat(every, size + 1, axis=1), np.tile(every, (1, size + 1))
    return sparse.csc_array((full.ravel(), (i.ravel(), j.ravel())), shape=(n, n))


@dataclass(frozen=True)
class EigenvalueCount:
    """How many eigenvalues of M lie below τ, by how much τ may be off, and the factors of M - τ I."""

    tau: float
    below: int
    rounding: float
    lu: Any

    def vectors(self, M: Any) -> Array:
        """The eigenvectors (n, below) of those eigenvalues, which are the negative ones of (M - τ I)⁻¹."""
        n = M.shape[0]
        inverse = LinearOperator((n, n), matvec=self.lu.solve, dtype=np.float64)
        start = np.random.default_rng(0).normal(size=n)
        return eigsh(M, self.below, sigma=self.tau, which="SA", OPinv=inverse, v0=start)[1]


def _count_below(M: Any, tau: float) -> EigenvalueCount:
    """Count the eigenvalues of M (n, n) below τ by the negative pivots of M - τ I (Sylvester's law of inertia)."""
    n = M.shape[0]
    try:
        lu = splu(
            (M - tau * sparse.eye_array(n)).tocsc(),
            permc_spec="MMD_AT_PLUS_A",
            diag_pivot_thresh=0.0,
            options={"SymmetricMode": True},
        )
    except RuntimeError:  # a pivot that is exactly 0: nothing is known but that there are at most n
        return EigenvalueCount(tau, n, 0.0, None)
    L, U = lu.L, lu.U
    longest = int(np.diff(L.indptr).max())
    rounding = 2 * longest * EPS * float((abs(L) @ (abs(U) @ np.ones(n))).max())
    kept = bool((lu.perm_r == lu.perm_c).all())  # where rows were exchanged, the pivots' signs say nothing
    return EigenvalueCount(tau, int((U.diagonal() < 0).sum()) if kept else n, rounding, lu)


def _share_with_nearer_rows(X: Array, neighbours: Array, eps: float, distances: int) -> float:
    """The share of rows whose neighbours are not their nearest rows.

    A row counts where another row is nearer than one of its neighbours, or where it is its own neighbour or has the
    same one twice. So many `distances` are held at a time; rows are known to a relative `eps`.
    """
    n, d = X.shape
    squares = (X**2).sum(axis=1)
    wrong = 0
    step = max(1, distances // n)
    for first in range(0, n, step):
        rows = np.arange(first, min(first + step, n))
        near = neighbours[rows]
        far = ((X[near] - X[rows, None]) ** 2).sum(axis=2).max(axis=1)
        reach = np.sqrt(squares[rows]) + np.sqrt(squares.max())
        slack = (d + 8) * EPS * reach**2 + 16 * eps * far
        distance = squares[rows, None] + squares - 2 * (X[rows] @ X.T)
        distance[np.arange(len(rows))[:, None], near] = np.inf
        distance[np.arange(len(rows)), rows] = np.inf
        ordered = np.sort(near, axis=1)
        twice = (np.diff(ordered, axis=1) == 0).any(axis=1) | (near == rows[:, None]).any(axis=1)
        wrong += int(((distance.min(axis=1) < far - slack) | twice).sum())
    return wrong / n


def _count_parts(neighbours: Array) -> int:
    """The number of connected parts of the neighbour graph."""
    n, size = neighbours.shape
    ends = np.arange(0, n * size + 1, size)
    graph = sparse.csr_array((np.ones(n * size), neighbours.ravel(), ends), shape=(n, n))
    return int(connected_components(graph, directed=False)[0])
