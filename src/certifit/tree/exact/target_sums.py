"""Targets as whole numbers, so that the sums of any set of rows are exact and add up in any order.

A class is a channel that a row's weight enters. An amount is w (y - mean) in units of a power of 2, so small that the
sum of all sizes just fits 62 bits. Weights that are whole numbers stay as they are; others are counted in units of
about 2⁻⁶¹ of their sum, and none becomes 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from certifit.rows import Array
from certifit.tree.exact.median_loops import MedianTable


@dataclass(frozen=True)
class TargetSums:
    """What each row adds to the sums of its node."""

    labels: Array  # (n, t) int32: the channels that a row's weight enters; t = 0 for amounts
    moments: Array  # (n, c) int64: what a row adds to each channel; c = 0 for classes
    weight: Array  # (n,) int64
    channels: int
    unit: float  # of the moments
    weight_unit: float


def class_sums(y: Array, n_classes: list[int], w: Array) -> TargetSums:
    """Those of class numbers y (n, t), with so many classes of each of the t targets."""
    weight, unit = _whole_weights(w)
    first = np.cumsum([0, *n_classes[:-1]])
    none = np.empty((len(y), 0), np.int64)
    return TargetSums((y + first).astype(np.int32), none, weight, sum(n_classes), 1.0, unit)


def amount_sums(y: Array, w: Array, centred: bool) -> TargetSums:
    """Those of amounts y (n, c), as distances from their means if `centred`."""
    weight, weight_unit = _whole_weights(w)
    shift = np.average(y, axis=0, weights=w) if centred else np.zeros(y.shape[1])
    # About the weights that are counted: amounts that are equal then have sums in proportion to their weights.
    sizes = (weight * weight_unit)[:, None] * (y - shift)
    largest = float(np.abs(sizes).sum(axis=0).max())
    unit = 2.0 ** max(math.frexp(largest)[1] - 61, -1074) if largest > 0 else 1.0  # the smallest number above 0
    none = np.empty((len(y), 0), np.int32)
    return TargetSums(none, np.rint(sizes / unit).astype(np.int64), weight, y.shape[1], unit, weight_unit)


def median_sums(y: Array, w: Array) -> tuple[TargetSums, MedianTable]:
    """Those of amounts y (n, t), and their orders: what splits by absolute error are scored by."""
    sums = amount_sums(y, w, centred=True)
    away = (y - np.average(y, axis=0, weights=w)) / sums.unit
    whole = sums.weight_unit == 1.0
    amounts = np.rint(away).astype(np.int64) if whole else away * sums.weight_unit
    if whole:  # the sums of rows and the amounts of their medians agree to the last unit
        sums = replace(sums, moments=sums.weight[:, None] * amounts)
    order = np.argsort(y, axis=0, kind="stable")
    place = np.empty_like(order)
    np.put_along_axis(place, order, np.arange(len(y))[:, None], axis=0)
    keys = (place << 32 | np.arange(len(y))[:, None]).T
    scratch = np.zeros((2, y.shape[1], len(y)), np.int64)
    table = MedianTable(np.ascontiguousarray(keys), np.ascontiguousarray(amounts.T), scratch[0], scratch[1])
    return sums, table


def _whole_weights(w: Array) -> tuple[Array, float]:
    """Weights as whole numbers of some unit."""
    total = float(w.sum())
    if total < 2.0**53 and (w == np.rint(w)).all():
        return w.astype(np.int64), 1.0
    unit = 2.0 ** (math.frexp(total)[1] - 60)
    return np.maximum(np.rint(w / unit), 1).astype(np.int64), unit
