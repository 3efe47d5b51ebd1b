"""Lower bounds on the k-means objective from the Gram matrix of the rows: for tables of up to some thousands of rows.

A clustering is a projection Z of rank k on the rows: with s = √w and v_a the part of s in cluster a, scaled to length
1, Z = Σ_a v_a v_aᵀ. It has no negative entries and Zs = s. With G the Gram matrix of the weighted, centred rows the
objective is tr G - <G, Z>, and for every symmetric B without negative entries, by Ky Fan's theorem,
    <G, Z> <= <G + B, Z> <= uᵀ(G + B)u + sum of the k-1 largest eigenvalues of G + B orthogonal to u = s / |s|.
The best B solves the dual of Peng & Wei's relaxation (Approximating k-means-type clustering via semidefinite
programming, 2007). Any B will do, so none has to be solved for exactly:
- the clustering at hand suggests one in closed form, which proves it optimal where clusters are far apart (Iguchi,
  Mixon, Peterson & Villar, Probably certifiably correct k-means clustering, 2017);
- from there, the alternating direction method of multipliers goes on (Boyd et al., 2011): Z is split into Y with
  eigenvalues from 0 to 1 and N without negative entries, and B is the multiplier of Y + uuᵀ = N;
- with enough steps, N is held to triangle inequalities too, whose multipliers join B (see `kmeans_cuts`).
More rows are split into groups: no centres serve all groups better than each group's own would.
"""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cholesky, eigh
from scipy.sparse.linalg import ArpackError, eigsh
from scipy.spatial.distance import cdist

from certifit.checkers.cluster.triangle_cuts import Cuts
from certifit.checkers.plain.blocks import dense
from certifit.rows import Array, Rows
from certifit.rows.threads import single_threaded_blas

EPS = float(np.finfo(np.float64).eps)
GROUP = 256
ENTRIES = 2**22  # of a table whose products are worth forming
DIRECT = 512  # up to this order, leading eigenvectors come from a dense decomposition
CLOSE = 1e-7  # relative gap that needs no improvement
ROUND = 30  # steps between two searches for inequalities to add
PACE = 3.0  # of the steps, in units of the objective per cluster


