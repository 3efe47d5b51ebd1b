"""What every linear model's pass needs of the rows (z, 1): moments, weighted Gram matrices, their reach."""

from __future__ import annotations

from typing import Any

import numpy as np

from certifit.core import Array, Matrix
from certifit.kernels.logistic import root_rows
from certifit.linalg.products import adjoint, gram, scale_rows
from certifit.solvers.concordance import Largest, Reach, Reached


def moment(Z: Matrix, R: Array, intercept: bool) -> Array:
    """Rᵀ (Z, 1): (k, d1)."""
    product = adjoint(Z, R).T
    return np.column_stack([product, R.sum(axis=0)]) if intercept else product


def sandwich(Z: Matrix, h: Array, intercept: bool) -> Array:
    """(Z, 1)ᵀ diag(h) (Z, 1), h >= 0."""
    if isinstance(Z, np.ndarray):  # one buffer, one symmetric product
        scaled = np.empty((len(h), Z.shape[1] + intercept))
        root_rows(Z, h, scaled)
        return gram(scaled)
    inner = gram(scale_rows(Z, np.sqrt(h)))
    if not intercept:
        return inner
    border = adjoint(Z, h)
    return np.block([[inner, border[:, None]], [border[None], np.array([[h.sum()]])]])


def reached(Z: Matrix, theta: Array, asks: Reach, intercept: bool) -> Reached:
    """What a proof asks of these rows (with weight), at θ (m,)."""
    nothing = Largest(0.0)
    away = reach = extent = nothing
    d = Z.shape[1]
    if asks.theta is not None:
        step = theta - asks.theta
        if step.any():
            moved = Z @ step[:d] + (step[d] if intercept else 0.0)
            away = Largest(float(np.abs(moved).max(initial=0.0)))
    if asks.root is not None:
        whitened = Z @ asks.root[:d]
        if intercept:
            whitened += asks.root[d]
        reach = Largest(float(np.einsum("ij,ij->i", whitened, whitened).max(initial=0.0)))
    if asks.extent:
        most = np.zeros(d)
        if Z.shape[0]:
            most = np.maximum(_dense(Z.max(axis=0)), -_dense(Z.min(axis=0)))
        extent = Largest(np.append(most, 1.0) if intercept else most)
    return Reached(away, reach, extent)


def _dense(row: Any) -> Array:
    return np.asarray(row.toarray() if hasattr(row, "toarray") else row, dtype=np.float64).ravel()
