"""Linear support vector machines with very many columns: dual coordinate ascent on rows in memory.

    max over 0 <= a <= top u of   Σ [a (q + e) - a² / (2κu)] - ½ |Σ a s x|² - (Σ a s)² / (2ρ)

Climbs (`svm.linear.coordinate_ascent`) alternate with looks at the duality gap. A free intercept (ρ = 0) is the
multiplier of Σ a s = 0: the term (b - b₀)² / (2τ) is added to the primal, which makes b = b₀ + τ Σ a s, and b₀
becomes b after every round (the method of multipliers). Sides whose a has stayed at a limit are visited less often.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy import sparse

from certifit.core import Solution, Step, fixed_point
from certifit.core.loop import Watcher
from certifit.numerics.products import adjoint
from certifit.rows import Array, ArrayRows, Block, Matrix
from certifit.svm.linear.block_statistics import Pass, Ramp, Split, lower_bound
from certifit.svm.linear.coordinate_ascent import Climb, Terms, climb

NARROW = 0.3  # a free intercept's τ, relative to the mean |x|²


class Sides(NamedTuple):
    """All sides of all rows with weight, for one machine."""

    row: Array  # (m,) of which row
    s: Array  # (m,) ±1
    q: Array  # (m,)
    u: Array  # (m,)


@dataclass(frozen=True)
class Ascent:
    """One machine, on its way."""

    a: Array  # (m,)
    beta: Array  # (d,)
    b: float
    bound: float = 0.0
    done: bool = False
    value: float = np.inf

    @property
    def here(self) -> Array:
        """θ (d + 1,)."""
        return np.append(self.beta, self.b)


class Climbed(NamedTuple):
    """Where a machine's climbs ended."""

    theta: Array  # (d + 1,)
    value: float
    bound: float
    radius: float  # around the kink, with so many sides within it as were asked for


