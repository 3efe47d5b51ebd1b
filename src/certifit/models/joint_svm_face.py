"""One move of all dual variables that are within their limits, for support vector machines of all classes at once.

With the others held, the dual is a quadratic: conjugate gradients, then a search along the way from here, bent at the
limits. What row by row takes rounds and rounds is done in as many steps as a root of them.
Reference: Moré & Toraldo, "On the solution of large quadratic programming problems with bound constraints" (1991).
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from certifit.core import Array, ArrayRows, Block
from certifit.kernels.joint_svm import ROUNDING
from certifit.linalg.products import adjoint

ENOUGH = 0.03  # of the gradient's size, at which the quadratic counts as solved
SHORTER, TRIALS = 0.4, 50  # share of a step that was too long, and how often
FASTER, SLOWER = 2.0, 0.67  # how many more steps next time where the step was taken whole, else fewer


def signed(q: Array, y: Array) -> Array:
    """α (n, k): -q of the rivals, and their sum for the own class."""
    own = np.arange(len(y)), y
    alpha = -q
    alpha[own] = 0.0
    alpha[own] = -alpha.sum(axis=1)
    return alpha


class Face:
    """The rows with free variables, among some that move: `free` (m, k) says which. Moves q (n, k) in place."""

    def __init__(self, rows: ArrayRows, shape: Any, offset: Array, q: Array, moving: Array, free: Array) -> None:
        self.all, self.shape, self.offset = q, shape, offset
        held = free.any(axis=1)
        self.index, self.free = moving[held], free[held].astype(np.float64)
        self.rows = rows.take(self.index)
        assert self.rows.y is not None
        self.y, self.u, self.q = self.rows.y, self.rows.w, q[self.index]
        self.count = np.maximum(self.free.sum(axis=1, keepdims=True), 1.0)
        self.few = self.rows.n_rows <= self.rows.block_rows  # one block: the same bits, without threads
        self.spent = 0  # products with these rows

    def climb(self, V: Array, steps: int) -> tuple[Array, int, int]:
        """V (d1, k) after the move, how many steps to allow next time, and how many rows were visited."""
        if not len(self.index):
            return V, steps, 0
        z = self._slacks(V) + self.shape.margin + self.offset - self.offset[self.y][:, None]
        z[np.arange(len(self.y)), self.y] = 0.0
        step = self._conjugate(z, steps)
        first = self._first(step)  # a step so long meets no limit, and cannot be wrong
        t, here = 1.0, self._linear(self.q) - 0.5 * float((V**2).sum())
        for _ in range(TRIALS):
            q = self._within(self.q + t * step)
            after = V + self._pull(q - self.q)
            if t <= first or self._linear(q) - 0.5 * float((after**2).sum()) > here:
                self.all[self.index] = q
                return after, int(steps * (FASTER if t == 1 else SLOWER)), self.spent * len(self.index)
            t = max(SHORTER * t, first)
        return V, steps, self.spent * len(self.index)  # nothing but rounding is left

    def _first(self, step: Array) -> float:
        """Share of the step at which the first variable meets a limit."""
        room = np.where(step < 0, self.q, self.u[:, None] - self.q)
        share = np.divide(room, np.abs(step), out=np.ones_like(step), where=step != 0)
        return float(share.min())

    def _conjugate(self, z: Array, steps: int) -> Array:
        """The step to the maximum of the quadratic, nearly; its gradient is z on the face."""
        r = self._project(z)
        p, step, size = r, np.zeros_like(r), float((r**2).sum())
        enough = ENOUGH**2 * size
        for _ in range(steps):
            if size <= enough:
                break
            pull = self._pull(p)
            curvature = float((pull**2).sum())
            if not curvature > 0:
                break
            length = size / curvature
            step += length * p
            r = r + length * self._project(self._slacks(pull))
            size, last = float((r**2).sum()), size
            p = r + size / last * p
        return step

    def _project(self, z: Array) -> Array:
        """z of the free variables; where a row's share one limit, less their mean."""
        z = self.free * z
        return z - self.free * (z.sum(axis=1, keepdims=True) / self.count) if self.shape.shared else z

    def _within(self, q: Array) -> Array:
        """q brought back to its limits: those below 0 to 0; those beyond u, or a sum beyond it, back to u."""
        u = self.u[:, None]
        q = np.where(q > ROUNDING * u, q, 0.0)
        if not self.shape.shared:
            return np.where(q < (1 - ROUNDING) * u, q, u)
        return q * (u / q.sum(axis=1, keepdims=True))

    def _linear(self, q: Array) -> float:
        """The dual's linear part, but for a constant."""
        alpha = signed(q, self.y)
        flow = float(alpha[np.arange(len(q)), self.y].sum())
        return self.shape.margin * flow - float(self.offset @ alpha.sum(axis=0))

    def _slacks(self, V: Array) -> Array:
        """f - f_y (m, k)."""
        self.spent += 1
        F = self.rows.X @ V if self.few else self.rows.map(partial(score_rows, V))
        return F - F[np.arange(len(F)), self.y][:, None]

    def _pull(self, q: Array) -> Array:
        """Σ x α (d1, k)."""
        self.spent += 1
        alpha = signed(q, self.y)
        return adjoint(self.rows.X, alpha) if self.few else self.rows.sum(partial(adjoint_rows, alpha))


def score_rows(V: Array, block: Block) -> Array:
    return np.asarray(block.X @ V)


def adjoint_rows(alpha: Array, block: Block) -> Array:
    return adjoint(block.X, alpha[block.start : block.start + len(block.w)])
