"""Rows that stand for all others: by randomly pivoted Cholesky, uniformly, or whichever of the two leaves less over.

Randomly pivoted Cholesky draws each landmark in proportion to what those before it leave over of k(x, x). It is near
the best rank-m approximation where few directions carry most of the kernel; where no number of landmarks that one can
afford does that, it spends them on rows far from all others, and uniform ones do better. Both work on rows that were
drawn first where there are many. They see values and weights only: neither the order of the rows matters, nor whether
a row is written twice or weighted 2.
References: Chen, Epperly, Tropp & Webber, "Randomly pivoted Cholesky: practical approximation of a kernel matrix with
few entry evaluations" (2023); Epperly, Tropp & Webber, "Embrace rejection: kernel matrix approximation by accelerated
randomly pivoted Cholesky" (2024): several draws at a time, each kept with the probability that is left of it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from certifit.rows import Array, Matrix, Rows
from certifit.rows.sampling import draw_rows, pick

POOL, EACH = 8192, 4  # rows to choose from: so many, and at least so many for each landmark
SEVERAL = 32  # landmarks drawn at a time
NOTHING = 1e-10  # of k(x, x): what is left over of a row that its landmarks give exactly

Values = Callable[[Matrix, Matrix], Array]
# what is left of the diagonal, 0 for nothing -> rows that may be next, and what must be left of each by its turn
Propose = Callable[[Array], tuple[Array, Array]]


def choose(
    rows: Rows,
    m: int,
    values: Values,
    own: Callable[[Matrix], Array],
    rule: str,
    seconds: float,
    rng: np.random.Generator,
) -> tuple[Array, Matrix]:
    """Numbers and values of up to m rows; fewer where these give all exactly, are all there are, or time is up.

    values(A, B) are kernel values of the rows of two tables, own(A) those of the rows of A with themselves.
    """
    end = time.perf_counter() + seconds
    count = max(POOL, EACH * m)
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
    pool = Pool(X[order], w[order], place[order], m, values, own, end)
    chosen = order[RULES[rule](pool, rng)]
    if not len(chosen):  # k(x, x) = 0 everywhere
        chosen = order[:1]
    return index[chosen], X[chosen]


class Pool(NamedTuple):
    """Rows to choose from, in an order of their values."""

    X: Matrix
    w: Array
    place: Array  # ascending, equal for equal rows
    m: int
    values: Values
    own: Callable[[Matrix], Array]
    end: float  # when time is up

    def eliminate(self, propose: Propose, share: float = 1.0) -> tuple[Array, float]:
        """Pivots of a Cholesky factorisation of the kernel matrix, and Σ w times what they leave of its diagonal.

        Ends early after this share of the time that remains.
        """
        began = time.perf_counter()
        diagonal = self.own(self.X)
        left = diagonal.copy()
        F = np.empty((min(self.m, len(left)), len(left)))
        pivots: list[int] = []
        now = began
        while len(pivots) < len(F) and left.any() and now <= began + share * (self.end - began):
            s, least = propose(left)
            if not len(s):
                break
            columns = self.values(self.X[s], self.X) - F[: len(pivots), s].T @ F[: len(pivots)]
            for j in np.arange(len(s)):
                i = len(pivots)
                if i == len(F) or left[s[j]] <= least[j]:
                    continue
                F[i] = columns[j] / np.sqrt(left[s[j]])
                columns[j + 1 :] -= np.outer(F[i, s[j + 1 :]], F[i])
                left -= F[i] ** 2
                left[s[j]] = 0.0
                left[left <= NOTHING * diagonal] = 0.0
                pivots.append(int(s[j]))
            now = time.perf_counter()
        return np.array(pivots, dtype=np.int64), float(self.w @ left)


def _uniform(pool: Pool, rng: np.random.Generator) -> Array:
    """Distinct rows, without replacement, in proportion to their weights: the first m of exponential clocks."""
    _, first, code = np.unique(pool.place, return_index=True, return_inverse=True)
    clock = rng.exponential(size=len(first)) / np.bincount(code, pool.w)
    return first[np.argsort(clock, kind="stable")[: pool.m]]


def _pivoted(pool: Pool, rng: np.random.Generator, share: float = 1.0) -> tuple[Array, float]:
    def propose(left: Array) -> tuple[Array, Array]:
        drawn = pick(pool.w * left, rng.random(SEVERAL))
        return drawn, rng.random(SEVERAL) * left[drawn]

    return pool.eliminate(propose, share)


def _better(pool: Pool, rng: np.random.Generator) -> Array:
    pivoted, given = _pivoted(pool, rng, 0.5), _uniform(pool, rng)
    parts = (given[i : i + SEVERAL] for i in range(0, len(given), SEVERAL))
    none = np.empty(0, np.int64)

    def propose(_: Array) -> tuple[Array, Array]:
        following = next(parts, none)
        return following, np.zeros(len(following))

    return min(pivoted, pool.eliminate(propose), key=lambda found: found[1])[0]


RULES: dict[str, Callable[[Pool, np.random.Generator], Array]] = {
    "auto": _better,
    "rpcholesky": lambda pool, rng: _pivoted(pool, rng)[0],
    "uniform": _uniform,
}
