"""Batch normalisation: each unit, or channel of images, about its mean and over its deviation, then scaled and moved.

While a network is trained, mean and variance are those of the rows of a chunk of the minibatch, each with its weight:
chunks need not wait for each other, and their bits depend on no thread (Hoffer, Hubara & Soudry 2017 found that
chunks of some dozens of rows generalise better than the whole of a large minibatch). A fitted network has those of
all rows it was fitted on, under its last weights, in place of running means of what they were on the way: anybody who
has the rows can compute them again (Wu & Johnson 2021). Reference: Ioffe & Szegedy, "Batch normalization" (2015).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from certifit.exceptions import DataError
from certifit.neural_network.layers.row_layers import Layer, LayerShapes, LayerWeights, Shape
from certifit.neural_network.layers.workspace import Workspace
from certifit.neural_network.network import Network
from certifit.rows import Array, Block, Rows, tree_sum


@dataclass(frozen=True, eq=False)
class BatchNorm(Layer):
    """y = W (x - mean) / sqrt(variance + epsilon) + b, for each unit or channel."""

    moments: Array | None = None  # (2, channels) mean and variance, fixed; None: those of the rows at hand
    epsilon: float = 1e-5

    def shapes(self, rows: Shape) -> LayerShapes:
        if len(rows) not in (1, 3):
            raise DataError(got="", wanted="rows of units, or images")
        return LayerShapes(rows, (rows[0],), (rows[0],), (1, 1))

    def forward(self, x: Array, weights: LayerWeights, work: Workspace) -> tuple[Array, Any]:
        share = None
        if self.moments is None:
            share = row_shares(x, work.w)
            mean, variance = moments_of(x, share)
        else:
            mean, variance = self.moments.astype(x.dtype)
        scale = 1 / np.sqrt(variance + x.dtype.type(self.epsilon))
        normed = (x - _along(mean, x)) * _along(scale, x)
        return _along(weights.W, x) * normed + _along(weights.b, x), (normed, scale, share)

    def backward(
        self, delta: Array, memory: Any, weights: LayerWeights, slopes: LayerWeights, further: bool = True
    ) -> Array | None:
        normed, scale, share = memory
        others = (0,) if delta.ndim == 2 else (1, 2, 3)
        np.sum(delta * normed, axis=others, out=slopes.W)
        np.sum(delta, axis=others, out=slopes.b)
        if not further:
            return None
        if share is not None:  # mean and variance move with every row
            delta = delta - share * (_along(slopes.b, delta) + normed * _along(slopes.W, delta))
        return delta * _along(scale * weights.W, delta)


def _along(values: Array, x: Array) -> Array:
    """A value for each unit or channel, to be met by x: rows (n, units), or images (channels, height, width, n)."""
    return values if x.ndim == 2 else values[:, None, None, None]


def row_shares(x: Array, w: Array | None) -> Array:
    """The share of each value in a mean, to be met by x; the same for all rows unless they have weights."""
    n, places = (len(x), 1) if x.ndim == 2 else (x.shape[3], x.shape[1] * x.shape[2])
    w = np.ones(n) if w is None else w
    share = (w / (w.sum() * places)).astype(x.dtype)
    return share[:, None] if x.ndim == 2 else share


def moments_of(x: Array, share: Array) -> tuple[Array, Array]:
    """Mean and variance of each unit or channel."""
    others = (0,) if x.ndim == 2 else (1, 2, 3)
    mean = (x * share).sum(axis=others)
    return mean, ((x - _along(mean, x)) ** 2 * share).sum(axis=others)


# ---------------------------------------------------------------------------------------------- of a fitted network
@dataclass(frozen=True)
class UnitMoments:
    """Weight, mean and variance of units over some rows; `+` joins two sets of rows (Chan, Golub & LeVeque 1979)."""

    weight: float
    mean: Array  # (channels,)
    variance: Array  # (channels,)

    def __add__(self, other: UnitMoments) -> UnitMoments:
        if min(self.weight, other.weight) == 0:
            return self if other.weight == 0 else other
        weight = self.weight + other.weight
        a, b, step = self.weight / weight, other.weight / weight, other.mean - self.mean
        variance = a * self.variance + b * other.variance + a * b * step**2
        return UnitMoments(weight, self.mean + b * step, variance)


def with_moments(network: Network, moments: list[Array]) -> Network:
    """The same network with normalisations that have fixed moments, (2, channels) for each in their order."""
    left = iter(moments)
    layers = [replace(one, moments=next(left)) if isinstance(one, BatchNorm) else one for one in network.layers]
    return Network(tuple(layers), network.rows)


def population_moments(network: Network, parts: list[LayerWeights], rows: Rows) -> list[Array]:
    """Mean and variance (2, channels) of what enters each normalisation, over all rows, the first one first."""
    found: list[Array] = []
    for k, layer in enumerate(network.layers):
        if isinstance(layer, BatchNorm):
            before = with_moments(Network(network.layers[:k], network.rows), found)
            sums = rows.sum(partial(_block_moments, before, parts[:k]))
            found.append(np.stack([sums.mean, sums.variance]))
    return found


@dataclass(frozen=True)
class MomentTuning:
    """How many rows moments are taken from where nobody wants to wait."""

    products: float = 2e9  # multiplications of their way through the network
    least_rows: int = 256


def moment_rows(network: Network, tuning: MomentTuning = MomentTuning()) -> int:
    """The number of rows whose moments are known in less than a second; 0 for a network without normalisations."""
    passes = sum(isinstance(layer, BatchNorm) for layer in network.layers)
    return max(tuning.least_rows, int(tuning.products / (passes * network.row_products))) if passes else 0


def _block_moments(before: Network, parts: list[LayerWeights], block: Block) -> UnitMoments:
    """The same of one block, some rows at a time, because images between layers take much memory."""
    most = before.images_at_once
    cuts = [slice(start, start + most) for start in range(0, len(block.w), most)]
    return tree_sum(_row_moments(before, parts, block.X[cut], block.w[cut]) for cut in cuts)


def _row_moments(before: Network, parts: list[LayerWeights], X: Any, w: Array) -> UnitMoments:
    used = w > 0
    channels = before.shapes[-1].output[0] if before.layers else before.rows[0]
    if not used.any():
        return UnitMoments(0.0, np.zeros(channels), np.zeros(channels))
    X = X[used]
    x = np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)
    work = Workspace()
    for layer, weights in zip(before.layers, parts, strict=True):
        x, _ = layer.forward(x, weights, work)
    return UnitMoments(float(w[used].sum()), *moments_of(x, row_shares(x, w[used])))
