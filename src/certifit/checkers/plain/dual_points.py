"""Dual points and the lower bounds they prove: feasibility is established here, and rounding is subtracted here.

A convex problem  min Σ φᵢ(ηᵢ) + λ₁ |β|₁ + λ₂/2 |β|² + ρ/2 b²,  η = x·β + b,  has for every feasible a the lower bound

    D(a) = Σ gᵢ(aᵢ) - Σⱼ (|vⱼ| - λ₁)₊² / 2λ₂ - (Σ aᵢ)² / 2ρ,      v = Σ aᵢ xᵢ,   gᵢ(a) = - φᵢ*(-a)

(with λ₂ = 0, that of τa, τ = min(1, λ₁ / max |vⱼ|); with a free intercept, ρ = 0, only where Σ aᵢ = 0). *Feasible*
means inside the box of each row, 0 for rows without weight, in balance where an intercept is free. Any candidate may
be proposed: `make_feasible` clips and balances it, `is_feasible` verifies that from scratch, and `lower_bound` gives
away all that rounding may have added. So a bad candidate makes a weak bound, never a wrong one.

Rounding. A sum of n terms is off by at most n eps Σ |terms|; rows are summed in blocks and blocks in a tree, so n is
at most a block. An imbalance r is put right by scaling the heavier side down by a share δ = r / (its mass), which
costs at most the same share of every other sum: gᵢ is concave with gᵢ(0) >= 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from certifit.rows import Array, Sums

EPS, TINY = float(np.finfo(float).eps), float(np.finfo(float).tiny)


def summation_error(n_rows: int) -> float:
    """How far a sum over so many rows can be off, as a share of the sum of the sizes of its terms."""
    most_rows_of_a_block, tree = 32_768, 64
    return (min(n_rows, most_rows_of_a_block) + tree) * EPS


def make_feasible(a: Array, limit: Array, sign: Array | None = None) -> Array:
    """Return the candidate (m,) inside 0 <= a <= limit, 0 where it is not finite, with Σ sign a = 0 where told.

    `limit` is 0 for rows without weight and may be infinite for others; `sign` is ±1 of each entry.
    """
    a = np.clip(np.where(np.isfinite(a), a, 0.0), 0.0, limit)
    if sign is None:
        return a
    plus, minus = float(a[sign > 0].sum()), float(a[sign < 0].sum())
    less = min(plus, minus)
    # A side that vanishes beside the other, or beside the smallest numbers, leaves no digits to balance with.
    if not less > TINY / EPS * max(1.0, plus, minus):
        return np.zeros_like(a)
    return a * np.where(sign > 0, less / plus, less / minus)


def is_feasible(a: Array, limit: Array) -> bool:
    """Whether every entry is finite, inside 0 <= a <= limit, and hence 0 for rows without weight."""
    return bool(np.isfinite(a).all() and (a >= 0).all() and (a <= limit).all())


@dataclass(frozen=True)
class DualSums(Sums):
    """What a dual point sums up to, and the sums of the sizes of the terms, to which rounding is relative."""

    gain: float  # Σ g(a)
    gain_size: float
    v: Array  # (d,) or (k, d): Σ a x of each score
    v_size: Array
    balance: Array  # () or (k,): Σ a of each score
    mass: Array  # Σ |a|


class DualSize(NamedTuple):
    """How large the terms of a dual point's sums can be, where it is not kept row by row."""

    gain: float  # at least Σ of the sizes of the terms of gᵢ(aᵢ)
    v: float  # at least Σ |aᵢ| |xᵢ|
    mass: float  # at least Σ |aᵢ|
    n_rows: int


class DualPenalty(NamedTuple):
    """What is penalised: λ₁ |β|₁ + λ₂/2 |β|² + ρ/2 b²; ρ = 0 for a free intercept, None where there is none."""

    lam1: float
    lam2: float
    rho: float | None


def lower_bound(sums: DualSums, penalty: DualPenalty, n_rows: int, positive: bool = False) -> float:
    """The bound D(a) less everything that rounding may have added to it; -inf where that cannot be told.

    Coefficients that are held at 0 or above (`positive`) cost nothing where v is above 0, which pulls them down.
    """
    lam1, lam2, rho = penalty
    share = summation_error(n_rows)
    balance = np.abs(sums.balance) + share * sums.mass
    if rho == 0:
        # The heavier side has half of the mass at least.
        with np.errstate(divide="ignore", invalid="ignore"):
            share += float(np.max(np.where(sums.mass > 0, 2 * balance / sums.mass, 0.0), initial=0.0))
    if not (np.isfinite(sums.gain) and np.isfinite(sums.gain_size) and share < 1):
        return -np.inf
    gain = sums.gain - share * sums.gain_size
    with np.errstate(over="ignore", invalid="ignore"):
        slope = share * sums.v_size + (np.maximum(-sums.v, -share * sums.v_size) if positive else np.abs(sums.v))
        if rho:
            gain -= float((balance**2).sum()) / (2 * rho)
        above = np.maximum(slope - lam1, 0.0)
        cost = float((above / np.sqrt(lam2) ** 2 * above).sum()) / 2 if lam2 > 0 else np.inf
        bounds = [gain - cost] if lam2 > 0 else []
        if lam1 > 0 and gain > 0:
            worst = float(slope.max(initial=0.0))
            bounds.append(gain * min(1.0, lam1 / worst if worst > 0 else 1.0))
    best = max((bound for bound in bounds if not np.isnan(bound)), default=-np.inf)
    return best - 8 * EPS * (abs(best) + abs(gain)) if np.isfinite(best) else -np.inf


def rounding_of_bound(value: float, size: DualSize, rho: float | None) -> float:
    """How much rounding may have added to a bound 0 <= D(a) <= value of the objective ½ |β|² + ρ/2 b² + Σ φ(η).

    It is for solvers that keep sums of a and not their sizes, and take the best multiple of a: its |v|² and
    (Σ a)² / ρ are at most 2 D(a), since half of what they cost is what is left. Signs that were balanced by scaling
    count as two more roundings of every sum.
    """
    share, slope = 3 * summation_error(size.n_rows), np.sqrt(2 * max(value, 0.0))
    off, off_balance = share * size.v, share * size.mass
    lost = share * size.gain + slope * off + off**2 / 2
    if rho:
        lost += slope / np.sqrt(rho) * off_balance + off_balance**2 / (2 * rho)
    return float(lost + 8 * EPS * (abs(value) + size.gain))


def bound_below(objective: float, gap: float, size: float, n_rows: int) -> float:
    """The bound objective - gap, where a gap was computed by itself; `size` is the sum of the sizes of all terms.

    A large objective has lost the digits of a small optimum: what rounding may hide is given away.
    """
    if not (np.isfinite(objective) and np.isfinite(gap) and np.isfinite(size)):
        return -np.inf
    return objective - gap - summation_error(n_rows) * max(size, abs(objective) + abs(gap))
