"""What one pass over the rows measures for linear support vector machines, and the bound that follows from it.

    P(θ) = Σᵢ uᵢ φ(qᵢ - sᵢ θ·zᵢ) + ½ |β|² + ρ/2 b²,   θ = (β, b),  z = (x - shift, 1),  u = C w
    φ(z) = max over 0 <= a <= top of a (z + e) - a² / (2κ)                                   (`losses.HingeShape`)

For every choice of a within these limits, with Σ u a s = 0 where b is free (ρ = 0), weak duality says

    P >= Σ u [a (q + e) - a² / (2κ)] - ½ |v|² - v_b² / (2ρ),    (v, v_b) = Σ u a s z.

Sums of a are kept apart by the sign of s, so that the two signs can be balanced afterwards. `svm.linear.slacks` says
what s and q are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy import sparse

from certifit.checkers.plain.dual_points import DualSize, rounding_of_bound
from certifit.linear_model.linear_rows import sandwich, shift_rows
from certifit.losses.hinge_loops import hinge_rows
from certifit.losses.hinges import HingeShape
from certifit.numerics.products import adjoint
from certifit.rows import Array, Block, Largest, Matrix, Sums
from certifit.svm.linear.slacks import SlackRule, SlackSide


class SvmObjective(NamedTuple):
    """What is minimised: ½ |β|² + ρ/2 b² + C Σ w φ."""

    hinge: HingeShape
    C: float
    rho: float | None  # weight of b²: None without intercept, 0 where it is free
    shift: Array | None  # (d,) subtracted from the columns, which a free intercept makes up for

    @property
    def intercept(self) -> bool:
        return self.rho is not None

    def penalty_weights(self, size: int) -> Array:
        """The weights of θ²/2 in the penalty (size,)."""
        G = np.ones(size)
        if self.rho is not None:
            G[-1] = self.rho
        return G

    def penalty(self, theta: Array) -> float:
        return 0.5 * float(self.penalty_weights(len(theta)) @ theta**2)


@dataclass(frozen=True)
class SvmWorkingSet:
    """The slacks near the bend of the loss, in the order of the table; `+` puts one run after another."""

    A: Array  # (m, d1) s z
    s: Array  # (m,)
    q: Array  # (m,)
    u: Array  # (m,)

    @cached_property
    def row_sizes(self) -> Array:
        """(m,) Σ |A| of each row."""
        return np.abs(self.A).sum(axis=1)

    def __add__(self, other: SvmWorkingSet) -> SvmWorkingSet:
        pairs = ((self.A, other.A), (self.s, other.s), (self.q, other.q), (self.u, other.u))
        return SvmWorkingSet(*(np.concatenate(pair) for pair in pairs))


@dataclass(frozen=True)
class PrimalSums(Sums):
    """Sums over all rows at θ; sums of a leave out the rows of the working set, where there is one."""

    loss: float  # Σ u φ of the loss that is reported
    minimised: float  # Σ u φ of the loss that is minimised
    v: Array  # (2, d1) Σ u a s z of each sign
    linear: Array  # (2,) Σ u a q of each sign
    square: Array  # (2,) Σ u a² of each sign
    mass: Array  # (2,) Σ u a of each sign
    curved: int  # slacks where the minimised loss is curved
    H: Array | float  # (d1, d1) Hessian of the minimised loss; 0 where it was not asked for
    working: SvmWorkingSet | float  # 0 where it was not asked for

    def with_working_set(self, alpha: Array) -> PrimalSums:
        """The sums of a over all rows, where u a = α (m,) in the working set."""
        rows = self.working
        assert isinstance(rows, SvmWorkingSet)
        by_sign = np.stack([rows.s > 0, rows.s < 0]) * alpha  # (2, m)
        return replace(
            self,
            v=self.v + by_sign @ rows.A,
            linear=self.linear + by_sign @ rows.q,
            square=self.square + by_sign @ (alpha / rows.u),
            mass=self.mass + by_sign.sum(axis=1),
        )


class PrimalQuery(NamedTuple):
    """What one machine wants to know from a pass over the rows."""

    rule: SlackRule
    theta: Array  # (d1,) where to measure
    minimised: HingeShape  # the loss, or a smoothed one
    radius: float = 0.0  # slacks nearer than this to the bend form the working set; 0: the Hessian is wanted instead
    stride: int = 1  # only every so many curved rows need enter the Hessian


@dataclass(frozen=True)
class SlackSizes(Sums):
    """How large slacks and rows are, which says what rounding can do to a bound; sums over all slacks."""

    count: int
    mass: float  # Σ u
    rows: float  # Σ u |z|², without the intercept's column
    targets: float  # Σ u q²
    below: Largest  # -q: minus the smallest target

    def bound_rounding(self, value: float, svm: SvmObjective) -> float:
        """How much rounding may have added to `dual_bound` of one machine, whose objective is `value`.

        A dual point at its best multiple has Σ a (q + e) <= 2 D(a) and Σ a²/κu <= 2 D(a); where a <= u, Σ a²/u is at
        most Σ a and Σ u. Sums of a times anything follow by Cauchy and Schwarz.
        """
        hinge, least = svm.hinge, svm.hinge.e - float(self.below.value)
        square = 2 * hinge.kappa * value if np.isfinite(hinge.kappa) else np.inf
        if np.isfinite(hinge.top):
            square = min(square, hinge.top**2 * self.mass, 2 * hinge.top * value / least if least > 0 else np.inf)
        mass, v, linear = (float(np.sqrt(square * size)) for size in (self.mass, self.rows, self.targets))
        gain = linear + hinge.e * mass + square / (2 * hinge.kappa)
        return rounding_of_bound(value, DualSize(gain, v, mass, self.count), svm.rho)


def slack_sizes(rule: SlackRule, svm: SvmObjective, block: Block) -> SlackSizes:
    """What one block adds to the sizes of a machine's slacks; they are the same for all machines of a fit."""
    assert block.y is not None
    return _slack_sizes(shift_rows(block.X, svm.shift), svm.C * block.w, rule(block.y))


