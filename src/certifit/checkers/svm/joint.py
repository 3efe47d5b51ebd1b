"""Support vector machines for all classes at once, re-checked: a feasible dual point and the one gap it proves.

    P = ½ Σ_k |β_k|² + ρ/2 Σ_k b_k² + Σᵢ uᵢ L(zᵢ),    z_k = margin [k ≠ y] + f_k - f_y,    f = scores,  u = C w
    Weston-Watkins: L = Σ_k max(0, z_k), margin 2;    Crammer-Singer: L = max_k z_k, margin 1

For all a >= 0 with a_ik <= uᵢ (Weston-Watkins) or Σ_k a_ik <= uᵢ (Crammer-Singer), where k ≠ yᵢ,

    P >= margin Σ a - ½ Σ_k |v_k|² - Σ_k (Σᵢ α_ik)² / (2ρ),    v_k = Σᵢ α_ik xᵢ,    α_ik = -a_ik,  α_iy = Σ_k a_ik

with Σᵢ α_ik = 0 for every class where the biases are free (ρ = 0). Sums of a by (own class, rival) are then a flow
that no class gains or loses from: a point that misses this loses what flows from classes with too much to those with
too little. Linear machines are certified in `checkers.svm.joint_linear`.
"""

from __future__ import annotations

from collections import deque
from typing import ClassVar, NamedTuple, Protocol

import numpy as np

from certifit.rows import Array

CLAIM = "losses of all classes at once and penalty within gap of their minimum"
EPS = float(np.finfo(float).eps)


class Loss(Protocol):
    """A loss of z (n, k), its conjugate's domain in q (n, k), and where the projection onto that bends."""

    margin: ClassVar[float]

    def value(self, z: Array) -> Array: ...

    def project(self, q: Array, y: Array, u: Array) -> Array:
        """The nearest point of the domain; q of a row's own class says what is left of u, if that counts."""

    def shrink(self, a: Array, u: Array) -> Array:
        """a >= 0 made smaller where it is beyond its limits."""

    def ties(self, q: Array, y: Array, u: Array, j: int, k: int) -> Array:
        """(n,) how the scores of classes j and k pull at each other: the projection's derivative, from its value."""


class WestonWatkins:
    margin: ClassVar[float] = 2.0

    def value(self, z: Array) -> Array:
        return np.maximum(z, 0.0).sum(axis=1)

    def project(self, q: Array, y: Array, u: Array) -> Array:
        q = np.clip(q, 0.0, u[:, None])
        q[np.arange(len(y)), y] = 0.0
        return q

    def shrink(self, a: Array, u: Array) -> Array:
        return np.minimum(a, u[:, None])

    def ties(self, q: Array, y: Array, u: Array, j: int, k: int) -> Array:
        rival = np.where(y == j, q[:, k], np.where(y == k, q[:, j], 0.0))
        return ((rival > 0) & (rival < u)).astype(np.float64)


class CrammerSinger:
    margin: ClassVar[float] = 1.0

    def value(self, z: Array) -> Array:
        return np.max(z, axis=1)

    def project(self, q: Array, y: Array, u: Array) -> Array:
        """Onto the simplex q >= 0, Σ q = u: what is above a level that u decides (Held, Wolfe & Crowder 1974)."""
        falling = -np.sort(-q, axis=1)
        levels = (np.cumsum(falling, axis=1) - u[:, None]) / np.arange(1, q.shape[1] + 1)
        last = q.shape[1] - 1 - np.argmax((falling >= levels)[:, ::-1], axis=1)
        return np.maximum(q - levels[np.arange(len(q)), last][:, None], 0.0)

    def shrink(self, a: Array, u: Array) -> Array:
        total = a.sum(axis=1)
        return a * np.divide(u, total, out=np.ones_like(u), where=total > u)[:, None]

    def ties(self, q: Array, y: Array, u: Array, j: int, k: int) -> Array:
        return ((q[:, j] > 0) & (q[:, k] > 0)) / np.maximum((q > 0).sum(axis=1), 1)


