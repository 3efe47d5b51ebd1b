"""Gaussian components of a mixture: their densities, their sums over rows, their M step.

A log-density is linear in a row's features (q(z), z, 1), z = x - shift with a shift amid the rows: one product gives
it for all components, and one product with the responsibilities gives all sums. What is lost by cancellation is of
the order of eps |U'(mean - shift)|², P = UUᵀ, so components farther than FAR from the shift have features about their
own means. The objective is the mean log-likelihood less (1/2k) Σ_k Σ_j floor_j (P_k)_jj, under which
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

from certifit.mixture.em_loops import shift_rows
from certifit.mixture.gaussian.covariance_shapes import SHAPES, Shape
from certifit.mixture.gaussian.missing_entries import Filled, Holes, by_pattern
from certifit.numerics.packed import pack
from certifit.rows import Array

LOG_2PI = float(np.log(2 * np.pi))
FAR = 100.0  # standard deviations from the shift at which a component gets features of its own
WORK = 2**17  # numbers held at a time: what a processor's own cache takes
BLOCKS = 2**22  # numbers at most in the matrices that patterns of holes need at a time
FEWEST = 1e-15  # of all weight, without which a component has no rows


def _rows_at_a_time(numbers: int) -> int:
    """Given the numbers that are held for each."""
    return max(256, min(2048, WORK // numbers))


def _table(memory: Array, a: int, b: int) -> Array:
    """A table (a, b) in the memory, where that is enough."""
    return memory[: a * b].reshape(a, b) if a * b <= len(memory) else np.empty((a, b))


class Seen(NamedTuple):
    """What `again` and `collect` need of the rows that `look` saw."""

    Z: Array  # (d, n) x - shift
    F: Array | None  # (width + d + 1, n) the features about the shift, where they are known
    holes: Holes | None  # of the rows, where there are any
    filled: Filled | None = None  # by what the components expect


class Memory(NamedTuple):
    """Used again for every piece: once the processor has it at hand, it stays there."""

    features: Array
    logf: Array


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
    def linear(self) -> Array:
        """log f_k = coefficients · (q(z), z, 1) about the anchors (k, width + d + 1)."""
        m = self.means - self.anchors
        Pm = self.shape.apply(self.P, m)
        quadratic = np.broadcast_to(-0.5 * self.shape.coefficients(self.P), (len(m), self.shape.width(m.shape[1])))
        constants = -0.5 * (m.shape[1] * LOG_2PI + self.log_det + (m * Pm).sum(axis=1))
        return np.column_stack([quadratic, Pm, constants])

    # -------------------------------------------------------------------------------------- of some rows
    def pieces(self, X: Array, counts: Array, holes: bool) -> Iterator[Any]:
        step = _rows_at_a_time(self.linear.shape[1])
        if not holes and counts.all():
            yield from (slice(i, i + step) for i in range(0, len(X), step))
            return
        order, number = by_pattern(X, counts) if holes else (np.flatnonzero(counts), np.zeros(int(counts.sum())))
        n = int(np.searchsorted(number, 1))  # complete rows
        yield from (order[i : min(i + step, n)] for i in range(0, n, step))
        k, d = self.means.shape
        step, most = _rows_at_a_time(k * d), max(1, BLOCKS // (k * d * d))
        while n < len(order):
            end = min(n + step, int(np.searchsorted(number, number[n] + most)))
            yield order[n:end]
            n = end

    def workspace(self) -> Memory:
        features = self.linear.shape[1]
        n = _rows_at_a_time(features)
        return Memory(np.empty(features * n), np.empty(len(self.means) * n))

    def look(self, X: Array, work: Memory) -> tuple[Array, Seen]:
        features, (n, d) = self.linear.shape[1], X.shape
        F = _table(work.features, features, n) if self.together else None
        Z = np.empty((d, n)) if F is None else F[-1 - d : -1]
        holes = Holes(Z) if shift_rows(X, self.shift, Z) else None
        if F is not None and holes is None:
            self._complete(F)
        return self.again(Seen(Z, F, holes), work)

    def again(self, seen: Seen, work: Memory) -> tuple[Array, Seen]:
        if seen.holes is not None:
            filled = Filled(seen.holes, self.means, self.shape.matrices(self.P, *self.means.shape))
            return filled.log_densities(self.log_det), seen._replace(filled=filled)
        logf = _table(work.logf, len(self.means), seen.Z.shape[1])
        if self.together and seen.F is not None:
            np.matmul(self.linear, seen.F, out=logf)
        else:
            for members, F in self._each_group(seen.Z):
                logf[members] = self.linear[members] @ F
        return logf, seen

    def _each_group(self, Z: Array) -> Iterator[tuple[Any, Array]]:
        """Components that share an anchor, and the features about it (width + d + 1, n)."""
        F = np.empty((self.linear.shape[1], Z.shape[1]))
        for anchor, members in self.groups:
            np.subtract(Z, anchor[:, None], out=F[-1 - len(Z) : -1])
            self._complete(F)
            yield members, F

    def _complete(self, F: Array) -> None:
        """Put what belongs to the z that are in F beside them."""
        width = len(F) - 1 - len(self.shift)
        self.shape.features(F[width:-1], F[:width])
        F[-1] = 1.0

    def collect(self, seen: Seen, R: Array) -> tuple[Array, Array]:
        """Sums of the features about each component's anchor (k, width + d + 1)."""
        if seen.filled is not None:
            return self._collect_filled(seen.filled, R)
        if self.together and seen.F is not None:
            out = R @ seen.F.T
        else:
            out = np.empty((len(R), self.linear.shape[1]))
            for members, F in self._each_group(seen.Z):
                out[members] = R[members] @ F.T
        return out[:, -1], out

    def _collect_filled(self, rows: Filled, R: Array) -> tuple[Array, Array]:
        n, d = R.sum(axis=1), len(self.shift)
        first, second = rows.collect(R)
        away = self.means - self.anchors
        moved = first + n[:, None] * away
        second += first[:, :, None] * away[:, None] + away[:, :, None] * moved[:, None]  # about the anchors
        return n, np.column_stack([self.shape.reduce(pack(second), d), moved, n])

    # -------------------------------------------------------------------------------------- the M step
    def maximise(self, sums: Array, n: Array) -> tuple[Gaussians, float]:
        first, second = self._split(sums)
        total = float(n.sum())
        empty = n <= FEWEST * total
        some = np.maximum(n, FEWEST * total)
        mu = np.where(empty[:, None], 0.0, first / some[:, None])
        floor = self.floor * (total / (len(n) * some))[:, None]
        C = self.shape.keep(self.shape.covariances(some, mu, second, floor), self.C, empty)
        means = np.where(empty[:, None], self.means, self.anchors + mu)
        new = Gaussians(self.covariance_type, self.shift, means, C, self.floor)
        rise = new._expected(self.anchors, sums, n) - self._expected(self.anchors, sums, n)
        return new, rise - total * (new.penalty() - self.penalty())

    def _split(self, sums: Array) -> tuple[Array, Array]:
        """Σ r z (k, d) and Σ r q(z) (k, width)."""
        width = sums.shape[1] - 1 - len(self.shift)
        return sums[:, width:-1], sums[:, :width]

    def _expected(self, anchors: Array, sums: Array, n: Array) -> float:
        """Σ r log f_k, from sums about these anchors."""
        first, second = self._split(sums)
        m = self.means - anchors
        Pm = self.shape.apply(self.P, m)
        squares = (self.shape.coefficients(self.P) * second).sum(axis=1) - 2 * (Pm * first).sum(axis=1)
        return float(-0.5 * (n @ (len(self.shift) * LOG_2PI + self.log_det + (m * Pm).sum(axis=1)) + squares.sum()))

    def penalty(self) -> float:
        return 0.5 * float((self.shape.diagonal(self.P, len(self.shift)) @ self.floor).mean())
