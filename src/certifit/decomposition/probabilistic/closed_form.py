"""Closed-form probabilistic PCA, and where EM starts: what a covariance and its eigenvectors say.

The likelihood's global maximum on complete rows: the leading eigenvectors of the covariance, their eigenvalues, and
the mean of the others as σ² (Tipping & Bishop 1999). With holes, the covariance of rows whose holes are filled by
means, each entry corrected for how often it was observed, makes a start.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.linalg import eigh, qr

from certifit.decomposition.pca.spectrum import Ask, decompose
from certifit.decomposition.probabilistic.missing_entries import Point, check_noise
from certifit.exceptions import DataError
from certifit.numerics.moments import check_overflow
from certifit.rows import Array, Block, Rows, Sums

WIDE = 2048  # columns beyond which no covariance is formed for a start
SIZES = 1e-150, 1e150  # between which sums of squares can be multiplied with each other


@dataclass(frozen=True)
class _Columns(Sums):
    weight: float  # Σ w
    rows: int  # with w > 0 that observe something
    holes: Array  # (d,) rows that do not observe a column; (1,) as long as no entry is missing
    observed: Array  # the same shape, Σ w of those that do
    x: Array  # (d,) Σ w (x - origin)
    xx: Array  # (d,) Σ w (x - origin)²


@dataclass(frozen=True)
class Survey:
    """What a first pass says of each column."""

    weight: float  # Σ w of all rows
    rows: int  # with w > 0 that observe something
    complete: bool  # no holes, not even in rows without weight
    observed: Array  # (d,) share of the weight that observes a column
    mean: Array  # (d,) of the observed entries
    variance: Array  # (d,)


def survey(rows: Rows) -> Survey:
    """One pass: means, variances and holes. A column without any value is an error."""
    first = next(iter(rows)).X
    here = ~np.isnan(first)
    origin = np.where(here.any(axis=0), first[here.argmax(axis=0), np.arange(rows.n_features)], 0.0)
    s = rows.sum(partial(_columns, origin.astype(np.float64)))
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
    if not SIZES[0] < largest < SIZES[1]:
        raise DataError(
            got=f"columns whose squared deviations add up to {largest:.3g} at most",
            wanted=f"between {SIZES[0]:g} and {SIZES[1]:g}: products of variances must neither overflow nor vanish",
            fix="Rescale the columns, for instance to unit variance.",
        )
    delta = s.x / s.observed
    variance = np.maximum(s.xx / s.observed - delta**2, 0.0)
    share = np.broadcast_to(s.observed / s.weight, delta.shape)
    return Survey(s.weight, s.rows, not s.holes.any(), share, origin + delta, variance)


def _columns(origin: Array, block: Block) -> _Columns:
    X, w = block.X, block.w
    with np.errstate(over="ignore", invalid="ignore"):  # see `check_overflow`
        Z = X - origin
        here = np.ones((len(Z), 1), bool)  # for all columns
        if np.isnan(Z.sum()):
            here = ~np.isnan(Z)
            Z[~here] = 0.0
        seen = int(((w > 0) & here.any(axis=1)).sum())
        return _Columns(float(w.sum()), seen, len(w) - here.sum(axis=0), w @ here, w @ Z, w @ np.square(Z, out=Z))


@dataclass(frozen=True)
class Variances:
    """Variances along principal axes, and the axes."""

    mean: Array  # (d,)
    values: Array  # (m,) descending; variances beyond m are 0, unless more than m were there to find
    vectors: Array  # (m, d)
    total: float  # sum of all variances
    S: Array | None  # (d, d) covariance, where it was formed

    def noise(self, k: int) -> float:
        """The mean of all variances but the k largest."""
        d = len(self.mean)
        every = len(self.values) == d or len(self.values) > k + 1
        tail = self.values[k:].sum() if every else self.total - self.values[:k].sum()
        return float(tail) / (d - k)

    def point(self, k: int) -> Point:
        """The most likely model of k components."""
        noise = self.noise(k)
        check_noise(noise, self.total / len(self.mean), k)
        lengths = np.sqrt(np.maximum(self.values[:k] - noise, 0.0))
        return Point(self.mean, self.vectors[:k].T * lengths, noise)

    @property
    def rank(self) -> int:
        return int((self.values > 0).sum())


def variances(rows: Rows, k: int) -> Variances:
    """Of complete rows: the k largest, at least."""
    solver = "full" if rows.n_rows < rows.n_features else "covariance_eigh"
    s = decompose(rows, solver, Ask(k, 0.0, 0))
    return Variances(s.mean, s.values, s.vectors, s.total, s.S)


def filled_variances(rows: Rows, about: Survey) -> Variances:
    """Of rows with holes: from pairwise moments. Not a likelihood's maximum, but near it."""
    S = rows.sum(partial(_filled, about.mean)) / about.weight
    pairs = about.observed[:, None] * about.observed
    np.fill_diagonal(pairs, about.observed)
    values, vectors = eigh(S / pairs, driver="evd")
    values = np.maximum(values[::-1], 1e-6 * about.variance.mean())  # pairwise moments need not be positive definite
    return Variances(about.mean, values, vectors.T[::-1], float(values.sum()), None)


def _filled(mean: Array, block: Block) -> Array:
    Z = np.nan_to_num(block.X - mean) * np.sqrt(block.w)[:, None]
    return Z.T @ Z


def random_point(about: Survey, k: int, rng: np.random.RandomState) -> Point:
    """Random axes; half of the variance on them, half noise."""
    d = len(about.mean)
    half = float(about.variance.sum()) / 2
    axes = qr(rng.normal(size=(d, k)), mode="economic")[0] if k else np.zeros((d, 0))
    return Point(about.mean, axes * np.sqrt(half / max(1, k)), half / d)
