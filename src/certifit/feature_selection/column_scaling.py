"""Columns so small or so large that their squares vanish or overflow, scaled by powers of two.

Most scores do not change when a column is multiplied by a number: where squares of its entries leave the range of
float64, the column is scaled first. A power of two changes no digit. Whether there is such a column follows from the
moments, so that ordinary tables pay nothing for it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import numpy as np
from scipy import sparse

from certifit.exceptions import DataError
from certifit.rows import Array, Block, Rows
from certifit.rows.mapped import MappedRows


@dataclass(frozen=True)
class ScalingTuning:
    """The sizes of a column between which fourth powers of its entries, times eps², are ordinary numbers."""

    least: float = 1e-60
    most: float = 1e60

    def admits(self, size: Array) -> Array:
        """Return whether each size is between the two; 0 is not, since squares that vanish sum to it."""
        return (size >= self.least) & (size <= self.most)


Measured = TypeVar("Measured")


def measure_in_range(
    measure: Callable[[Rows], Measured],
    sizes: Callable[[Measured], Array],
    rows: Rows,
    tuning: ScalingTuning = ScalingTuning(),
) -> tuple[Rows, Measured]:
    """Measure rows; where a size of what is found is out of range, scale columns and target, and measure again."""
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        try:
            found = measure(rows)
        except DataError:  # of squares that overflow; those that still do once scaled are refused below
            found = None
        if found is not None and tuning.admits(sizes(found)).all():
            return rows, found
        scaled = _scale_rows(rows, tuning)
        if scaled is rows and found is not None:
            return rows, found
        return scaled, measure(scaled)


class _Largest:
    """The largest absolute values of some columns and of the target; `+` is the larger of the two."""

    def __init__(self, x: Array, y: float) -> None:
        self.x, self.y = x, y

    def __add__(self, other: _Largest) -> _Largest:
        return _Largest(np.maximum(self.x, other.x), max(self.y, other.y))


def _largest(block: Block) -> _Largest:
    used = block.w > 0
    X = block.X[used]
    x = abs(X).max(axis=0).toarray().ravel() if sparse.issparse(X) else np.abs(X).max(axis=0, initial=0.0)
    y = np.zeros(0) if block.y is None or block.y.dtype.kind != "f" else block.y[used]
    return _Largest(x.astype(np.float64), float(np.abs(y).max(initial=0.0)))


def _scale_rows(rows: Rows, tuning: ScalingTuning) -> Rows:
    """Return the rows with every column, and a target of numbers, that is out of range brought to at most 1."""
    largest = rows.sum(_largest)
    x, y = (_exponents(size, tuning) for size in (largest.x, np.array([largest.y])))
    if y.any():
        rows = rows.relabel(partial(_scale_target, int(y[0])))
    return MappedRows(rows, partial(_scale_columns, x), rows.n_features) if x.any() else rows


def _exponents(largest: Array, tuning: ScalingTuning) -> Array:
    """Return the powers of two that bring these sizes to between 1/2 and 1, 0 where they are in range or 0."""
    return np.where(tuning.admits(largest), 0, -np.frexp(largest)[1])


def _scale_columns(exponents: Array, block: Block) -> Array:
    X = block.X.toarray() if sparse.issparse(block.X) else block.X
    return np.ldexp(X.astype(np.float64), exponents)


def _scale_target(exponent: int, y: Array | None, w: Array) -> tuple[Array | None, Array]:
    return None if y is None else np.ldexp(y, exponent), w
