"""Features that stand for a kernel, re-checked from the data: k(x, z) against φ(x)·φ(z).

Nyström: φ(x) = N k(L, x) for landmarks L is Aᵀψ(x), ψ the kernel's own features, AᵀA = N k(L, L) Nᵀ. Where that is a
projection, K - ΦΦᵀ is positive semidefinite: every row's error e(x) = k(x, x) - |φ(x)|² is at least 0, and

    |k(x, z) - φ(x)·φ(z)| <= √(e(x) e(z))     (Cauchy and Schwarz)

for all rows, so that one pass proves the largest error of a kernel value. Drineas & Mahoney, "On the Nyström method"
(2005).

Random Fourier features: that the frequencies were drawn as they should is checked by drawing them again from their
seed. What they are worth is measured at random pairs of rows; the mean error of all pairs follows with confidence
99 % from the empirical Bernstein inequality (Maurer & Pontil, "Empirical Bernstein bounds", 2009).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import qr
from scipy.stats import chi2

from certifit.checkers.plain.blocks import dense
from certifit.core import Certificate, Check, wants_best_proof
from certifit.rows import Array, Block, Largest, Rows, Sums, block_rows
from certifit.rows.mapped import MappedRows
from certifit.rows.sampling import draw_rows

PlainKernelFunction = Callable[[Array, Array], Array]  # of two float64 tables


class KernelStatus(StrEnum):
    """How it is known that a function is a kernel."""

    PROVED = "positive semidefinite by construction"
    UNREFUTED = "not refuted on its landmarks"


class FrequencyOrigin(StrEnum):
    """Where random frequencies come from."""

    SEEDED = "as their seed gives them"
    UNKNOWN = "taken as drawn at random: their seed is not known"


@dataclass(frozen=True)
class KernelErrorTuning:
    """How far numbers may be off, and how many rows are looked at."""

    feature_tol: float = 1e-4  # by which features may miss what defines them: rounding in nearly dependent landmarks
    same: float = 1e-6  # relative difference of equal numbers: float32 rows may have been stored as float64
    own_rows: int = 64  # rows whose own kernel values are computed at a time
    pairs: int = 512  # random pairs of rows at which Fourier features are measured
    best_pairs: int = 4096  # where the best proof is wanted
    doubt: float = 0.01  # one minus the confidence of what is stated about all pairs
    # n_components times the mean squared error of features: above this for 1 in 20 draws at most (Markov)
    fair_square: float = 30.0


def wanted_tuning(tuning: KernelErrorTuning = KernelErrorTuning()) -> KernelErrorTuning:
    """What a fit looks at: more pairs, so that more is known of all, where the best proof is wanted."""
    return replace(tuning, pairs=tuning.best_pairs) if wants_best_proof() else tuning


@dataclass(frozen=True)
class FeatureErrors(Sums):
    """Sums over rows with weight of the errors e = k(x, x) - |φ(x)|² of features."""

    weight: float
    trace: float  # Σ w k(x, x)
    lost: float  # Σ w e
    largest: Largest  # e
    above: Largest  # -e, relative to k(x, x)


def feature_errors(block: Block) -> FeatureErrors:
    """Measure a block of rows (φ(x), k(x, x))."""
    own, w = block.X[:, -1], block.w
    squares = np.einsum("ij,ij->i", block.X[:, :-1], block.X[:, :-1])
    e, used = own - squares, w > 0
    above = (-e / np.where(own > 0, own, 1.0))[used].max(initial=0.0)
    return FeatureErrors(w.sum(), w @ own, w @ e, Largest(e[used].max(initial=0.0)), Largest(above))


def nystroem_certificate(
    found: FeatureErrors, K: Array, N: Array, tol: float, checks: tuple[Check, ...], status: KernelStatus
) -> Certificate:
    """Make the certificate of Nyström features from their errors; K = k(L, L) (m, m), N (m, m) its inverse root."""
    G, own = N @ K @ N.T, np.diag(K)
    at_landmarks = (own - np.square(K @ N.T).sum(axis=1)) / np.where(own > 0, own, 1.0)
    facts: dict[str, float | str] = {
        "largest error of a kernel value": max(0.0, float(found.largest.value)),
        "share of the kernel's trace that is left over": max(0.0, float(found.lost / (found.trace or 1.0))),
        "kernel": status.value,
    }
    checks = (
        Check("features are no projection, by", float(np.abs(G @ G - G).max()), tol),
        Check("largest error at a landmark, relative", float(at_landmarks.max()), tol),
        Check("features longer than their rows by, relative", float(found.above.value), tol),
        *checks,
    )
    mean = max(0.0, float(found.lost / found.weight))
    claim = "features span the landmarks: a kernel value k(x, z) is off by at most the root of e(x) e(z)"
    if status is not KernelStatus.PROVED:
        claim += ", if the kernel is positive semidefinite on these rows"
    # The errors are differences of numbers of the size of k(x, x), and known to their rounding.
    scale = float(found.trace / found.weight)
    return Certificate("exact", claim, mean, 0.0, tol, checks=checks, facts=facts, scale=max(mean, scale))


class NystroemClaim(NamedTuple):
    """Nyström features as their model states them."""

    L: Array  # (m, d) landmarks
    N: Array  # (m, m) k(L, L)^(-½)
    rows: Array  # (m,) the row numbers of the landmarks


def certify_nystroem(
    claim: NystroemClaim,
    kernel: PlainKernelFunction,
    status: KernelStatus,
    tol: float,
    rows: Rows,
    checks: tuple[Check, ...],
    *,
    tuning: KernelErrorTuning = KernelErrorTuning(),
) -> Certificate:
    """Check landmarks and their normalisation on these rows."""
    L, N, _ = claim
    with_own = partial(_features_and_own, kernel, L, N, tuning.own_rows)
    found = MappedRows(rows, with_own, len(N) + 1).sum(feature_errors)
    return nystroem_certificate(found, kernel(L, L), N, tol, checks, status)


def nystroem_features(kernel: PlainKernelFunction, L: Array, N: Array, block: Block) -> Array:
    """φ(x) (rows, m)."""
    return kernel(dense(block.X), L) @ N.T


def _features_and_own(kernel: PlainKernelFunction, L: Array, N: Array, own_rows: int, block: Block) -> Array:
    """φ(x) and k(x, x) beside it (rows, m + 1)."""
    X = dense(block.X)
    parts = [X[i : i + own_rows] for i in range(0, len(X), own_rows)]
    own = np.concatenate([np.diag(kernel(part, part)) for part in parts])
    return np.column_stack([kernel(X, L) @ N.T, own])


def landmark_check(claim: NystroemClaim, rows: Rows, close: float) -> Check:
    """Check that landmarks are rows, up to `close` in units of their columns' spreads."""
    return Check("landmarks differ from their rows, relative", _landmark_difference(claim, rows), close)


