"""What one pass over the rows measures for logistic and softmax regression, and the gap that follows from it.

    P(θ) = Σᵢ wᵢ φ(θ z̃ᵢ, yᵢ) + λ/2 |β|²,     θ = (β, b),  z̃ = (x - shift, 1)

φ is the negative log-likelihood: A(η) - η_y with A(η) = log(1 + eᶯ) for two classes (one score) and log Σ eᶯᵏ for
more (k scores). The intercept b is not penalised, so any shift of the columns is an exact change of coordinates.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
from scipy.special import entr

from certifit.linear_model.linear_rows import moment, reached, sandwich, shift_rows
from certifit.linear_model.logistic.softmax_loops import binary_rows, softmax_rows
from certifit.optimise.self_concordance import Ask, Reached
from certifit.rows import Array, Block, Matrix, Sums


class Smallest(float):
    """A float whose `+` is the minimum."""

    def __add__(self, other: float) -> Self:
        return type(self)(min(float(self), other))


@dataclass(frozen=True)
class Pass(Sums):
    """Data-term sums at θ (k, d1); d1 counts the intercept. Fields not asked for are 0."""

    loss: float
    g: Array  # (k, d1) gradient Σ w (p - y) z̃
    margin: Smallest  # min over rows of the score's lead over its best rival
    curvature: Array  # (k, k) Hessian in the intercepts alone
    H: Array | float  # (k d1, k d1) Hessian, or its part in the wanted columns
    expected: Array | float  # (k, d1) Σ w p z̃
    total: Array | float  # (d1,) Σ w z̃
    reached: Reached | float


class Want(NamedTuple):
    hessian: bool
    totals: bool = False  # `expected` and `total`
    reach: Ask | None = None
    columns: Array | None = None  # entries of θ in which the Hessian is wanted; one score only


def measure(theta: Array, shift: Array | None, intercept: bool, want: Want, block: Block) -> Pass:
    """One pass over a block."""
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
    H: Array | float = 0.0
    if want.hessian:
        H = _part(Z, h, intercept, want.columns) if k == 1 else _softmax_hessian(Z, w, P, intercept)
    expected: Array | float = 0.0
    total: Array | float = 0.0
    if want.totals:
        mean = R + (w * y)[:, None] if k == 1 else w[:, None] * P
        expected, total = moment(Z, mean, intercept), moment(Z, w[:, None], intercept)[0]
    far: Reached | float = 0.0
    if want.reach is not None:
        far = reached(Z if w.all() else Z[w > 0], want.reach, intercept)
    return Pass(loss, moment(Z, R, intercept), Smallest(margin), curvature, H, expected, total, far)


def _part(Z: Matrix, h: Array, intercept: bool, columns: Array | None) -> Array:
    """The Hessian in these entries of θ."""
    if columns is None:
        return sandwich(Z, h, intercept)
    d = Z.shape[1]
    return sandwich(Z[:, columns[columns < d]], h, bool((columns == d).any()))


def _softmax_hessian(Z: Matrix, w: Array, P: Array, intercept: bool) -> Array:
    """Blocks Σ w p_k (δ_kl - p_l) z̃ z̃ᵀ; off the diagonal the sign is carried outside the root."""
    k, d1 = P.shape[1], Z.shape[1] + intercept
    H = np.empty((k, d1, k, d1))
    for a in range(k):
        H[a, :, a] = sandwich(Z, w * P[:, a] * (1 - P[:, a]), intercept)
        for b in range(a):
            H[a, :, b] = H[b, :, a] = -sandwich(Z, w * P[:, a] * P[:, b], intercept)
    return H.reshape(k * d1, k * d1)


@dataclass(frozen=True)
class Totals:
    """Sums over the rows that do not depend on θ."""

    target: Array  # (k, d1) Σ w onehot(y) z̃
    total: Array  # (d1,) Σ w z̃


def duality_gap(theta: Array, lam: float, intercept: bool, s: Pass, totals: Totals, lam1: float = 0.0) -> float:
    """P(θ) - D(u) for a feasible dual point u built from this pass's sums alone; never less than P(θ) - min P.

    The dual asks for Σ w p = Σ w y where the intercept is free. The model's p need not satisfy it, but
    p' = τ p + (1 - τ) q does, with q the same for all rows and τ = min_k (Σ w y)_k / (Σ w p)_k (at most 1).
    A* is convex, so A*(p') <= τ A*(p) + (1 - τ) A*(q), and everything is known from sums: with v = Σ w (p' - y) z,
    loss + Σ w φ*(p' - y) <= β·g + b·g_b + (1 - τ) Σ w (A*(q) - A*(p)).
    """
    d = theta.shape[1] - intercept
    beta, g = theta[:, :d], s.g[:, :d]
    if not intercept:
        return _with_penalty(beta, g, lam, lam1, s.loss, float((beta * g).sum()))
    rows = totals.total[d]
    target, imbalance = totals.target[:, d], s.g[:, d]
    if len(theta) == 1:  # the two classes' totals; the second class has no score of its own
        target, imbalance = np.array([target[0], rows - target[0]]), np.array([imbalance[0], -imbalance[0]])
    over = imbalance > 0  # classes expected too often
    leave = float((imbalance[over] / (target + imbalance)[over]).max(initial=0.0))  # 1 - τ
    if leave == 0.0:
        return _with_penalty(beta, g, lam, lam1, s.loss, float((beta * g).sum()))
    q = np.clip(leave * (target + imbalance) - imbalance, 0.0, None)
    q /= q.sum()
    expected = totals.target + s.g  # Σ w p z̃
    v = g + leave * (q[: len(theta), None] * totals.total[:d] - expected[:, :d])
    score = float((expected * theta).sum())  # Σ w p·η
    target_score = float((totals.target * theta).sum())  # Σ w η_y
    entropy_p = s.loss + target_score - score  # -Σ w A*(p)
    entropy_q = rows * float(entr(q).sum())
    both = float((beta * g).sum() + theta[:, d] @ s.g[:, d]) + leave * (entropy_p - entropy_q)
    return _with_penalty(beta, v, lam, lam1, s.loss, both)


def _with_penalty(beta: Array, v: Array, lam: float, lam1: float, loss: float, both: float) -> float:
    """The gap with λ₁ |β|₁ + λ/2 |β|²; `both` is the loss plus its conjugate at the dual point, whose Σ w u z is v.

    Without a ridge the dual point must have |v| <= λ₁: it is scaled down, and the conjugate is convex and 0 at 0.
    """
    if lam1 == 0:
        return max(0.0, float(((lam * beta + v) ** 2).sum()) / (2 * lam) - float((beta * v).sum()) + both)
    size = lam1 * float(np.abs(beta).sum())
    if lam > 0:
        above = float((np.maximum(np.abs(v) - lam1, 0.0) ** 2).sum())
        return max(0.0, size + 0.5 * lam * float((beta**2).sum()) + above / (2 * lam) + both)
    worst = float(np.abs(v).max(initial=0.0))
    stay = min(1.0, lam1 / worst) if worst > 0 else 1.0
    return max(0.0, (1 - stay) * loss + stay * both + size)
