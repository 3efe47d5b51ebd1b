"""Proof that an ensemble of stumps has the largest soft margin: the dual of LPBoost, in plain NumPy.

    max  ρ - Σ s (ρ - m)₊ / ν,      m_i = y_i Σ a h(x_i),  a >= 0,  Σ a = 1                          (Σ s = 1)

over all stumps h with answers ±1 in each leaf. For every distribution d of the rows with d <= s/ν the optimum is at
most the largest edge max_h Σ d y h. References: Demiriz, Bennett & Shawe-Taylor, Linear programming boosting via
column generation (2002). The certificate speaks of 1 - the soft margin, which is at least 0 and to be small.
"""

from __future__ import annotations

import numpy as np

from certifit.checkers.ensemble.adaboost import BoostedRows, PlainStumps
from certifit.checkers.ensemble.stump_scan import StumpScan
from certifit.checkers.plain.dual_points import EPS, summation_error
from certifit.core import Certificate, Check
from certifit.rows import Array

CLAIM = "no combination of stumps has a larger soft margin, up to gap"


def soft_margin(margins: Array, s: Array, nu: float) -> tuple[float, float]:
    """The largest ρ - Σ s (ρ - m)₊ / ν over ρ, and that ρ: the ν-quantile of the margins."""
    order = np.argsort(margins, kind="stable")
    reached = np.cumsum(s[order])
    at = min(int(np.searchsorted(reached, nu * reached[-1])), len(order) - 1)
    rho = float(margins[order[at]])
    return rho - float(s @ np.maximum(rho - margins, 0.0)) / nu, rho


def feasible_distribution(d: Array, s: Array, nu: float) -> Array:
    """The distribution nearest in kind: not negative, at most s/ν, of sum 1."""
    top = s / nu
    d = np.clip(np.where(np.isfinite(d), d, 0.0), 0.0, top)
    total = float(d.sum())
    if total > 1:
        return d / total
    room = top - d
    return d + (1 - total) * room / max(float(room.sum()), np.finfo(float).tiny)


def certify_soft_margin(
    stumps: PlainStumps, weights: Array, errors: Array, distribution: Array, rows: BoostedRows, nu: float, tol: float
) -> Certificate:
    """Check an ensemble of weights (m,) on the rows it was fitted to."""
    sign, n = 2.0 * rows.labels - 1, len(rows.s)
    d = feasible_distribution(distribution, rows.s, nu)
    margins, off = np.zeros(n), 0.0
    for m, weight in enumerate(weights):
        left = stumps.left(m, rows.X)
        told = np.where(left, stumps.answers[m, 0], stumps.answers[m, 1])
        margins += weight * sign * (2.0 * told - 1)
        off = max(off, abs(float(d[told != rows.labels].sum()) - float(errors[m])))
        if stumps.leaf_weight is not None and stumps.leaf_rows is not None:
            found = np.bincount(~left * 2 + rows.labels, d, 4).reshape(2, 2)
            count = np.bincount(~left, minlength=2)
            off = max(off, float(np.abs(found - stumps.leaf_weight[m]).max()))
            off = max(off, float(np.abs(count - stumps.leaf_rows[m]).max()))
    value, rho = soft_margin(margins, rows.s, nu)
    share = 8 * summation_error(n)
    edge = StumpScan(rows.X).largest_leaf_edge(d * sign) + share
    size = abs(float(weights.sum()) - 1) + float(np.maximum(-weights, 0.0).sum())
    checks = (
        Check("weights are not shares of 1, off by", size, 1e-9),
        Check("errors and leaves off by", off, 1e-9),
    )
    facts = {"least margin": float(margins.min()), "soft margin": value, "largest edge": edge, "margin asked": rho}
    limit = max(tol, 1e-9) + share + 64 * EPS
    return Certificate("optimal", CLAIM, 1 - value, 1 - edge, tol, limit, checks, facts, scale=1.0)
