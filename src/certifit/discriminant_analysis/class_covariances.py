"""Means and covariances within classes, summed over blocks of rows, and the three ways to shrink a covariance.

The first pass sums rows about a shift for the class means, the second squares about these means, so that nothing
cancels. Ledoit and Wolf's choice of the shrinkage takes a third, for fourth moments.
Reference: Ledoit & Wolf, A well-conditioned estimator for large-dimensional covariance matrices (2004).
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from certifit.exceptions import DataError, warn_caller
from certifit.numerics.moments import check_overflow
from certifit.numerics.products import choose_shift, gram
from certifit.rows import Array, Block, Rows, Sums


@dataclass(frozen=True)
class DiscriminantTuning:
    """Numbers that steer how class covariances are summed and inverted."""

    dense_entries: int = 2**21  # of sparse rows that are made dense at a time
    least_eigenvalue: float = 1e-10  # of a correlation matrix; smaller ones are rounding


@dataclass(frozen=True)
class ClassMeans:
    """The weight and mean of every class."""

    weight: Array  # Σ w  (k,)
    mean: Array  # (k, d)


@dataclass(frozen=True)
class _ClassTotals(Sums):
    weight: Array  # Σ w  (k,)
    z: Array  # Σ w (x - c)  (k, d)


@dataclass(frozen=True)
class _FourthMoments(Sums):
    """Σ w |x - m|⁴ of every class, with rows in units of its standard deviations  (k,)."""

    quartic: Array


def _dense_parts(block: Block, entries: int) -> Iterator[tuple[Array, Array, Array]]:
    """Yield rows with a positive weight as float64, their class numbers and their weights, a few at a time."""
    step = max(1, entries // block.X.shape[1])
    for first in range(0, len(block.w), step):
        here = slice(first, first + step)
        X, w = block.X[here], block.w[here]
        used = w > 0
        assert block.y is not None
        X = np.asarray(X.toarray() if sparse.issparse(X) else X, dtype=np.float64)
        yield (X, block.y[here], w) if used.all() else (X[used], block.y[here][used], w[used])


def _sums_by_class(Z: Array, y: Array, w: Array, k: int) -> Array:
    """Return Σ w z of every class (k, d)."""
    return sparse.csr_array((w, y, np.arange(len(w) + 1)), shape=(len(w), k)).T @ Z


def _class_totals(shift: Array, k: int, entries: int, block: Block) -> _ClassTotals:
    weight, z = np.zeros(k), np.zeros((k, len(shift)))
    for X, y, w in _dense_parts(block, entries):
        weight += np.bincount(y, w, k)
        z += _sums_by_class(X - shift, y, w, k)
    return _ClassTotals(weight, z)


def measure_class_means(rows: Rows, k: int, tuning: DiscriminantTuning) -> ClassMeans:
    """Return the mean of each class in one pass; y are class numbers."""
    # Sparse rows are made dense part by part anyway, so that theirs may be shifted too.
    X, _, w = next(_dense_parts(next(iter(rows)), tuning.dense_entries))
    shift = choose_shift(X, w)
    shift = np.zeros(rows.n_features) if shift is None else shift
    found = rows.sum(partial(_class_totals, shift, k, tuning.dense_entries))
    weight = np.where(found.weight > 0, found.weight, 1.0)
    return ClassMeans(found.weight, shift + check_overflow(found.z) / weight[:, None])


@dataclass(frozen=True)
class _ClassScatters(Sums):
    """Sums about rounded class means."""

    zz: Array  # Σ w f_c (x - m_c)(x - m_c)ᵀ for each row f of factors  (m, d, d)
    z: Array  # Σ w (x - m_c) of every class  (k, d)
    weight: Array  # (k,)


def _weighted_scatters(mean: Array, factors: Array, entries: int, block: Block) -> _ClassScatters:
    k, d = mean.shape
    out, z, weight = np.zeros((len(factors), d, d)), np.zeros((k, d)), np.zeros(k)
    # Overflow is found by `check_overflow`, once all blocks are summed.
    with np.errstate(over="ignore", invalid="ignore"):
        for X, y, w in _dense_parts(block, entries):
            Z = X - mean[y]
            weight += np.bincount(y, w, k)
            z += _sums_by_class(Z, y, w, k)
            for scatter, factor in zip(out, factors, strict=True):
                v = w * factor[y]
                scatter += gram(np.sqrt(v[v > 0])[:, None] * Z[v > 0])
    return _ClassScatters(out, z, weight)


class ClassScatters(NamedTuple):
    """Squares about class means, and what the means lost to rounding."""

    zz: Array  # Σ w f_c (x - m_c)(x - m_c)ᵀ, c the class of x, for each row f of factors  (m, d, d)
    lost: Array  # exact means minus rounded ones  (k, d)


def weighted_scatters(rows: Rows, mean: Array, factors: Array, tuning: DiscriminantTuning) -> ClassScatters:
    """Return the squares about the class means (k, d), for each row of the factors (m, k)."""
    found = rows.sum(partial(_weighted_scatters, mean, factors, tuning.dense_entries))
    check_overflow(found.zz)
    # Where rows hardly differ, what their means lost to rounding would count.
    weight = np.where(found.weight > 0, found.weight, 1.0)
    return ClassScatters(
        found.zz - np.einsum("mc,ci,cj->mij", factors / weight, found.z, found.z), found.z / weight[:, None]
    )


def _fourth_moments(mean: Array, deviation: Array, entries: int, block: Block) -> _FourthMoments:
    quartic = np.zeros(len(mean))
    with np.errstate(over="ignore"):
        for X, y, w in _dense_parts(block, entries):
            squares = (((X - mean[y]) / deviation[y]) ** 2).sum(axis=1)
            quartic += np.bincount(y, w * squares**2, len(mean))
    return _FourthMoments(quartic)


def chosen_prior(given: Any, weight: Array) -> Array:
    """Return the given priors, which are made to sum to 1, or the share of each class (k,)."""
    if given is None:
        return weight / weight.sum()
    prior = np.array(given, dtype=np.float64)  # of its own: the caller's may change
    if prior.shape != weight.shape or not (prior > 0).all() or not np.isfinite(prior).all():
        raise DataError(
            got=f"priors={np.array2string(prior, threshold=10)}",
            wanted=f"{len(weight)} positive numbers: priors must be non-negative, and 0 is no class",
        )
    if abs(prior.sum() - 1.0) > 1e-5:
        warn_caller("The priors do not sum to 1: they are divided by their sum.")
        return prior / prior.sum()
    return prior


def shrink(S: Array, share: float) -> Array:
    """Return (1 - s) S + s μ I, μ the mean of the variances."""
    out = (1 - share) * S
    out.flat[:: len(S) + 1] += share * np.trace(S) / len(S)
    return out


def ledoit_wolf_covariances(rows: Rows, found: ClassMeans, tuning: DiscriminantTuning) -> Array:
    """Return each class's covariance, shrunk by Ledoit and Wolf's share in units of its standard deviations."""
    k = len(found.weight)
    weight = np.where(found.weight > 0, found.weight, 1.0)
    S = weighted_scatters(rows, found.mean, np.diag(1 / weight), tuning).zz
    deviation = standard_deviations(np.diagonal(S, axis1=1, axis2=2), found.mean)
    quartic = rows.sum(partial(_fourth_moments, found.mean, deviation, tuning.dense_entries)).quartic
    check_overflow(quartic)
    for c in range(k):
        scale = deviation[c][:, None] * deviation[c]
        R = S[c] / scale
        S[c] = shrink(R, _ledoit_wolf_share(R, float(quartic[c]), float(weight[c]))) * scale
    return S


def standard_deviations(variances: Array, mean: Array) -> Array:
    """Return the roots of variances, and 1 where one is nothing but the rounding of a constant column's mean."""
    rounding = 8 * np.finfo(np.float64).eps * np.abs(mean)
    root = np.sqrt(np.maximum(variances, 0.0))
    return np.where(root > rounding, root, 1.0)


