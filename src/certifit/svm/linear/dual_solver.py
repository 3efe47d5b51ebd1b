"""Linear support vector machines with very many columns: dual coordinate ascent on rows in memory.

    max over 0 <= a <= top u of   Σ [a (q + e) - a² / (2κu)] - ½ |Σ a s x|² - (Σ a s)² / (2ρ)

Coordinate ascent (`svm.linear.coordinate_ascent`) alternates with measuring the duality gap. A free intercept (ρ = 0)
is the multiplier of Σ a s = 0: the term (b - b₀)² / (2τ) is added to the primal, which makes b = b₀ + τ Σ a s, and b₀
becomes b after every round (the method of multipliers).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy import sparse

from certifit.core import ResumableUpdate, Solution, Step, fixed_point
from certifit.core.loop import Watcher
from certifit.numerics.products import adjoint
from certifit.rows import Array, ArrayRows, Block, Largest, Matrix
from certifit.svm.linear.coordinate_ascent import (
    CoordinateAscent,
    CoordinateAscentTuning,
    DualIterate,
    DualTerms,
    ascend,
)
from certifit.svm.linear.primal_sums import PrimalSums, SlackSizes, SvmObjective, dual_bound
from certifit.svm.linear.slacks import SlackRule


class DualSides(NamedTuple):
    """All slacks of all rows with a positive weight, for one machine; each has one dual variable."""

    row: Array  # (m,) of which row
    s: Array  # (m,) ±1
    q: Array  # (m,)
    u: Array  # (m,) C w


@dataclass(frozen=True)
class DualSvmState:
    """One machine between two measurements of its duality gap."""

    a: Array  # (m,) dual variables
    beta: Array  # (d,)
    b: float
    bound: float = 0.0  # the largest that was proved
    done: bool = False
    value: float = np.inf  # the objective

    @property
    def coefficients(self) -> Array:
        """θ (d + 1,)."""
        return np.append(self.beta, self.b)


class DualStart(NamedTuple):
    """Where coordinate ascent ended, for another method to go on from."""

    theta: Array  # (d + 1,)
    value: float
    bound: float
    radius: float  # around the kink, within which lie as many slacks as were asked for


class DualSvmProblem:
    """The machines of a fit; y are class numbers or numbers."""

    def __init__(
        self,
        rows: ArrayRows,
        rules: tuple[SlackRule, ...],
        svm: SvmObjective,
        tol: float,
        seed: int,
        tuning: CoordinateAscentTuning,
    ) -> None:
        self.rows, self.svm, self.hinge, self.rho, self.tol, self.seed = rows, svm, svm.hinge, svm.rho, tol, seed
        self.tuning = tuning
        X: Matrix = rows.X
        self.norms = (
            np.asarray(X.multiply(X).sum(axis=1)).ravel() if sparse.issparse(X) else np.einsum("ij,ij->i", X, X)
        )
        self.norms = self.norms.astype(np.float64)
        self.machines = tuple(self._sides(rule, svm.C) for rule in rules)
        free = max(tuning.free_intercept_tau * float(self.norms.mean()), 1e-300)
        self.tau = 0.0 if self.rho is None else 1 / self.rho if self.rho else free

    def _sides(self, rule: SlackRule, C: float) -> DualSides:
        assert self.rows.y is not None
        n, u = self.rows.n_rows, C * self.rows.w
        found = [DualSides(np.arange(n), side.s, side.q, u) for side in rule(self.rows.y)]
        joined = [np.concatenate(parts) for parts in zip(*found, strict=True)]
        return DualSides(*(part[joined[3] > 0] for part in joined))

    def bound_rounding(self, states: tuple[DualSvmState, ...], value: float) -> float:
        """How much rounding may have added to the bound of all machines together."""
        sides, svm = self.machines[0], self.svm
        of_rows, targets = float(sides.u @ self.norms[sides.row]), float(sides.u @ sides.q**2)
        below = Largest(-float(sides.q.min(initial=np.inf)))
        sizes = SlackSizes(len(sides.u), float(sides.u.sum()), of_rows, targets, below)
        return len(states) * sizes.bound_rounding(value, svm)

    def dual_coef(self, states: tuple[DualSvmState, ...]) -> Array:
        """Σ s a of the dual variables of each row (machines, n)."""
        pairs = zip(states, self.machines, strict=True)
        return np.stack([np.bincount(sides.row, sides.s * at.a, self.rows.n_rows) for at, sides in pairs])

    def start(self, b: float) -> tuple[DualSvmState, ...]:
        d = self.rows.n_features
        return tuple(DualSvmState(np.zeros(len(sides.row)), np.zeros(d), b) for sides in self.machines)

    def measure(self, states: tuple[DualSvmState, ...]) -> list[tuple[float, float]]:
        """The objective and a lower bound of each machine."""
        pairs = zip(states, self.machines, strict=True)
        return [
            (at.value, at.bound) if at.done else self._value_and_bound(at, sides, self._slacks(at, sides))
            for at, sides in pairs
        ]

    def starting_points(self, states: tuple[DualSvmState, ...], near: int) -> list[DualStart]:
        """What another method may start from; within the radius lie `near` slacks, or all."""
        out = []
        for at, sides in zip(states, self.machines, strict=True):
            z, kth = self._slacks(at, sides), min(near, len(sides.s)) - 1
            radius = float(np.partition(np.abs(z + self.hinge.e), kth)[kth])
            out.append(DualStart(at.coefficients, *self._value_and_bound(at, sides, z), radius))
        return out

    def _slacks(self, at: DualSvmState, sides: DualSides) -> Array:
        """(m,)."""
        return sides.q - sides.s * self.rows.map(partial(_scores, at.beta, at.b))[sides.row]

    def _value_and_bound(self, at: DualSvmState, sides: DualSides, z: Array) -> tuple[float, float]:
        value = float(sides.u @ self.hinge.value(z))
        value += 0.5 * float(at.beta @ at.beta) + 0.5 * (self.rho or 0.0) * at.b**2
        by_sign = np.stack([sides.s > 0, sides.s < 0]) * at.a  # (2, m)
        weights = np.stack([np.bincount(sides.row, part, self.rows.n_rows) for part in by_sign], axis=1)
        mass = by_sign.sum(axis=1)
        v = self.rows.sum(partial(_weighted_sum, weights))
        v[1] *= -1.0
        if self.rho is not None:
            v = np.column_stack([v, mass * [1.0, -1.0]])
        sums = PrimalSums(0.0, 0.0, v, by_sign @ sides.q, by_sign @ (at.a / sides.u), mass, 0, 0.0, 0.0)
        return value, dual_bound(sums, self.hinge, self.rho)

    def update(
        self, states: tuple[DualSvmState, ...], found: list[tuple[float, float]]
    ) -> Step[tuple[DualSvmState, ...]]:
        value = sum(v for v, _ in found)
        following = []
        for i, (at, (here, bound)) in enumerate(zip(states, found, strict=True)):
            bound = max(bound, at.bound)
            after = replace(at, bound=bound, done=here - bound <= self.tol * here, value=here)
            following.append(after if after.done else self._ascended(after, self.machines[i]))
        gap = max(0.0, value - sum(after.bound for after in following))
        return Step(tuple(following), value, gap / value if gap else 0.0)

    def _ascended(self, at: DualSvmState, sides: DualSides) -> DualSvmState:
        """The machine after some rounds of coordinate ascent."""
        hinge, u = self.hinge, sides.u
        top = hinge.top * u if np.isfinite(hinge.top) else np.full(len(u), np.inf)
        terms = DualTerms(sides.row, sides.s, sides.q + hinge.e, 1 / (hinge.kappa * u), top)
        point = DualIterate(at.a.copy(), at.beta.copy(), np.array([at.b]))
        balance = 0.0 if self.rho == 0 else None
        rng = np.random.default_rng([self.seed, int(np.count_nonzero(point.a))])
        ascend(CoordinateAscent(self.rows.X, self.norms, terms, point, self.tau, balance, self.tuning), rng)
        return replace(at, a=point.a, beta=point.beta, b=float(point.b[0]))


def _scores(beta: Array, b: float, block: Block) -> Array:
    return block.X @ beta + b


def _weighted_sum(weights: Array, block: Block) -> Array:
    """Σ weights x over a block (2, d); weights are (n, 2)."""
    return adjoint(block.X, weights[block.start : block.start + len(block.w)]).T


def solve_dual(
    problem: DualSvmProblem,
    b: float = 0.0,
    *,
    max_iter: int,
    max_time: float | None = None,
    watcher: Watcher | None = None,
) -> Solution[tuple[DualSvmState, ...]]:
    """Solve to relative gap `problem.tol`, from a = 0 and, where it is free, the intercept b.

    Each pass measures the gap and does some rounds over the rows.
    """
    return fixed_point(
        problem.measure,
        ResumableUpdate(problem.update),
        problem.start(b if problem.rho == 0 else 0.0),
        tol=problem.tol,
        max_iter=max_iter,
        max_time=max_time,
        watcher=watcher,
    )
