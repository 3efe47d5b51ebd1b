"""Gaussian mixtures re-checked from the data: one plain EM step, what it gains, what Jensen's inequality says of it.

The objective is the mean negative log-likelihood of what is observed plus (1/2k) Σ_k Σ_j floor_j (C_k⁻¹)_jj (shared
covariances: ½ Σ_j floor_j (C⁻¹)_jj). By Hadamard's inequality no mixture's is below
    Σ_j o_j/2 (1 + log(2π floor_j / (o_j k))),   o_j the share of rows that have an entry in column j.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.special import logsumexp, xlogy

from certifit.checkers.mixture.em import After, Said, Stand, compare, nothing, stationary, truthful
from certifit.checkers.plain.blocks import dense
from certifit.core import Certificate, Check
from certifit.exceptions import DataError
from certifit.rows import Array, ArrayRows, Block, Rows, Sums

LOG_2PI = float(np.log(2 * np.pi))
SAMPLE, ENTRIES = 2**16, 2**24  # rows and entries in a sample
RANKED = 2**13  # rows of it that are put in order, to find the quartiles
NARROWEST = 1e-130  # spread of a column
AUTO, SMALLEST = 1e-7, 1e-12  # the floor of variances, in units of the squared spread: by default, and at least


# ------------------------------------------------------------------------------------------ the penalty
class Survey(NamedTuple):
    """Where the columns lie and how far they spread, whatever a few rows do."""

    sample: ArrayRows  # every so many rows, those that count
    median: Array  # (d,)
    spread: Array  # (d,) the distance between quartiles; never 0


def survey(rows: Rows) -> Survey:
    """Medians and spreads of what is observed, by weight.

    >>> from certifit.rows import as_rows
    >>> found = survey(as_rows([[1.0, 5.0], [2.0, 5.0], [3.0, 5.0], [4.0, 5.0], [1e9, 5.0]]))
    >>> found.median.tolist(), found.spread.tolist()
    ([3.0, 5.0], [2.0, 2.0])
    """
    most = max(1, min(SAMPLE, ENTRIES // rows.n_features))
    sample = rows.load() if rows.n_rows <= most else rows.thin(-(-rows.n_rows // most))
    some = (sample.w > 0) & ~np.isnan(sample.X).all(axis=1)
    if not some.any():
        raise DataError(
            got=f"no row with weight and any entry among every {-(-rows.n_rows // most)}th row",
            wanted="rows that count",
            fix="Drop the rows of weight 0 and those without entries.",
        )
    sample = sample if some.all() else sample.take(np.flatnonzero(some))
    places = np.array([_quartiles(sample, j) for j in range(sample.n_features)])
    spread = places[:, 2] - places[:, 0]
    for j in np.flatnonzero(spread == 0):  # most entries are the same: then as far as the others are, on average
        away = np.asarray(sample.X[:, j], np.float64) - places[j, 1]
        here = ~np.isnan(away)
        spread[j] = np.sqrt(sample.w[here] @ away[here] ** 2 / sample.w[here].sum())
    if (spread == 0).any():  # a column without spread counts as one like the others
        spread[spread == 0] = np.exp(np.log(spread[spread > 0]).mean()) if spread.any() else 1.0
    return Survey(sample, places[:, 1].copy(), spread)


def _quartiles(sample: ArrayRows, column: int) -> Array:
    step = -(-sample.n_rows // RANKED)
    for every in (step, 1):
        x, w = np.asarray(sample.X[::every, column], np.float64), sample.w[::every]
        here = np.flatnonzero(~np.isnan(x))
        if len(here):
            order = here[np.argsort(x[here], kind="stable")]
            mass = np.cumsum(w[order])
            return x[order][np.searchsorted(mass, np.array([0.25, 0.5, 0.75]) * mass[-1])]
    raise DataError(
        got=f"column {column} of X without a single value", wanted="some in every column", fix="Leave it out."
    )


def floors(reg_covar: float | str, spread: Array) -> Array:
    """The penalty's floor of variances (d,): absolute where a number is given, else relative to the columns' spreads.

    >>> floors("auto", np.array([1.0, 2.0])).tolist(), floors(0.01, np.array([1.0, 2.0])).tolist()
    ([1e-07, 4e-07], [0.01, 0.01])
    """
    if not ((spread > NARROWEST) & (spread < 1 / NARROWEST)).all():
        raise DataError(
            got=f"columns whose quartiles are from {spread.min():.3g} to {spread.max():.3g} apart",
            wanted=f"{NARROWEST:g} to {1 / NARROWEST:g}, so that squares neither over- nor underflow",
            fix="Rescale the columns, for instance to unit variance.",
        )
    least = SMALLEST * spread**2
    return AUTO * spread**2 if isinstance(reg_covar, str) else np.maximum(float(reg_covar), least)


def least_objective(floor: Array, k: int, observed: Array) -> float:
    """No mixture of k components has a smaller objective; `observed` (d,) is the share of entries in each column."""
    return float((xlogy(observed, 2 * np.pi * math.e * floor / k) - xlogy(observed, observed)).sum() / 2)


# ------------------------------------------------------------------------------------------ one plain EM step
class Model(NamedTuple):
    """The fitted attributes."""

    weights: Array  # (k,)
    means: Array  # (k, d)
    covariances: Array  # as scikit-learn shapes them
    covariance_type: str


def _each(C: Array, _k: int, _d: int) -> Array:
    return C


def _same(C: Array, k: int, d: int) -> Array:
    return np.broadcast_to(C, (k, d, d))


def _along(C: Array, _k: int, d: int) -> Array:
    return C[:, :, None] * np.eye(d)


def _round(C: Array, _k: int, d: int) -> Array:
    return C[:, None, None] * np.eye(d)


def _pool(n: Array, S: Array) -> Array:
    return np.broadcast_to((n[:, None, None] * S).sum(axis=0) / n.sum(), S.shape)


def _diagonals(_n: Array, S: Array) -> Array:
    return np.diagonal(S, axis1=1, axis2=2)[:, :, None] * np.eye(S.shape[1])


def _averages(_n: Array, S: Array) -> Array:
    return np.trace(S, axis1=1, axis2=2)[:, None, None] / S.shape[1] * np.eye(S.shape[1])


def _unchanged(_n: Array, S: Array) -> Array:
    return S


# covariances as matrices, and the likeliest of a kind given scatters S (k, d, d) of n (k,) rows each
KINDS: dict[str, tuple[Callable[[Array, int, int], Array], Callable[[Array, Array], Array]]] = {
    "full": (_each, _unchanged),
    "tied": (_same, _pool),
    "diag": (_along, _diagonals),
    "spherical": (_round, _averages),
}


class Point(NamedTuple):
    """A mixture, its covariances as matrices."""

    weights: Array  # (k,)
    means: Array  # (k, d)
    C: Array  # (k, d, d)


@dataclass(frozen=True)
class _Step(Sums):
    loglik: float
    weight: float
    n: Array  # (k,)
    first: Array  # Σ r (x - mean) (k, d)
    second: Array  # Σ r (x - mean)(x - mean)ᵀ (k, d, d), what is missing by its expectation
    observed: Array  # Σ w by column (d,)


def certify(
    model: Model, floor: Array, tol: float, rows: Rows, said: Said | None = None, more: tuple[Check, ...] = ()
) -> Certificate:
    """Check a mixture on these rows, which may have holes (NaN), and what it says of itself, where it does."""
    k, d = model.means.shape
    expand, shaped = KINDS[model.covariance_type]
    at = Point(model.weights, model.means, np.array(expand(model.covariances, k, d)))
    uneven = float(np.abs(at.C - at.C.swapaxes(1, 2)).max() / np.abs(at.C).max())
    checks = (
        Check("covariances' distance from symmetry, relative", uneven, 1e-12),
        Check("covariances that are not positive definite", float(sum(not _is_definite(C) for C in at.C)), 0.0),
        Check("weights below zero", float((at.weights < 0).sum()), 0.0),
    )
    if not all(check.passed for check in checks):
        return nothing(tol, *checks, *more)
    before = rows.sum(partial(_expect, at))
    after = _maximise(at, before, shaped, floor)
    rest = rows.sum(partial(_compare, at, after))
    W = before.weight
    stand = Stand(
        before.loglik / W, _penalty(at, floor), rest.loglik / W, _penalty(after, floor), rest.bound / W, rest.kl / W
    )
    more = (*checks[:2], *more, *(() if said is None else truthful(said, stand, W)))
    return stationary(stand, at.weights, least_objective(floor, k, before.observed / W), tol, more)


def _is_definite(C: Array) -> bool:
    try:
        np.linalg.cholesky(C)
    except LinAlgError:
        return False
    return True


def _penalty(at: Point, floor: Array) -> float:
    return float(np.mean([floor @ np.diag(np.linalg.inv(C)) for C in at.C]) / 2)


def _maximise(at: Point, e: _Step, shaped: Callable[[Array, Array], Array], floor: Array) -> Point:
    k = len(e.n)
    some = e.n > 1e-15 * e.weight  # a component without rows stays as it is
    n = np.where(some, e.n, 1.0)
    step = np.where(some[:, None], e.first / n[:, None], 0.0)
    S = e.second / n[:, None, None] - step[:, :, None] * step[:, None, :]
    least = shaped(np.ones(k), np.broadcast_to(np.diag(floor), S.shape))
    share = np.ones(k) if shaped is _pool else e.weight / (k * n)
    C = shaped(np.where(some, e.n, 0.0), S) + share[:, None, None] * least
    C = np.where(some[:, None, None] | (shaped is _pool), C, at.C)
    return Point(e.n / e.weight, at.means + step, C)


def _patterns(block: Block) -> Iterator[tuple[Array, Array, Array]]:
    """Rows with the same holes: their observed columns, entries there, and weights."""
    X, w = dense(block.X), block.w
    here = ~np.isnan(X)
    some = (w > 0) & here.any(axis=1)
    X, w, here = X[some], w[some], here[some]
    if here.all():
        yield np.arange(X.shape[1]), X, w
        return
    kinds, which = np.unique(here, axis=0, return_inverse=True)
    for i, kind in enumerate(kinds):
        seen = np.flatnonzero(kind)
        mine = which.ravel() == i
        yield seen, X[mine][:, seen], w[mine]


def _joint(at: Point, seen: Array, X: Array) -> Array:
    """log π_k f_k of the observed entries (n, k)."""
    out = np.empty((len(X), len(at.weights)))
    with np.errstate(divide="ignore", over="ignore"):  # -inf: of a component without weight, or immensely far away
        for k, (m, C) in enumerate(zip(at.means, at.C, strict=True)):
            L = np.linalg.cholesky(C[np.ix_(seen, seen)])
            y = np.linalg.solve(L, (X - m[seen]).T)
            out[:, k] = -0.5 * (len(seen) * LOG_2PI + (y**2).sum(axis=0)) - np.log(np.diag(L)).sum()
        return out + np.log(at.weights)


def _expect(at: Point, block: Block) -> _Step:
    k, d = at.means.shape
    total = _Step(0.0, 0.0, np.zeros(k), np.zeros((k, d)), np.zeros((k, d, d)), np.zeros(d))
    for seen, X, w in _patterns(block):
        missing = np.setdiff1d(np.arange(d), seen)
        joint = _joint(at, seen, X)
        log_p = logsumexp(joint, axis=1)
        R = np.exp(joint - log_p[:, None]) * w[:, None]
        first, second = np.zeros((k, d)), np.zeros((k, d, d))
        for j in range(k):
            C, Z = at.C[j], np.zeros((len(X), d))
            Z[:, seen] = X - at.means[j][seen]
            if len(missing):
                B = cho_solve(cho_factor(C[np.ix_(seen, seen)], lower=True), C[np.ix_(seen, missing)])
                Z[:, missing] = Z[:, seen] @ B
                rest = C[np.ix_(missing, missing)] - C[np.ix_(missing, seen)] @ B
                second[j][np.ix_(missing, missing)] = R[:, j].sum() * rest
            first[j] = R[:, j] @ Z
            second[j] += (Z * R[:, j, None]).T @ Z
        observed = np.zeros(d)
        observed[seen] = w.sum()
        total = total + _Step(float(w @ log_p), float(w.sum()), R.sum(axis=0), first, second, observed)
    return total


def _compare(at: Point, after: Point, block: Block) -> After:
    total = After(0.0, 0.0, 0.0)
    for seen, X, w in _patterns(block):
        total = total + compare(_joint(at, seen, X), _joint(after, seen, X), w)
    return total
