"""Linear machines with an L1 penalty re-checked: squared hinges, and a dual point that bounds their minimum.

**Claim.** Coefficients β and intercept b minimise, up to the gap,

    P(β, b) = |β|₁ + τ |b| + Σᵢ uᵢ max(0, zᵢ)²,   zᵢ = 1 - sᵢ (β·xᵢ + b),   u = C w;    τ = 0: a free intercept.

**Bound.** max(0, z)² = max over a >= 0 of a z - a²/4. With any a in place of the best one, P is a sum of a and a
linear function of β and b, whose minimum beside the penalty is 0 where no slope exceeds its penalty. So for all
a >= 0 with

    |Σ aᵢ sᵢ xᵢ| <= 1 in every column,  |Σ aᵢ sᵢ| <= τ:      P >= Σ [aᵢ - aᵢ² / (4 uᵢ)].

Here a are the slopes 2 u max(0, z), balanced where the intercept is free (`plain.dual_points`), times the largest
factor that is feasible. Rows without weight have a = 0.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np

from certifit.checkers.linear_model.coordinates import centre, no_intercept
from certifit.checkers.plain.blocks import dense
from certifit.checkers.plain.dual_points import DualPenalty, DualSums, lower_bound, make_feasible
from certifit.checkers.svm.linear_machines.claimed import CLAIM
from certifit.checkers.svm.linear_machines.linear import EPS
from certifit.checkers.svm.linear_machines.linear_rows import (
    SLACK_ROUNDING,
    rounding_check,
    scores_and_lengths,
    targets,
    weights,
)
from certifit.core import Certificate
from certifit.rows import Array, Block, Rows


class ClaimedL1Svm(NamedTuple):
    """The problem that a model says it has solved."""

    C: float
    tau: float | None  # penalty of |b|; None: no intercept; 0: a free one


def certify(coef: Array, intercept: Array, claimed: ClaimedL1Svm, tol: float, rows: Rows) -> Certificate:
    """Check β (k, d) and b (k,), machine by machine; y are class numbers, w include class weights."""
    free = claimed.tau == 0
    m = centre(rows) if free else np.zeros(rows.n_features)
    b = intercept + coef @ m
    eta = rows.map(partial(scores_and_lengths, coef, b, m))
    y, w = rows.map(targets), rows.map(weights)
    u = claimed.C * w
    objective = bound = rounding = scale = 0.0
    for c in range(len(coef)):
        s = np.where(y == (c if len(coef) > 1 else 1), 1.0, -1.0)
        z = 1.0 - s * eta[:, c]
        penalty = float(np.abs(coef[c]).sum()) + (claimed.tau or 0.0) * abs(float(b[c]))
        value = penalty + float((u * np.maximum(z, 0.0) ** 2).sum())
        size = float(np.linalg.norm(coef[c])) * eta[:, -1] + float(np.abs(coef[c]) @ np.abs(m)) + abs(float(b[c]))
        off = SLACK_ROUNDING + (SLACK_ROUNDING + EPS * coef.shape[1]) * size
        proved = _bound(s, z, u, m, claimed, rows)
        objective, bound, scale = objective + value, bound + min(proved, value), scale + float(u.sum())
        rounding += float((u * 2 * np.maximum(z + off, 0.0) * off).sum()) + 8 * EPS * value
    checks = (no_intercept(b),) if claimed.tau is None else ()
    checks = (*checks, rounding_check(rounding, objective, coef))
    limit = (tol + 1e-12) * objective + rounding
    return Certificate("optimal", CLAIM, objective, bound, tol, limit, checks, scale=max(objective, scale))


def _bound(s: Array, z: Array, u: Array, m: Array, claimed: ClaimedL1Svm, rows: Rows) -> float:
    """The bound of the slopes at these slacks, never below 0."""
    limit = np.where(u > 0, np.inf, 0.0)
    a = make_feasible(2 * u * np.maximum(z, 0.0), limit, s if claimed.tau == 0 else None)
    soft = np.where(u > 0, a**2 / np.where(u > 0, 4 * u, 1.0), 0.0)
    v = rows.sum(partial(_column_sums, np.column_stack([a * s, a]), m))  # (2, d)
    slope, reach = v[0], v[1]
    if claimed.tau:  # the intercept is the coefficient of a column of ones, in units of its penalty
        slope, reach = np.append(slope, (a * s).sum() / claimed.tau), np.append(reach, a.sum() / claimed.tau)
    balance = np.array((a * s).sum()) if claimed.tau == 0 else np.array(0.0)
    best = 0.0
    # Twice as large an a may still be feasible: the best multiple of its value comes before that of its limits.
    for t in (1.0, min(2.0, float(a.sum()) / max(2 * float(soft.sum()), 1e-300))):
        sums = DualSums(
            gain=t * float(a.sum()) - t**2 * float(soft.sum()),
            gain_size=t * float(a.sum()) + t**2 * float(soft.sum()),
            v=t * slope,
            v_size=t * reach,
            balance=t * balance,
            mass=np.array(t * a.sum()),
        )
        rho = 0.0 if claimed.tau == 0 else None
        best = max(best, lower_bound(sums, DualPenalty(1.0, 0.0, rho), len(a)))
    return best


def _column_sums(R: Array, m: Array, block: Block) -> Array:
    """Σ a s (x - m) and Σ a |x - m| over a block (2, d); R (n, 2) are a s and a."""
    Z, part = dense(block.X) - m, R[block.start : block.start + len(block.w)]
    return np.stack([part[:, 0] @ Z, part[:, 1] @ np.abs(Z)])