def _slack_sizes(Z: Matrix, u: Array, sides: tuple[SlackSide, ...]) -> SlackSizes:
    squares = np.ravel(Z.multiply(Z).sum(axis=1)) if sparse.issparse(Z) else np.einsum("ij,ij->i", Z, Z)
    mass, rows = len(sides) * float(u.sum()), len(sides) * float(u @ squares)
    targets = sum(float(u @ side.q**2) for side in sides)
    below = Largest(max(-float(side.q.min(initial=np.inf)) for side in sides))
    return SlackSizes(len(sides) * len(u), mass, rows, targets, below)


@dataclass(frozen=True)
class MachineSums:
    """The sums of several machines; `+` adds them machine by machine."""

    each: tuple[PrimalSums, ...]
    sizes: SlackSizes | None = None  # where they were asked for

    def __add__(self, other: MachineSums) -> MachineSums:
        sizes = None if self.sizes is None or other.sizes is None else self.sizes + other.sizes
        return MachineSums(tuple(a + b for a, b in zip(self.each, other.each, strict=True)), sizes)


def measure_block(
    queries: tuple[PrimalQuery, ...], svm: SvmObjective, block: Block, sized: bool = False
) -> MachineSums:
    """Answer the queries of all machines from one block; the scores of all machines are one matrix product."""
    assert block.y is not None
    Z, d = shift_rows(block.X, svm.shift), block.X.shape[1]
    eta = Z @ np.stack([query.theta[:d] for query in queries]).T
    if svm.intercept:
        eta += np.array([query.theta[d] for query in queries])
    u = svm.C * block.w
    found = []
    for query, scores in zip(queries, eta.T, strict=True):
        scores = np.ascontiguousarray(scores)
        sides = [_measure_side(Z, scores, side, u, query, svm) for side in query.rule(block.y)]
        found.append(sides[0] if len(sides) == 1 else sides[0] + sides[1])
    return MachineSums(tuple(found), _slack_sizes(Z, u, queries[0].rule(block.y)) if sized else None)


def _measure_side(
    Z: Matrix, eta: Array, side: SlackSide, u: Array, query: PrimalQuery, svm: SvmObjective
) -> PrimalSums:
    n, hinges = len(eta), (svm.hinge, query.minimised)
    A, h = np.empty((n, 2)), np.empty(n)
    reported, minimised, sums, curved = hinge_rows(eta, *side, u, hinges, A, h)
    working: SvmWorkingSet | float = 0.0
    H: Array | float = 0.0
    if query.radius > 0:
        near = svm.hinge.bends_near(side.q - side.s * eta, query.radius) & (u > 0)
        working = SvmWorkingSet(_signed_rows(Z, side.s, near, svm.intercept), side.s[near], side.q[near], u[near])
        _, _, sums, _ = hinge_rows(eta, *side, np.where(near, 0.0, u), hinges, A, h)
    else:
        curving = np.flatnonzero(h)[:: query.stride]
        whole = len(curving) == n
        H = sandwich(Z if whole else Z[curving], query.stride * h[curving], svm.intercept)
    product = adjoint(Z, A).T
    mass = A.sum(axis=0)
    v = np.column_stack([product, mass]) if svm.intercept else product
    v[1] *= -1.0
    return PrimalSums(reported, minimised, v, sums[:, 0], sums[:, 1], mass, curved, H, working)


def _signed_rows(Z: Matrix, s: Array, chosen: Array, intercept: bool) -> Array:
    rows = Z[chosen].toarray() if sparse.issparse(Z) else Z[chosen]
    rows = np.column_stack([rows, np.ones(len(rows))]) if intercept else rows
    return rows * s[chosen][:, None]


def dual_bound(sums: PrimalSums, hinge: HingeShape, rho: float | None) -> float:
    """The lower bound on P that the dual point a of these sums proves, for φ = `hinge`.

    Where b is free (rho = 0) the heavier sign is scaled down, so that the signs balance; then all of a is scaled by
    the factor that proves most.
    """
    v, share = sums.v, np.ones(2)
    if rho == 0:
        lighter = float(sums.mass.min())
        share = np.where(sums.mass > lighter, lighter / np.where(sums.mass > 0, sums.mass, 1.0), 1.0)
    linear = float(share @ (sums.linear + hinge.e * sums.mass))
    total = share @ v
    square = float(total @ total)
    if rho is not None:
        square += float(total[-1] ** 2) * (1 / rho - 1 if rho > 0 else -1.0)
    square += float(share**2 @ sums.square) / hinge.kappa
    if not square > 0:
        return max(0.0, linear if np.isfinite(hinge.top) else 0.0)
    t = linear / square
    t = min(1.0, max(0.0, t)) if np.isfinite(hinge.top) else max(0.0, t)
    return t * linear - 0.5 * t * t * square
