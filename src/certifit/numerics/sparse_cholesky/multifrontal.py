"""Cholesky factors of sparse symmetric matrices whose factor fills up, by dense blocks (the multifrontal method).

Columns of the factor L with the same pattern are taken together: the rows they touch form a dense *front*, LAPACK
eliminates the columns, and the Schur complement is added into the front of the parent in the elimination tree. Where
M - τ I is not positive definite, the block at hand is factored as LDLᵀ, and its negative pivots are counted: as many
eigenvalues of M lie below τ (Sylvester's law of inertia).

| step | function | done |
|---|---|---|
| order of elimination | `order_by_minimum_degree` | once for a pattern |
| blocks of columns and their fronts | `plan_fronts` | once for a pattern |
| the factor itself | `factor_fronts` | for every τ |

References: Liu, The multifrontal method for sparse matrix solution (1992); George & Liu (1981) for the ordering.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import LinAlgError
from scipy.linalg.blas import dsyrk, dtrsm
from scipy.linalg.lapack import dpotrf, dsytrf, dsytrs
from scipy.sparse.linalg import spilu

from certifit.numerics.sparse_cholesky.loops import elimination_tree, extend_add
from certifit.rows import Array

EPS = float(np.finfo(float).eps)


@dataclass(frozen=True)
class SparseCholeskyTuning:
    """When a factor is made of dense blocks, and how wide these become."""

    dense_work: float = 2e9  # multiplications of a factorisation from which dense blocks are faster than SuperLU
    narrow_block: int = 32  # columns up to which a block may grow by storing zeros
    share_of_zeros: float = 0.1  # of the entries of a wider block


@dataclass(frozen=True)
class OrderedMatrix:
    """A sparse symmetric matrix in the order in which its columns are eliminated, and how its factor fills."""

    M: Any  # (n, n) CSC
    order: Array  # (n,) the column eliminated at each step
    parent: Array  # (n,) of each step, the next step that its column changes; -1 for none
    count: Array  # (n,) entries of each column of the factor

    @property
    def work(self) -> float:
        """Multiplications that the factorisation takes."""
        return float((self.count.astype(float) ** 2).sum())


def order_by_minimum_degree(M: Any) -> OrderedMatrix:
    """Order M (n, n) in CSC such that its factor stays sparse."""
    n = M.shape[0]
    # An incomplete factorisation that drops everything costs little, and its column order is all that is wanted.
    values = np.ones(M.nnz)
    values[diagonal_places(M)] = 1 + np.diff(M.indptr)
    rough = spilu(
        sparse.csc_array((values, M.indices.copy(), M.indptr), shape=M.shape),  # SuperLU sorts the indices in place
        drop_tol=1.0,
        fill_factor=1,
        permc_spec="MMD_AT_PLUS_A",
        diag_pivot_thresh=0.0,
        options={"SymmetricMode": True},
    )
    order = np.argsort(rough.perm_c)
    M = M[order][:, order].tocsc()
    parent, count = np.empty(n, np.int64), np.empty(n, np.int64)
    elimination_tree(M.indptr, M.indices, parent, count)
    return OrderedMatrix(M, order, parent, count)


def diagonal_places(M: Any) -> Array:
    """Places (n,) of the diagonal, none of it 0, among the stored entries of M (n, n) in CSC."""
    return np.flatnonzero(M.indices == np.repeat(np.arange(M.shape[0]), np.diff(M.indptr)))


@dataclass(frozen=True)
class FrontPlan:
    """The dense blocks of a factorisation, for any values in the same places."""

    ordered: OrderedMatrix
    blocks: list[tuple[int, int]]  # first column and one past the last of each block
    rows: list[Array]  # of each front (f,), its own columns first
    children: list[list[int]]  # the fronts whose Schur complements are added to each one


def plan_fronts(ordered: OrderedMatrix, tuning: SparseCholeskyTuning = SparseCholeskyTuning()) -> FrontPlan:
    """Find blocks of columns that are eliminated together, and the rows of their fronts."""
    M, parent = ordered.M, ordered.parent
    blocks = _column_blocks(parent, ordered.count, tuning)
    owner = np.repeat(np.arange(len(blocks)), [end - first for first, end in blocks])
    rows: list[Array] = []
    children: list[list[int]] = [[] for _ in blocks]
    for b, (first, end) in enumerate(blocks):
        touched = [M.indices[M.indptr[first] : M.indptr[end]], *(rows[c] for c in children[b])]
        below = np.unique(np.concatenate(touched))
        rows.append(np.concatenate([np.arange(first, end), below[below >= end]]))
        if parent[end - 1] >= 0:
            children[owner[parent[end - 1]]].append(b)
    return FrontPlan(ordered, blocks, rows, children)


def _column_blocks(parent: Array, count: Array, tuning: SparseCholeskyTuning) -> list[tuple[int, int]]:
    """Runs of columns, each the parent of the one before, whose patterns are equal or nearly so."""
    blocks, first, zeros = [], 0, 0
    narrow = tuning.narrow_block
    for j in range(len(parent)):
        width = j + 1 - first
        if parent[j] == j + 1:
            more = zeros + width * int(count[j + 1] + 1 - count[j])
            allowed = tuning.share_of_zeros * width * int(count[j + 1] + width)
            if more <= allowed or (width < narrow and more <= narrow**2):
                zeros = more
                continue
        blocks.append((first, j + 1))
        first, zeros = j + 1, 0
    return blocks


@dataclass(frozen=True)
class MultifrontalFactor:
    """M - τ I = L D Lᵀ, block by block; L is kept only where the factor is to be solved with."""

    plan: FrontPlan
    diagonal: list[Array]  # (p, p) Cholesky factor of each block's own columns
    below: list[Array]  # (f - p, p) the other rows of those columns
    negative: int  # pivots below 0: eigenvalues of M below τ
    rounding: float  # a bound on |LDLᵀ - (M - τ I)|₂

    def solve(self, V: Array) -> Array:
        """Return (M - τ I)⁻¹ V for V (n, m)."""
        X = V[self.plan.ordered.order]
        steps = list(zip(self.plan.blocks, self.plan.rows, self.diagonal, self.below, strict=True))
        for (first, end), rows, L, rest in steps:
            X[first:end] = dtrsm(1.0, L, X[first:end], lower=1)
            X[rows[end - first :]] -= rest @ X[first:end]
        for (first, end), rows, L, rest in reversed(steps):
            X[first:end] = dtrsm(1.0, L, X[first:end] - rest.T @ X[rows[end - first :]], lower=1, trans_a=1)
        out = np.empty_like(X)
        out[self.plan.ordered.order] = X
        return out


def factor_fronts(plan: FrontPlan, tau: float, keep: bool) -> MultifrontalFactor:
    """Factor M - τ I: to solve with it (`keep`; LinAlgError unless all pivots are positive), or to count pivots."""
    M = plan.ordered.M
    place = np.empty(M.shape[0], np.int64)
    updates: dict[int, Array] = {}
    diagonal, below = [], []
    negative, size = 0, np.zeros(M.shape[0])  # row sums of |L||D||Lᵀ|, of which rounding is a multiple
    last = len(plan.blocks) - 1
    for b, ((first, end), rows) in enumerate(zip(plan.blocks, plan.rows, strict=True)):
        p, f = end - first, len(rows)
        place[rows] = np.arange(f)
        panel, update = np.zeros((f, p), order="F"), np.zeros((f - p, f - p), order="F")
        entries = slice(M.indptr[first], M.indptr[end])
        i, j = M.indices[entries], np.repeat(np.arange(p), np.diff(M.indptr[first : end + 1]))
        own = i >= first
        panel[place[i[own]], j[own]] = M.data[entries][own]
        panel[np.arange(p), np.arange(p)] -= tau
        for c in plan.children[b]:
            child = updates.pop(c)
            extend_add(panel, update, child, place[plan.rows[c][len(plan.rows[c]) - len(child) :]])
        # The last block, by far the largest, has negative pivots in almost every count: Cholesky would fail there.
        L, failed = dpotrf(panel[:p], lower=1, clean=1) if keep or b < last else (panel[:p], 1)
        if failed and keep:
            raise LinAlgError(f"M - {tau:g} I is not positive definite")
        if failed:
            found, updates[b], size[rows] = _factor_indefinite(panel, update, size[rows])
            negative += found
            continue
        rest = panel[p:]
        if f > p:
            rest = dtrsm(1.0, L, rest, side=1, lower=1, trans_a=1)
            update = dsyrk(-1.0, rest, beta=1.0, c=update, lower=1, overwrite_c=1)
        updates[b] = update
        if keep:
            diagonal.append(L)
            below.append(rest)
        else:
            sums = np.abs(L).sum(axis=0) + np.abs(rest).sum(axis=0)
            size[rows] += np.concatenate([np.abs(L) @ sums, np.abs(rest) @ sums])
    widest = max(len(rows) for rows in plan.rows)
    return MultifrontalFactor(plan, diagonal, below, negative, 2 * widest * EPS * float(size.max()))


def _factor_indefinite(panel: Array, update: Array, size: Array) -> tuple[int, Array, Array]:
    """Factor the first rows of a panel as LDLᵀ.

    Returns the number of negative pivots, the Schur complement, and `size` with the row sums of |L||D||Lᵀ| added.
    """
    p = panel.shape[1]
    LD, pivots, failed = dsytrf(panel[:p], lower=1, lwork=64 * p)
    if failed:
        raise LinAlgError("a pivot is 0")
    # A pivot that is not single is one of a pair, whose two pivots have opposite signs.
    single = pivots > 0
    negative = int((np.diag(LD)[single] < 0).sum() + (~single).sum() // 2)
    largest = max(np.abs(np.diag(LD)).max(), np.abs(np.diag(LD, -1)).max(initial=0.0))
    size[:p] += 2 * largest * (p + np.linalg.norm(LD) ** 2)  # at least |D| |L|²
    rest = panel[p:]
    if len(rest):
        solved, _ = dsytrs(LD, pivots, rest.T, lower=1)
        update = update - rest @ solved
        size[p:] += (np.abs(rest) @ np.abs(solved)).sum(axis=1) + np.abs(rest).sum(axis=1)
        size[:p] += np.abs(rest).sum(axis=0)
    return negative, update, size
