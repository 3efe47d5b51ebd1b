"""Whether a network normalises its units by what they are: mean and variance over the rows it was fitted on."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from certifit.checkers.neural_network.network_loss import NetworkClaim
from certifit.checkers.neural_network.plain_layers import PlainNormalisation
from certifit.checkers.plain.blocks import dense_rows
from certifit.core import Check
from certifit.rows import Array, Block, Rows, Sums, tree_sum


@dataclass(frozen=True)
class UnitDeviations(Sums):
    """Sums over rows and places of a channel's distance from its stored mean."""

    weight: float
    first: Array  # (channels,)
    second: Array  # (channels,) of squares


def moment_checks(claim: NetworkClaim, rows: Rows, allowed: float = 1e-8) -> list[Check]:
    """A check of the stored means and variances of every normalisation; none where there is none."""
    checks: list[Check] = []
    for k, layer in enumerate(claim.layers):
        if isinstance(layer, PlainNormalisation):
            with np.errstate(all="ignore"):
                found = rows.sum(partial(_deviations, claim, k))
                error = _moment_error(layer.moments, found)
            name = f"moments_ of normalisation {len(checks) + 1} are off by"
            checks.append(Check(name, float(np.nan_to_num(error, nan=np.inf)), allowed))
    return checks


def _moment_error(moments: Array, found: UnitDeviations) -> float:
    """The largest error of a mean or variance, relative to the units' sizes."""
    mean, variance = moments
    off = found.first / found.weight
    true = found.second / found.weight - off**2
    size = np.sqrt(np.maximum(true, variance)) + np.abs(mean) + 1e-300
    return float(max(np.max(np.abs(off) / size), np.max(np.abs(true - variance) / (true + 1e-6 * size**2))))


def _deviations(claim: NetworkClaim, k: int, block: Block, most: int = 64) -> UnitDeviations:
    cuts = [slice(start, start + most) for start in range(0, len(block.w), most)]
    return tree_sum(_row_deviations(claim, k, block.X[cut], block.w[cut]) for cut in cuts)


def _row_deviations(claim: NetworkClaim, k: int, X: Array, w: Array) -> UnitDeviations:
    used = w > 0
    x, w = dense_rows(X, used), w[used]
    for layer in claim.layers[:k]:
        x = layer.forward(x)[0]
    normalisation = claim.layers[k]
    assert isinstance(normalisation, PlainNormalisation)
    places = x.reshape(*x.shape[:2], -1) - normalisation.moments[0][:, None]
    first, second = (w @ part.mean(axis=2) for part in (places, places**2))
    return UnitDeviations(float(w.sum()), first, second)
