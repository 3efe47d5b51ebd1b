"""Landmarks: rows that stand for all others in a Nyström approximation.

| rule | how landmarks are drawn |
|---|---|
| 'rpcholesky' | each in proportion to its residual, the part of k(x, x) that those before it do not explain |
| 'uniform' | all at once, by row weight |
| 'auto' | by both rules; those that leave the smaller error are kept |

Randomly pivoted Cholesky is near the best rank-m approximation where few directions carry most of the kernel. Where
no affordable number of landmarks explains much, it spends them on rows far from all others, and uniform ones are
better. Where there are many rows, a pool of them is drawn first. Rules see values and weights only: neither the order
of the rows matters, nor whether a row is written twice or weighted 2.
References: Chen, Epperly, Tropp & Webber, "Randomly pivoted Cholesky: practical approximation of a kernel matrix with
few entry evaluations" (2023); Epperly, Tropp & Webber, "Embrace rejection: kernel matrix approximation by accelerated
randomly pivoted Cholesky" (2024): several draws at a time, each kept with the probability that the others leave it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

from certifit.rows import Array, Matrix, Rows
from certifit.rows.sampling import draw_rows, pick

# residual diagonal (n,), 0 for rows that are explained -> rows that may be next (b,), and the residual (b,) that each
# must exceed by its turn
Propose = Callable[[Array], tuple[Array, Array]]


@dataclass(frozen=True)
class LandmarkTuning:
    """How many rows landmarks are chosen from, and how many are drawn at a time."""

    pool_rows: int = 8192  # rows to choose from, and at least
    pool_rows_per_landmark: int = 4
    batch: int = 32  # landmarks drawn at a time
    explained: float = 1e-10  # share of k(x, x) up to which a residual is rounding


class LandmarkKernel(NamedTuple):
    """The kernel as functions of tables."""

    values: Callable[[Matrix, Matrix], Array]  # k(x, z) of the rows of two tables
    own: Callable[[Matrix], Array]  # k(x, x) of each row


def choose_landmarks(
    rows: Rows,
    m: int,
    kernel: LandmarkKernel,
    rule: str,
    seconds: float,
    rng: np.random.Generator,
    tuning: LandmarkTuning,
) -> tuple[Array, Matrix]:
    """Choose up to m rows: their numbers (m,) and values (m, d).

    They are fewer where fewer explain all rows exactly, where there are no more, or where the seconds are up.
    """
    end = time.perf_counter() + seconds
    count = max(tuning.pool_rows, tuning.pool_rows_per_landmark * m)
    if rows.n_rows <= count:
        drawn = rows.load()
        index = np.flatnonzero(drawn.w > 0)
        w = drawn.w[index]
    else:
        index, times = np.unique(draw_rows(rows, count, rng), return_counts=True)
        drawn, w = rows.take(index), times.astype(np.float64)
    X: Any = drawn.X if drawn.n_rows == len(index) else drawn.X[index]
    place = np.asarray(X @ rng.normal(size=rows.n_features))
    order = np.argsort(place, kind="stable")
    pool = LandmarkPool(X[order], w[order], place[order], m, kernel, end, tuning)
    chosen = order[RULES[rule](pool, rng)]
    if not len(chosen):  # k(x, x) = 0 everywhere
        chosen = order[:1]
    return index[chosen], X[chosen]


class LandmarkPool(NamedTuple):
    """Rows to choose from, in an order of their values."""

    X: Matrix  # (n, d)
    w: Array  # (n,) row weights
    place: Array  # (n,) ascending, equal for equal rows
    m: int  # most landmarks
    kernel: LandmarkKernel
    end: float  # when time is up
    tuning: LandmarkTuning

    def eliminate(self, propose: Propose, share: float = 1.0) -> tuple[Array, float]:
        """Choose pivots of a Cholesky factorisation of the kernel matrix, as they are proposed.

        Returns their numbers and Σ w times the residual diagonal. Ends early after this share of the remaining time.
        """
        began = time.perf_counter()
        diagonal = np.maximum(self.kernel.own(self.X), 0.0)  # a row with k(x, x) < 0 can be no pivot
        left = diagonal.copy()
        F = np.empty((min(self.m, len(left)), len(left)))
        pivots: list[int] = []
        now = began
        while len(pivots) < len(F) and left.any() and now <= began + share * (self.end - began):
            s, least = propose(left)
            if not len(s):
                break
            i, room = len(pivots), len(F) - len(pivots)
            columns = self.kernel.values(self.X[s], self.X) - F[:i, s].T @ F[:i]
            taken, factor = self._accepted(columns[:, s], left[s], least, diagonal[s], room)
            if len(taken):
                new = solve_triangular(factor, columns[taken], lower=True, check_finite=False)
                F[i : i + len(taken)] = new
                left -= np.einsum("ij,ij->j", new, new)
                left[s[taken]] = 0.0
                left[left <= self.tuning.explained * diagonal] = 0.0
                pivots += s[taken].tolist()
            now = time.perf_counter()
        return np.array(pivots, dtype=np.int64), float(self.w @ left)

    def _accepted(self, S: Array, left: Array, least: Array, own: Array, room: int) -> tuple[list[int], Array]:
        """Which of the rows proposed are pivots, one after the other, and the Cholesky factor of their residuals.

        S (b, b) are the residual kernel values of the rows proposed, `left` (b,) their diagonal.
        """
        L, left = np.zeros_like(S), left.copy()  # column i of L is that of the pivot i
        taken: list[int] = []
        for j in range(len(S)):
            if len(taken) == room or left[j] <= least[j]:
                continue
            i = len(taken)
            L[:, i] = (S[j] - L[:, :i] @ L[j, :i]) / np.sqrt(left[j])
            left -= L[:, i] ** 2
            left[j] = 0.0
            left[left <= self.tuning.explained * own] = 0.0
            taken.append(j)
        return taken, L[taken, : len(taken)]


def _draw_uniformly(pool: LandmarkPool, rng: np.random.Generator) -> Array:
    """Draw distinct rows, without replacement, in proportion to their weights: the first m of exponential clocks."""
    _, first, code = np.unique(pool.place, return_index=True, return_inverse=True)
    clock = rng.exponential(size=len(first)) / np.bincount(code, pool.w)
    return first[np.argsort(clock, kind="stable")[: pool.m]]


def _draw_pivots(pool: LandmarkPool, rng: np.random.Generator, share: float = 1.0) -> tuple[Array, float]:
    """Draw rows in proportion to their residual: the pivots, and the error they leave."""
    batch = pool.tuning.batch

    def propose(left: Array) -> tuple[Array, Array]:
        drawn = pick(pool.w * left, rng.random(batch))
        return drawn, rng.random(batch) * left[drawn]

    return pool.eliminate(propose, share)


def _draw_both(pool: LandmarkPool, rng: np.random.Generator) -> Array:
    """Draw by both rules, the first in half of the time, and keep the landmarks that leave the smaller error."""
    pivoted, uniform = _draw_pivots(pool, rng, 0.5), _draw_uniformly(pool, rng)
    parts = (uniform[i : i + pool.tuning.batch] for i in range(0, len(uniform), pool.tuning.batch))
    none = np.empty(0, np.int64)

    def propose(_: Array) -> tuple[Array, Array]:
        following = next(parts, none)
        return following, np.zeros(len(following))

    return min(pivoted, pool.eliminate(propose), key=lambda found: found[1])[0]


RULES: dict[str, Callable[[LandmarkPool, np.random.Generator], Array]] = {
    "auto": _draw_both,
    "rpcholesky": lambda pool, rng: _draw_pivots(pool, rng)[0],
    "uniform": _draw_uniformly,
}
