"""Covariance of logistic and softmax coefficients at the maximum of the likelihood: one pass, two for the sandwich.

Softmax coefficients are determined up to a common vector. With class 0's fixed at 0 the information is regular, its
inverse is the covariance of the contrasts with class 0, and the coefficients that sum to 0 over the classes are a
linear function of those.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from certifit.linear_model.glm.coordinates import GlmCoordinates, independent_columns, triangle_of
from certifit.linear_model.linear_rows import sandwich
from certifit.linear_model.logistic.block_statistics import LogisticRequest, measure
from certifit.losses.softmax import class_probabilities
from certifit.numerics.factor import factor
from certifit.rows import Array, Block, Rows


def covariance(rows: Rows, theta: Array, shift: Array | None, intercept: bool, kind: str) -> tuple[Array | None, int]:
    """The covariance (k d1, k d1) of (intercept, coefficients), class after class, and the number of free parameters.

    θ (k, d1) is in coordinates shifted by `shift`. None where columns are collinear or it overflows; nearly collinear
    ones are made orthogonal first, since the inverse of their information would lose its digits.
    """
    frame = GlmCoordinates(intercept, shift)
    inverse = factor(_information(rows, theta, frame))
    if inverse.cholesky is None or not np.diag(inverse.cholesky[0]).min(initial=1.0) > 1e-4:
        R = rows.sum(partial(triangle_of, frame)).R
        if len(independent_columns(R, intercept)) < R.shape[1]:
            return None, len(inverse.scale) if inverse.values is None else len(inverse.values)
        frame, theta = replace(frame, kept=np.arange(len(R)), R=R), theta @ R.T
        inverse = factor(_information(rows, theta, frame))
    if inverse.cholesky is None:
        assert inverse.values is not None
        return None, len(inverse.values)
    if kind == "classical":
        C = inverse.solve(np.eye(len(inverse.scale)))
    else:
        score_products = _contrasts(rows.sum(partial(_squared_scores, theta, frame)), theta.shape)
        C = inverse.solve(inverse.solve(score_products).T)
    columns = frame.to_columns(rows.n_features)
    J = np.kron(_classes(len(theta)), np.roll(columns, 1, axis=0) if intercept else columns)
    with np.errstate(over="ignore", invalid="ignore"):
        found = J @ C @ J.T
    # Of columns next to denormal numbers the squares of standard errors overflow.
    return (found if np.isfinite(found).all() else None), len(C)


def _information(rows: Rows, theta: Array, frame: GlmCoordinates) -> Array:
    """The information of the contrasts with class 0 at θ (k, m), in the coordinates of `frame`."""
    return _contrasts(rows.sum(partial(_hessian, theta, frame)), theta.shape)


def _hessian(theta: Array, frame: GlmCoordinates, block: Block) -> Array:
    if frame.R is None:
        found = measure(theta, frame.shift, frame.intercept, LogisticRequest(hessian=True), block)
    else:
        Z = frame.rows(block.X)  # with the column of ones, if any
        found = measure(theta, None, False, LogisticRequest(hessian=True), block._replace(X=Z))
    assert isinstance(found.H, np.ndarray)
    return found.H


def _contrasts(A: Array, shape: tuple[int, int]) -> Array:
    """The part of A (k d1, k d1) that belongs to classes 1 … k-1; all of it where two classes have one score."""
    first = shape[1] if shape[0] > 1 else 0
    return A[first:, first:]


def _classes(k: int) -> Array:
    """The matrix (k, k-1) from contrasts with class 0 to coefficients that sum to 0 over the classes."""
    return np.eye(k)[:, 1:] - 1 / k if k > 1 else np.ones((1, 1))


def _squared_scores(theta: Array, frame: GlmCoordinates, block: Block) -> Array:
    """Sum w (r ⊗ z)(r ⊗ z)ᵀ with r = p - y over a block (k d1, k d1)."""
    Z, w, y, intercept = frame.rows(block.X), block.w, block.y, frame.appends_one
    assert y is not None
    k, d = len(theta), Z.shape[1]
    eta = Z @ theta[:, :d].T + (theta[:, d] if intercept else 0.0)
    R = class_probabilities(eta) - (y[:, None] if k == 1 else y[:, None] == np.arange(k))
    out = np.empty((k, d + intercept, k, d + intercept))
    for a in range(k):
        for b in range(a + 1):
            h = w * R[:, a] * R[:, b]
            part = sandwich(Z, np.maximum(h, 0.0), intercept)
            if a != b:
                part -= sandwich(Z, np.maximum(-h, 0.0), intercept)
            out[a, :, b] = out[b, :, a] = part
    return out.reshape(k * (d + intercept), -1)
