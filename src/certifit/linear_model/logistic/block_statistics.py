"""What one pass over the rows measures for logistic and softmax regression.

    P(θ) = Σᵢ wᵢ φ(θ z̃ᵢ, yᵢ) + λ/2 |β|²,     θ = (β, b),  z̃ = (x - shift, 1)

φ is the negative log-likelihood: A(η) - η_y with A(η) = log(1 + eᶯ) for two classes (one score) and log Σ eᶯᵏ for
more (k scores). The intercept b is not penalised, so any shift of the columns is an exact change of coordinates.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from certifit.linear_model.linear_rows import moment, row_reach, sandwich, sandwich_of, shift_rows
from certifit.losses.softmax_loops import binary_rows, softmax_rows
from certifit.optimise.self_concordance import ReachRequest, RowReach
from certifit.optimise.sparse_curvature import SparseCurvature
from certifit.rows import Array, Block, Matrix, Sums


class Smallest(float):
    """A float whose `+` is the minimum."""

    def __add__(self, other: float) -> Self:
        return type(self)(min(float(self), other))


@dataclass(frozen=True)
class LogisticPass(Sums):
    """Sums of the data term at θ (k, d1); d1 counts the intercept. Fields not asked for are 0."""

    loss: float
    g: Array  # (k, d1) gradient Σ w (p - y) z̃
    margin: Smallest  # smallest lead of a row's own score over the best other one
    curvature: Array  # (k, k) Hessian in the intercepts alone
    H: Array | SparseCurvature | float  # (k d1, k d1) Hessian, or its part in the wanted columns
    expected: Array | float  # (k, d1) Σ w p z̃
    total: Array | float  # (d1,) Σ w z̃
    reach: RowReach | float


class LogisticRequest(NamedTuple):
    """What a pass should measure beside the loss and its gradient."""

    hessian: bool
    totals: bool = False  # `expected` and `total`
    reach: ReachRequest | None = None
    columns: Array | None = None  # entries of θ in which the Hessian is wanted; one score only
    at_hand: bool = False  # whether the table's columns are, so that its curvatures are enough


def measure(
    theta: Array, shift: Array | None, intercept: bool, request: LogisticRequest, block: Block
) -> LogisticPass:
    """Sum the loss, its gradient and what else was asked for over a block."""
    Z, w, y = shift_rows(block.X, shift), block.w, block.y
    k, d = theta.shape[0], Z.shape[1]
    eta = Z @ theta[:, :d].T
    if intercept:
        eta += theta[:, d]
    P, R = np.empty_like(eta), np.empty_like(eta)
    if k == 1:
        h = np.empty(len(w))
        loss, margin = binary_rows(eta[:, 0], y, w, R[:, 0], h)
        curvature = np.array([[h.sum()]])
    else:
        loss, margin = softmax_rows(eta, y, w, P, R)
        curvature = np.diag(w @ P) - P.T @ (P * w[:, None])
    H: Array | SparseCurvature | float = 0.0
    if request.hessian:
        H = (
            sandwich_of(Z, h, intercept, request.columns, request.at_hand)
            if k == 1
            else _softmax_hessian(Z, w, P, intercept)
        )
    expected: Array | float = 0.0
    total: Array | float = 0.0
    if request.totals:
        mean = R + (w * y)[:, None] if k == 1 else w[:, None] * P
        expected, total = moment(Z, mean, intercept), moment(Z, w[:, None], intercept)[0]
    reach: RowReach | float = 0.0
    if request.reach is not None:
        reach = row_reach(Z if w.all() else Z[w > 0], request.reach, intercept)
    return LogisticPass(loss, moment(Z, R, intercept), Smallest(margin), curvature, H, expected, total, reach)


def _softmax_hessian(Z: Matrix, w: Array, P: Array, intercept: bool) -> Array:
    """The Hessian (k d1, k d1), in blocks Σ w p_k (δ_kl - p_l) z̃ z̃ᵀ; `sandwich` takes roots, hence the minus."""
    k, d1 = P.shape[1], Z.shape[1] + intercept
    H = np.empty((k, d1, k, d1))
    for a in range(k):
        H[a, :, a] = sandwich(Z, w * P[:, a] * (1 - P[:, a]), intercept)
        for b in range(a):
            H[a, :, b] = H[b, :, a] = -sandwich(Z, w * P[:, a] * P[:, b], intercept)
    return H.reshape(k * d1, k * d1)
