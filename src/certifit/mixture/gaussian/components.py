"""Gaussian components of a mixture: their densities, their sums over rows, their M step.

The idea: a Gaussian log-density is linear in the features (q(z), z, 1) of a row, z = x - shift, where q(z) are the
products of pairs of entries, or the squares (`covariance_shapes`) and the shift lies amid the rows. So one matrix
product with the coefficients gives log f_k of all rows and components, and one product with the responsibilities
gives all sums that the M step needs:

| step          | here            | reads                | writes                                   |
|---------------|-----------------|----------------------|------------------------------------------|
| read a batch  | `read_rows`     | X (n, d)             | workspace.features: F (width + d + 1, n) |
| log-densities | `log_densities` | coefficients, F      | workspace.logf (k, n) = coefficients F   |
| E step        | `mixture.em`    | workspace.logf       | responsibilities R (k, n), over logf     |
| sums          | `weighted_sums` | R, F                 | a new array (k, width + d + 1) = R Fᵀ    |
| M step        | `maximise`      | sums over all blocks | new components                           |

`EMWorkspace` is allocated once per block and reused by every batch: it stays in the processor's cache.

Cancellation loses about eps |Uᵀ(mean - shift)|², P = UUᵀ. Hence rows are taken about the mean of each component that
is farther than `tuning.far` standard deviations from the shift, and squared and summed by matrix products, without
features.
Rows with missing entries go through `missing_entries` instead; where columns are independent within a component, they
are just left out of the features.

The objective is the mean log-likelihood less (1/2k) Σ_k Σ_j floor_j (P_k)_jj, under which
    C_k = scatter_k + diag(floor) n / (k n_k)
is the M step. It is bounded above, so that no component can collapse onto a row and take the fit with it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from certifit.checkers.mixture.gaussian import stored_rounding
from certifit.mixture.gaussian.covariance_shapes import SHAPES, CovarianceShape, DiagonalCovariances
from certifit.mixture.gaussian.gaussian_loops import LOG_2PI, shift_rows
from certifit.mixture.gaussian.missing_entries import (
    BatchPatterns,
    CompletedRows,
    by_pattern,
    incomplete_last,
    observed_features,
)
from certifit.mixture.gaussian.tuning import GaussianMixtureTuning
from certifit.numerics.packed import pack
from certifit.rows import Array


class EMWorkspace(NamedTuple):
    """Memory that all batches of a block share, as runs of numbers; `_as_table` gives them a shape."""

    features: Array  # for F (width + d + 1, n)
    logf: Array  # for log f_k (k, n), which the E step overwrites with responsibilities


class GaussianBatch(NamedTuple):
    """A batch of rows as `log_densities` and `weighted_sums` need it."""

    Z: Array  # (d, n) x - shift; where there is F, a part of it
    F: Array | None  # (width + d + 1, n) features about the shift, in the workspace; None where all are far
    patterns: BatchPatterns | None  # of missing entries; None for complete rows, and where these are left out
    observed: Array | None = None  # (3 d, n) features of what is observed, where missing entries are left out
    completed: CompletedRows | None = None  # by the components whose log-densities were asked for


def _as_table(memory: Array, a: int, b: int) -> Array:
    """Return a table (a, b) in this memory, or a new one where it does not fit."""
    return memory[: a * b].reshape(a, b) if a * b <= len(memory) else np.empty((a, b))


@dataclass(frozen=True)
class GaussianComponents:
    """k Gaussians, as `mixture.em.MixtureComponents` asks for them."""

    covariance_type: str
    shift: Array  # (d,)
    means: Array  # (k, d), less the shift
    C: Array  # covariances, in the private form of their `CovarianceShape`
    floor: Array  # (d,) of the penalty
    tuning: GaussianMixtureTuning

    @property
    def shape(self) -> CovarianceShape:
        return SHAPES[self.covariance_type]

    @cached_property
    def P(self) -> Array:
        """The precisions, formed as C."""
        return self.shape.invert(self.C)

    @cached_property
    def log_det(self) -> Array:
        """log |C_k| (k,), or (1,) where all share C."""
        return self.shape.log_det(self.C, len(self.shift))

    @cached_property
    def far(self) -> Array:
        """The numbers of the components that are far from the shift: usually none."""
        squares = (self.means * self.shape.apply(self.P, self.means)).sum(axis=1)
        return np.flatnonzero(squares > self.tuning.far**2)

    @cached_property
    def near(self) -> Any:
        """The components whose features are about the shift; a slice of all copies nothing."""
        return np.delete(np.arange(len(self.means)), self.far) if len(self.far) else slice(None)

    @cached_property
    def anchors(self) -> Array:
        """What each component's sums are about (k, d): the shift (0), or its mean where that is far away."""
        anchors = np.zeros_like(self.means)
        anchors[self.far] = self.means[self.far]
        return anchors

    @property
    def leaves_out(self) -> bool:
        """Whether missing entries are left out: columns are independent, and all features are about the shift."""
        return isinstance(self.shape, DiagonalCovariances) and not len(self.far)

    @cached_property
    def observed_coefficients(self) -> Array:
        """Coefficients (k, 3 d) of log f_k in the features of what is observed of rows about the shift."""
        P = self.shape.diagonal(self.P, len(self.shift))
        Pm = P * self.means
        return np.column_stack([-0.5 * P, Pm, 0.5 * (np.log(P) - LOG_2PI - Pm * self.means)])

    @cached_property
    def coefficients(self) -> Array:
        """Coefficients (k, width + d + 1) with log f_k = coefficients · (q(z), z, 1), z about the anchors."""
        m = self.means - self.anchors
        Pm = self.shape.apply(self.P, m)
        quadratic = np.broadcast_to(-0.5 * self.shape.coefficients(self.P), (len(m), self.shape.width(m.shape[1])))
        constants = -0.5 * (m.shape[1] * LOG_2PI + self.log_det + (m * Pm).sum(axis=1))
        return np.column_stack([quadratic, Pm, constants])

    # -------------------------------------------------------------------------------------- batches
    def _batch_rows(self, row_numbers: int) -> int:
        """Return how many rows make a batch, given the numbers that are held for each."""
        most, least = self.tuning.most_batch_rows, self.tuning.least_batch_rows
        return max(least, min(most, self.tuning.batch_numbers // row_numbers))

    def batches(self, X: Array, counted: Array, missing: bool) -> Iterator[Any]:
        """Give the indices of complete rows first, then of the others sorted by pattern."""
        step = self._batch_rows(self.coefficients.shape[1])
        if not missing and counted.all():
            yield from (slice(i, i + step) for i in range(0, len(X), step))
            return
        order, number = np.flatnonzero(counted), np.zeros(int(counted.sum()))
        if missing:
            order, number = (incomplete_last if self.leaves_out else by_pattern)(X, counted)
        n = int(np.searchsorted(number, 1))  # complete rows
        yield from (order[i : min(i + step, n)] for i in range(0, n, step))
        k, d = self.means.shape
        if self.leaves_out:
            step = self._batch_rows(3 * d)
            yield from (order[i : i + step] for i in range(n, len(order), step))
            return
        step, most_patterns = self._batch_rows(k * d), max(1, self.tuning.pattern_numbers // (k * d * d))
        while n < len(order):
            end = min(n + step, int(np.searchsorted(number, number[n] + most_patterns)))
            yield order[n:end]
            n = end

    def new_workspace(self) -> EMWorkspace:
        features = self.coefficients.shape[1]
        n = self._batch_rows(features)
        return EMWorkspace(np.empty(features * n), np.empty(len(self.means) * n))

    def read_rows(self, X: Array, workspace: EMWorkspace) -> GaussianBatch:
        features, (n, d) = self.coefficients.shape[1], X.shape
        F = _as_table(workspace.features, features, n) if len(self.far) < len(self.means) else None
        Z = np.empty((d, n)) if F is None else F[-1 - d : -1]
        missing = shift_rows(X, self.shift, Z)
        if missing and self.leaves_out:
            return GaussianBatch(Z, F, None, observed_features(Z))
        patterns = BatchPatterns(Z) if missing else None
        if F is not None and patterns is None:
            self._add_features(F)
        return GaussianBatch(Z, F, patterns)

    def _add_features(self, F: Array) -> None:
        """Write q(z) and 1 beside the z that F (width + d + 1, n) holds already."""
        width = len(F) - 1 - len(self.shift)
        self.shape.features(F[width:-1], F[:width])
        F[-1] = 1.0

    def _features(self, batch: GaussianBatch) -> Array:
        """Return F (width + d + 1, n) of a batch, which components that are all far may have read without."""
        if batch.F is not None:
            return batch.F
        F = np.empty((self.coefficients.shape[1], batch.Z.shape[1]))
        F[-1 - len(batch.Z) : -1] = batch.Z
        self._add_features(F)
        return F

    def _about_far_means(self, Z: Array) -> Iterator[tuple[int, Array]]:
        """Give each component that is far from the shift, and the rows about its mean (d, n)."""
        return ((j, Z - self.means[j][:, None]) for j in self.far)

    # -------------------------------------------------------------------------------------- E step
    def log_densities(self, batch: GaussianBatch, workspace: EMWorkspace) -> tuple[Array, GaussianBatch]:
        if batch.observed is not None:
            return self.observed_coefficients @ batch.observed, batch
        if batch.patterns is not None:
            completed = CompletedRows(batch.patterns, self.means, self.shape.matrices(self.P, *self.means.shape))
            return completed.log_densities(self.log_det), batch._replace(completed=completed)
        logf = _as_table(workspace.logf, len(self.means), batch.Z.shape[1])
        if not len(self.far):
            np.matmul(self.coefficients, self._features(batch), out=logf)
        elif len(self.far) < len(logf):
            logf[self.near] = self.coefficients[self.near] @ self._features(batch)
        for j, Z in self._about_far_means(batch.Z):
            logf[j] = self.coefficients[j, -1] - 0.5 * self.shape.squares(self.P[min(j, len(self.P) - 1)], Z)
        return logf, batch

    def weighted_sums(self, batch: GaussianBatch, R: Array) -> tuple[Array, Array]:
        """Return Σ r (k,) and the sums of the features about each component's anchor (k, width + d + 1)."""
        if batch.observed is not None:
            return self._observed_sums(batch.observed, R)
        if batch.completed is not None:
            return self._completed_sums(batch.completed, R)
        if not len(self.far):
            out = R @ self._features(batch).T
            return out[:, -1], out
        out = np.empty((len(R), self.coefficients.shape[1]))
        if len(self.far) < len(R):
            out[self.near] = R[self.near] @ self._features(batch).T
        first, second = self._split(out)
        for j, Z in self._about_far_means(batch.Z):
            first[j], second[j], out[j, -1] = Z @ R[j], self.shape.moments(Z, R[j]), R[j].sum()
        return out[:, -1], out

    def _observed_sums(self, observed: Array, R: Array) -> tuple[Array, Array]:
        """Return the same sums of rows whose missing entries have a component's own mean and variance."""
        assert isinstance(self.shape, DiagonalCovariances)
        n, m = R.sum(axis=1), self.means
        squares, entries, seen = np.split(R @ observed.T, 3, axis=1)
        unseen = np.maximum(n[:, None] - seen, 0.0)
        squares += unseen * (m**2 + self.shape.diagonal(self.C, m.shape[1]))
        return n, np.column_stack([self.shape.reduce_squares(squares), entries + unseen * m, n])

    def _completed_sums(self, rows: CompletedRows, R: Array) -> tuple[Array, Array]:
        """Return the same sums of rows with missing entries, moved from the means to the anchors."""
        n, d = R.sum(axis=1), len(self.shift)
        first, second = rows.weighted_sums(R)
        away = self.means - self.anchors
        moved = first + n[:, None] * away
        second += first[:, :, None] * away[:, None] + away[:, :, None] * moved[:, None]
        return n, np.column_stack([self.shape.reduce(pack(second), d), moved, n])

    # -------------------------------------------------------------------------------------- M step
    def maximise(self, sums: Array, n: Array) -> tuple[GaussianComponents, float]:
        first, second = self._split(sums)
        total = float(n.sum())
        empty = n <= self.tuning.fewest * total
        some = np.maximum(n, self.tuning.fewest * total)
        mu = np.where(empty[:, None], 0.0, first / some[:, None])
        floor = self.floor * (total / (len(n) * some))[:, None]
        C = self.shape.keep(self.shape.covariances(some, mu, second, floor), self.C, empty)
        means = np.where(empty[:, None], self.means, self.anchors + mu)
        new = replace(self, means=means, C=C)
        rise = new._expected(self.anchors, sums, n) - self._expected(self.anchors, sums, n)
        return new, rise - total * (new.penalty() - self.penalty())

    def _split(self, sums: Array) -> tuple[Array, Array]:
        """Return Σ r z (k, d) and Σ r q(z) (k, width)."""
        width = sums.shape[1] - 1 - len(self.shift)
        return sums[:, width:-1], sums[:, :width]

    def _expected(self, anchors: Array, sums: Array, n: Array) -> float:
        """Return Σ r log f_k, from sums about these anchors."""
        first, second = self._split(sums)
        m = self.means - anchors
        Pm = self.shape.apply(self.P, m)
        squares = (self.shape.coefficients(self.P) * second).sum(axis=1) - 2 * (Pm * first).sum(axis=1)
        return float(-0.5 * (n @ (len(self.shift) * LOG_2PI + self.log_det + (m * Pm).sum(axis=1)) + squares.sum()))

    def penalty(self) -> float:
        return 0.5 * float((self.shape.diagonal(self.P, len(self.shift)) @ self.floor).mean())

    def stored_rounding(self) -> float:
        return stored_rounding(self.shape.matrices(self.C, *self.means.shape))
