"""Newton's direction for the smoothed losses of support vector machines of all classes at once.

    (1 + Σᵢ uᵢ/h Jᵢ ⊗ xᵢxᵢᵀ) step = -gradient,     Jᵢ how row i's q within their limits answer to its scores

by conjugate gradients over the rows with such q, which are few near the solution. The preconditioner has one
curvature for all classes: their mean.
Reference: Li, Sun & Toh, "A highly efficient semismooth Newton augmented Lagrangian method for solving Lasso
problems" (2018), for the method of which this is the inner step.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeAlias

import numpy as np

from certifit.numerics.factor import factor
from certifit.numerics.products import adjoint, gram, scale_rows
from certifit.rows import Array, ArrayRows, Block, Matrix
from certifit.rows.sums import S
from certifit.svm.joint_linear.joint_hinge_loops import curve_rows

Solve: TypeAlias = Callable[[Array], Array]  # the preconditioner's inverse, (d1, k) to (d1, k)

NARROW = 2000  # columns up to which XᵀX is formed; beyond, its diagonal
SAMPLE = 4096  # rows that do for it
FEWEST, MOST = 5, 100  # steps


class Curvature:
    """The second derivatives at one point, from its rows X (m, d1) with free variables; `free` is (m, k).

    X in float32 is enough for a direction that is rough anyway.
    """

    def __init__(self, X: Matrix, y: Array, stiff: Array, free: Array, shared: bool) -> None:
        self.rows, self.free, self.shared = ArrayRows(X, y, stiff), free, shared

    def times(self, P: Array) -> Array:
        """(d1, k)."""
        if not self.rows.n_rows:
            return P
        return P + total(self.rows, partial(_curve, P, self.free, self.shared))

    def preconditioner(self) -> Solve:
        n, d1 = self.rows.n_rows, self.rows.n_features
        stride = max(1, n // SAMPLE)
        X, count, stiff = self.rows.X[::stride], self.free[::stride].sum(axis=1), self.rows.w[::stride]
        share = (np.maximum(count - 1, 0) if self.shared else 2 * count) / self.free.shape[1]
        X = scale_rows(X, np.sqrt(stride * share * stiff).astype(X.dtype))
        if d1 > NARROW:
            squares = X.multiply(X) if hasattr(X, "multiply") else X**2
            return partial(_divide, 1 + np.asarray(squares.sum(axis=0)).ravel())
        return factor(gram(X).astype(np.float64) + np.eye(d1)).solve

    def step(self, gradient: Array, solve: Solve, enough: float, most: int) -> Array:
        """The direction, until what is left is `enough` of the gradient (squared, in the preconditioner's norm)."""
        r, step = -gradient, np.zeros_like(gradient)
        z = solve(r)
        p, size = z, float((r * z).sum())
        first = size
        for _ in range(min(max(most, FEWEST), MOST)):
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


def total(rows: ArrayRows, f: Callable[[Block], S]) -> S:
    """rows.sum(f), without threads where there is one block only."""
    return rows.sum(f) if rows.n_rows > rows.block_rows else f(next(iter(rows)))


def _curve(P: Array, free: Array, shared: bool, block: Block) -> Array:
    answer = np.asarray(block.X @ P.astype(block.X.dtype), np.float64, order="C")
    curve_rows(answer, block.y, free[block.start : block.start + len(block.w)], block.w, shared)
    return adjoint(block.X, answer.astype(block.X.dtype)).astype(np.float64)


def _divide(scale: Array, r: Array) -> Array:
    return r / scale[:, None]
