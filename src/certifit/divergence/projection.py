"""The member q of a family nearest to p, in the forward direction, min KL(p, q), or in reverse, min KL(q, p).

The forward projection matches moments, E_q T = E_p T, and covers all of p's mass; for a sample it is the maximum
likelihood fit, because KL(p, q) = -H(p) - mean log-likelihood. The reverse one seeks a mode of p.
References: Csiszár & Shields, Information Theory and Statistics (2004), section 3; Bishop, Pattern Recognition and
Machine Learning (2006), section 10.1.2.
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
Descend: TypeAlias = Callable[[DivergenceObjective, Family], DescentResult]


@dataclass(frozen=True)
class Projection:
    """The nearest member of a family and its certificate.

    For a sample, `entropy` and `mean_log_likelihood` are given and kl = -entropy - mean_log_likelihood: `kl` is
    summed over distinct values, the mean log-likelihood over rows, and the certificate compares them.

    >>> from certifit.divergence import minimise_kl
    >>> from certifit.families import Gaussian
    >>> found = minimise_kl([1.0, 2.0, 4.0, 5.0], Gaussian)
    >>> found.member, abs(found.kl + found.entropy + found.mean_log_likelihood) < 1e-12
    (Gaussian(mean=3.0, variance=2.5), True)
    >>> found.gradient(found.member.natural).tolist()
    [0.0, 0.0]
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
        """Return the gradient (m,) of the divergence at any natural parameters (m,); it is 0 at the solution."""
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
    """Return the member of a family with the smallest Kullback-Leibler divergence from or to p.

    Parameters
    ----------
    p : a member of a family, a `Mixture`, a tuple (values, probabilities), or a sample: array (n,) or (n, d), or
        anything `as_rows` takes
    family : the class to project on, such as `Gaussian`
    direction : "forward", KL(p, q), or "reverse", KL(q, p), which needs a distribution of numbers
    method : "closed" (moment matching; forward only) or "gradient" (descent, with its path and gradients)
    start : where the descent begins; by default, forward, at a fit to p with distorted weights; reverse, at the
        forward projections of p and of each component of a mixture, and the best result is kept
    tol, max_iter : the descent ends when a step promises less than tol, or after max_iter steps
    draws, random_state : for Monte Carlo, where x are vectors
    known : parameters of the family that are given, such as n of Binomial

    For a discrete p (a sample, say) and a continuous family KL is infinite; what is minimised, and given as `kl`, is
    the cross-entropy less the entropy of p, which may be negative. Between members it differs as the mean
    log-likelihood does.

    >>> from certifit.families import Binomial, Gaussian
    >>> found = minimise_kl(Binomial(0.3, 20), Gaussian, method="gradient")
    >>> round(found.member.mean, 9), round(found.member.variance, 9)  # np, np(1-p)
    (6.0, 4.2)
    """
    _check_choices(direction, method)
    source = p if isinstance(p, Family | FiniteMixture) else empirical(p)
    descent = partial(descend, tol=tol, max_iter=max_iter, tuning=DescentTuning())
    if direction == "forward":
        forward = _ForwardProjection(family, known, draws, random_state)
        return forward.closed(source) if method != "gradient" else forward.gradient(source, descent, start)
    if isinstance(source, Empirical) or not is_scalar(source):
        raise DataError(
            got="a sample or vectors for the reverse direction",
            wanted="a distribution of numbers, with a density wherever a member of the family has one",
            fix="Project forward, or fit a distribution to the sample first.",
        )
    return _project_reverse(source, family, known, descent, start)


def _check_choices(direction: str, method: str | None) -> None:
    if direction not in ("forward", "reverse"):
        raise DataError(got=f"direction={direction!r}", wanted="'forward' or 'reverse'")
    allowed = ("closed", "gradient") if direction == "forward" else ("gradient",)
    if method not in (None, *allowed):
        wanted = " or ".join(repr(word) for word in allowed)
        raise DataError(got=f"method={method!r} in the {direction} direction", wanted=wanted)