class DualProblem:
    """The machines of a fit; y are class numbers or numbers."""

    def __init__(
        self,
        rows: ArrayRows,
        splits: tuple[Split, ...],
        loss: Ramp,
        C: float,
        rho: float | None,
        tol: float,
        seed: int,
    ) -> None:
        self.rows, self.loss, self.rho, self.tol, self.seed = rows, loss, rho, tol, seed
        X: Matrix = rows.X
        self.norms = (
            np.asarray(X.multiply(X).sum(axis=1)).ravel() if sparse.issparse(X) else np.einsum("ij,ij->i", X, X)
        )
        self.norms = self.norms.astype(np.float64)
        self.machines = tuple(self._sides(split, C) for split in splits)
        self.tau = 0.0 if rho is None else 1 / rho if rho else max(NARROW * float(self.norms.mean()), 1e-300)

    def _sides(self, split: Split, C: float) -> Sides:
        assert self.rows.y is not None
        n, u = self.rows.n_rows, C * self.rows.w
        found = [Sides(np.arange(n), side.s, side.q, u) for side in split(self.rows.y)]
        joined = [np.concatenate(parts) for parts in zip(*found, strict=True)]
        return Sides(*(part[joined[3] > 0] for part in joined))

    def dual_coef(self, ascents: tuple[Ascent, ...]) -> Array:
        """Σ s a of the sides of each row (machines, n)."""
        pairs = zip(ascents, self.machines, strict=True)
        return np.stack([np.bincount(sides.row, sides.s * at.a, self.rows.n_rows) for at, sides in pairs])

    def start(self, b: float) -> tuple[Ascent, ...]:
        d = self.rows.n_features
        return tuple(Ascent(np.zeros(len(side.row)), np.zeros(d), b) for side in self.machines)

    def measure(self, ascents: tuple[Ascent, ...]) -> list[tuple[float, float]]:
        """Objective and lower bound of each."""
        pairs = zip(ascents, self.machines, strict=True)
        return [
            (at.value, at.bound) if at.done else self._look(at, sides, self._slacks(at, sides)) for at, sides in pairs
        ]

    def climbed(self, ascents: tuple[Ascent, ...], near: int) -> list[Climbed]:
        """What is known after some climbs; `near` sides are within the radius, or all."""
        out = []
        for at, sides in zip(ascents, self.machines, strict=True):
            z, kth = self._slacks(at, sides), min(near, len(sides.s)) - 1
            out.append(Climbed(at.here, *self._look(at, sides, z), float(np.partition(np.abs(z), kth)[kth])))
        return out

    def _slacks(self, at: Ascent, sides: Sides) -> Array:
        """(m,) z + e."""
        return sides.q - sides.s * self.rows.map(partial(_scores, at.beta, at.b))[sides.row] + self.loss.e

    def _look(self, at: Ascent, sides: Sides, z: Array) -> tuple[float, float]:
        slope = np.where(z > 0, np.minimum(self.loss.kappa * np.maximum(z, 1e-300), self.loss.top), 0.0)
        value = float(sides.u @ (slope * z - slope**2 / (2 * self.loss.kappa)))
        value += 0.5 * float(at.beta @ at.beta) + 0.5 * (self.rho or 0.0) * at.b**2
        on = np.stack([sides.s > 0, sides.s < 0]) * at.a  # (2, m)
        weights = np.stack([np.bincount(sides.row, part, self.rows.n_rows) for part in on], axis=1)
        mass = on.sum(axis=1)
        v = self.rows.sum(partial(_pull, weights))
        v[1] *= -1.0
        if self.rho is not None:
            v = np.column_stack([v, mass * [1.0, -1.0]])
        sums = Pass(0.0, 0.0, v, on @ sides.q, on @ (at.a / sides.u), mass, 0, 0.0, 0.0)
        return value, lower_bound(sums, self.loss, self.rho)

    def update(self, ascents: tuple[Ascent, ...], found: list[tuple[float, float]]) -> Step[tuple[Ascent, ...]]:
        value = sum(v for v, _ in found)
        following = []
        for i, (ascent, (here, bound)) in enumerate(zip(ascents, found, strict=True)):
            bound = max(bound, ascent.bound)
            after = replace(ascent, bound=bound, done=here - bound <= self.tol * here, value=here)
            following.append(after if after.done else self._climb(after, self.machines[i]))
        gap = max(0.0, value - sum(after.bound for after in following))
        return Step(tuple(following), value, gap / value if gap else 0.0)

    def _climb(self, at: Ascent, sides: Sides) -> Ascent:
        loss, u = self.loss, sides.u
        top = loss.top * u if np.isfinite(loss.top) else np.full(len(u), np.inf)
        terms = Terms(sides.row, sides.s, sides.q + loss.e, 1 / (loss.kappa * u), top)
        a, beta, b, rest = at.a.copy(), at.beta.copy(), np.array([at.b]), 0.0 if self.rho == 0 else None
        rng = np.random.default_rng([self.seed, int(np.count_nonzero(a))])
        climb(Climb(self.rows.X, self.norms, terms, a, beta, b, self.tau, rest), rng)
        return replace(at, a=a, beta=beta, b=float(b[0]))


def _scores(beta: Array, b: float, block: Block) -> Array:
    return block.X @ beta + b


def _pull(weights: Array, block: Block) -> Array:
    """(2, d)."""
    return adjoint(block.X, weights[block.start : block.start + len(block.w)]).T


def ascend(
    problem: DualProblem,
    b: float = 0.0,
    *,
    max_iter: int,
    max_time: float | None = None,
    watcher: Watcher | None = None,
) -> Solution[tuple[Ascent, ...]]:
    """Solve to relative gap `problem.tol`, from a = 0 and, where it is free, b.

    Each pass is a look at the gap and some rounds over the rows.
    """
    return fixed_point(
        problem.measure,
        problem.update,
        problem.start(b if problem.rho == 0 else 0.0),
        tol=problem.tol,
        max_iter=max_iter,
        max_time=max_time,
        watcher=watcher,
    )
