"""Gaussian components of a mixture: their densities, their sums over rows, their M step.

A log-density is linear in a row's features (q(z), z), z = x - shift with a shift amid the rows: one product gives it
for all components, and one product with the responsibilities gives all sums. What is lost by cancellation is of the
order of eps |U'(mean - shift)|², P = UUᵀ, so components farther than FAR from the shift have features about their own
means. The objective is the mean log-likelihood less (1/2k) Σ_k Σ_j floor_j (P_k)_jj, under which
    C_k = scatter_k + diag(floor) n / (k n_k)
is the M step. It is bounded above, so that no component can collapse onto a row and take the fit with it.
Rows with holes: see `mixture_gaussian_holes`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from certifit.core import Array, Sums
from certifit.kernels.mixture import shift_rows
from certifit.linalg.holes import has_holes
from certifit.models.mixture_gaussian_holes import Holes, by_pattern
from certifit.models.mixture_gaussian_shapes import SHAPES, Shape

LOG_2PI = float(np.log(2 * np.pi))
FAR = 100.0  # standard deviations from the shift at which a component gets features of its own
WORK = 2**17  # features held at a time: what a processor's own cache takes
FEWEST = 1e-15  # of all weight, without which a component has no rows


def _rows_at_a_time(features: int) -> int:
    return max(256, min(2048, WORK // features))


@dataclass(frozen=True)
class Moments(Sums):
    """Sums over rows, about each component's anchor."""

    first: Array  # Σ r z (k, d)
    second: Array  # Σ r q(z) (k, width)


class Seen(NamedTuple):
    """What `collect` needs of the rows that `look` saw."""

    Z: Array  # (d, n) x - shift
    F: Array  # (width + d, n) the features about the shift
    holes: list[Holes]  # of each group of components, where rows have some


