"""Gradient descent on a KL divergence over a family, one step after another for all to see.

With η the natural parameters, T the statistic, τ = E_q T and H = Cov_q T (the Fisher information):
    forward  KL(p, q_η):  gradient τ - E_p T, convex in η with Hessian H;
    reverse  KL(q_η, p):  gradient Cov_q(T, log q - log p), not convex in general.
Steps are M⁻¹ g with backtracking. M = H gives the natural gradient of Amari (1998), forward also Newton's step;
reverse, M is the divergence's own curvature where that is positive, so that the last steps are Newton's too.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from math import fsum
from typing import Any, NamedTuple, Protocol

import numpy as np

from certifit.core import Step, fixed_point
from certifit.divergence.integrals import grid
from certifit.divergence.mixtures import Distribution
from certifit.divergence.terms import kl_terms
from certifit.exceptions import DataError
from certifit.families import Family
from certifit.rows import Array


@dataclass(frozen=True)
class DescentTuning:
    """What steps are accepted, and how curvature is measured."""

    sufficient: float = 1e-4  # Armijo: share of the promised decrease that a step must deliver
    rounding: float = 1e-14  # relative noise in the objective: smaller rises do not refuse a step
    halvings: int = 60  # of a step that is refused
    nearby: float = 1e-3  # distance of the neighbours at which curvature is measured, in Fisher's metric
    least_curvature: float = 0.01  # relative to Fisher's information; below, the latter is used


class LocalDivergence(NamedTuple):
    """The objective around one member."""

    value: float
    gradient: Array  # (m,) in natural parameters


class DivergenceObjective(Protocol):
    """A divergence as a function of the member q."""

    def at(self, q: Family) -> LocalDivergence:
        """Value and gradient at a member."""

    def metric(self, q: Family) -> Array:
        """M (m, m), positive definite: a step is M⁻¹ g."""


@dataclass(frozen=True)
class ForwardDivergence:
    """Cross-entropy -E_p log q, which is KL(p, q) + a constant, for p given by weighted points."""

    x: Array  # (n,) or (n, d)
    w: Array  # (n,) sums to one

    def at(self, q: Family) -> LocalDivergence:
        return LocalDivergence(-fsum(self.w * q.log_density(self.x)), q.mean_parameters - self.w @ q.T(self.x))

    def metric(self, q: Family) -> Array:
        return q.T_covariance()


@dataclass(frozen=True)
class ReverseDivergence:
    """KL(q, p) for numbers x, by sums or quadrature over where q lives."""

    p: Distribution
    tuning: DescentTuning = DescentTuning()

    def at(self, q: Family) -> LocalDivergence:
        nodes = grid(partial(_reverse_terms, self.p, q), q, self.p)
        if nodes is None:
            raise DataError(got=f"{q}, over millions of values", wanted="a distribution of moderate spread")
        with np.errstate(invalid="ignore"):  # where q has mass and p has none, the value is infinite
            total = nodes.dx @ nodes.f
        return LocalDivergence(float(total[0]), total[1:])

    def metric(self, q: Family) -> Array:
        """Differences of the gradient where the divergence curves upwards, Fisher's information elsewhere."""
        fisher = q.T_covariance()
        reach = self.tuning.nearby / np.sqrt(np.diag(fisher))  # (m,)
        try:
            sides = [[self.at(neighbour(q, sign * step)).gradient for sign in (1, -1)] for step in np.diag(reach)]
        except DataError:  # at the border of the family
            return fisher
        M = np.array([(up - down) / (2 * h) for (up, down), h in zip(sides, reach, strict=True)])
        M = 0.5 * (M + M.T)
        curves_up = (
            np.linalg.eigvalsh(M * np.outer(reach, reach)).min() > self.tuning.least_curvature * self.tuning.nearby**2
        )
        return M if curves_up else fisher


def neighbour(q: Family, step: Array) -> Family:
    """The member a step (m,) of natural parameters away."""
    return type(q).from_natural(q.natural + step, **q.known_values)


def _reverse_terms(p: Distribution, q: Family, x: Array) -> Array:
    """Of KL(q, p) and of its gradient (n, 1 + m)."""
    log_p, log_q = p.log_density(x), q.log_density(x)
    density = np.exp(log_q)
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        u = np.where(density > 0, log_p - log_q, 0.0)
        weight = np.where(density > 0, -density * u, 0.0)[:, None]
        slope = np.where(weight != 0, weight * (q.T(x) - q.mean_parameters), 0.0)
        return np.column_stack([kl_terms(density, np.exp(log_p), np.where(density > 0, u, np.inf)), slope])


@dataclass(frozen=True)
class DescentPath:
    """Where the descent went; the last entry is where it ended."""

    parameters: Array  # (steps, m) natural
    gradients: Array  # (steps, m)
    objective: Array  # (steps,) KL for the reverse direction, KL + entropy of p for the forward one
    members: tuple[Family, ...]

    @property
    def ordinary(self) -> Array:
        """Ordinary parameters that were estimated, in the order of the fields (steps, …)."""
        names = [name for name in self.members[0].parameters if name not in self.members[0].known]
        return np.array([np.concatenate([np.ravel(m.parameters[n]) for n in names]) for m in self.members])


class DescentResult(NamedTuple):
    """The path of a descent and how far it may be from its end."""

    path: DescentPath
    gain: float  # what the next step promises


def descend(
    objective: DivergenceObjective, start: Family, tol: float, max_iter: int, tuning: DescentTuning
) -> DescentResult:
    """Go down from `start` until a step promises to lower the objective by no more than `tol`."""
    trace: dict[bytes, tuple[Family, LocalDivergence]] = {}

    def look(q: Family) -> LocalDivergence:
        key = q.natural.tobytes()
        if key not in trace:
            trace[key] = q, objective.at(q)
        return trace[key][1]

    steps: list[tuple[Family, LocalDivergence]] = []

    def update(q: Family, here: LocalDivergence) -> Step[Family]:
        steps.append((q, here))
        step = _solve(objective.metric(q), here.gradient)
        slope = float(here.gradient @ step)
        return Step(_backtrack(q, here, step, look, tuning), here.value, 0.5 * slope)

    found = fixed_point(look, update, start, tol=tol, max_iter=max_iter)
    steps = steps[: found.n_iter + 1]
    members, local = zip(*steps, strict=True)
    path = DescentPath(
        np.array([q.natural for q in members]),
        np.array([here.gradient for here in local]),
        np.array([here.value for here in local]),
        tuple(members),
    )
    return DescentResult(path, found.gain)


def _solve(M: Array, gradient: Array) -> Array:
    """M⁻¹ g, with M scaled to a unit diagonal first."""
    scale = 1 / np.sqrt(np.maximum(np.diag(M), np.finfo(float).tiny))
    return scale * np.linalg.lstsq(scale[:, None] * M * scale, scale * gradient)[0]


def _backtrack(q: Family, here: LocalDivergence, step: Array, look: Any, tuning: DescentTuning) -> Family:
    """The member a full step away, or half of it, … until the objective falls as promised."""
    t, slope = 1.0, float(here.gradient @ step)
    for _ in range(tuning.halvings):
        try:
            trial = neighbour(q, -t * step)
            value = look(trial).value
        except DataError:  # the step leaves the family
            value = np.inf
        if value <= here.value - tuning.sufficient * t * slope + tuning.rounding * abs(here.value):
            return trial
        t *= 0.5
    return q
