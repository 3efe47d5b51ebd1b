"""Lower bounds on the k-means objective from the Gram matrix of the rows: for tables of up to some thousands of rows.

A clustering is a projection Z of rank k on the rows: with s = √w and v_a the part of s in cluster a, scaled to length
1, Z = Σ_a v_a v_aᵀ. It has no negative entries and Zs = s. With G the Gram matrix of the weighted, centred rows the
objective is tr G - <G, Z>, and for every symmetric B without negative entries, by Ky Fan's theorem,
    <G, Z> <= <G + B, Z> <= uᵀ(G + B)u + sum of the k-1 largest eigenvalues of G + B orthogonal to u = s / |s|.
The best B solves the dual of Peng & Wei's relaxation (Approximating k-means-type clustering via semidefinite
programming, 2007). Every B gives a bound, so none has to be solved for exactly. The methods, in this order, each only
while the bound is not yet close to the objective of the clustering at hand:

    method                                 when                               why
    closed form for all rows at once       more than a group of rows          proves clusters that are far apart
    (`_closed_form`)                                                          optimal, at the cost of eigenvalues
    closed form for each group             steps > 0, or a single group       the start of what follows
    alternating directions (`_improve`)    steps > 0                          approaches the best B; every step
                                                                              decomposes a group's Gram matrix
    triangle inequalities (`TriangleCuts`) every 30 steps                     a tighter relaxation, which often
                                                                              proves a few hundred rows optimal

- The closed form comes from the clustering itself (Iguchi, Mixon, Peterson & Villar, Probably certifiably correct
  k-means clustering, 2017).
- The alternating direction method of multipliers (Boyd et al., 2011) splits Z into Y with eigenvalues from 0 to 1 and
  N without negative entries; B is the multiplier of Y + uuᵀ = N.
- Rows are split into groups where they are many: no centres serve all groups better than each group's own would, so
  that the groups' bounds add up to one for all.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from scipy.spatial.distance import cdist

from certifit.checkers.cluster.eigenvalue_sums import bound_largest_eigenvalues, largest_eigenvalue
from certifit.checkers.cluster.spectral_bound import EPS
from certifit.checkers.cluster.triangle_cuts import CutTuning, TriangleCuts
from certifit.checkers.plain.blocks import dense
from certifit.rows import Array, Rows
from certifit.rows.threads import single_threaded_blas


@dataclass(frozen=True)
class SemidefiniteTuning:
    """How much work is done for a bound."""

    most_rows: int = 4096  # distinct rows up to which there is a bound at all
    most_entries: int = 2**22  # rows x columns up to which there is one
    steps: int = 30  # of the alternating directions for each group; 0 leaves groups out
    group_rows: int = 256  # rows in a group
    close: float = 1e-7  # relative gap to the objective that needs no improvement
    only_tight: bool = False  # leave out the closed form for all rows where it cannot prove the clustering optimal
    dense_order: int = 512  # order of a matrix up to which its eigenvectors are found by a dense decomposition
    step_size: float = 3.0  # of the alternating directions, in units of the objective per cluster
    cut_every: int = 30  # steps between two searches for violated triangle inequalities
    cuts: CutTuning = field(default_factory=CutTuning)


@dataclass(frozen=True)
class ProofInFit:
    """How much work a fit does for its bound; an audit of that fit does the same, unless it is asked for more."""

    proof: SemidefiniteTuning = field(
        default_factory=lambda: SemidefiniteTuning(most_rows=1024, steps=10, only_tight=True)
    )
    improved_rows: int = 512  # rows up to which that bound is improved, for 0.3 seconds at most
    target_steps: int = 400  # steps to improve it where a ratio is asked for; they take seconds

    def work(self, n: int, target: float | None) -> SemidefiniteTuning:
        """Return the work for n rows, of which a bound at most `target` times below the objective is wanted."""
        proof = self.proof if n <= self.improved_rows else replace(self.proof, steps=0)
        if target is None:
            return proof
        steps = self.target_steps if n <= proof.group_rows else self.proof.steps
        return replace(proof, steps=steps, close=max(proof.close, 1 - 1 / target))


def gram_bound(
    rows: Rows, C: Array, until: float = np.inf, *, tuning: SemidefiniteTuning = SemidefiniteTuning()
) -> float:
    """Return a number that no k centres get below; 0 where there is no bound.

    Parameters
    ----------
    C : (k, d) the centres at hand; good ones suggest a good bound, any give one
    until : when to stop improving, by `time.perf_counter`
    """
    # Some rows may be equal: four times as many are looked at.
    if rows.n_rows > 4 * tuning.most_rows or rows.n_rows * rows.n_features > tuning.most_entries:
        return 0.0
    data = rows.load()
    X, w = _merge_equal_rows(dense(data.X)[data.w > 0], data.w[data.w > 0])
    n, best = len(w), 0.0
    if not len(C) < n <= tuning.most_rows:
        return 0.0
    shift = w @ X / w.sum()
    size = 2.0 ** int(np.frexp(np.abs(X - shift).max())[1])  # exact; squares neither over- nor underflow
    X, C = (X - shift) / size, (C - shift) / size
    group = tuning.group_rows
    with single_threaded_blas():  # more threads only get in each other's way here
        if n > group:
            whole = relax_clustering(X, w, C, tuning)
            least, largest = _levels(whole)
            if least <= largest or not tuning.only_tight:
                best = _closed_form(whole)[0]
        if n <= group or (tuning.steps and best < whole.enough):
            parts = -(-n // group)
            groups = (relax_clustering(X[g::parts], w[g::parts], C, tuning) for g in range(parts))
            best = max(best, sum(_improve(problem, until) for problem in groups))
    return best * size * size


def _merge_equal_rows(X: Array, w: Array) -> tuple[Array, Array]:
    """Return equal rows as one with all their weight, in the order of their first appearance."""
    _, first, which = np.unique(X, axis=0, return_index=True, return_inverse=True)
    total = np.bincount(which.ravel(), w)
    order = np.argsort(first)
    return X[first[order]], total[order]


class ClusterRelaxation(NamedTuple):
    """Peng & Wei's relaxation for some rows, and a clustering whose objective is to be bounded."""

    X: Array  # (n, d) centred
    w: Array  # (n,)
    C: Array  # (k, d)
    D: Array  # (n, k) squared distances to the centres
    labels: Array  # (n,)
    G: Array  # (n, n) Gram matrix of the weighted rows
    u: Array  # (n,) √w, of length 1
    V: Array  # (n, k) the clustering: orthonormal columns v_a
    tuning: SemidefiniteTuning

    @property
    def objective(self) -> float:
        return float(self.w @ self.D.min(axis=1))

    @property
    def enough(self) -> float:
        """Return a bound that needs no improvement."""
        return (1 - self.tuning.close) * self.objective

    def bound(self, B: Array) -> float:
        """Return the bound that B (n, n) gives: without negative entries, or less multiples of valid inequalities."""
        (n, d), k = self.X.shape, len(self.C)
        M, along = split_along(self.G + B, self.u)
        total = float(np.trace(self.G))
        doubt = 32 * (k + 1) * (n + d) * EPS * (float(np.linalg.norm(M)) + abs(along) + total)
        beside = self.V @ np.linalg.qr((self.V.T @ self.u)[:, None], mode="complete")[0][:, 1:]  # u is in their span
        most = bound_largest_eigenvalues(M, k - 1, beside, self.tuning.dense_order)
        return max(0.0, total - along - most - doubt)


