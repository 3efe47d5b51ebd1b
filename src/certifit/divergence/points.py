"""A distribution or a sample as points with probabilities, over which the moments of a family can be matched.

A projection needs only E_p T. It is taken over the rows of a sample, over the nodes of a sum or quadrature, over
draws (vectors), or, for a Gaussian family, over a few points with the mean and covariance of p.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from certifit.divergence.integrals import grid, is_discrete, is_scalar, method_name, weighted
from certifit.divergence.mixtures import Distribution
from certifit.divergence.quadrature import Nodes
from certifit.divergence.vectors import probability_vector
from certifit.exceptions import DataError
from certifit.families import (
    DiagonalGaussian,
    Family,
    Gaussian,
    GaussianFixedVariance,
    MultivariateGaussian,
    SphericalGaussian,
)
from certifit.families.fitting import one_column
from certifit.rows import Array, as_rows


@dataclass(frozen=True)
class Empirical:
    """A sample, as its rows in their order and as its distinct values."""

    rows: Array  # (n,) or (n, d)
    w: Array  # (n,) sums to one
    x: Array  # (k,) or (k, d) distinct
    share: Array  # (k,) probabilities

    def mean(self, values: Array) -> float:
        """Return the weighted mean of one value per row."""
        return math.fsum(self.w * values)


def empirical(p: Any) -> Empirical:
    """Return the sample given as (values, probabilities) or as a table of rows."""
    if isinstance(p, tuple):
        if len(p) != 2:
            raise DataError(got=f"a tuple of {len(p)}", wanted="(values, probabilities), or a sample as an array")
        rows, w = np.asarray(p[0], dtype=np.float64), probability_vector(p[1], "probabilities")
        if len(rows) != len(w):
            raise DataError(got=f"{len(rows)} values and {len(w)} probabilities", wanted="one for each value")
    else:
        table = as_rows(one_column(p)).load()
        rows, w = np.asarray(table.X, dtype=np.float64), table.w / table.w.sum()
        rows = rows[:, 0] if rows.shape[1] == 1 else rows
    rows, w = rows[w > 0], w[w > 0]
    x, where = np.unique(rows, axis=0, return_inverse=True)
    return Empirical(rows, w, x, np.bincount(where.ravel(), weights=w))


class WeightedPoints(NamedTuple):
    """Points with probabilities that represent a distribution."""

    x: Array  # (n,) or (n, d)
    w: Array  # (n,) probabilities
    how: str  # where they come from, in words


def _is_gaussian(family: type[Family]) -> bool:
    """Return whether a projection on the family needs only the mean and covariance of p."""
    gaussians = (Gaussian, GaussianFixedVariance, MultivariateGaussian, DiagonalGaussian, SphericalGaussian)
    return issubclass(family, gaussians)


def points_of(
    p: Distribution, family: type[Family], known: dict[str, Any], draws: int, random_state: Any
) -> WeightedPoints:
    """Return points over which T has its mean under p; a p under which that mean is not finite is refused."""
    if _is_gaussian(family):
        return _sigma_points(p)
    points = _nodes_or_draws(p, draws, random_state)
    support = family.support_of(**known)
    if not support.contains(points.x).all():
        raise DataError(
            got=f"p with mass outside the support of {family.__name__}",
            wanted=support.words,
            fix="Elsewhere KL(p, q) is infinite for every member q.",
        )
    q = family.fit(points.x, points.w, **known).member  # any member will do: T is the same for all
    nodes = grid(partial(weighted, partial(_one_and_T, q), p), p) if is_scalar(p) else None
    if nodes is None:
        return points
    if np.isinf(nodes.error).any():
        raise DataError(
            got=f"p under which a statistic of {family.__name__} has no finite mean",
            wanted="finite E T",
            fix="KL(p, q) is infinite for every member q.",
        )
    return _positive_nodes(nodes, points.how)


def points_within(p: Distribution, family: type[Family], known: dict[str, Any]) -> WeightedPoints:
    """Return points of the part of p inside the family's support, rough ones, from which a descent starts."""
    if _is_gaussian(family):
        return _sigma_points(p)
    points = _nodes_or_draws(p, 1000, 0)
    inside = family.support_of(**known).contains(points.x)
    return WeightedPoints(points.x[inside], points.w[inside], points.how)


def _nodes_or_draws(p: Distribution, draws: int, random_state: Any) -> WeightedPoints:
    """Return the nodes of a sum or quadrature over p, or draws from it where x are vectors or too many."""
    nodes = grid(partial(weighted, np.ones_like, p), p) if is_scalar(p) else None
    if nodes is not None:
        return _positive_nodes(nodes, method_name(is_discrete(p)))
    x = p.sample(draws, random_state)
    return WeightedPoints(x, np.full(len(x), 1 / len(x)), f"{draws:,} draws")


def _one_and_T(q: Family, x: Array) -> Array:
    return np.column_stack([np.ones(len(x)), q.T(x)])


def _positive_nodes(nodes: Nodes, how: str) -> WeightedPoints:
    w = nodes.dx * nodes.f[:, 0]
    return WeightedPoints(nodes.x[w > 0], w[w > 0], how)


def _sigma_points(p: Distribution) -> WeightedPoints:
    """Return 2d points with the mean and covariance of p, which a projection on a Gaussian family needs."""
    how = "its mean and variance"
    if is_scalar(p):
        sd = np.sqrt(p.variance)
        return WeightedPoints(p.mean + np.array([-sd, sd]), np.full(2, 0.5), how)
    values, vectors = np.linalg.eigh(p.covariance)
    d = len(values)
    axes = (vectors * np.sqrt(d * np.maximum(values, 0.0))).T  # (d, d) one direction a row
    return WeightedPoints(np.concatenate([p.mean + axes, p.mean - axes]), np.full(2 * d, 0.5 / d), how)