LOSSES: dict[str, Loss] = {"weston-watkins": WestonWatkins(), "crammer-singer": CrammerSinger()}


class Spec(NamedTuple):
    """The problem that a model says it has solved."""

    loss: Loss
    C: float
    rho: float | None  # None: no biases; 0: free ones


def slacks(loss: Loss, F: Array, y: Array) -> Array:
    """z (n, k) of scores F (n, k) and class numbers y."""
    own = np.arange(len(y)), y
    z = loss.margin + F - F[own][:, None]
    z[own] = 0.0
    return z


def objective(spec: Spec, F: Array, y: Array, u: Array, square: float, b: Array) -> float:
    """P at scores F (n, k), biases included; `square` is Σ_k |β_k|²."""
    losses = float(u @ spec.loss.value(slacks(spec.loss, F, y)))
    return losses + 0.5 * square + 0.5 * (spec.rho or 0.0) * float(b @ b)


def feasible(spec: Spec, alpha: Array, y: Array, u: Array) -> Array:
    """Coefficients α (n, k) within their limits and, where biases are free, in balance. A row's own α is not read."""
    own = np.arange(len(y)), y
    a = np.maximum(-alpha, 0.0)
    a[own] = 0.0
    a = spec.loss.shrink(a, u)
    if spec.rho == 0:
        flow = np.stack([a[y == c].sum(axis=0) for c in range(a.shape[1])])
        kept = np.divide(circulation(flow), flow, out=np.ones_like(flow), where=flow > 0)
        a *= kept[y]
    alpha = -a
    alpha[own] = a.sum(axis=1)
    return alpha


def circulation(flow: Array) -> Array:
    """No more than `flow` (k, k), with as much out of each class as into it.

    Too much is taken off along shortest paths, from classes with more going out to those with more coming in: there
    always is one, since any flow consists of cycles and of such paths.
    """
    flow = flow.copy()
    least = 2 * len(flow) * EPS * float(flow.sum())
    while True:
        excess = flow.sum(axis=1) - flow.sum(axis=0)
        first = int(excess.argmax())
        path = _path(flow, first, excess < -least / len(flow)) if excess[first] > least else None
        if path is None:
            return flow
        arcs = path[:-1], path[1:]
        flow[arcs] -= min(excess[first], -excess[path[-1]], flow[arcs].min())
        flow[flow <= EPS * least] = 0.0


def _path(flow: Array, first: int, lack: Array) -> list[int] | None:
    """The shortest way from `first` to a class that lacks, along what flows."""
    before, queue = {first: first}, deque([first])
    while queue:
        at = queue.popleft()
        if lack[at]:
            path = [at]
            while path[-1] != first:
                path.append(before[path[-1]])
            return path[::-1]
        for k in np.flatnonzero(flow[at]):
            if int(k) not in before:
                before[int(k)] = at
                queue.append(int(k))
    return None


def lower_bound(spec: Spec, alpha: Array, y: Array, square: float) -> float:
    """The bound above at the best multiple of a feasible α (n, k); `square` is Σ_k |v_k|²."""
    linear = spec.loss.margin * float(alpha[np.arange(len(y)), y].sum())
    if spec.rho:
        square += float((alpha.sum(axis=0) ** 2).sum()) / spec.rho
    t = min(1.0, linear / square) if square > 0 else 1.0
    return max(0.0, t * linear - 0.5 * t * t * square)


def rounding(spec: Spec, u: Array, k: int) -> float:
    """What rounding of the scores may cost."""
    return 8 * EPS * spec.loss.margin * (k - 1) * float(u.sum())


def signed(q: Array, y: Array) -> Array:
    """α (n, k) of a point q of the loss's domain."""
    own = np.arange(len(y)), y
    alpha = -q
    alpha[own] = 0.0
    alpha[own] = -alpha.sum(axis=1)
    return alpha
