"""Where k-means starts: k-means++ (greedy), random rows, a callable, or given centres.

Reference: Arthur & Vassilvitskii, k-means++: the advantages of careful seeding (2007); greedy: several candidates for
each centre, of which the one that lowers the objective most is kept.

Rows are drawn by their weight along an order that depends on their values alone, a random projection: shuffling rows,
writing a row twice instead of weighting it 2, or dropping a row of weight 0 does not change the centres.
"""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from certifit.cluster.lloyd import check_range, is_small, square_distances
from certifit.exceptions import DataError
from certifit.rows import Array, ArrayRows, Block, Rows

ROWS, ENTRIES = 2**16, 2**24  # draw from at most so many rows and entries; more are thinned at random first


class Starts:
    """Starting centres (k, d), a new set with each call of `draw`; and the rows these are drawn from."""

    def __init__(self, init: Any, k: int, rows: Rows, rng: np.random.RandomState) -> None:
        self.init, self.k, self.rng = init, k, rng
        self.given = not is_drawn(init)
        if self.given:
            self.centres = _check(init, "init", k, rows.n_features)
        else:
            self.sample = _sample(rows, k, rng)

    def draw(self, until: float = np.inf) -> Array:
        """The next centres; rows drawn after `until` (`time.perf_counter`) are drawn at random, all at once."""
        if self.given:
            return self.centres
        if callable(self.init):
            made = self.init(self.sample.X, self.k, random_state=self.rng)
            return _check(made, "centres from init", self.k, self.sample.n_features)
        greedy = self.init == "k-means++"
        return self._seeds(2 + int(np.log(self.k)) if greedy else 1, greedy, until)

    def _seeds(self, trials: int, greedy: bool, until: float) -> Array:
        """k rows, far from each other if greedy; fewer distinct rows than k leave repeated centres."""
        w, k = self.sample.w, self.k
        order = self._order()
        C = np.empty((k, self.sample.n_features))
        C[:] = self._pick(w, order, 1)
        closest = self.distances(C[:1])[:, 0]
        for j in range(1, k):
            mass = w * (closest if greedy else closest > 0)
            if not mass.any():
                break
            if time.perf_counter() >= until:
                C[j:] = self._at((self.rng.random_sample() + np.arange(k - j)) / (k - j), w * (closest > 0), order)
                break
            candidates = self._pick(mass, order, trials)
            D = np.minimum(closest[:, None], self.distances(candidates))
            left = w @ D
            best = int(np.argmax(left <= left.min() * (1 + 1e-9)))  # the first of equals, whatever the rounding
            C[j], closest = candidates[best], D[:, best]
        return C

    def distances(self, C: Array) -> Array:
        """Squared, of the sample's rows to these centres."""
        return self.sample.map(partial(_distances, C, is_small(self.sample, self.k)))

    def pick(self, mass: Array, count: int) -> Array:
        """Rows (count, d) of the sample, drawn in proportion to their mass (n,)."""
        return self._pick(mass, self._order(), count)

    def _order(self) -> Array:
        """Of the rows, by their values alone."""
        direction = self.rng.normal(size=self.sample.n_features)
        return np.argsort(self.sample.map(partial(_key, direction)), kind="stable")

    def _pick(self, mass: Array, order: Array, count: int) -> Array:
        return self._at(self.rng.random_sample(count), mass, order)

    def _at(self, places: Array, mass: Array, order: Array) -> Array:
        """Rows where the distribution function along the order has these values (·,) in [0, 1)."""
        total = np.cumsum(mass[order])
        check_range(total[-1])
        last = np.searchsorted(total, total[-1])
        at = np.searchsorted(total, places * total[-1], side="right")
        return np.array([_row(self.sample, i) for i in order[np.minimum(at, last)]])


def is_drawn(init: Any) -> bool:
    """Whether starts are made from the rows, not given."""
    return callable(init) or (isinstance(init, str) and init in ("k-means++", "random"))


def _check(centres: Any, name: str, k: int, d: int) -> Array:
    if isinstance(centres, str):
        raise DataError(
            got=f"init={centres!r}", wanted="'k-means++', 'random', an array of centres or a function that makes one"
        )
    C = np.array(centres.toarray() if sparse.issparse(centres) else centres, dtype=np.float64)
    if C.shape != (k, d):
        raise DataError(got=f"{name} of shape {C.shape}", wanted=f"(n_clusters, n_features) = ({k}, {d})")
    if not np.isfinite(C).all():
        raise DataError(got=f"{name} with NaN or infinity", wanted="finite numbers")
    return C


def _sample(rows: Rows, k: int, rng: np.random.RandomState) -> ArrayRows:
    """Rows with weight, in memory."""
    size = max(min(ROWS, ENTRIES // rows.n_features), 16 * k)
    if rows.n_rows <= size:
        sample = rows.load()
    else:
        fair = np.random.default_rng(rng.randint(2**31))
        sample = rows.take(np.sort(fair.choice(rows.n_rows, size, replace=False, shuffle=False)))
    if (sample.w > 0).all():
        return sample
    if not (sample.w > 0).any():
        raise DataError(
            got=f"no row with weight among {size} drawn to start from",
            wanted="rows of positive weight",
            fix="Drop the rows of weight 0, or give the centres as init.",
        )
    return sample.take(np.flatnonzero(sample.w > 0))


def _key(direction: Array, block: Block) -> Array:
    return block.X @ direction


def _distances(C: Array, small: bool, block: Block) -> Array:
    return square_distances(C, small, block.X)


def _row(rows: ArrayRows, i: int) -> Array:
    x: Any = rows.X[[i]]
    return np.asarray(x.toarray() if sparse.issparse(x) else x, dtype=np.float64)[0]
