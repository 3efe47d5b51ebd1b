"""Newton's direction for the smoothed losses of joint linear machines.

    (1 + Σᵢ uᵢ/h Jᵢ ⊗ xᵢxᵢᵀ) step = -gradient

Jᵢ says how the q of row i that lie strictly within their limits ("free") change with its scores. Solved by conjugate
gradients over the rows with free q, which are few near the solution. The preconditioner has one curvature for all
classes: their mean.
Reference: Li, Sun & Toh, "A highly efficient semismooth Newton augmented Lagrangian method for solving Lasso
problems" (2018), for the method of which this is the inner step.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeAlias

import numpy as np

from certifit.losses.multiclass.multiclass_hinge_loops import apply_curvature
from certifit.numerics.factor import factor
from certifit.numerics.products import adjoint, gram, scale_rows
from certifit.rows import Array, ArrayRows, Block, Matrix
from certifit.rows.sums import S
from certifit.svm.joint_linear.tuning import NewtonDirectionTuning

Preconditioner: TypeAlias = Callable[[Array], Array]  # its inverse, (d1, k) to (d1, k)


class JointHingeCurvature:
    """The second derivatives at one point, from its rows X (m, d1) with free variables; `free` is (m, k).

    X in float32 is enough for a direction that is only approximate anyway.
    """

    def __init__(
        self, X: Matrix, y: Array, curvature: Array, free: Array, shared: bool, tuning: NewtonDirectionTuning
    ) -> None:
        self.rows, self.free, self.shared = ArrayRows(X, y, curvature), free, shared  # curvature (m,) u / h
        self.tuning = tuning

    def times(self, P: Array) -> Array:
        """The Hessian times P, both (d1, k)."""
        if not self.rows.n_rows:
            return P
        return P + _sum_over_blocks(self.rows, partial(_curvature_times, P, self.free, self.shared))

    def preconditioner(self) -> Preconditioner:
        n, d1 = self.rows.n_rows, self.rows.n_features
        stride = max(1, n // self.tuning.preconditioner_rows)
        X, count, curvature = self.rows.X[::stride], self.free[::stride].sum(axis=1), self.rows.w[::stride]
        share = (np.maximum(count - 1, 0) if self.shared else 2 * count) / self.free.shape[1]
        X = scale_rows(X, np.sqrt(stride * share * curvature).astype(X.dtype))
        if d1 > self.tuning.gram_columns:
            squares = X.multiply(X) if hasattr(X, "multiply") else X**2
            return partial(_divide_columns, 1 + np.asarray(squares.sum(axis=0)).ravel())
        return factor(gram(X).astype(np.float64) + np.eye(d1)).solve

    def newton_direction(self, gradient: Array, solve: Preconditioner, enough: float, most: int) -> Array:
        """Solve until the residual is `enough` of the gradient (squared, in the preconditioner's norm)."""
        r, step = -gradient, np.zeros_like(gradient)
        z = solve(r)
        p, size = z, float((r * z).sum())
        first = size
        for _ in range(min(max(most, self.tuning.fewest_steps), self.tuning.most_steps)):
            if not size > enough * first:
                break
            curved = self.times(p)
            length = size / float((p * curved).sum())
            step += length * p
            r = r - length * curved
            z = solve(r)
            size, last = float((r * z).sum()), size
            p = z + size / last * p
        return step


def _sum_over_blocks(rows: ArrayRows, f: Callable[[Block], S]) -> S:
    """rows.sum(f), without threads where there is one block only."""
    return rows.sum(f) if rows.n_rows > rows.block_rows else f(next(iter(rows)))


def _curvature_times(P: Array, free: Array, shared: bool, block: Block) -> Array:
    changes = np.asarray(block.X @ P.astype(block.X.dtype), np.float64, order="C")
    apply_curvature(changes, block.y, free[block.start : block.start + len(block.w)], block.w, shared)
    return adjoint(block.X, changes.astype(block.X.dtype)).astype(np.float64)


def _divide_columns(scale: Array, r: Array) -> Array:
    return r / scale[:, None]
