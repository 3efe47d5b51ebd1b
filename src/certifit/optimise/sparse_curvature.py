"""The Hessian of many sparse columns as its factors: coordinate descent then reads entries and not a square matrix.

Of rows (z, 1) with curvatures h the Hessian is Zᵀ diag(h) Z. With m columns in the working set it has m² entries, and
each step of coordinate descent reads m of them; from the rows, a step reads the entries of one column twice. From
some hundreds of columns of texts on that is less, and no square is made at all.
Reference: Friedman, Hastie & Tibshirani, "Regularization paths for generalized linear models" (2010), section 2.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from certifit.optimise.coordinate_descent_loops import RootColumns, root_columns, sweep_columns
from certifit.rows import Array


class SweepGoals(NamedTuple):
    """When sweeps of coordinate descent end: where no move gains more than this, in units of the objective."""

    move: float
    first_share: float = 0.0  # or than this share of what one gained in the first sweep
    sweeps: int = 2000  # the most


@dataclass(frozen=True)
class SparseCurvature:
    """Σ h (z, 1) (z, 1)ᵀ of the rows of some blocks, plus a ridge; `+` puts rows under rows."""

    parts: tuple[tuple[Any, Array], ...]  # of each block its rows (n, m) as CSR or None, and h (n,) >= 0
    intercept: bool  # whether a column of ones is the last
    table: tuple[Any, Array] | None = None  # the rows of all blocks (n, d) as CSC, where at hand, and columns (m,)
    ridge: Array | float = 0.0  # (m,)

    def __add__(self, other: SparseCurvature) -> SparseCurvature:
        return replace(self, parts=self.parts + other.parts)

    def with_ridge(self, ridge: Array) -> SparseCurvature:
        """The same with a ridge (m,) or (m + 1,), that of the intercept being 0."""
        return replace(self, ridge=ridge[: len(ridge) - self.intercept])

    def of_table(self, table: Any, picked: Array) -> SparseCurvature:
        """The same with the rows of all blocks (n, d) as CSC, of which these columns (m,) are meant."""
        return replace(self, table=(table, picked))

    @cached_property
    def columns(self) -> RootColumns:
        """The columns of diag(√h) Z, and what the best intercept takes from them."""
        h = np.concatenate([h for _, h in self.parts])
        root = np.sqrt(h)
        Z, picked = self._table()
        indptr, indices, data, squares, totals = root_columns(Z.indptr, Z.indices, Z.data, picked, root)
        totals = totals if self.intercept else np.zeros(len(picked))
        weight = float(h.sum()) if self.intercept else 1.0
        curvatures = squares + self.ridge - totals**2 / weight
        ridge = np.broadcast_to(self.ridge, totals.shape).astype(np.float64)
        return RootColumns(indptr, indices, data, curvatures, totals, weight, ridge)

    def _table(self) -> tuple[Any, Array]:
        """The rows of all blocks as CSC, and which of their columns are meant."""
        if self.table is not None:
            return self.table
        Z = sparse.csc_array(sparse.vstack([Z for Z, _ in self.parts]))
        return Z, np.arange(Z.shape[1])

    def minimise(self, g: Array, lam: Array, x: Array, goals: SweepGoals) -> Array:
        """The x' that minimises g·(x' - x) + ½ |x' - x|²_H + Σ lam |x'| (m,), or (m + 1,) with an intercept."""
        columns, out = self.columns, x.copy()
        m = len(columns.totals)
        slope = g[m] / columns.weight if self.intercept else 0.0
        z = _Sweeps(columns, (g[:m] - slope * columns.totals, lam[:m], x[:m].copy())).run(self._rows, goals)
        out[:m] = z
        if self.intercept:
            out[m] -= slope + float(columns.totals @ (z - x[:m])) / columns.weight
        return out

    @property
    def _rows(self) -> int:
        return sum(len(h) for _, h in self.parts)


@dataclass(frozen=True)
class _Sweeps:
    """Sweeps of coordinate descent, and jumps to where they are heading.

    Sweeps over the coordinates that are not 0 move by ever smaller steps in nearly the same directions. The
    combination of the last points whose moves nearly cancel is far ahead of them (Anderson extrapolation); it is
    taken where the objective is smaller there. Reference: Bertrand & Massias, "Anderson acceleration of coordinate
    descent" (2021).
    """

    columns: RootColumns
    terms: tuple[Array, Array, Array]  # q, lam and start (m,), as in `sweep_columns`
    remembered: int = 6  # sweeps before a jump

    def run(self, n: int, goals: SweepGoals) -> Array:
        """Sweep over all coordinates, over those that are not 0, and so on until no move gains more than the goal."""
        x, v, moved, full = self.terms[2].copy(), np.zeros(n), 0.0, True
        trail: list[tuple[Array, Array]] = []
        goal = -np.inf
        for sweep in range(goals.sweeps):
            largest, moved = sweep_columns(self.columns, self.terms, x, v, moved, full)
            goal = goal if sweep else max(goals.move, goals.first_share * largest)
            if largest <= goal and full:
                break
            trail = [] if full or largest <= goal else [*trail, (x.copy(), v.copy())]
            full = largest <= goal
            if len(trail) == self.remembered:
                (x, v), trail = self._ahead(trail), []
                moved = float(self.columns.totals @ (x - self.terms[2]))
        return x

    def _ahead(self, trail: list[tuple[Array, Array]]) -> tuple[Array, Array]:
        """The combination of these points that moves least, or the last of them if that is better."""
        points, products = (np.array(parts) for parts in zip(*trail, strict=True))
        moves = np.diff(points, axis=0)
        G = moves @ moves.T
        G[np.diag_indices(len(G))] += 1e-12 * np.trace(G)
        try:
            share = np.linalg.solve(G, np.ones(len(G)))
            share /= share.sum()
        except np.linalg.LinAlgError:
            return points[-1], products[-1]
        jump = share @ points[1:], share @ products[1:]
        last = points[-1], products[-1]
        return jump if self._objective(*jump) < self._objective(*last) else last

    def _objective(self, x: Array, v: Array) -> float:
        (q, lam, start), columns = self.terms, self.columns
        d = x - start
        square = v @ v - (columns.totals @ d) ** 2 / columns.weight + columns.ridge @ d**2
        return float(q @ d + 0.5 * square + lam @ np.abs(x))
