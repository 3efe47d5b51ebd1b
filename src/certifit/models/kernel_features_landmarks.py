"""Rows that stand for all others: by randomly pivoted Cholesky, uniformly, or whichever of the two leaves less over.

Randomly pivoted Cholesky draws each landmark in proportion to what those before it leave over of k(x, x). It is near
the best rank-m approximation where few directions carry most of the kernel; where no number of landmarks that one can
afford does that, it spends them on rows far from all others, and uniform ones do better. Both work on rows that were
drawn first where there are many. They see values and weights only: neither the order of the rows matters, nor whether
a row is written twice or weighted 2.
Reference: Chen, Epperly, Tropp & Webber, "Randomly pivoted Cholesky: practical approximation of a kernel matrix with
few entry evaluations" (2023).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from certifit.core import Array, Matrix, Rows
from certifit.core.draws import draw_rows, pick

POOL, EACH = 8192, 4  # rows to choose from: so many, and at least so many for each landmark
NOTHING = 1e-10  # of k(x, x): what is left over of a row that its landmarks give exactly

Values = Callable[[Matrix, Matrix], Array]


def choose(
    rows: Rows, m: int, values: Values, own: Callable[[Matrix], Array], rule: str, rng: np.random.Generator
) -> tuple[Array, Matrix]:
    """Numbers and values of up to m rows; fewer where these give all others exactly, or are all there are.

    values(A, B) are kernel values of the rows of two tables, own(A) those of the rows of A with themselves.
    """
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
    pool = Pool(X[order], w[order], place[order], m, values, own)
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

    def eliminate(self, following: Callable[[Array], int | None]) -> tuple[Array, float]:
        """Pivots of a Cholesky factorisation of the kernel matrix, and Σ w times what they leave of its diagonal.

        `following` is given that diagonal, 0 where nothing is left, and names the next pivot.
        """
        diagonal = self.own(self.X)
        left = diagonal.copy()
        F = np.empty((min(self.m, len(left)), len(left)))
        pivots: list[int] = []
        while len(pivots) < len(F) and left.any():
            s, i = following(left), len(pivots)
            if s is None:
                break
            column = self.values(self.X, self.X[s : s + 1])[:, 0] - F[:i, s] @ F[:i]
            F[i] = column / np.sqrt(left[s])
            left -= F[i] ** 2
            left[s] = 0.0
            left[left <= NOTHING * diagonal] = 0.0
            pivots.append(s)
        return np.array(pivots, dtype=np.int64), float(self.w @ left)


def _uniform(pool: Pool, rng: np.random.Generator) -> Array:
    """Distinct rows, without replacement, in proportion to their weights: the first m of exponential clocks."""
    _, first, code = np.unique(pool.place, return_index=True, return_inverse=True)
    clock = rng.exponential(size=len(first)) / np.bincount(code, pool.w)
    return first[np.argsort(clock, kind="stable")[: pool.m]]


def _pivoted(pool: Pool, rng: np.random.Generator) -> tuple[Array, float]:
    return pool.eliminate(lambda left: int(pick(pool.w * left, rng.random(1))[0]))


def _better(pool: Pool, rng: np.random.Generator) -> Array:
    pivoted, given = _pivoted(pool, rng), _uniform(pool, rng)
    uniform = pool.eliminate(lambda left: next((int(s) for s in given if left[s] > 0), None))
    return min(pivoted, uniform, key=lambda found: found[1])[0]


RULES: dict[str, Callable[[Pool, np.random.Generator], Array]] = {
    "auto": _better,
    "rpcholesky": lambda pool, rng: _pivoted(pool, rng)[0],
    "uniform": _uniform,
}
