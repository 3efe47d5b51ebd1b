"""The member of a family nearest to p: forward, min KL(p, q), or reverse, min KL(q, p).

Forward matches moments, E_q T = E_p T, and covers all of p's mass; for a sample it is maximum likelihood, because
KL(p, q) = -H(p) - mean log-likelihood. Reverse seeks a mode of p and stays where p has mass.
Csiszár & Shields, Information Theory and Statistics (2004), section 3; Bishop, PRML (2006), section 10.1.2.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, TypeAlias

import numpy as np

from certifit.checkers.families.moment_matching import certify_family
from certifit.core import Certificate, Check
from certifit.divergence.descent import (
    DescentPath,
    DescentResult,
    DescentTuning,
    DivergenceObjective,
    ForwardDivergence,
    ReverseDivergence,
    descend,
    neighbour,
)
from certifit.divergence.integrals import is_scalar
from certifit.divergence.measures import DRAWS, cross_entropy, entropy, kl
from certifit.divergence.mixtures import Distribution, FiniteMixture, components
from certifit.divergence.points import Empirical, empirical, points_of, points_within
from certifit.divergence.value import Divergence, Estimate
from certifit.exceptions import DataError
from certifit.families import Family
from certifit.rows import Array, as_rows

Direction = Literal["forward", "reverse"]
Method = Literal["closed", "gradient"]
Walk: TypeAlias = Callable[[DivergenceObjective, Family], DescentResult]


@dataclass(frozen=True)
class Projection:
    """The nearest member of a family, and the proof.

    For a sample, `entropy` and `mean_log_likelihood` are there and kl = -entropy - mean_log_likelihood: `kl` is
    summed over distinct values, the mean log-likelihood over rows, and the certificate compares them.
    """

    member: Family
    kl: Estimate
    direction: Direction
    certificate: Certificate
    objective: DivergenceObjective
    path: DescentPath | None = None  # by gradient descent
    entropy: Estimate | None = None  # of p, where p is a sample
    mean_log_likelihood: float | None = None

    def gradient(self, parameters: Any) -> Array:
        """Gradient (m,) of the divergence at any natural parameters (m,); 0 at the solution."""
        q = type(self.member).from_natural(parameters, **self.member.known_values)
        return self.objective.at(q).gradient

    def __str__(self) -> str:
        lines = [f"{self.member}", f"  {'KL(p, q)' if self.direction == 'forward' else 'KL(q, p)'}  {self.kl}"]
        if self.entropy is not None and self.mean_log_likelihood is not None:
            lines.append(f"  -H(p) - mean log-likelihood  {0.0 - self.entropy - self.mean_log_likelihood!r}")
        return "\n".join([*lines, str(self.certificate)])


def minimise_kl(
    p: Any,
    family: type[Family],
    direction: Direction = "forward",
    method: Method | None = None,
    *,
    start: Family | None = None,
    tol: float = 1e-20,
    max_iter: int = 200,
    draws: int = DRAWS,
    random_state: Any = 0,
    **known: Any,
) -> Projection:
    """Project p on a family by the smallest Kullback-Leibler divergence.

    Parameters
    ----------
    p : a member of a family, a `Mixture`, a tuple (values, probabilities), or a sample: array (n,) or (n, d), or
        anything `as_rows` takes
    direction : "forward", KL(p, q), or "reverse", KL(q, p), which needs a distribution of numbers
    method : "closed" (moment matching; forward only) or "gradient" (descent, with its path and gradients)
    start : where the descent begins; by default forward from a distorted p, reverse from the forward projection and
        from those of each component of a mixture, of which the best end is kept
    tol : the descent ends when a step promises less than this
    draws, random_state : for Monte Carlo, where x are vectors
    known : parameters of the family that are given, such as n of Binomial

    For a discrete p (a sample, say) and a continuous family the densities are not comparable and KL is infinite; what
    is minimised, and given as `kl`, is the cross-entropy less the entropy of p. It may be negative; its differences
    between members are those of the mean log-likelihood.

    >>> from certifit.families import Binomial, Gaussian
    >>> found = minimise_kl(Binomial(0.3, 20), Gaussian, method="gradient")
    >>> round(found.member.mean, 9), round(found.member.variance, 9)  # np, np(1-p)
    (6.0, 4.2)
    """
    _check(direction, method)
    source = p if isinstance(p, Family | FiniteMixture) else empirical(p)
    walk = partial(descend, tol=tol, max_iter=max_iter, tuning=DescentTuning())
    if direction == "forward":
        forward = _ForwardProjection(family, known, draws, random_state)
        return forward.closed(source) if method != "gradient" else forward.gradient(source, walk, start)
    if isinstance(source, Empirical) or not is_scalar(source):
        raise DataError(
            got="a sample or vectors for the reverse direction",
            wanted="a distribution of numbers, with a density wherever a member of the family has one",
            fix="Project forward, or fit a distribution to the sample first.",
        )
    return _reverse(source, family, known, walk, start)


def _check(direction: str, method: str | None) -> None:
    if direction not in ("forward", "reverse"):
        raise DataError(got=f"direction={direction!r}", wanted="'forward' or 'reverse'")
    allowed = ("closed", "gradient") if direction == "forward" else ("gradient",)
    if method not in (None, *allowed):
        wanted = " or ".join(repr(word) for word in allowed)
        raise DataError(got=f"method={method!r} in the {direction} direction", wanted=wanted)


# ----------------------------------------------------------------------------------------------------------- forward
@dataclass(frozen=True)
class _ForwardProjection:
    """min KL(p, q) over a family: the same points of p for every method."""

    family: type[Family]
    known: dict[str, Any]
    draws: int = DRAWS
    random_state: Any = 0

    def closed(self, p: Distribution | Empirical) -> Projection:
        objective, how = self._objective(p)
        fit = self.family.fit(objective.x, objective.w, **self.known)
        return self._result(p, fit.member, objective, _with_source(fit.certificate, how))

    def gradient(self, p: Distribution | Empirical, walk: Walk, start: Family | None) -> Projection:
        objective, how = self._objective(p)
        path = walk(objective, start or self._distorted(objective)).path
        member = path.members[-1]
        return replace(self._result(p, member, objective, _with_source(_matched(member, objective), how)), path=path)

    def _objective(self, p: Distribution | Empirical) -> tuple[ForwardDivergence, str]:
        """What to minimise, and where its points come from."""
        if isinstance(p, Empirical):
            return ForwardDivergence(p.x, p.share), "the rows"
        points = points_of(p, self.family, self.known, self.draws, self.random_state)
        return ForwardDivergence(points.x, points.w), points.how

    def _distorted(self, p: ForwardDivergence) -> Family:
        """The member for points of which the larger weigh more: not the answer, and as legal as the answer."""
        order = np.lexsort(np.atleast_2d(p.x.T)[::-1])
        tilt = np.empty(len(p.w))
        tilt[order] = np.linspace(1.0, 8.0, len(p.w))  # the largest x weighs 8 times what the smallest does
        return self.family.fit(p.x, p.w * tilt, **self.known).member

    def _result(
        self, p: Distribution | Empirical, q: Family, objective: ForwardDivergence, proof: Certificate
    ) -> Projection:
        if not isinstance(p, Empirical):
            return Projection(q, self._distance(p, q), "forward", proof, objective)
        H, mean_log_likelihood = entropy(p.share), p.mean(q.log_density(p.rows))
        value = math.fsum(p.share * (np.log(p.share) - q.log_density(p.x)))
        distance = Divergence(value) if q.support.discrete else Estimate(value, note=_mixed_note())
        apart = abs(value + H + mean_log_likelihood)
        limit = 1e-12 * (1 + abs(H) + abs(mean_log_likelihood))
        same = Check("KL less (-H(p) - mean log-likelihood)", apart, limit)
        proof = replace(proof, checks=(*proof.checks, same))
        return Projection(q, distance, "forward", proof, objective, None, H, mean_log_likelihood)

    def _distance(self, p: Distribution, q: Family) -> Estimate:
        options: dict[str, Any] = {"draws": self.draws, "random_state": self.random_state}
        if components(p)[0].support.discrete == q.support.discrete:
            return kl(p, q, **options)
        cost, own = cross_entropy(p, q, **options), entropy(p, **options)
        return Estimate(cost - own, math.hypot(cost.error, own.error), cost.method, _mixed_note())


def _mixed_note() -> str:
    return "p is discrete, the family continuous: cross-entropy less the entropy of p, which may be negative"


def _with_source(proof: Certificate, how: str) -> Certificate:
    """The certificate with the fact where the moments of p come from."""
    return replace(proof, facts={**proof.facts, "moments of p from": how})


def _matched(q: Family, p: ForwardDivergence) -> Certificate:
    """The families' own check that E_q T = E_p T."""
    rows = as_rows(p.x if q.support.vector else p.x[:, None], sample_weight=p.w)
    return certify_family(type(q).__name__, q.parameters, rows, -p.at(q).value)


