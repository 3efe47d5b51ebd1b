"""What one pass over the rows measures for linear support vector machines, and the bound that follows from it.

    P(θ) = Σᵢ uᵢ φ(qᵢ - sᵢ θ·zᵢ) + ½ |β|² + ρ/2 b²,   θ = (β, b),  z = (x - shift, 1),  u = C w
    φ(z) = max over 0 <= a <= top of a (z + e) - a² / (2κ)

A row with a label has one side: s = ±1, q = 1. A row with a number y has two: s = 1, q = y - ε and s = -1,
q = -y - ε. For all a within these limits, with Σ u a s = 0 where b is free (ρ = 0),

    P >= Σ u [a (q + e) - a² / (2κ)] - ½ |v|² - v_b² / (2ρ),    (v, v_b) = Σ u a s z.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np
from scipy import sparse

from certifit.linear_model.linear_rows import sandwich, shift_rows
from certifit.numerics.products import adjoint
from certifit.rows import Array, Block, Matrix, Sums
from certifit.svm.linear.hinge_loops import ramp_rows


class Ramp(NamedTuple):
    """φ above: slope κ (z + e) between 0 and `top`. κ = ∞ has a kink at z = -e."""

    kappa: float
    e: float = 0.0
    top: float = 1.0

    def near(self, z: Array, radius: float) -> Array:
        """Where φ is not linear within this radius."""
        return (z >= -self.e - radius) & (z <= self.top / self.kappa - self.e + radius)


def rounded(h: float) -> Ramp:
    """The hinge with its kink rounded over z = ±h: nowhere below it, nowhere more than h/4 above."""
    return Ramp(0.5 / h, h)


class Sides(NamedTuple):
    """Rows as slacks z = q - s η, one for each row."""

    s: Array  # (rows,) ±1
    q: Array  # (rows,)


class Split(Protocol):
    """How a block's targets become sides; several where a row has several."""

    def __call__(self, y: Array) -> tuple[Sides, ...]: ...


class Against(NamedTuple):
    """One class against the others."""

    code: int

    def __call__(self, y: Array) -> tuple[Sides, ...]:
        return (Sides(np.where(y == self.code, 1.0, -1.0), np.ones(len(y))),)


class Within(NamedTuple):
    """Numbers to be met within epsilon."""

    epsilon: float

    def __call__(self, y: Array) -> tuple[Sides, ...]:
        ones = np.ones(len(y))
        return Sides(ones, y - self.epsilon), Sides(-ones, -y - self.epsilon)


@dataclass(frozen=True)
class Near:
    """Rows near the kink, in the order of the table; `+` puts one run after another."""

    A: Array  # (m, d1) s z
    s: Array  # (m,)
    q: Array  # (m,)
    u: Array  # (m,)

    @cached_property
    def sizes(self) -> Array:
        """(m,) Σ |A| of each row."""
        return np.abs(self.A).sum(axis=1)

    def __add__(self, other: Near) -> Near:
        pairs = ((self.A, other.A), (self.s, other.s), (self.q, other.q), (self.u, other.u))
        return Near(*(np.concatenate(pair) for pair in pairs))


@dataclass(frozen=True)
class Pass(Sums):
    """Sums at θ, those of a over the rows that are not near."""

    loss: float  # Σ u φ
    used: float  # Σ u of the loss that is minimised
    v: Array  # (2, d1) Σ u a s z of each side
    linear: Array  # (2,) Σ u a q of each side
    square: Array  # (2,) Σ u a² of each side
    mass: Array  # (2,) Σ u a of each side
    curved: int  # rows where the minimised loss is curved
    H: Array | float  # (d1, d1) Hessian of the minimised loss
    near: Near | float

    def with_near(self, alpha: Array) -> Pass:
        """The sums of a also over the near rows, where u a = α."""
        near = self.near
        assert isinstance(near, Near)
        on = np.stack([near.s > 0, near.s < 0]) * alpha  # (2, m)
        return replace(
            self,
            v=self.v + on @ near.A,
            linear=self.linear + on @ near.q,
            square=self.square + on @ (alpha / near.u),
            mass=self.mass + on.sum(axis=1),
        )


