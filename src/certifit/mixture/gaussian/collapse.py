"""Components that have collapsed onto too few rows: find them, and name them with these rows.

A component has collapsed where, in some direction, the variance of its rows is negligible beside the penalty's floor
while that of all rows is not: its covariance there comes from the penalty, not from the data.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from certifit.checkers.mixture.column_survey import ColumnSurvey
from certifit.mixture.em import MixtureParameters, labels
from certifit.mixture.gaussian.components import GaussianComponents
from certifit.rows import Array, Block, Rows


def collapsed_components(at: MixtureParameters, survey: ColumnSurvey) -> dict[int, str]:
    """Return what is wrong with each component that has no rows of its own, or too few."""
    own = at.components
    tuning = own.tuning
    share = 1 / np.where(at.weights > tuning.no_weight, len(at.weights) * at.weights, np.inf)
    floor = own.floor / survey.spread**2
    limit = tuning.negligible * min(float(floor.max()), tuning.tiny)
    rest = _row_variances(own, survey.spread, (np.ones_like(share) if len(own.C) == 1 else share)[:, None] * floor)
    flat = (rest <= limit * share[:, None]).sum(axis=1)  # directions of each component without variance
    always = _flat_directions(survey, limit, tuning.reach) if flat.any() else 0
    held_up = dict.fromkeys(np.flatnonzero(flat > always).tolist(), "is held up by reg_covar alone")
    return held_up | dict.fromkeys(np.flatnonzero(at.weights <= tuning.no_weight).tolist(), "has no rows")


def _row_variances(own: GaussianComponents, spread: Array, floor: Array) -> Array:
    """Return variances along each component's axes (k, d), in squared spreads and without the floor (k, d)."""
    k, d = own.means.shape
    if own.C.ndim == 2:
        return own.shape.diagonal(own.C, d) / spread**2 - floor
    S = own.C / np.outer(spread, spread) - floor[: len(own.C), :, None] * np.eye(d)
    return np.broadcast_to(np.linalg.eigvalsh(S), (k, d))


def _flat_directions(survey: ColumnSurvey, limit: float, reach: float) -> int:
    """Count the directions in which all rows together have no variance: a constant column, a sum of others."""
    Z = np.clip((np.asarray(survey.sample.X, np.float64) - survey.median) / survey.spread, -reach, reach)
    whole = np.cov(np.nan_to_num(Z), rowvar=False, aweights=survey.sample.w, ddof=0)
    return int((np.linalg.eigvalsh(np.atleast_2d(whole)) <= limit).sum())


def describe_collapse(at: MixtureParameters, found: dict[int, str], rows: Rows) -> dict[str, str]:
    """Return the same in words, with the rows whose likeliest component each one is."""
    parts = rows.each(partial(_rows_of, at, sorted(found)))
    out = {}
    for j, words in sorted(found.items()):
        count = sum(part[j][1] for part in parts)
        shown = np.concatenate([part[j][0] for part in parts])[: at.components.tuning.rows_named]
        more = f" and {count - len(shown)} more" if count > len(shown) else ""
        on = f": row{'s' * (count > 1)} {', '.join(map(str, shown))}{more}" if count else ""
        out[f"component {j}"] = f"{words}{on}"
    return out


def _rows_of(at: MixtureParameters, components: list[int], block: Block) -> dict[int, tuple[Array, int]]:
    """Return the first rows of each of these components in a block, and how many there are."""
    mine = np.where(block.w > 0, labels(at, block), -1)
    found = {j: np.flatnonzero(mine == j) for j in components}
    return {j: (block.start + index[: at.components.tuning.rows_named], len(index)) for j, index in found.items()}
