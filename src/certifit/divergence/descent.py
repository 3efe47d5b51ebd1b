"""Gradient descent on a KL divergence over a family, which keeps every step so that its path can be drawn.

With η the natural parameters, T the statistic, τ = E_q T and H = Cov_q T (the Fisher information):
    forward  KL(p, q_η):  gradient τ - E_p T, convex in η with Hessian H;
    reverse  KL(q_η, p):  gradient Cov_q(T, log q - log p), not convex in general.
Steps are M⁻¹ g with backtracking. M = H gives the natural gradient of Amari (1998), which forward is Newton's step.
In the reverse direction M is the Hessian where that is positive definite, so that the last steps are Newton's too.
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
    """The numbers that decide which steps are accepted and how curvature is measured."""

    sufficient: float = 1e-4  # Armijo: share of the promised decrease that a step must deliver
    rounding: float = 1e-14  # relative rounding error of the objective: a step that raises it by less is accepted
    halvings: int = 60  # how often a refused step is halved
    nearby: float = 1e-3  # distance of the neighbours at which curvature is measured, in Fisher's metric
    least_curvature: float = 0.01  # relative to Fisher's information; below, the latter is used


class LocalDivergence(NamedTuple):
    """The value and the gradient of the objective at one member."""

    value: float
    gradient: Array  # (m,) in natural parameters


class DivergenceObjective(Protocol):
    """A divergence as a function of the member q."""

    def at(self, q: Family) -> LocalDivergence:
        """Return value and gradient at a member."""

    def metric(self, q: Family) -> Array:
        """Return the positive definite matrix M (m, m) of a step M⁻¹ g."""


@dataclass(frozen=True)
class ForwardDivergence:
    """The cross-entropy -E_p log q, which is KL(p, q) plus a constant, for p given by weighted points."""

    x: Array  # (n,) or (n, d)
    w: Array  # (n,) sums to one

    def at(self, q: Family) -> LocalDivergence:
        return LocalDivergence(-fsum(self.w * q.log_density(self.x)), q.mean_parameters - self.w @ q.T(self.x))

    def metric(self, q: Family) -> Array:
        return q.T_covariance()


@dataclass(frozen=True)
class ReverseDivergence:
    """The divergence KL(q, p) for numbers x, by sums or quadrature over the supports."""

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
        """Return the Hessian, from differences of the gradient, if positive definite, else the Fisher information."""
        fisher = q.T_covariance()
        reach = self.tuning.nearby / np.sqrt(np.diag(fisher))  # (m,)
        try:
            sides = [[self.at(neighbour(q, sign * step)).gradient for sign in (1, -1)] for step in np.diag(reach)]
        except DataError:  # a neighbour lies outside the family
            return fisher
        M = np.array([(up - down) / (2 * h) for (up, down), h in zip(sides, reach, strict=True)])
        M = 0.5 * (M + M.T)
        curvature = np.linalg.eigvalsh(M * np.outer(reach, reach)).min()
        return M if curvature > self.tuning.least_curvature * self.tuning.nearby**2 else fisher


def neighbour(q: Family, step: Array) -> Family:
    """Return the member whose natural parameters differ by `step` (m,)."""
    return type(q).from_natural(q.natural + step, **q.known_values)


def _reverse_terms(p: Distribution, q: Family, x: Array) -> Array:
    """Return the terms of KL(q, p) and of its gradient at each x (n, 1 + m)."""
    log_p, log_q = p.log_density(x), q.log_density(x)
    density = np.exp(log_q)
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        u = np.where(density > 0, log_p - log_q, 0.0)
        weight = np.where(density > 0, -density * u, 0.0)[:, None]
        slope = np.where(weight != 0, weight * (q.T(x) - q.mean_parameters), 0.0)
        return np.column_stack([kl_terms(density, np.exp(log_p), np.where(density > 0, u, np.inf)), slope])


@dataclass(frozen=True)
class DescentPath:
    """The members that a descent visited, the last of which is its result."""

    parameters: Array  # (steps, m) natural
    gradients: Array  # (steps, m)
    objective: Array  # (steps,) KL for the reverse direction, KL + entropy of p for the forward one
    members: tuple[Family, ...]

    @property
    def ordinary(self) -> Array:
        """Return the estimated ordinary parameters of every step (steps, p), in the order of the fields."""
        names = [name for name in self.members[0].parameters if name not in self.members[0].known]
        return np.array([np.concatenate([np.ravel(m.parameters[n]) for n in names]) for m in self.members])


class DescentResult(NamedTuple):
    """The path of a descent, and the decrease that one more step would promise."""

    path: DescentPath
    gain: float  # predicted decrease of the objective by the next step


def descend(
    objective: DivergenceObjective, start: Family, tol: float, max_iter: int, tuning: DescentTuning
) -> DescentResult:
    """Descend from `start` until a step promises to lower the objective by no more than `tol`."""
    known: dict[bytes, LocalDivergence] = {}

    def evaluate(q: Family) -> LocalDivergence:
        key = q.natural.tobytes()
        if key not in known:
            known[key] = objective.at(q)
        return known[key]

    steps: list[tuple[Family, LocalDivergence]] = []

    def update(q: Family, here: LocalDivergence) -> Step[Family]:
        steps.append((q, here))
        step = _solve_scaled(objective.metric(q), here.gradient)
        slope = float(here.gradient @ step)
        return Step(_backtrack(q, here, step, evaluate, tuning), here.value, 0.5 * slope)

    found = fixed_point(evaluate, update, start, tol=tol, max_iter=max_iter)
    steps = steps[: found.n_iter + 1]
    members, local = zip(*steps, strict=True)
    path = DescentPath(
        np.array([q.natural for q in members]),
        np.array([here.gradient for here in local]),
        np.array([here.value for here in local]),
        tuple(members),
    )
    return DescentResult(path, found.gain)


def _solve_scaled(M: Array, gradient: Array) -> Array:
    """Return M⁻¹ g, solved with M scaled to a unit diagonal."""
    scale = 1 / np.sqrt(np.maximum(np.diag(M), np.finfo(float).tiny))
    return scale * np.linalg.lstsq(scale[:, None] * M * scale, scale * gradient)[0]


def _backtrack(q: Family, here: LocalDivergence, step: Array, evaluate: Any, tuning: DescentTuning) -> Family:
    """Return the member after a full step, or half of it and so on, until the objective falls enough (Armijo)."""
    t, slope = 1.0, float(here.gradient @ step)
    for _ in range(tuning.halvings):
        try:
            trial = neighbour(q, -t * step)
            value = evaluate(trial).value
        except DataError:  # the step leaves the family
            value = np.inf
        if value <= here.value - tuning.sufficient * t * slope + tuning.rounding * abs(here.value):
            return trial
        t *= 0.5
    return q
