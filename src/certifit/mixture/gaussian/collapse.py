"""Components that stand on too few rows: found, and named with these rows.

A component has collapsed where in some direction its rows scatter next to nothing beside the penalty's floor, while
the rows as a whole do not: its covariance there is the penalty's, not the data's.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from certifit.checkers.mixture.gaussian import Survey
from certifit.mixture.em import Mixture, labels
from certifit.mixture.gaussian.components import Gaussians
from certifit.rows import Array, Block, Rows

NEGLIGIBLE = 0.05  # of the floor, or of TINY in units of the spreads: no scatter to speak of
TINY = 1e-6
NONE = 1e-9  # weight of a component without rows
NAMED = 5  # rows of a component that are listed
REACH = 10.0  # spreads from the median beyond which a row counts as this far: a few wild rows do not fill a direction


def collapsed(at: Mixture, about: Survey) -> dict[int, str]:
    """What is wrong with each component that has no rows of its own, or too few."""
    own = at.components
    share = 1 / np.where(at.weights > NONE, len(at.weights) * at.weights, np.inf)
    floor = own.floor / about.spread**2
    limit = NEGLIGIBLE * min(float(floor.max()), TINY)
    rest = _variances(own, about.spread, (np.ones_like(share) if len(own.C) == 1 else share)[:, None] * floor)
    flat = (rest <= limit * share[:, None]).sum(axis=1)  # in so many directions
    always = _flat_directions(about, limit) if flat.any() else 0
    held_up = dict.fromkeys(np.flatnonzero(flat > always).tolist(), "is held up by reg_covar alone")
    return held_up | dict.fromkeys(np.flatnonzero(at.weights <= NONE).tolist(), "has no rows")


def _variances(own: Gaussians, spread: Array, floor: Array) -> Array:
    """Of the rows alone, without the floor (k, d), along each component's axes (k, d), in units of the spreads."""
    k, d = own.means.shape
    if own.C.ndim == 2:
        return own.shape.diagonal(own.C, d) / spread**2 - floor
    S = own.C / np.outer(spread, spread) - floor[: len(own.C), :, None] * np.eye(d)
    return np.broadcast_to(np.linalg.eigvalsh(S), (k, d))


def _flat_directions(about: Survey, floor: float) -> int:
    """The number of directions in which all rows together do not scatter: a constant column, a sum of others."""
    Z = np.clip((np.asarray(about.sample.X, np.float64) - about.median) / about.spread, -REACH, REACH)
    whole = np.cov(np.nan_to_num(Z), rowvar=False, aweights=about.sample.w, ddof=0)
    return int((np.linalg.eigvalsh(np.atleast_2d(whole)) <= floor).sum())


def describe(at: Mixture, found: dict[int, str], rows: Rows) -> dict[str, str]:
    """The same in words, with the rows that are likeliest to be each component's."""
    parts = rows.each(partial(_rows_of, at, sorted(found)))
    out = {}
    for j, words in sorted(found.items()):
        listed = [part[j][0] for part in parts]
        count = sum(part[j][1] for part in parts)
        shown = np.concatenate(listed)[:NAMED]
        more = f" and {count - len(shown)} more" if count > len(shown) else ""
        on = f": row{'s' * (count > 1)} {', '.join(map(str, shown))}{more}" if count else ""
        out[f"component {j}"] = f"{words}{on}"
    return out


def _rows_of(at: Mixture, components: list[int], block: Block) -> dict[int, tuple[Array, int]]:
    mine = np.where(block.w > 0, labels(at, block), -1)
    found = {j: np.flatnonzero(mine == j) for j in components}
    return {j: (block.start + index[:NAMED], len(index)) for j, index in found.items()}