def relax_clustering(
    X: Array, w: Array, C: Array, tuning: SemidefiniteTuning = SemidefiniteTuning()
) -> ClusterRelaxation:
    """Set up the relaxation for rows X (n, d) of weights w (n,) and centres C (k, d)."""
    mean = w @ X / w.sum()
    X, C, s = X - mean, C - mean, np.sqrt(w)
    D = cdist(X, C, "sqeuclidean")
    labels = D.argmin(axis=1)
    V = np.where(labels[:, None] == np.arange(len(C)), s[:, None], 0.0)
    V /= np.maximum(np.linalg.norm(V, axis=0), np.finfo(float).tiny)
    Y = s[:, None] * X
    return ClusterRelaxation(X, w, C, D, labels, Y @ Y.T, s / np.linalg.norm(s), V, tuning)


def split_along(M: Array, u: Array) -> tuple[Array, float]:
    """Return M without its part along u, in place, and uᵀMu."""
    Mu = M @ u
    along = float(u @ Mu)
    M -= np.outer(u, Mu) + np.outer(Mu - along * u, u)
    return M, along


# ------------------------------------------------------------------------------------------------ B in closed form
def _closed_form(problem: ClusterRelaxation) -> tuple[float, Array]:
    """Return the best bound that the clustering itself suggests, and its B.

    λ has to be at least the largest eigenvalue that G + B has beside the clusters, which hardly depends on λ, and so
    small that all sums asked of B are positive. Where it can be both, the clustering is proved optimal.
    """
    least, largest = _levels(problem)
    best, B = 0.0, _suggested(problem, 1.5 * least)
    tried = B
    for _ in range(2):
        top = largest_eigenvalue(split_along(problem.G + tried, problem.u)[0], problem.tuning.dense_order)
        lam = float(np.sqrt(top * largest)) if top < largest < np.inf else 1.05 * top
        tried = _suggested(problem, lam)
        value = problem.bound(tried)
        if value > best:
            best, B = value, tried
        if best >= problem.enough:
            break
    return best, B


