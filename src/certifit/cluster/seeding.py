"""Where k-means starts: k-means++ (greedy), random rows, a callable, or given centres.

k-means++ draws each next centre among the rows in proportion to their squared distance from the centres so far
(Arthur & Vassilvitskii, k-means++: the advantages of careful seeding, 2007). Greedy: several candidates are drawn for
each centre, and the one that lowers the objective most is kept.

Rows are drawn by their weight along an order that depends on their values alone, a random projection: shuffling rows,
writing a row twice instead of weighting it 2, or dropping a row of weight 0 does not change the centres.
"""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import check_random_state

from certifit.cluster.lloyd import check_range, is_large, square_distances
from certifit.cluster.tuning import KMeansTuning
from certifit.core import Setting
from certifit.exceptions import DataError
from certifit.rows import Array, ArrayRows, Block, Rows, as_rows


class Starts:
    """Starting centres (k, d), a new set with each call of `draw`, and the sample of rows they are drawn from."""

    def __init__(
        self, init: Any, k: int, rows: Rows, rng: np.random.RandomState, tuning: KMeansTuning = KMeansTuning()
    ) -> None:
        self.init, self.k, self.rng, self.tuning = init, k, rng, tuning
        self.given = not is_drawn(init)
        if self.given:
            self.centres = _check_centres(init, "init", k, rows.n_features)
        else:
            self.sample = _sample(rows, k, rng, tuning)

    def draw(self, until: float = np.inf) -> Array:
        """Return the next centres; those not drawn by `until` (`time.perf_counter`) are random rows, all at once."""
        if self.given:
            return self.centres
        if callable(self.init):
            made = self.init(self.sample.X, self.k, random_state=self.rng)
            return _check_centres(made, "centres from init", self.k, self.sample.n_features)
        greedy = self.init == "k-means++"
        return self._draw_rows(2 + int(np.log(self.k)) if greedy else 1, greedy, until)

    def _draw_rows(self, trials: int, greedy: bool, until: float) -> Array:
        """Draw k rows, far from each other if greedy; fewer distinct rows than k leave repeated centres."""
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
                places = (self.rng.random_sample() + np.arange(k - j)) / (k - j)
                C[j:] = self._rows_at(places, w * (closest > 0), order)
                break
            candidates = self._pick(mass, order, trials)
            D = np.minimum(closest[:, None], self.distances(candidates))
            left = w @ D
            best = int(np.argmax(left <= left.min() * (1 + 1e-9)))  # the first of equals, whatever the rounding
            C[j], closest = candidates[best], D[:, best]
        return C

    def distances(self, C: Array) -> Array:
        """Return squared distances (n, ·) of the sample's rows to these centres."""
        return self.sample.map(partial(_block_distances, C, is_large(self.sample, self.k, self.tuning)))

    def pick(self, mass: Array, count: int) -> Array:
        """Draw rows (count, d) of the sample in proportion to their mass (n,)."""
        return self._pick(mass, self._order(), count)

    def _order(self) -> Array:
        """Order the rows along a random direction: by their values alone."""
        direction = self.rng.normal(size=self.sample.n_features)
        return np.argsort(self.sample.map(partial(_along, direction)), kind="stable")

    def _pick(self, mass: Array, order: Array, count: int) -> Array:
        return self._rows_at(self.rng.random_sample(count), mass, order)

    def _rows_at(self, places: Array, mass: Array, order: Array) -> Array:
        """Return the rows where the distribution function along the order has these values (·,) in [0, 1)."""
        total = np.cumsum(mass[order])
        check_range(total[-1])
        last = np.searchsorted(total, total[-1])
        at = np.searchsorted(total, places * total[-1], side="right")
        return np.array([_dense_row(self.sample, i) for i in order[np.minimum(at, last)]])


def is_drawn(init: Any) -> bool:
    """Whether starts are made from the rows, not given."""
    return callable(init) or (isinstance(init, str) and init in ("k-means++", "random"))


def _check_centres(centres: Any, name: str, k: int, d: int) -> Array:
    C = np.array(centres.toarray() if sparse.issparse(centres) else centres, dtype=np.float64)
    if C.shape != (k, d):
        other = f"clusters {k}" if C.shape[:1] != (k,) else f"features of the data {d}"
        raise DataError(
            got=f"{name} of shape {C.shape}",
            wanted=f"(n_clusters, n_features) = ({k}, {d})",
            fix=f"The shape of the initial centers {C.shape} does not match the number of {other}.",
        )
    if not np.isfinite(C).all():
        raise DataError(got=f"{name} with NaN or infinity", wanted="finite numbers")
    return C


def _sample(rows: Rows, k: int, rng: np.random.RandomState, tuning: KMeansTuning) -> ArrayRows:
    """Load the rows with a positive weight, or a random part of them."""
    size = max(min(tuning.sample_rows, tuning.sample_entries // rows.n_features), 16 * k)
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


def _along(direction: Array, block: Block) -> Array:
    return block.X @ direction


def _block_distances(C: Array, compiled: bool, block: Block) -> Array:
    return square_distances(block.X, C, compiled)


def _dense_row(rows: ArrayRows, i: int) -> Array:
    x: Any = rows.X[[i]]
    return np.asarray(x.toarray() if sparse.issparse(x) else x, dtype=np.float64)[0]


def kmeans_plusplus(
    X: Any,
    n_clusters: int,
    *,
    sample_weight: Any = None,
    random_state: Any = None,
    n_local_trials: Any = None,
    x_squared_norms: Any = None,
) -> tuple[Array, Array]:
    """Starting centres for k-means: rows far from each other, drawn by k-means++.

    Parameters
    ----------
    X : array or CSR matrix (n, d)
    n_clusters : int
    sample_weight : (n,) or None
    random_state : int, RandomState or None
    n_local_trials : int or None
        Candidates for each centre, of which the best is kept; None means 2 + log(n_clusters).
    x_squared_norms : (n,) or None
        Ignored; accepted so that scikit-learn's calls run.

    Returns
    -------
    centers : (n_clusters, d)
    indices : (n_clusters,) the numbers of these rows; of equal rows the first

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import kmeans_plusplus
    >>> centers, indices = kmeans_plusplus(np.array([[0.0], [0.0], [9.0]]), 2, random_state=0)
    >>> sorted(indices.tolist())
    [0, 2]
    """
    rows = as_rows(X, None, sample_weight, sparse=True).load()
    if x_squared_norms is not None and len(x_squared_norms) != rows.n_rows:
        raise DataError(
            got=f"x_squared_norms of {len(x_squared_norms)} rows",
            wanted=f"one for each of the {rows.n_rows} rows, or None",
            fix=f"The length of x_squared_norms {len(x_squared_norms)} should be equal to the length of n_samples "
            f"{rows.n_rows}.",
        )
    Setting(int, least=1, most=rows.n_rows).check("n_clusters", n_clusters)
    Setting(int, least=1, none=True).check("n_local_trials", n_local_trials)
    starts = Starts("k-means++", int(n_clusters), rows, check_random_state(random_state))
    trials = 2 + int(np.log(n_clusters)) if n_local_trials is None else int(n_local_trials)
    centres = starts._draw_rows(trials, True, np.inf)
    table: Any = rows.X
    table = table.toarray() if sparse.issparse(table) else table
    return centres, np.array([int(np.argmax((table == centre).all(axis=1))) for centre in centres])
