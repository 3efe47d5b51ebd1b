"""Least squares with nearly collinear columns: one more Newton step, its gradient to twice the working precision.

The residuals are large beside the digits that decide between such columns: the gradient Σ w (Xβ + b - y) x cancels.
Reference: Björck, Numerical Methods for Least Squares Problems (1996), section 2.9 (iterative refinement).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from certifit.checkers.plain.response_columns import ResponseLayout
from certifit.linear_model.glm.coordinates import GlmCoordinates
from certifit.linear_model.glm.target import take_apart
from certifit.numerics.double_double import Double, column_sums, two_product, two_sum
from certifit.rows import Array, Block, Rows


def refine(
    rows: Rows,
    coordinates: GlmCoordinates,
    layout: ResponseLayout,
    coef: Array,
    intercept: float,
    solve: Callable[[Array], Array],
) -> tuple[Array, float]:
    """Coefficients and intercept after one step; `solve` applies the inverse Hessian in these coordinates."""
    g = rows.sum(partial(_gradient, coef, intercept, layout)).value
    d = len(coef)
    inner = coordinates.pull(g if coordinates.intercept else g[:d], d)
    step, shift = coordinates.coefficients(-solve(inner), d)
    moved = coef + step
    if coordinates.intercept and coordinates.shift is not None:
        # What rounding takes from the coefficients is put into the intercept.
        lost = (coef - moved) + step
        shift += float(lost @ coordinates.shift)
    return moved, intercept + shift


def _gradient(coef: Array, intercept: float, layout: ResponseLayout, block: Block) -> Double:
    """Σ w u (x, 1) with u = β·x + b + offset - y."""
    response = take_apart(layout, block)
    X = response.X if isinstance(response.X, np.ndarray) else response.X.toarray()
    X = X.astype(np.float64, copy=False)
    high, low = two_sum(response.offset - response.y, np.full(len(X), intercept))
    for column, b in zip(X.T, coef, strict=True):
        product, lost = two_product(column, np.full(len(X), b))
        high, error = two_sum(high, product)
        low = low + (error + lost)
    high, error = two_product(high, response.w)
    low = low * response.w + error
    A = np.column_stack([X, np.ones(len(X))])
    product, lost = two_product(A, np.broadcast_to(high[:, None], A.shape))
    return column_sums(Double(product, lost + A * low[:, None]))
