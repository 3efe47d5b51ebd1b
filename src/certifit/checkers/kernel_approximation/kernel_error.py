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
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.linalg import qr

from certifit.checkers.plain.blocks import dense
from certifit.core import Certificate, Check
from certifit.rows import Array, Block, Largest, Rows, Sums, block_rows
from certifit.rows.mapped import MappedRows
from certifit.rows.sampling import draw_rows

NYSTROEM = "features span the landmarks: a kernel value k(x, z) is off by at most the root of e(x) e(z)"
IF_A_KERNEL = f"{NYSTROEM}, if the kernel is positive semidefinite on these rows"
FOURIER = "frequencies drawn at random; the mean error of kernel values is as stated, with confidence 99 %"
SEEDED = "as their seed gives them"
PROVED, UNREFUTED = "positive semidefinite by construction", "not refuted on its landmarks"
TOL = 1e-4  # by which features may miss what defines them, from rounding in nearly dependent landmarks
SEVERAL = 64  # rows whose own kernel values are computed at a time
SAME = 1e-6  # relative difference up to which numbers count as the same: float32 rows may have been stored as float64
PAIRS = 4096
MISS = 0.01  # one minus the confidence
FAIR = 30.0  # n_components times the mean squared error of features: above this for 1 in 20 draws at most (Markov)

Kernel = Callable[[Array, Array], Array]  # of two float64 tables


@dataclass(frozen=True)
class Errors(Sums):
    """Of rows with weight, e = k(x, x) - |φ(x)|²."""

    weight: float
    trace: float  # Σ w k(x, x)
    lost: float  # Σ w e
    largest: Largest  # e
    above: Largest  # -e, relative to k(x, x)


def errors(block: Block) -> Errors:
    """Of rows (φ(x), k(x, x))."""
    own, w = block.X[:, -1], block.w
    squares = np.einsum("ij,ij->i", block.X[:, :-1], block.X[:, :-1])
    e, used = own - squares, w > 0
    above = (-e / np.where(own > 0, own, 1.0))[used].max(initial=0.0)
    return Errors(w.sum(), w @ own, w @ e, Largest(e[used].max(initial=0.0)), Largest(above))


def assemble(found: Errors, K: Array, N: Array, tol: float, checks: tuple[Check, ...], why: str) -> Certificate:
    """K = k(L, L) (m, m); why: how it is known that the kernel is one."""
    G, own = N @ K @ N.T, np.diag(K)
    at_landmarks = (own - np.square(K @ N.T).sum(axis=1)) / np.where(own > 0, own, 1.0)
    facts: dict[str, float | str] = {
        "largest error of a kernel value": max(0.0, float(found.largest.value)),
        "share of the kernel's trace that is left over": max(0.0, float(found.lost / (found.trace or 1.0))),
        "kernel": why,
    }
    checks = (
        Check("features are no projection, by", float(np.abs(G @ G - G).max()), tol),
        Check("largest error at a landmark, relative", float(at_landmarks.max()), tol),
        Check("features longer than their rows by, relative", float(found.above.value), tol),
        *checks,
    )
    mean = max(0.0, float(found.lost / found.weight))
    claim = NYSTROEM if why == PROVED else IF_A_KERNEL
    return Certificate("exact", claim, mean, 0.0, tol, checks=checks, facts=facts)


def certify_nystroem(
    L: Array, N: Array, index: Array, kernel: Kernel, tol: float, rows: Rows, checks: tuple[Check, ...], why: str
) -> Certificate:
    """Check landmarks L (m, d), said to be the rows `index`, and their normalisation N (m, m)."""
    found = MappedRows(rows, partial(nystroem, kernel, L, N, True), len(N) + 1).sum(errors)
    checks = (Check("landmarks differ from their rows, relative", _strangers(L, index, rows), SAME), *checks)
    return assemble(found, kernel(L, L), N, tol, checks, why)


def nystroem(kernel: Kernel, L: Array, N: Array, with_own: bool, block: Block) -> Array:
    """φ(x) (rows, m) and, where asked for, k(x, x) beside it."""
    X = dense(block.X)
    features = kernel(X, L) @ N.T
    if not with_own:
        return features
    parts = [X[i : i + SEVERAL] for i in range(0, len(X), SEVERAL)]
    return np.column_stack([features, np.concatenate([np.diag(kernel(part, part)) for part in parts])])