# ----------------------------------------------------------------------------------------------------------- forward
@dataclass(frozen=True)
class _ForwardProjection:
    """The forward projection on a family, with the same points of p for both methods."""

    family: type[Family]
    known: dict[str, Any]
    draws: int = DRAWS
    random_state: Any = 0

    def closed(self, p: Distribution | Empirical) -> Projection:
        objective, how = self._objective(p)
        fit = self.family.fit(objective.x, objective.w, **self.known)
        return self._projection(p, fit.member, objective, _with_source(fit.certificate, how))

    def gradient(self, p: Distribution | Empirical, descent: Descend, start: Family | None) -> Projection:
        objective, how = self._objective(p)
        path = descent(objective, start or self._distorted_fit(objective)).path
        member = path.members[-1]
        proof = _with_source(_moment_certificate(member, objective), how)
        return replace(self._projection(p, member, objective, proof), path=path)

    def _objective(self, p: Distribution | Empirical) -> tuple[ForwardDivergence, str]:
        """Return the objective over the points of p, and where these come from, in words."""
        if isinstance(p, Empirical):
            return ForwardDivergence(p.x, p.share), "the rows"
        points = points_of(p, self.family, self.known, self.draws, self.random_state)
        return ForwardDivergence(points.x, points.w), points.how

    def _distorted_fit(self, p: ForwardDivergence) -> Family:
        """Return the member fitted with more weight on larger points: a valid start that is not the solution."""
        order = np.lexsort(np.atleast_2d(p.x.T)[::-1])
        tilt = np.empty(len(p.w))
        tilt[order] = np.linspace(1.0, 8.0, len(p.w))  # the largest x weighs 8 times what the smallest does
        return self.family.fit(p.x, p.w * tilt, **self.known).member

    def _projection(
        self, p: Distribution | Empirical, q: Family, objective: ForwardDivergence, proof: Certificate
    ) -> Projection:
        """Return the projection with its divergence, and for a sample the entropy and mean log-likelihood too."""
        if not isinstance(p, Empirical):
            return Projection(q, self._kl(p, q), "forward", proof, objective)
        H, mean_log_likelihood = entropy(p.share), p.mean(q.log_density(p.rows))
        value = math.fsum(p.share * (np.log(p.share) - q.log_density(p.x)))
        kl_value = Divergence(value) if q.support.discrete else Estimate(value, note=_cross_entropy_note())
        apart = abs(value + H + mean_log_likelihood)
        limit = 1e-12 * (1 + abs(H) + abs(mean_log_likelihood))
        same = Check("KL less (-H(p) - mean log-likelihood)", apart, limit)
        proof = replace(proof, checks=(*proof.checks, same))
        return Projection(q, kl_value, "forward", proof, objective, None, H, mean_log_likelihood)

    def _kl(self, p: Distribution, q: Family) -> Estimate:
        options: dict[str, Any] = {"draws": self.draws, "random_state": self.random_state}
        if components(p)[0].support.discrete == q.support.discrete:
            return kl(p, q, **options)
        cross, own = cross_entropy(p, q, **options), entropy(p, **options)
        return Estimate(cross - own, math.hypot(cross.error, own.error), cross.method, _cross_entropy_note())


def _cross_entropy_note() -> str:
    return "p is discrete, the family continuous: cross-entropy less the entropy of p, which may be negative"


def _with_source(proof: Certificate, how: str) -> Certificate:
    """Return the certificate with one more fact, where the moments of p come from."""
    return replace(proof, facts={**proof.facts, "moments of p from": how})


def _moment_certificate(q: Family, p: ForwardDivergence) -> Certificate:
    """Check E_q T = E_p T with the checker of fitted families."""
    rows = as_rows(p.x if q.support.vector else p.x[:, None], sample_weight=p.w)
    return certify_family(type(q).__name__, q.parameters, rows, -p.at(q).value)


# ----------------------------------------------------------------------------------------------------------- reverse
def _project_reverse(
    p: Distribution, family: type[Family], known: dict[str, Any], descent: Descend, start: Family | None
) -> Projection:
    objective = ReverseDivergence(p)
    starts = [start] if start is not None else _starts(p, family, known)
    if not starts or starts[0].support.discrete != components(p)[0].support.discrete:
        raise DataError(
            got=f"p and a family ({family.__name__}) of which one is discrete and the other continuous",
            wanted="both discrete or both continuous: KL(q, p) of the reverse direction is infinite otherwise",
            fix="minimise_kl(p, family) projects forward, which is all there is.",
        )
    if not math.isfinite(objective.at(starts[0]).value):
        raise DataError(
            got=f"{starts[0]}, which has mass where p has none",
            wanted="a family whose members live where p lives: elsewhere KL(q, p) is infinite",
        )
    best = min((descent(objective, q) for q in starts), key=lambda found: found.path.objective[-1])
    member = best.path.members[-1]
    value = kl(member, p)
    proof = _stationary_certificate(member, p, best.gain, value)
    return Projection(member, value, "reverse", proof, objective, best.path)


def _starts(p: Distribution, family: type[Family], known: dict[str, Any]) -> list[Family]:
    """Return the forward projections of p and, if it is a mixture, of each of its members."""
    parts: tuple[Distribution, ...] = (p, *components(p)) if isinstance(p, FiniteMixture) else (p,)
    points = [points_within(part, family, known) for part in parts]
    return [family.fit(x, w, **known).member for x, w, _ in points if len(x)]


def _stationary_certificate(q: Family, p: Distribution, gain: float, value: Divergence) -> Certificate:
    """Check that neither a step nor a neighbour on either side of any natural parameter lowers KL(q, p)."""
    rounding = 1e-11 * max(1.0, value)
    steps = np.diag(DescentTuning().nearby / np.sqrt(np.diag(q.T_covariance())))
    decrease = max(value - kl(neighbour(q, step), p) for step in (*steps, *-steps))
    checks = (
        Check("decrease that a step promises", gain, rounding),
        Check("decrease found at a neighbour", max(0.0, decrease), rounding),
    )
    return Certificate("stationary", "no step from here lowers KL(q, p); another start may", value, checks=checks)