def _landmark_difference(claim: NystroemClaim, rows: Rows) -> float:
    L, _, index = claim
    if len(index) != len(L) or index.min() < 0 or index.max() >= rows.n_rows:
        return np.inf
    order = np.argsort(index, kind="stable")
    X = dense(rows.take(index[order]).X)
    return row_difference(L[order], X)


def row_difference(found: Array, wanted: Array) -> float:
    """The largest difference of rows from those wanted, in units of their columns' spreads: what a kernel sees."""
    if found.shape != wanted.shape:
        return np.inf
    if not wanted.size:
        return 0.0
    spread, size = np.ptp(wanted, axis=0), np.abs(wanted).max(axis=0)
    unit = np.where(spread > 1e-12 * size, spread, spread.max() or size.max() or 1.0)
    return float((np.abs(found - wanted) / unit).max())


# ---------------------------------------------------------------------------------------------- random features
class FourierClaim(NamedTuple):
    """Random Fourier features as their model states them."""

    weights: Array  # (d, m) frequencies W
    offset: Array  # (m,) b
    gamma: float


def fourier_features(weights: Array, offset: Array, block: Block) -> Array:
    """√(2/m) cos(xW + b) (rows, m)."""
    return np.sqrt(2.0 / len(offset)) * np.cos(dense(block.X) @ weights + offset)


def certify_fourier(
    claim: FourierClaim,
    tol: float,
    rows: Rows,
    checks: tuple[Check, ...],
    origin: FrequencyOrigin,
    *,
    tuning: KernelErrorTuning = KernelErrorTuning(),
) -> Certificate:
    """Check frequencies and offsets by the kernel values exp(-γ |x - z|²) of random pairs."""
    pairs = tuning.pairs
    found = draw_rows(rows, 2 * pairs, np.random.default_rng(0))
    index, place = np.unique(found, return_inverse=True)
    X, first, second = rows.take(index).X, place[:pairs], place[pairs:]
    step = block_rows(max(claim.weights.shape))
    if len(index) <= step:  # few rows, each in several pairs
        off = _pair_errors(claim, dense(X), first, second)
    else:
        parts = [slice(i, i + step) for i in range(0, pairs, step)]
        off = np.concatenate([_errors_of_few(claim, X, first[part], second[part]) for part in parts])
    mean, square = float(off.mean()), float(np.square(off).mean())
    rest = np.log(2 / tuning.doubt)
    # empirical Bernstein inequality; errors lie in [0, 3]
    limit = mean + np.sqrt(2 * off.var(ddof=1) * rest / pairs) + 7 * 3.0 * rest / (3 * (pairs - 1))
    facts: dict[str, float | str] = {
        "mean error of a kernel value, at most": float(limit),
        f"largest error among {pairs} pairs of rows": float(off.max()),
        "share of pairs with a larger one, at most": float(np.log(1 / tuning.doubt) / pairs),
        "frequencies": origin.value,
    }
    fair_root = float(np.sqrt(tuning.fair_square / len(claim.offset)))
    fair = Check("root mean square error of kernel values", float(np.sqrt(square)), fair_root)
    words = "frequencies drawn at random; the mean error of kernel values is as stated, with confidence 99 %"
    return Certificate("statistical", words, mean, 0.0, tol, checks=(fair, *checks), facts=facts)


