"""Finite mixtures of members of families, whose densities are p(x) = Σ π_a p_a(x) with weights π that sum to one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from scipy.special import logsumexp

from certifit.divergence.vectors import probability_vector
from certifit.exceptions import DataError
from certifit.families import Family
from certifit.rows import Array


@dataclass(frozen=True, eq=False)
class FiniteMixture:
    """A mixture takes a share `weights[a]` of its mass from the member `members[a]`; its public name is `Mixture`.

    >>> from certifit.divergence import Mixture
    >>> from certifit.families import Gaussian
    >>> p = Mixture([0.25, 0.75], [Gaussian(-2.0, 1.0), Gaussian(2.0, 1.0)])
    >>> p.mean, p.variance
    (1.0, 4.0)
    """

    weights: Array  # (k,)
    members: tuple[Family, ...]

    def __init__(self, weights: Any, members: Sequence[Family]) -> None:
        w = probability_vector(weights, "weights")
        if len(w) != len(members):
            raise DataError(got=f"{len(w)} weights and {len(members)} members", wanted="one weight for each member")
        if len({(m.support.discrete, np.shape(m.mean)) for m in members}) > 1:
            raise DataError(
                got=f"members {', '.join(type(m).__name__ for m in members)}",
                wanted="members over the same kind of x: all discrete or all continuous, of one dimension",
            )
        w.flags.writeable = False
        object.__setattr__(self, "weights", w)
        object.__setattr__(self, "members", tuple(members))

    def log_density(self, x: Any) -> Array:
        """Return log p(x) (n,), without underflow however far x lies from every member."""
        with np.errstate(divide="ignore"):
            each = np.stack([m.log_density(x) for m in self.members]) + np.log(self.weights)[:, None]  # (k, n)
            return logsumexp(each, axis=0)

    def sample(self, size: int, random_state: Any = None) -> Array:
        """Return draws (size,) or (size, d), in random order."""
        rng = np.random.default_rng(random_state)
        counts = rng.multinomial(size, self.weights / self.weights.sum())
        drawn = [m.sample(int(n), rng) for m, n in zip(self.members, counts, strict=True) if n > 0]
        return np.concatenate(drawn)[rng.permutation(size)]

    @property
    def mean(self) -> Any:
        """Return E x, a number or (d,)."""
        mean = np.tensordot(self.weights, np.stack([m.mean for m in self.members]), axes=1)
        return mean if mean.ndim else float(mean)

    @property
    def variance(self) -> float:
        """Return the variance of a number x: that within the members plus that between them."""
        within = self.weights @ np.array([m.variance for m in self.members])
        return float(within + self.weights @ (np.array([m.mean for m in self.members]) - self.mean) ** 2)

    @property
    def covariance(self) -> Array:
        """Return the covariance (d, d) of vectors x: that within the members plus that between them."""
        between = np.stack([m.mean for m in self.members]) - self.mean  # (k, d)
        within = np.tensordot(self.weights, np.stack([m.covariance for m in self.members]), axes=1)
        return within + (between.T * self.weights) @ between


Mixture = FiniteMixture
Distribution: TypeAlias = Family | FiniteMixture


def components(p: Distribution) -> tuple[Family, ...]:
    """Return the members that p mixes with positive weight, or p itself if it is no mixture."""
    if isinstance(p, FiniteMixture):
        return tuple(m for m, w in zip(p.members, p.weights, strict=True) if w > 0)
    return (p,)
