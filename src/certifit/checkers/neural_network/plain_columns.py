"""Layers for each column of a table, as the checker computes them, and the scaling that a table asks for."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from certifit.checkers.plain.blocks import dense
from certifit.rows import Array, Rows


class PlainRobustColumns(NamedTuple):
    """(x - centre) / scale, smoothly held between -3 and 3."""

    centre: Array  # (columns,)
    scale: Array  # (columns,); a column of scale 0 is 0

    def forward(self, x: Array) -> tuple[Array, Any]:
        used = self.scale > 0
        z = np.where(used, (x - self.centre) / np.where(used, self.scale, 1.0), 0.0)
        return z / np.hypot(1.0, z / 3.0), z

    def backward(self, delta: Array, memory: Any) -> Array:
        slope = np.hypot(1.0, memory / 3.0) ** -3.0
        return np.where(self.scale > 0, delta * slope / np.where(self.scale > 0, self.scale, 1.0), 0.0)

    def switches(self, memory: Any, rows: int) -> Array:
        return np.zeros((rows, 1), dtype=np.int64)


class PlainPeriodic(NamedTuple):
    """Each number x as (x, cos(x W + b)): (n, columns, 1 + frequencies)."""

    W: Array  # (columns, frequencies)
    b: Array  # (columns, frequencies)

    def forward(self, x: Array) -> tuple[Array, Any]:
        return np.concatenate([x[:, :, None], np.cos(x[:, :, None] * self.W + self.b)], axis=2), x

    def _bent(self, delta: Array, x: Array) -> Array:
        """The slopes in what the cosines are of."""
        return -delta[:, :, 1:] * np.sin(x[:, :, None] * self.W + self.b)

    def backward(self, delta: Array, memory: Any) -> Array:
        return np.asarray(delta[:, :, 0] + (self._bent(delta, memory) * self.W).sum(axis=2))

    def slopes(self, delta: Array, memory: Any) -> tuple[Array, Array]:
        bent = self._bent(delta, memory)
        return np.einsum("ijk,ij->jk", bent, memory), bent.sum(axis=0)

    def reach(self, memory: Any) -> float:
        return float(np.abs(memory).max(initial=0.0))

    def switches(self, memory: Any, rows: int) -> Array:
        return np.zeros((rows, 1), dtype=np.int64)


class PlainColumnDense(NamedTuple):
    """x W + b for each column by itself, the columns' units side by side."""

    W: Array  # (columns, numbers, units)
    b: Array  # (columns, units)

    def forward(self, x: Array) -> tuple[Array, Any]:
        return (np.einsum("ijk,jkm->ijm", x, self.W) + self.b).reshape(len(x), -1), x

    def backward(self, delta: Array, memory: Any) -> Array:
        return np.einsum("ijm,jkm->ijk", delta.reshape(len(delta), *self.b.shape), self.W)

    def slopes(self, delta: Array, memory: Any) -> tuple[Array, Array]:
        each = delta.reshape(len(delta), *self.b.shape)
        return np.einsum("ijk,ijm->jkm", memory, each), each.sum(axis=0)

    def reach(self, memory: Any) -> float:
        return float(np.abs(memory).sum(axis=2).max(initial=0.0))

    def switches(self, memory: Any, rows: int) -> Array:
        return np.zeros((rows, 1), dtype=np.int64)


def robust_columns(rows: Rows, most: int = 1 << 16) -> tuple[Array, Array]:
    """The median of each column and the distance of its quartiles, of rows that count as often as their weights say.

    Where the quartiles are equal, half the range; 0 of a constant column. Of more rows than `most` every so many are
    looked at.
    """
    some = rows.thin(-(-rows.n_rows // most))
    used = some.w > 0
    X, w = dense(some.X)[used].astype(np.float64), some.w[used]
    low, centre, high = (np.empty(X.shape[1]) for _ in range(3))
    for j, column in enumerate(X.T):
        order = np.argsort(column, kind="stable")
        share = np.cumsum(w[order])
        place = np.searchsorted(share, np.array([0.25, 0.5, 0.75]) * share[-1])
        low[j], centre[j], high[j] = column[order][np.minimum(place, len(w) - 1)]
    return centre, np.where(high > low, high - low, 0.5 * (X.max(axis=0) - X.min(axis=0)))