def _ledoit_wolf_share(S: Array, quartic: float, n: float) -> float:
    """Return the share of μ I that has the smallest expected squared error; `quartic` is Σ w |x|⁴."""
    d = len(S)
    size = float((S**2).sum())
    distance = (size - np.trace(S) ** 2 / d) / d
    noise = min((quartic / n - size) / (d * n), distance)
    return noise / distance if d > 1 and noise > 0 else 0.0


def estimated_covariances(rows: Rows, k: int, estimator: Any) -> Array:
    """Return the covariance that an estimator of the caller's finds in each class (k, d, d)."""
    if not hasattr(rows, "X"):
        raise DataError(
            got="covariance_estimator with rows that are not in memory",
            wanted="an array or data frame",
            fix="Use shrinkage, which sums over blocks of rows.",
        )
    out = []
    for c in range(k):
        parts = [X[y == c] for block in rows for X, y, _ in _dense_parts(block, block.X.size or 1)]
        if any((block.w[block.w > 0] != 1).any() for block in rows):
            raise DataError(
                got="sample_weight with covariance_estimator", wanted="rows that all count once", fix="Use shrinkage."
            )
        fitted = copy.deepcopy(estimator)
        fitted.fit(np.concatenate(parts))
        if not hasattr(fitted, "covariance_"):
            raise DataError(
                got=f"covariance_estimator={estimator!r}, which has no covariance_ when fitted",
                wanted="an estimator such as those of sklearn.covariance",
            )
        out.append(np.asarray(fitted.covariance_, dtype=np.float64))
    return np.stack(out)
