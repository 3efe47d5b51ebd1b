"""A start for support vector machines of all classes at once: their loss smoothed, by L-BFGS.

    min over θ of   ½ |θ|² + Σᵢ max over q of (q·zᵢ - h/(2uᵢ) |q|²),     z_k = margin [k ≠ y] + f_k - f_y,   f = θ x

with q in the loss's domain. Some tens of passes find an objective within a few percent; dual ascent takes far longer
to come so near, and from there on is faster.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from certifit.core import Array, ArrayRows, Block, Sums
from certifit.kernels.joint_svm import slopes
from certifit.linalg.factor import factor
from certifit.linalg.products import adjoint, gram
from certifit.models.joint_svm_face import signed
from certifit.solvers.descent import Point, State, descend
from certifit.solvers.lbfgs import LBFGS, Precondition

WIDTHS = 0.3, 0.1  # h, in units of the margin
PASSES = 40  # at each
LOOK, SLOW = 5, 0.01  # passes in which the objective must fall by that share of itself
CURVED = 0.05  # share of the rows that a pair of scores bends, roughly
NARROW = 2000  # columns up to which XᵀX is formed; beyond, its diagonal
SAMPLE = 8192  # rows that do for it


@dataclass(frozen=True)
class Pass(Sums):
    value: float
    pull: Array  # (d1, k) Σ x α


def smoothed(theta: Array, h: float, shape: Any, block: Block) -> Pass:
    """Of a block, whose weights are u."""
    assert block.y is not None
    F, u, own = block.X @ theta, block.w, (np.arange(len(block.w)), block.y)
    q = np.empty_like(F)
    slopes(F, block.y, u, shape.margin, shape.shared, h, q)
    z = shape.margin + F - F[own][:, None]
    z[own] = 0.0
    away = np.divide((q**2).sum(axis=1), u, out=np.zeros_like(u), where=u > 0)
    return Pass(float((q * z).sum()) - 0.5 * h * float(away.sum()), adjoint(block.X, signed(q, block.y)))


def smooth_start(rows: ArrayRows, k: int, shape: Any) -> Array:
    """θ (d1, k), from 0."""
    d1 = rows.n_features
    theta = np.zeros((d1, k))
    for width in WIDTHS:
        h = width * shape.margin
        state = State(theta.ravel(), LBFGS(_preconditioner(rows, h, k)))
        values: list[float] = []
        for _ in range(PASSES):
            theta = state.x.reshape(d1, k)
            s = rows.sum(partial(smoothed, theta, h, shape))
            value = s.value + 0.5 * float((theta**2).sum())
            state = descend(state, Point(state.x, value, (theta - s.pull).ravel(), np.inf, None)).params
            values.append(value)
            if len(values) > LOOK and values[-LOOK - 1] - min(values[-LOOK:]) < SLOW * abs(value):
                break
        assert state.base is not None
        theta = state.base.x.reshape(d1, k)
    return theta


def _preconditioner(rows: ArrayRows, h: float, k: int) -> Precondition:
    """The inverse of 1 + XᵀX of the bent rows, the same for every class."""
    stride = max(1, rows.n_rows // SAMPLE)
    X = rows.X[::stride]
    X = sparse.diags_array(np.sqrt(stride * CURVED / h * rows.w[::stride])) @ X
    if rows.n_features > NARROW:
        scale = 1 + np.asarray(X.multiply(X).sum(axis=0)).ravel()
        return partial(_divide, scale, k)
    inverse = factor(gram(sparse.csr_array(X)) + np.eye(rows.n_features))
    return partial(_solve, inverse, k)


def _divide(scale: Array, k: int, r: Array) -> Array:
    return (r.reshape(-1, k) / scale[:, None]).ravel()


def _solve(inverse: Any, k: int, r: Array) -> Array:
    return np.asarray(inverse.solve(r.reshape(-1, k))).ravel()