def _strangers(L: Array, index: Array, rows: Rows) -> float:
    if len(index) != len(L) or index.min() < 0 or index.max() >= rows.n_rows:
        return np.inf
    order = np.argsort(index, kind="stable")
    X = dense(rows.take(index[order]).X)
    return astray(L[order], X)


def astray(found: Array, wanted: Array) -> float:
    """By how much rows said to be these differ from them, in units of their columns' spreads: what a kernel sees."""
    if found.shape != wanted.shape:
        return np.inf
    if not wanted.size:
        return 0.0
    spread, size = np.ptp(wanted, axis=0), np.abs(wanted).max(axis=0)
    unit = np.where(spread > 1e-12 * size, spread, spread.max() or size.max() or 1.0)
    return float((np.abs(found - wanted) / unit).max())


# ---------------------------------------------------------------------------------------------- random features
def fourier(weights: Array, offset: Array, block: Block) -> Array:
    """√(2/m) cos(xW + b) (rows, m)."""
    return np.sqrt(2.0 / len(offset)) * np.cos(dense(block.X) @ weights + offset)


def certify_fourier(
    weights: Array, offset: Array, gamma: float, tol: float, rows: Rows, checks: tuple[Check, ...], why: str
) -> Certificate:
    """Check frequencies W (d, m) and offsets b (m,) by the kernel values exp(-γ |x - z|²) of random pairs."""
    found = draw_rows(rows, 2 * PAIRS, np.random.default_rng(0))
    index, place = np.unique(found, return_inverse=True)
    X, first, second = rows.take(index).X, place[:PAIRS], place[PAIRS:]
    step = block_rows(max(weights.shape))
    parts = [slice(i, i + step) for i in range(0, PAIRS, step)]
    off = np.concatenate([_off(weights, offset, gamma, X[first[part]], X[second[part]]) for part in parts])
    mean, square = float(off.mean()), float(np.square(off).mean())
    rest = np.log(2 / MISS)
    limit = (
        mean + np.sqrt(2 * off.var(ddof=1) * rest / PAIRS) + 7 * 3.0 * rest / (3 * (PAIRS - 1))
    )  # errors in [0, 3]
    facts: dict[str, float | str] = {
        "mean error of a kernel value, at most": float(limit),
        f"largest error among {PAIRS} pairs of rows": float(off.max()),
        "share of pairs with a larger one, at most": float(np.log(1 / MISS) / PAIRS),
        "frequencies": why,
    }
    fair = Check(
        "root mean square error of kernel values", float(np.sqrt(square)), float(np.sqrt(FAIR / len(offset)))
    )
    return Certificate("statistical", FOURIER, mean, 0.0, tol, checks=(fair, *checks), facts=facts)


def _off(weights: Array, offset: Array, gamma: float, A: Any, B: Any) -> Array:
    """|φ(x)·φ(z) - k(x, z)| for the rows x of A and z of B, one by one."""
    A, B = dense(A), dense(B)
    left, right = (fourier(weights, offset, Block(X, None, np.ones(len(X)), 0)) for X in (A, B))
    return np.abs((left * right).sum(axis=1) - np.exp(-gamma * np.square(A - B).sum(axis=1)))


def drawn_again(seed: int, gamma: float, d: int, m: int) -> tuple[Array, Array]:
    """Frequencies (d, m) and offsets (m,) from this seed: orthogonal, in pairs of a cosine and a sine."""
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


def same(name: str, found: Array, wanted: Array) -> Check:
    """Are these the same numbers, relative to the largest?"""
    off = np.abs(found - wanted).max() if found.shape == wanted.shape else np.inf
    return Check(f"{name}, relative", float(off / (np.abs(wanted).max() or 1.0)), SAME)


# --------------------------------------------------------------------------------------------- what both need
@dataclass(frozen=True)
class _Moments(Sums):
    weight: float
    x: Array  # (d,) Σ w (x - origin)
    xx: Array  # (d,) Σ w (x - origin)²


def scale_gamma(rows: Rows) -> float:
    """γ = 1 / (columns · variance of all entries), from the columns' own means and variances."""
    first = rows.sum(partial(_moments, np.zeros(rows.n_features)))
    origin = first.x / first.weight
    about = rows.sum(partial(_moments, origin))
    means = about.x / about.weight
    variance = float((about.xx / about.weight - means**2).mean() + (origin + means).var())
    return 1.0 / (rows.n_features * variance) if variance > 0 else 1.0


def _moments(origin: Array, block: Block) -> _Moments:
    Z = dense(block.X) - origin
    return _Moments(block.w.sum(), block.w @ Z, block.w @ Z**2)
