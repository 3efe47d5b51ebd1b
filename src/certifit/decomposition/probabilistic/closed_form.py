"""Probabilistic PCA in closed form, and the start of EM, both from a covariance and its eigenvectors.

On complete rows the likelihood has its global maximum at the leading eigenvectors of the covariance, their
eigenvalues, and the mean of the other eigenvalues as σ² (Tipping & Bishop 1999). Where entries are missing, EM starts
from the covariance of rows filled by means, each entry divided by the share of rows that observe it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.linalg import eigh, qr

from certifit.decomposition.pca.principal_axes import AxesWanted, decompose
from certifit.decomposition.probabilistic.parameters import PPCAParameters, check_noise
from certifit.exceptions import DataError
from certifit.numerics.moments import check_overflow
from certifit.rows import Array, Block, Rows, Sums


@dataclass(frozen=True)
class _ColumnTotals(Sums):
    weight: float  # Σ w
    rows: int  # rows with w > 0 and an observed entry
    missing: Array  # (d,) rows in which a column is missing; (1,) where no entry is
    observed: Array  # the same shape, Σ w of the other rows
    x: Array  # (d,) Σ w (x - origin)
    xx: Array  # (d,) Σ w (x - origin)²


@dataclass(frozen=True)
class ColumnSummary:
    """Means, variances and missing entries of the columns."""

    weight: float  # Σ w of all rows
    rows: int  # rows with w > 0 and an observed entry
    complete: bool  # whether no entry is missing, not even in rows of weight 0
    observed: Array  # (d,) share of the total weight of the rows that observe a column
    mean: Array  # (d,) of the observed entries
    variance: Array  # (d,)


def summarise_columns(rows: Rows) -> ColumnSummary:
    """Return means, variances and observed shares in one pass; refuse a column without any value."""
    first = next(iter(rows)).X
    here = ~np.isnan(first)
    origin = np.where(here.any(axis=0), first[here.argmax(axis=0), np.arange(rows.n_features)], 0.0)
    s = rows.sum(partial(_column_totals, origin.astype(np.float64)))
    if not (s.observed > 0).all():
        empty = np.flatnonzero(s.observed == 0)
        names = ", ".join(repr(str(rows.names[j])) if rows.names is not None else str(j) for j in empty[:5])
        raise DataError(
            got=f"no value at all in column{'s' * (len(empty) > 1)} {names}{', …' * (len(empty) > 5)} of X",
            wanted="at least one observed value in every column (in a row of positive weight)",
            fix="Leave empty columns out.",
        )
    largest = float(check_overflow(s.xx).max())
    if largest == 0:
        raise DataError(
            got=f"rows that are all the same, or so near that squares underflow (n_samples={rows.n_rows})",
            wanted="at least two different rows: without variance there is no density to fit",
        )
    # Between these limits, products of sums of squares neither overflow nor vanish.
    low, high = 1e-150, 1e150
    if not low < largest < high:
        raise DataError(
            got=f"columns whose squared deviations add up to {largest:.3g} at most",
            wanted=f"between {low:g} and {high:g}: products of variances must neither overflow nor vanish",
            fix="Rescale the columns, for instance to unit variance.",
        )
    delta = s.x / s.observed
    variance = np.maximum(s.xx / s.observed - delta**2, 0.0)
    share = np.broadcast_to(s.observed / s.weight, delta.shape)
    return ColumnSummary(s.weight, s.rows, not s.missing.any(), share, origin + delta, variance)


def _column_totals(origin: Array, block: Block) -> _ColumnTotals:
    X, w = block.X, block.w
    # Overflow is found by `check_overflow`, once all blocks are summed.
    with np.errstate(over="ignore", invalid="ignore"):
        Z = X - origin
        # Where no entry is missing, one column of the mask stands for all.
        here = np.ones((len(Z), 1), bool)
        if np.isnan(Z.sum()):
            here = ~np.isnan(Z)
            Z[~here] = 0.0
        seen = int(((w > 0) & here.any(axis=1)).sum())
        missing = len(w) - here.sum(axis=0)
        return _ColumnTotals(float(w.sum()), seen, missing, w @ here, w @ Z, w @ np.square(Z, out=Z))


@dataclass(frozen=True)
class PrincipalVariances:
    """Variances along principal axes, and the axes."""

    mean: Array  # (d,)
    values: Array  # (m,) descending; the others are 0, or were not asked for
    vectors: Array  # (m, d)
    total: float  # sum of all variances
    S: Array | None  # (d, d) covariance, where it was formed

    def noise(self, k: int) -> float:
        """Return the mean of all variances but the k largest."""
        d = len(self.mean)
        every = len(self.values) == d or len(self.values) > k + 1
        tail = self.values[k:].sum() if every else self.total - self.values[:k].sum()
        return float(tail) / (d - k)

    def parameters(self, k: int) -> PPCAParameters:
        """Return the most likely model of k components."""
        noise = self.noise(k)
        check_noise(noise, self.total / len(self.mean), k)
        lengths = np.sqrt(np.maximum(self.values[:k] - noise, 0.0))
        return PPCAParameters(self.mean, self.vectors[:k].T * lengths, noise)

    @property
    def rank(self) -> int:
        """The number of directions in which the rows vary."""
        return int((self.values > 0).sum())


def variances(rows: Rows, k: int) -> PrincipalVariances:
    """Return at least the k largest variances of complete rows."""
    solver = "full" if rows.n_rows < rows.n_features else "covariance_eigh"
    # The likelihood depends on the smallest variances as much as on the largest.
    axes = decompose(rows, solver, AxesWanted(k, double=True))
    return PrincipalVariances(axes.mean, axes.values, axes.vectors, axes.total, axes.S)


def filled_variances(rows: Rows, columns: ColumnSummary) -> PrincipalVariances:
    """Return variances from pairwise moments of rows with missing entries, a start near the likelihood's maximum."""
    S = rows.sum(partial(_filled_scatter, columns.mean)) / columns.weight
    pairs = columns.observed[:, None] * columns.observed
    np.fill_diagonal(pairs, columns.observed)
    values, vectors = eigh(S / pairs, driver="evd")
    # Pairwise moments need not be positive definite.
    values = np.maximum(values[::-1], 1e-6 * columns.variance.mean())
    return PrincipalVariances(columns.mean, values, vectors.T[::-1], float(values.sum()), None)


def _filled_scatter(mean: Array, block: Block) -> Array:
    Z = np.nan_to_num(block.X - mean) * np.sqrt(block.w)[:, None]
    return Z.T @ Z


def random_parameters(columns: ColumnSummary, k: int, rng: np.random.RandomState) -> PPCAParameters:
    """Return random axes as a start: half of the variance is along them, half is noise."""
    d = len(columns.mean)
    half = float(columns.variance.sum()) / 2
    axes = qr(rng.normal(size=(d, k)), mode="economic")[0] if k else np.zeros((d, 0))
    return PPCAParameters(columns.mean, axes * np.sqrt(half / max(1, k)), half / d)