class Ask(NamedTuple):
    """One machine's question to the rows."""

    split: Split
    theta: Array  # (d1,)
    used: Ramp
    radius: float = 0.0  # rows nearer than this to where φ bends are returned, not summed; 0: the Hessian is wanted
    stride: int = 1  # only every so many curved rows need enter that


@dataclass(frozen=True)
class Answers:
    """One pass for each machine; `+` adds them one by one."""

    passes: tuple[Pass, ...]

    def __add__(self, other: Answers) -> Answers:
        return Answers(tuple(a + b for a, b in zip(self.passes, other.passes, strict=True)))


def measure(
    asks: tuple[Ask, ...], loss: Ramp, C: float, shift: Array | None, intercept: bool, block: Block
) -> Answers:
    """One pass over a block, for all machines."""
    assert block.y is not None
    Z, d = shift_rows(block.X, shift), block.X.shape[1]
    eta = Z @ np.stack([ask.theta[:d] for ask in asks]).T
    if intercept:
        eta += np.array([ask.theta[d] for ask in asks])
    u = C * block.w
    passes = []
    for ask, scores in zip(asks, eta.T, strict=True):
        parts = [_side(Z, scores, sides, u, ask, loss, intercept) for sides in ask.split(block.y)]
        passes.append(parts[0] if len(parts) == 1 else parts[0] + parts[1])
    return Answers(tuple(passes))


def _side(Z: Matrix, eta: Array, sides: Sides, u: Array, ask: Ask, loss: Ramp, intercept: bool) -> Pass:
    eta, n = np.ascontiguousarray(eta), len(eta)
    A, h = np.empty((n, 2)), np.empty(n)
    reported, minimised, sums, curved = ramp_rows(eta, *sides, u, loss, ask.used, A, h)
    near: Near | float = 0.0
    H: Array | float = 0.0
    if ask.radius > 0:
        close = loss.near(sides.q - sides.s * eta, ask.radius) & (u > 0)
        near = Near(_signed(Z, sides.s, close, intercept), sides.s[close], sides.q[close], u[close])
        _, _, sums, _ = ramp_rows(eta, *sides, np.where(close, 0.0, u), loss, ask.used, A, h)
    else:
        curving = np.flatnonzero(h)[:: ask.stride]
        whole = len(curving) == n
        H = sandwich(Z if whole else Z[curving], ask.stride * h[curving], intercept)
    product = adjoint(Z, A).T
    mass = A.sum(axis=0)
    v = np.column_stack([product, mass]) if intercept else product
    v[1] *= -1.0
    return Pass(reported, minimised, v, sums[:, 0], sums[:, 1], mass, curved, H, near)


def _signed(Z: Matrix, s: Array, close: Array, intercept: bool) -> Array:
    rows = Z[close].toarray() if sparse.issparse(Z) else Z[close]
    rows = np.column_stack([rows, np.ones(len(rows))]) if intercept else rows
    return rows * s[close][:, None]


def lower_bound(s: Pass, ramp: Ramp, rho: float | None) -> float:
    """The bound above for φ = `ramp`, at this pass's a. rho: None without intercept, 0 where it is free.

    Where b is free the heavier side is scaled down, so that the sides balance; then both by the best factor.
    """
    v, share = s.v, np.ones(2)
    if rho == 0:
        lighter = float(s.mass.min())
        share = np.where(s.mass > lighter, lighter / np.where(s.mass > 0, s.mass, 1.0), 1.0)
    linear = float(share @ (s.linear + ramp.e * s.mass))
    w = share @ v
    square = float(w @ w)
    if rho is not None:
        square += float(w[-1] ** 2) * (1 / rho - 1 if rho > 0 else -1.0)
    square += float(share**2 @ s.square) / ramp.kappa
    if not square > 0:
        return max(0.0, linear if np.isfinite(ramp.top) else 0.0)
    t = linear / square
    t = min(1.0, max(0.0, t)) if np.isfinite(ramp.top) else max(0.0, t)
    return t * linear - 0.5 * t * t * square
