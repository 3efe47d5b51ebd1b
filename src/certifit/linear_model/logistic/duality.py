"""The duality gap of penalised logistic and softmax regression, from the sums of one pass alone.

The dual asks for Σ w p = Σ w y where the intercept is free. The model's p need not satisfy it, but
p' = τ p + (1 - τ) q does, with q the same for all rows and τ = min_k (Σ w y)_k / (Σ w p)_k (at most 1).
A* is convex, so A*(p') <= τ A*(p) + (1 - τ) A*(q), and everything is known from sums: with v = Σ w (p' - y) z,
loss + Σ w φ*(p' - y) <= β·g + b·g_b + (1 - τ) Σ w (A*(q) - A*(p)).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import entr

from certifit.linear_model.logistic.block_statistics import LogisticPass
from certifit.rows import Array


class LogisticTotals(NamedTuple):
    """Sums over the rows that do not depend on θ."""

    target: Array  # (k, d1) Σ w onehot(y) z̃
    total: Array  # (d1,) Σ w z̃

    @classmethod
    def of(cls, s: LogisticPass) -> LogisticTotals:
        """From a pass that was asked for totals."""
        assert isinstance(s.total, np.ndarray)
        return cls(s.expected - s.g, s.total)


def duality_gap(
    theta: Array, penalty: tuple[float, float], intercept: bool, s: LogisticPass, totals: LogisticTotals
) -> float:
    """P(θ) - D(u) for a feasible dual point u, beside λ₁ |β|₁ + λ₂/2 |β|²; never less than P(θ) - min P.

    `penalty` is (λ₁, λ₂), not both 0. Where sums overflow, and at most, it is P(θ): no loss is negative.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        gap, beta = _by_mixture(theta, penalty, intercept, s, totals), theta[:, : theta.shape[1] - intercept]
        value = s.loss + penalty[0] * float(np.abs(beta).sum()) + 0.5 * penalty[1] * float((beta**2).sum())
    return gap if gap < value else value


def _by_mixture(
    theta: Array, penalty: tuple[float, float], intercept: bool, s: LogisticPass, totals: LogisticTotals
) -> float:
    """The gap of the model's own probabilities, mixed with q; NaN where sums overflow."""
    d = theta.shape[1] - intercept
    beta, g = theta[:, :d], s.g[:, :d]
    if not intercept:
        return _add_penalty(beta, g, penalty, s.loss, float((beta * g).sum()))
    rows = totals.total[d]
    target, imbalance = totals.target[:, d], s.g[:, d]
    if len(theta) == 1:  # the two classes' totals; the second class has no score of its own
        target, imbalance = np.array([target[0], rows - target[0]]), np.array([imbalance[0], -imbalance[0]])
    over = imbalance > 0  # classes expected too often
    leave = float((imbalance[over] / (target + imbalance)[over]).max(initial=0.0))  # 1 - τ
    if leave == 0.0:
        return _add_penalty(beta, g, penalty, s.loss, float((beta * g).sum()))
    q = np.clip(leave * (target + imbalance) - imbalance, 0.0, None)
    q /= q.sum()
    expected = totals.target + s.g  # Σ w p z̃
    v = g + leave * (q[: len(theta), None] * totals.total[:d] - expected[:, :d])
    score = float((expected * theta).sum())  # Σ w p·η
    target_score = float((totals.target * theta).sum())  # Σ w η_y
    entropy_p = s.loss + target_score - score  # -Σ w A*(p)
    entropy_q = rows * float(entr(q).sum())
    both = float((beta * g).sum() + theta[:, d] @ s.g[:, d]) + leave * (entropy_p - entropy_q)
    return _add_penalty(beta, v, penalty, s.loss, both)


def _add_penalty(beta: Array, v: Array, penalty: tuple[float, float], loss: float, both: float) -> float:
    """The gap with the penalty; `both` is the loss plus its conjugate at the dual point, whose Σ w u z is v.

    With λ₂ = 0 the dual point must have |v| <= λ₁: it is scaled down, and the conjugate is convex and 0 at 0.
    NaN stays: max(0.0, NaN) would be a gap of 0.
    """
    lam1, lam2 = penalty
    if lam1 == 0:
        return max(float(((lam2 * beta + v) ** 2).sum()) / (2 * lam2) - float((beta * v).sum()) + both, 0.0)
    size = lam1 * float(np.abs(beta).sum())
    if lam2 > 0:
        above = float((np.maximum(np.abs(v) - lam1, 0.0) ** 2).sum())
        return max(size + 0.5 * lam2 * float((beta**2).sum()) + above / (2 * lam2) + both, 0.0)
    worst = float(np.abs(v).max(initial=0.0))
    stay = min(1.0, lam1 / worst) if worst > 0 else 1.0
    return max((1 - stay) * loss + stay * both + size, 0.0)
