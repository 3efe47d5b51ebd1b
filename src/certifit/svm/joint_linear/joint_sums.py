"""Passes over the rows for joint linear machines: scores, weighted sums of rows, sums of each class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import sparse

from certifit.linear_model.linear_rows import shift_rows
from certifit.losses.multiclass.multiclass_hinge_loops import multiclass_loss
from certifit.losses.multiclass.multiclass_hinges import MulticlassHinge
from certifit.numerics.products import adjoint
from certifit.rows import Array, Block, Largest, Matrix, Sums


class AugmentedColumns(NamedTuple):
    """Rows are taken as (x - shift, √τ): the last column, there if τ > 0, is that of the biases."""

    shift: Array | None  # (d,)
    tau: float

    def augmented(self, X: Matrix) -> Matrix:
        """All columns of these rows (rows, d1) in float64."""
        X = shift_rows(X, self.shift)
        if not self.tau:
            return X
        last = np.full((X.shape[0], 1), np.sqrt(self.tau))
        return sparse.hstack([X, last], format="csr") if sparse.issparse(X) else np.hstack([X, last])

    def coefficients(self, theta: Array) -> tuple[Array, Array]:
        """β (k, d) and b (k,) in the columns' own coordinates."""
        if not self.tau:
            return theta.T.copy(), np.zeros(theta.shape[1])
        beta, b = theta[:-1].T.copy(), np.sqrt(self.tau) * theta[-1]
        return beta, b if self.shift is None else b - beta @ self.shift


def labels_and_weights(block: Block) -> tuple[Array, Array]:
    """Class numbers and row weights, (rows,) each."""
    assert block.y is not None
    return block.y.astype(np.int64), block.w


@dataclass(frozen=True)
class JointClassSums(Sums):
    """Sums over the rows of each class, u = C w."""

    weighted_rows: Array  # (k, d) Σ u (x - shift)
    mass: Array  # (k,) Σ u
    square: float  # Σ u |x - shift|² over all classes
    longest: Largest  # |x - shift|² of rows with weight


def class_sums(columns: AugmentedColumns, k: int, C: float, block: Block) -> JointClassSums:
    y, w = labels_and_weights(block)
    X, u = shift_rows(block.X, columns.shift), C * w
    own = np.zeros((len(y), k))
    own[np.arange(len(y)), y] = u
    squares = np.ravel(X.multiply(X).sum(axis=1)) if sparse.issparse(X) else np.einsum("ij,ij->i", X, X)
    longest = Largest(float(squares[u > 0].max(initial=0.0)))
    return JointClassSums(adjoint(X, own).T, own.sum(axis=0), float(u @ squares), longest)


def joint_scores(columns: AugmentedColumns, theta: Array, block: Block) -> Array:
    """Scores (rows, k) of θ (d1, k)."""
    X = shift_rows(block.X, columns.shift)
    if not columns.tau:
        return np.asarray(X @ theta)
    return np.asarray(X @ theta[:-1]) + np.sqrt(columns.tau) * theta[-1]


def weighted_row_sums(columns: AugmentedColumns, alpha: Array, block: Block) -> Array:
    """Σ x α (d1, k) over a block; α is (n, k)."""
    X, alpha = block.X, alpha[block.start : block.start + len(block.w)]
    support = np.flatnonzero(alpha.any(axis=1))
    if 2 * len(support) < len(alpha):  # rows beyond the margins have α = 0
        X, alpha = X[support], alpha[support]
    total = adjoint(shift_rows(X, columns.shift), alpha)
    return np.vstack([total, np.sqrt(columns.tau) * alpha.sum(axis=0)]) if columns.tau else total


def joint_loss(hinge: MulticlassHinge, beta: Array, b: Array, C: float, block: Block) -> float:
    """C Σ w L over a block."""
    y, w = labels_and_weights(block)
    return float(multiclass_loss(np.asarray(block.X @ beta.T + b, np.float64), y, C * w, hinge))


def dual_coefficients(q: Array, y: Array) -> Array:
    """α (n, k): -q of the wrong classes, and the sum of these q for the own class."""
    own = np.arange(len(y)), y
    alpha = -q
    alpha[own] = 0.0
    alpha[own] = -alpha.sum(axis=1)
    return alpha