def _levels(problem: ClusterRelaxation) -> tuple[float, float]:
    """Return the limits of λ: the largest scatter of a cluster in any direction, and where a sum becomes negative."""
    roots = np.sqrt(problem.w)[:, None] * (problem.X - problem.C[problem.labels])
    members = [problem.labels == a for a in range(len(problem.C))]
    least = max(float(np.linalg.norm(roots[rows], 2)) ** 2 for rows in members if rows.any())
    farther, share, other = _wanted_sums(problem)
    return least, float((farther[other] / share[other]).min(initial=np.inf))


def _wanted_sums(problem: ClusterRelaxation) -> tuple[Array, Array, Array]:
    """Return the two terms, without λ, of what sums of B over clusters should be (n, k), and where they count (n, k).

    For a row i at x of cluster b and another cluster a, Σ_j B_ij √w_j over the rows j of a should be √w_i times
        W_a/2 (|x - c_a|² - |x - c_b|²) - λ/2 (1 + W_a/W_b).
    """
    D, labels = problem.D, problem.labels
    W = np.maximum(np.bincount(labels, problem.w, D.shape[1]), np.finfo(float).tiny)
    farther = W / 2 * (D - D.min(axis=1, keepdims=True))
    return farther, (1 + W / W[labels][:, None]) / 2, labels[:, None] != np.arange(len(W))


def _suggested(problem: ClusterRelaxation, lam: float) -> Array:
    """Return B (n, n) with the wanted sums where these are positive, of rank one for each pair of clusters."""
    w, (n, k) = problem.w, problem.D.shape
    members = [np.flatnonzero(problem.labels == a) for a in range(k)]
    farther, share, _ = _wanted_sums(problem)
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


# ------------------------------------------------------------------------------------------------ a better B
def _improve(problem: ClusterRelaxation, until: float) -> float:
    """Return the best bound of B in closed form and of the B that alternating directions reach from there."""
    k, tuning = len(problem.C), problem.tuning
    if len(problem.u) <= k:
        return 0.0
    best, B = _closed_form(problem)
    unit = tuning.step_size * problem.objective / k
    if unit == 0 or k == 1:
        return best
    G, u = problem.G / unit, problem.u
    ones = np.outer(u, u)
    N, U = problem.V @ problem.V.T, -B / unit
    cuts = TriangleCuts.none(problem.w, tuning.cuts)
    for step in range(1, tuning.steps + 1):
        if best >= problem.enough or time.perf_counter() > until:
            break
        Y = project_to_fantope(split_along(N - U + G, u)[0], u, k - 1)
        N, U = cuts.project(1.6 * (Y + ones) - 0.6 * N + U)  # over-relaxed
        search = step % tuning.cut_every == 0
        if search or step in (5, 10) or step == tuning.steps:
            best = max(best, problem.bound(-unit * U))
        if search and step < tuning.steps:
            cuts = cuts.renew(N)
    return best


def project_to_fantope(M: Array, u: Array, m: int) -> Array:
    """Return the nearest matrix to M, Mu = 0, with eigenvalues from 0 to 1 that sum to m and none along u."""
    values, V = np.linalg.eigh(M - (2 * float(np.linalg.norm(M)) + m) * np.outer(u, u))  # u comes first
    low, high = float(values[1]) - 1.0, float(values[-1])
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if np.clip(values[1:] - middle, 0.0, 1.0).sum() > m else (low, middle)
    kept = np.clip(values - high, 0.0, 1.0)
    some = kept > 0
    return (V[:, some] * kept[some]) @ V[:, some].T
