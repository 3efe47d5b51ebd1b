"""What support vector machines of all classes at once ask of the rows: scores, pulls, sums of each class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from certifit.linear_model.linear_rows import shift_rows
from certifit.numerics.products import adjoint
from certifit.rows import Array, Block, Matrix, Sums
from certifit.svm.joint_linear.joint_hinge_loops import loss_rows


class Columns(NamedTuple):
    """Rows are (x - shift, √τ): the last, where τ > 0, is the biases' column."""

    shift: Array | None
    tau: float

    def full(self, X: Matrix) -> Matrix:
        """(rows, d1) in float64."""
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


def targets(block: Block) -> tuple[Array, Array]:
    """Class numbers and weights."""
    assert block.y is not None
    return block.y.astype(np.int64), block.w


@dataclass(frozen=True)
class ClassSums(Sums):
    pull: Array  # (k, d) Σ u x
    mass: Array  # (k,) Σ u
    square: float  # Σ u |x|²

    @property
    def parts(self) -> tuple[Array, Array, float]:
        return self.pull, self.mass, self.square


def class_sums(columns: Columns, k: int, C: float, block: Block) -> ClassSums:
    y, w = targets(block)
    X, u = shift_rows(block.X, columns.shift), C * w
    own = np.zeros((len(y), k))
    own[np.arange(len(y)), y] = u
    squares = X.multiply(X).sum(axis=1) if sparse.issparse(X) else np.einsum("ij,ij->i", X, X)
    return ClassSums(adjoint(X, own).T, own.sum(axis=0), float(u @ np.ravel(squares)))


def score_rows(columns: Columns, theta: Array, block: Block) -> Array:
    X = shift_rows(block.X, columns.shift)
    if not columns.tau:
        return np.asarray(X @ theta)
    return np.asarray(X @ theta[:-1]) + np.sqrt(columns.tau) * theta[-1]


def pull_rows(columns: Columns, alpha: Array, block: Block) -> Array:
    """Σ x α (d1, k)."""
    X, alpha = block.X, alpha[block.start : block.start + len(block.w)]
    held = np.flatnonzero(alpha.any(axis=1))
    if 2 * len(held) < len(alpha):  # rows beyond the margins do not pull
        X, alpha = X[held], alpha[held]
    pull = adjoint(shift_rows(X, columns.shift), alpha)
    return np.vstack([pull, np.sqrt(columns.tau) * alpha.sum(axis=0)]) if columns.tau else pull


def joint_loss(shape: Any, beta: Array, b: Array, C: float, block: Block) -> float:
    """C Σ w L over a block."""
    y, w = targets(block)
    return float(loss_rows(np.asarray(block.X @ beta.T + b, np.float64), y, C * w, *shape))


def signed(q: Array, y: Array) -> Array:
    """α (n, k): -q of the rivals, and their sum for the own class."""
    own = np.arange(len(y)), y
    alpha = -q
    alpha[own] = 0.0
    alpha[own] = -alpha.sum(axis=1)
    return alpha