def _pair_errors(claim: FourierClaim, X: Array, first: Array, second: Array) -> Array:
    """|φ(x)·φ(z) - k(x, z)| (pairs,) of the rows of X with these numbers, pair by pair."""
    phi = fourier_features(claim.weights, claim.offset, Block(X, None, np.ones(len(X)), 0))
    product = np.einsum("ij,ij->i", np.take(phi, first, axis=0), np.take(phi, second, axis=0))
    away = np.take(X, first, axis=0) - np.take(X, second, axis=0)
    return np.abs(product - np.exp(-claim.gamma * np.square(away).sum(axis=1)))


def _errors_of_few(claim: FourierClaim, X: Any, first: Array, second: Array) -> Array:
    """The same of some pairs, with no more rows in memory than theirs."""
    index, place = np.unique(np.concatenate([first, second]), return_inverse=True)
    return _pair_errors(claim, dense(X[index]), place[: len(first)], place[len(first) :])


def frequency_check(W: Array, gamma: float, paired: bool) -> Check:
    """Whether the squares of frequencies W (d, m) from N(0, 2γI) sum up to what chance allows (χ² with d m degrees).

    `paired` says that two features each share a frequency, which leaves half of the degrees.
    """
    if gamma <= 0:
        return Check("frequencies that are not 0, where gamma is", float(np.abs(W).max(initial=0.0)), 0.0)
    degrees = max(1.0, W.size / (1 + paired))
    total = degrees * float(np.square(W).mean()) / (2 * gamma)
    chance = 2 * min(float(chi2.cdf(total, degrees)), float(chi2.sf(total, degrees)))
    rarity = -float(np.log10(chance)) if chance > 0 else np.inf
    return Check("frequencies too large or too small for gamma: digits of their improbability", rarity, 9.0)


def draw_again(seed: int, gamma: float, d: int, m: int) -> tuple[Array, Array]:
    """Draw frequencies (d, m) and offsets (m,) from this seed: orthogonal, in pairs of a cosine and a sine."""
    rng, half = np.random.default_rng(seed), (m + 1) // 2
    runs = []
    for first in range(0, half, d):
        count = min(d, half - first)
        Q, R = qr(rng.normal(size=(d, count)), mode="economic")
        runs.append(Q * np.sign(np.diag(R)) * np.sqrt(rng.chisquare(d, count)))
    W = np.sqrt(2 * gamma) * np.column_stack(runs)
    last = rng.uniform(0.0, 2 * np.pi)
    offset = np.repeat([0.0, -0.5 * np.pi], [half, m - half])
    if m % 2:
        offset[half - 1] = last
    return np.column_stack([W, W[:, : m - half]]), offset


def same(name: str, found: Array, wanted: Array, limit: float = KernelErrorTuning.same) -> Check:
    """Check that these are the same numbers, relative to the largest."""
    off = np.abs(found - wanted).max() if found.shape == wanted.shape else np.inf
    return Check(f"{name}, relative", float(off / (np.abs(wanted).max() or 1.0)), limit)


# --------------------------------------------------------------------------------------------- what both need
@dataclass(frozen=True)
class FeatureMoments(Sums):
    """Weighted sums by column, about an origin."""

    weight: float
    x: Array  # (d,) Σ w (x - origin)
    xx: Array  # (d,) Σ w (x - origin)²


def scale_gamma(rows: Rows) -> float:
    """γ = 1 / (columns · variance of all entries), from the columns' own means and variances."""
    first = rows.sum(partial(_column_moments, np.zeros(rows.n_features)))
    origin = first.x / first.weight
    about = rows.sum(partial(_column_moments, origin))
    means, middle = about.x / about.weight, float(origin.mean())
    # Columns' means are compared about their middle: far from zero their sum with the origin would lose digits.
    variance = float((about.xx / about.weight - means**2).mean() + ((origin - middle) + means).var())
    if max(variance, 0.0) ** 0.5 <= 16 * float(np.finfo(rows.dtype).eps) * abs(middle):
        variance = 0.0  # nothing but rounding
    return 1.0 / (rows.n_features * variance) if variance > 0 else 1.0


def _column_moments(origin: Array, block: Block) -> FeatureMoments:
    Z = dense(block.X) - origin
    return FeatureMoments(block.w.sum(), block.w @ Z, block.w @ Z**2)