# ----------------------------------------------------------------------------------------------------------- reverse
def _reverse(
    p: Distribution, family: type[Family], known: dict[str, Any], walk: Walk, start: Family | None
) -> Projection:
    objective = ReverseDivergence(p)
    starts = [start] if start is not None else _starts(p, family, known)
    if math.isinf(objective.at(starts[0]).value):
        raise DataError(
            got=f"{starts[0]}, which has mass where p has none",
            wanted="a family whose members live where p lives: elsewhere KL(q, p) is infinite",
        )
    best = min((walk(objective, q) for q in starts), key=lambda found: found.path.objective[-1])
    member = best.path.members[-1]
    distance = kl(member, p)
    return Projection(member, distance, "reverse", _stationary(member, p, best.gain, distance), objective, best.path)


def _starts(p: Distribution, family: type[Family], known: dict[str, Any]) -> list[Family]:
    """The forward projections of p and of each member that it mixes."""
    parts: tuple[Distribution, ...] = (p, *components(p)) if isinstance(p, FiniteMixture) else (p,)
    points = [points_within(part, family, known) for part in parts]
    return [family.fit(x, w, **known).member for x, w, _ in points if len(x)]


def _stationary(q: Family, p: Distribution, gain: float, value: Divergence) -> Certificate:
    """What a step promises, and KL at neighbours on either side of every natural parameter."""
    rounding = 1e-11 * max(1.0, value)
    steps = np.diag(DescentTuning().nearby / np.sqrt(np.diag(q.T_covariance())))
    deeper = max(value - kl(neighbour(q, step), p) for step in (*steps, *-steps))
    checks = (
        Check("decrease that a step promises", gain, rounding),
        Check("decrease found at a neighbour", max(0.0, deeper), rounding),
    )
    return Certificate("stationary", "no step from here lowers KL(q, p); another start may", value, checks=checks)