@dataclass(frozen=True)
class Gaussians:
    """k Gaussians; see `mixture_em.Components`."""

    covariance_type: str
    shift: Array  # (d,)
    means: Array  # (k, d), less the shift
    C: Array  # covariances: see `Shape`
    floor: Array  # (d,) of the penalty

    @property
    def shape(self) -> Shape:
        return SHAPES[self.covariance_type]

    @cached_property
    def P(self) -> Array:
        return self.shape.invert(self.C)

    @cached_property
    def log_det(self) -> Array:
        return self.shape.log_det(self.C, len(self.shift))

    @cached_property
    def anchors(self) -> Array:
        """Where the sums of each component are about (k, d): the shift (0), or its mean where that is far away."""
        far = (self.means * self.shape.apply(self.P, self.means)).sum(axis=1) > FAR**2
        return np.where(far[:, None], self.means, 0.0)

    @cached_property
    def groups(self) -> list[tuple[Array, Any]]:
        """Anchors (d,), and the components that share them."""
        far = self.anchors.any(axis=1)
        none = np.zeros(len(self.shift))
        if not far.any():
            return [(none, slice(None))]  # as most often: then nothing needs to be gathered
        near = [] if far.all() else [(none, np.flatnonzero(~far))]
        return near + [(self.anchors[k], np.array([k])) for k in np.flatnonzero(far)]

    @cached_property
    def together(self) -> bool:
        """Whether all components share the features about the shift, as most often."""
        return len(self.groups) == 1 and not self.groups[0][0].any()

    @cached_property
    def linear(self) -> tuple[Array, Array]:
        """log f_k = constants + coefficients · (q(z), z) about the anchors: (k, width + d), (k,)."""
        m = self.means - self.anchors
        Pm = self.shape.apply(self.P, m)
        quadratic = np.broadcast_to(-0.5 * self.shape.coefficients(self.P), (len(m), self.shape.width(m.shape[1])))
        constants = -0.5 * (m.shape[1] * LOG_2PI + self.log_det + (m * Pm).sum(axis=1))
        return np.concatenate([quadratic, Pm], axis=1), constants

    # -------------------------------------------------------------------------------------- of some rows
    def pieces(self, X: Array, counts: Array) -> Iterator[Any]:
        wide = has_holes(X)
        d = len(self.shift)
        step = _rows_at_a_time(d * (d + 1) // 2 if wide else self.shape.width(d) + d)
        if wide:
            order = by_pattern(X, counts)
        elif counts.all():
            yield from (slice(i, i + step) for i in range(0, len(X), step))
            return
        else:
            order = np.flatnonzero(counts)
        yield from (order[i : i + step] for i in range(0, len(order), step))

    def workspace(self) -> Array:
        d = len(self.shift)
        features = self.shape.width(d) + d
        return np.empty((features, _rows_at_a_time(features)))

    def look(self, X: Array, work: Array) -> tuple[Array, Seen]:
        F = work[:, : len(X)] if len(X) <= work.shape[1] else np.empty((len(work), len(X)))
        Z = F[-X.shape[1] :] if self.together else np.empty((X.shape[1], len(X)))
        if shift_rows(X, self.shift, Z):
            return self._look_at_holes(Z)
        coefficients, constants = self.linear
        if self.together:
            self.shape.features(Z, F[: -len(Z)])
            logf = coefficients @ F
        else:
            logf = np.empty((len(constants), len(X)))
            for anchor, members in self.groups:
                logf[members] = coefficients[members] @ self._features(Z, anchor, F)
        logf += constants[:, None]
        return logf, Seen(Z, F, [])

    def _features(self, Z: Array, anchor: Array, F: Array) -> Array:
        """The features about an anchor, in F (width + d, n)."""
        width = self.shape.width(len(Z))
        np.subtract(Z, anchor[:, None], out=F[width:])
        self.shape.features(F[width:], F[:width])
        return F

    def collect(self, seen: Seen, R: Array) -> Moments:
        Z, F, holes = seen
        d = len(self.shift)
        width = self.shape.width(d)
        if holes:
            first, pairs = np.empty((len(R), d)), np.empty((len(R), d * (d + 1) // 2))
            for (_, members), found in zip(self.groups, holes, strict=True):
                first[members], pairs[members] = found.collect(R[members])
            return Moments(first, self.shape.reduce(pairs, d))
        if self.together:
            out = R @ F.T
        else:
            out = np.empty((len(R), width + d))
            for anchor, members in self.groups:
                out[members] = R[members] @ self._features(Z, anchor, F).T
        return Moments(out[:, width:], out[:, :width])

    def _look_at_holes(self, Z: Array) -> tuple[Array, Seen]:
        P = self.shape.matrices(self.P, *self.means.shape)
        logf = np.empty((len(self.means), Z.shape[1]))
        holes = []
        for anchor, members in self.groups:
            found = Holes(Z - anchor[:, None], self.means[members] - anchor, P[members])
            log_det = np.broadcast_to(self.log_det, len(self.means))[members]
            logf[members] = found.log_densities(log_det)
            holes.append(found)
        return logf, Seen(Z, Z[:0], holes)

    # -------------------------------------------------------------------------------------- the M step
    def maximise(self, sums: Moments, n: Array) -> tuple[Gaussians, float]:
        total = float(n.sum())
        empty = n <= FEWEST * total
        some = np.maximum(n, FEWEST * total)
        mu = np.where(empty[:, None], 0.0, sums.first / some[:, None])
        floor = self.floor * (total / (len(n) * some))[:, None]
        C = self.shape.keep(self.shape.covariances(some, mu, sums.second, floor), self.C, empty)
        means = np.where(empty[:, None], self.means, self.anchors + mu)
        new = Gaussians(self.covariance_type, self.shift, means, C, self.floor)
        rise = new._expected(self.anchors, sums, n) - self._expected(self.anchors, sums, n)
        return new, rise - total * (new.penalty() - self.penalty())

    def _expected(self, anchors: Array, sums: Moments, n: Array) -> float:
        """Σ r log f_k, from sums about these anchors."""
        m = self.means - anchors
        Pm = self.shape.apply(self.P, m)
        squares = (self.shape.coefficients(self.P) * sums.second).sum(axis=1) - 2 * (Pm * sums.first).sum(axis=1)
        return float(-0.5 * (n @ (len(self.shift) * LOG_2PI + self.log_det + (m * Pm).sum(axis=1)) + squares.sum()))

    def penalty(self) -> float:
        return 0.5 * float((self.shape.diagonal(self.P, len(self.shift)) @ self.floor).mean())
