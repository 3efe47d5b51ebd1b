"""Support vector machines for all classes at once, linear or with kernels: objective, feasible dual points, bound.

**The claim.** Scores f = (f_1, …, f_k) with biases b minimise, up to the gap,

    P = ½ Σ_k |β_k|² + ρ/2 Σ_k b_k² + Σᵢ uᵢ L(zᵢ),    z_k = margin [k ≠ y] + f_k - f_y,    u = C w
    Weston-Watkins: L = Σ_k max(0, z_k), margin 2;    Crammer-Singer: L = max_k z_k, margin 1

**The bound.** u L(z) is the largest a·z over all a >= 0 with a_ik <= uᵢ (Weston-Watkins) or Σ_k a_ik <= uᵢ
(Crammer-Singer), k ≠ yᵢ. Putting any such a in place of the best one makes P smaller, and what is left is a quadratic
with a known minimum:

    P >= margin Σ a - ½ Σ_k |v_k|² - Σ_k (Σᵢ α_ik)² / (2ρ),    v_k = Σᵢ α_ik xᵢ,    α_ik = -a_ik,  α_iy = Σ_k a_ik

where Σᵢ α_ik = 0 is needed for every class if the biases are free (ρ = 0).

**Why α is feasible.** `feasible` cuts any candidate off at its limits. For free biases, the sums of a by (own class,
rival) form a flow between classes, and balance means that as much flows out of each class as into it: `circulation`
takes off what flows from classes with too much to classes with too little. `lower_bound` takes a multiple that is
within the limits, verifies these anew, and pays for what rounding has left out of balance: an excess E of some
classes leaves them along paths of at most k - 1 arcs, so that taking it off changes Σ a by (k - 1) E at most, and two
coefficients by each arc. A bad candidate hence makes a weak bound, never a wrong one. Linear machines are certified
in `checkers.svm.joint_linear`, others in `joint_kernel`.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

import numpy as np

from certifit.checkers.plain.dual_points import DualPenalty, DualSums, is_feasible, summation_error
from certifit.checkers.plain.dual_points import lower_bound as bound_of_dual_point
from certifit.checkers.plain.hinges import PlainMulticlassHinge
from certifit.rows import Array

CLAIM = "losses of all classes at once and penalty within gap of their minimum"
EPS = float(np.finfo(float).eps)


class ClaimedJointSvm(NamedTuple):
    """The problem that a model says it has solved."""

    loss: PlainMulticlassHinge
    C: float
    rho: float | None  # None: no biases; 0: free ones


def slacks(loss: PlainMulticlassHinge, F: Array, y: Array) -> Array:
    """z (n, k) of scores F (n, k) and class numbers y."""
    own = np.arange(len(y)), y
    z = loss.margin + F - F[own][:, None]
    z[own] = 0.0
    return z


def objective(claimed: ClaimedJointSvm, F: Array, y: Array, u: Array, square: float, b: Array) -> float:
    """P at scores F (n, k), biases included; `square` is Σ_k |β_k|²."""
    losses = float(u @ claimed.loss.value(slacks(claimed.loss, F, y)))
    return losses + 0.5 * square + 0.5 * (claimed.rho or 0.0) * float(b @ b)


def feasible(claimed: ClaimedJointSvm, alpha: Array, y: Array, u: Array) -> Array:
    """Feasible coefficients (n, k) from any α (n, k): within their limits and, where biases are free, in balance.

    A row's own α is not read.
    """
    own = np.arange(len(y)), y
    a = np.maximum(-alpha, 0.0)
    a[own] = 0.0
    a = claimed.loss.shrink(a, u)
    if claimed.rho == 0:
        flow = np.stack([a[y == c].sum(axis=0) for c in range(a.shape[1])])
        kept = np.divide(circulation(flow), flow, out=np.ones_like(flow), where=flow > 0)
        a *= kept[y]
    alpha = -a
    alpha[own] = a.sum(axis=1)
    return alpha


def circulation(flow: Array) -> Array:
    """A flow no larger than `flow` (k, k), with as much out of each class as into it.

    Excess is taken off along shortest paths, from classes with more going out to classes with more coming in: there
    always is such a path, since any flow consists of cycles and of such paths.
    """
    flow = flow.copy()
    least = 2 * len(flow) * EPS * float(flow.sum())
    while True:
        excess = flow.sum(axis=1) - flow.sum(axis=0)
        first = int(excess.argmax())
        path = _shortest_path(flow, first, excess < -least / len(flow)) if excess[first] > least else None
        if path is None:
            return flow
        arcs = path[:-1], path[1:]
        flow[arcs] -= min(excess[first], -excess[path[-1]], flow[arcs].min())
        flow[flow <= EPS * least] = 0.0


def _shortest_path(flow: Array, first: int, ends: Array) -> list[int] | None:
    """The classes on the shortest path of positive flow from `first` to one of `ends`, a mask (k,)."""
    before, queue = {first: first}, deque([first])
    while queue:
        at = queue.popleft()
        if ends[at]:
            path = [at]
            while path[-1] != first:
                path.append(before[path[-1]])
            return path[::-1]
        for k in np.flatnonzero(flow[at]):
            if int(k) not in before:
                before[int(k)] = at
                queue.append(int(k))
    return None


class RowLengths(NamedTuple):
    """How long rows are in the space of the coefficients, which says what rounding does to Σ α x."""

    v_size: float  # at least Σ_ik |α_ik| |xᵢ|, or 0 where rounding of v is paid for elsewhere
    longest: float  # at least |xᵢ| of any row with weight


def lower_bound(
    claimed: ClaimedJointSvm, alpha: Array, y: Array, u: Array, v: float, lengths: RowLengths
) -> tuple[float, float]:
    """The bound above at the best multiple of a feasible α (n, k), and what was given away to rounding in it.

    v is √(Σ_k |v_k|²). The bound is 0 where α is not feasible: no objective is below that.
    """
    most = largest_multiple(claimed, alpha, y, u)
    if not most > 0:
        return 0.0, 0.0
    rivals, sides = alpha.shape[1] - 1, np.abs(alpha).sum(axis=0)
    linear = claimed.loss.margin * float(alpha[np.arange(len(y)), y].sum())
    balance = alpha.sum(axis=0)
    square = v * v + (float((balance**2).sum()) / claimed.rho if claimed.rho else 0.0)
    t = min(most, linear / square) if square > 0 else most
    exact = max(0.0, t * linear - 0.5 * t * t * square)
    excess = 0.0
    if claimed.rho == 0:
        excess = rivals * float((np.abs(balance) + summation_error(len(y)) * sides).sum()) / 2
    sums = DualSums(
        gain=t * (linear - claimed.loss.margin * excess - 8 * EPS * linear),  # limits hold to rounding
        gain_size=t * linear,
        v=np.array([t * (v + np.sqrt(2.0) * excess * lengths.longest)]),
        v_size=np.array([t * lengths.v_size]),
        balance=t * balance,
        mass=t * sides,
    )
    found = max(0.0, bound_of_dual_point(sums, DualPenalty(0.0, 1.0, claimed.rho or None), len(y)))
    return found, max(0.0, exact - found)


def largest_multiple(claimed: ClaimedJointSvm, alpha: Array, y: Array, u: Array) -> float:
    """The largest t <= 1 for which t α (n, k) is within its limits; 0 where no multiple is.

    The rivals' a = -α have to be finite and at least 0, and 0 for rows without weight.
    """
    a = -alpha.astype(np.float64)
    a[np.arange(len(y)), y] = 0.0
    if not is_feasible(a, np.where(u > 0, np.inf, 0.0)[:, None]):
        return 0.0
    within = claimed.loss.shrink(a, np.asarray(u, np.float64))
    return float(np.divide(within, a, out=np.ones_like(a), where=a > 0).min(initial=1.0))


def score_rounding(claimed: ClaimedJointSvm, F: Array, y: Array, u: Array, error: Array) -> float:
    """How much the losses can change where scores F (n, k) are off by up to `error` (n,)."""
    z = slacks(claimed.loss, F, y)
    most = z + 2 * error[:, None]  # a rival's score may rise by as much as the own one falls
    most[np.arange(len(y)), y] = 0.0
    return float((u * (claimed.loss.value(most) - claimed.loss.value(z))).sum())


def class_coefficients(q: Array, y: Array) -> Array:
    """α (n, k) of dual variables q (n, k): -q of the rivals, and their sum for the own class."""
    own = np.arange(len(y)), y
    alpha = -q
    alpha[own] = 0.0
    alpha[own] = -alpha.sum(axis=1)
    return alpha