def gram_bound(
    rows: Rows,
    C: Array,
    most: int,
    steps: int,
    group: int = GROUP,
    close: float = CLOSE,
    only_tight: bool = False,
    until: float = np.inf,
) -> float:
    """A number that no k centres get below; 0 says nothing.

    Parameters
    ----------
    C : (k, d) the centres at hand; good ones suggest a good bound, any give one
    most : rows, distinct, that are few enough
    steps : how often the bound in closed form is improved, group by group; 0 leaves groups out
    group : rows in a group; every step decomposes their Gram matrix
    close : relative gap to the objective of C that needs no improvement
    only_tight : leave out the bound for all rows at once, in closed form, where it cannot prove C optimal
    until : when to stop improving, by `time.perf_counter`
    """
    if rows.n_rows > 4 * most or rows.n_rows * rows.n_features > ENTRIES:  # even if some rows are equal
        return 0.0
    data = rows.load()
    X, w = _distinct(dense(data.X)[data.w > 0], data.w[data.w > 0])
    n, best = len(w), 0.0
    if not len(C) < n <= most:
        return 0.0
    shift = w @ X / w.sum()
    size = 2.0 ** int(np.frexp(np.abs(X - shift).max())[1])  # exact; squares neither over- nor underflow
    X, C = (X - shift) / size, (C - shift) / size
    with single_threaded_blas():  # more threads only get in each other's way here
        if n > group:
            whole = _problem(X, w, C, close)
            least, largest = _levels(whole)
            if least <= largest or not only_tight:
                best = _closed_form(whole)[0]
        if n <= group or (steps and best < whole.enough):
            parts = -(-n // group)
            groups = (_problem(X[g::parts], w[g::parts], C, close) for g in range(parts))
            best = max(best, sum(_improve(problem, steps, until) for problem in groups))
    return best * size * size


def _distinct(X: Array, w: Array) -> tuple[Array, Array]:
    """Equal rows as one that has all their weight; in the order of their first appearance."""
    _, first, which = np.unique(X, axis=0, return_index=True, return_inverse=True)
    total = np.bincount(which.ravel(), w)
    order = np.argsort(first)
    return X[first[order]], total[order]


class Problem(NamedTuple):
    """Rows, and a clustering of them to beat."""

    X: Array  # (n, d) centred
    w: Array  # (n,)
    C: Array  # (k, d)
    D: Array  # (n, k) squared distances to the centres
    labels: Array  # (n,)
    G: Array  # (n, n) Gram matrix of the weighted rows
    u: Array  # (n,) √w, of length 1
    V: Array  # (n, k) the clustering: orthonormal columns v_a
    close: float

    @property
    def objective(self) -> float:
        return float(self.w @ self.D.min(axis=1))

    @property
    def enough(self) -> float:
        """A bound that needs no improvement."""
        return (1 - self.close) * self.objective

    def bound(self, B: Array) -> float:
        """What B (n, n), without negative entries or less multiples of valid inequalities, proves."""
        (n, d), k = self.X.shape, len(self.C)
        M, along = _apart(self.G + B, self.u)
        total = float(np.trace(self.G))
        doubt = 32 * (k + 1) * (n + d) * EPS * (float(np.linalg.norm(M)) + abs(along) + total)
        return max(0.0, total - along - _ky_fan(M, k - 1, _apart_from(self.u, self.V)) - doubt)


def _problem(X: Array, w: Array, C: Array, close: float = CLOSE) -> Problem:
    mean = w @ X / w.sum()
    X, C, s = X - mean, C - mean, np.sqrt(w)
    D = cdist(X, C, "sqeuclidean")
    labels = D.argmin(axis=1)
    V = np.where(labels[:, None] == np.arange(len(C)), s[:, None], 0.0)
    V /= np.maximum(np.linalg.norm(V, axis=0), np.finfo(float).tiny)
    Y = s[:, None] * X
    return Problem(X, w, C, D, labels, Y @ Y.T, s / np.linalg.norm(s), V, close)


# ------------------------------------------------------------------------------------------------ eigenvalues, proved
def _apart(M: Array, u: Array) -> tuple[Array, float]:
    """M without its part along u, in place; and that part."""
    Mu = M @ u
    along = float(u @ Mu)
    M -= np.outer(u, Mu) + np.outer(Mu - along * u, u)
    return M, along


def _apart_from(u: Array, V: Array) -> Array:
    """Orthonormal columns that span what V (n, k) spans beside u, one of its directions."""
    return V @ np.linalg.qr((V.T @ u)[:, None], mode="complete")[0][:, 1:]


def _ky_fan(M: Array, m: int, Q: Array) -> float:
    """At least the sum of the m largest eigenvalues of M (n, n); Q (n, m) spans a guess at their vectors.

    With t near the next eigenvalue and F = Σ (θ - t) vvᵀ over the m leading pairs, M <= tI + F makes the sum at most
    m t + tr F, whatever θ and v are. That tI + F - M has no eigenvalue below -δ is proved by a Cholesky factorisation
    that runs through (Rump, Verification of positive definiteness, 2006).
    """
    n = len(M)
    if m == 0:
        return 0.0
    try:
        theta, V = _leading(M, m + 1, Q)
        t, lift = float(theta[0]), theta[1:] - theta[0]
        F = (V[:, 1:] * lift) @ V[:, 1:].T
        over = 1.2 * (_top(M - F) - t) if n > DIRECT else 0.0
    except ArpackError:
        return np.inf
    trace = float(lift @ (V[:, 1:] ** 2).sum(axis=0))
    size = float(np.linalg.norm(M)) + trace + n * abs(t)
    over = max(over, 16 * EPS * size + 1e-8 * abs(t))
    while True:
        S = F - M
        S[np.diag_indices(n)] += t + over
        try:
            cholesky(S, overwrite_a=True, check_finite=False)
        except LinAlgError:
            over *= 16
            continue
        doubt = 2 * (n + m + 8) * EPS * (size + n * over + abs(float(np.trace(M))))
        return m * (t + over + doubt) + trace


def _top(M: Array) -> float:
    """About the largest eigenvalue."""
    n = len(M)
    if n <= DIRECT:
        return float(np.linalg.eigvalsh(M)[-1])
    return float(eigsh(M, 1, which="LA", v0=np.cos(np.arange(n)), tol=1e-3, return_eigenvectors=False)[0])


def _leading(M: Array, m: int, Q: Array) -> tuple[Array, Array]:
    """About the m largest eigenvalues of M, ascending, and their vectors, orthonormal columns."""
    n = len(M)
    if n <= max(DIRECT, 4 * m):
        try:
            return eigh(M, subset_by_index=[n - m, n - 1], check_finite=False)
        except LinAlgError:  # LAPACK's routine for some of them may fail where many are equal
            theta, V = np.linalg.eigh(M)
            return theta[-m:], V[:, -m:]
    # the guess goes apart, since Lanczos overlooks copies of a multiple eigenvalue
    QM = Q.T @ M
    rest = M - Q @ QM - QM.T @ Q.T + Q @ (QM @ Q) @ Q.T
    V = eigsh(rest, m, ncv=min(n, 40 + 2 * m), which="LA", v0=np.cos(np.arange(n)), tol=1e-4, maxiter=50)[1]
    Q = np.linalg.qr(np.hstack([Q, V]))[0]
    theta, W = np.linalg.eigh(Q.T @ M @ Q)
    return theta[-m:], Q @ W[:, -m:]


# ------------------------------------------------------------------------------------------------ good B
def _closed_form(problem: Problem) -> tuple[float, Array]:
    """The best bound that the clustering itself suggests, and its B.

    λ has to be at least the largest eigenvalue that G + B has beside the clusters, which hardly depends on λ, and
    small enough for all that B wants to be positive. Where it can be both, the clustering is proved optimal.
    """
    least, largest = _levels(problem)
    best, B = 0.0, _suggested(problem, 1.5 * least)
    tried = B
    for _ in range(2):
        top = _top(_apart(problem.G + tried, problem.u)[0])
        lam = float(np.sqrt(top * largest)) if top < largest < np.inf else 1.05 * top
        tried = _suggested(problem, lam)
        value = problem.bound(tried)
        if value > best:
            best, B = value, tried
        if best >= problem.enough:
            break
    return best, B


def _levels(problem: Problem) -> tuple[float, float]:
    """Between which λ has to be: the largest scatter of a cluster in any direction; where no want is negative."""
    roots = np.sqrt(problem.w)[:, None] * (problem.X - problem.C[problem.labels])
    members = [problem.labels == a for a in range(len(problem.C))]
    least = max(float(np.linalg.norm(roots[rows], 2)) ** 2 for rows in members if rows.any())
    farther, share, other = _wants(problem)
    return least, float((farther[other] / share[other]).min(initial=np.inf))


def _wants(problem: Problem) -> tuple[Array, Array, Array]:
    """A row x of cluster b and another cluster a want Σ_j B_ij over a to be
        W_a/2 (|x - c_a|² - |x - c_b|²) - λ/2 (1 + W_a/W_b):
    the two terms, without λ (n, k), and where they are wanted."""
    D, labels = problem.D, problem.labels
    W = np.maximum(np.bincount(labels, problem.w, D.shape[1]), np.finfo(float).tiny)
    farther = W / 2 * (D - D.min(axis=1, keepdims=True))
    return farther, (1 + W / W[labels][:, None]) / 2, labels[:, None] != np.arange(len(W))


def _suggested(problem: Problem, lam: float) -> Array:
    """B (n, n) with the sums it wants, as far as these are positive: rank one does that for each pair of clusters."""
    w, (n, k) = problem.w, problem.D.shape
    members = [np.flatnonzero(problem.labels == a) for a in range(k)]
    farther, share, _ = _wants(problem)
    want = np.maximum(farther - lam * share, 0.0)
    B = np.zeros((n, n))
    for a in range(k):
        for b in range(a):
            to_a, to_b = want[members[b], a], want[members[a], b]
            total = (w[members[b]] @ to_a + w[members[a]] @ to_b) / 2
            if total > 0:
                block = np.outer(np.sqrt(w[members[b]]) * to_a, np.sqrt(w[members[a]]) * to_b) / total
                B[np.ix_(members[b], members[a])] = block
                B[np.ix_(members[a], members[b])] = block.T
    return B


def _improve(problem: Problem, steps: int, until: float) -> float:
    """The best bound of B in closed form and on the way from there."""
    k = len(problem.C)
    if len(problem.u) <= k:
        return 0.0
    best, B = _closed_form(problem)
    pace = PACE * problem.objective / k
    if pace == 0 or k == 1:
        return best
    G, u = problem.G / pace, problem.u
    ones = np.outer(u, u)
    N, U = problem.V @ problem.V.T, -B / pace
    cuts = Cuts.none(problem.w)
    for step in range(1, steps + 1):
        if best >= problem.enough or time.perf_counter() > until:
            break
        Y = _fantope(_apart(N - U + G, u)[0], u, k - 1)
        N, U = cuts.project(1.6 * (Y + ones) - 0.6 * N + U)  # over-relaxed
        if step in (5, 10) or step % ROUND == 0 or step == steps:
            best = max(best, problem.bound(-pace * U))
        if step % ROUND == 0 and step < steps:
            cuts = cuts.renew(N)
    return best


def _fantope(M: Array, u: Array, m: int) -> Array:
    """The nearest matrix to M, Mu = 0, with eigenvalues from 0 to 1 that sum to m and none along u."""
    values, V = np.linalg.eigh(M - (2 * float(np.linalg.norm(M)) + m) * np.outer(u, u))  # u comes first
    low, high = float(values[1]) - 1.0, float(values[-1])
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if np.clip(values[1:] - middle, 0.0, 1.0).sum() > m else (low, middle)
    kept = np.clip(values - high, 0.0, 1.0)
    some = kept > 0
    return (V[:, some] * kept[some]) @ V[:, some].T
