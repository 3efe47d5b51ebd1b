"""Rows with holes under Gaussian components, exactly.

With M the missing columns of a row, O the others, e the row less the mean, 0 in its holes, and g = P e, P = C⁻¹:
    e_Oᵀ (C_OO)⁻¹ e_O = eᵀ P e - g_Mᵀ P_MM⁻¹ g_M,     log |C_OO| = log |C| + log |P_MM|,
and given the observed entries, the missing ones less their means are N(-P_MM⁻¹ g_M, P_MM⁻¹). Rows are sorted by their
holes: those with the same share P_MM⁻¹, and blocks of the same size are inverted side by side.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from certifit.mixture.em_loops import add_blocks, complete, less_means, weigh
from certifit.numerics.inverses_loops import invert_blocks
from certifit.rows import Array

LOG_2PI = float(np.log(2 * np.pi))


def by_pattern(X: Array, counts: Array) -> tuple[Array, Array]:
    """The rows that `counts` marks (n,), complete ones first, and those with the same holes side by side.

    And their patterns' numbers (n,), ascending; 0 is that of complete rows.
    """
    words = _words(np.isnan(X))
    holed = words.any(axis=0)
    full, some = np.flatnonzero(counts & ~holed), np.flatnonzero(counts & holed)
    words = words[:, some]
    order = np.lexsort((*words, np.bitwise_count(words).sum(axis=0)))
    number = 1 + np.cumsum(np.append(0, _changes(words[:, order])))
    return np.append(full, some[order]), np.append(np.zeros_like(full), number[: len(some)])


def _words(missing: Array) -> Array:
    """Each row's pattern (n, d) as whole numbers (words, n)."""
    n, d = missing.shape
    bits = np.zeros((n, -(-d // 64) * 64), bool)
    bits[:, :d] = missing
    return np.packbits(bits).view(np.uint64).reshape(n, -1).T


def _changes(words: Array) -> Array:
    """Where one row's pattern is not that of the row before (n - 1,)."""
    return np.asarray((words[:, 1:] != words[:, :-1]).any(axis=0))


class Patterns(NamedTuple):
    """Patterns with the same number q of holes."""

    which: Array  # (patterns,) their numbers among all
    columns: Array  # (patterns, q) that are missing
    rows: Array  # (patterns, 2) the first, and the one after the last


class Holes:
    """The patterns of some rows Z (d, n), of which those with the same lie side by side."""

    def __init__(self, Z: Array) -> None:
        self.X = np.ascontiguousarray(Z.T)
        missing = np.isnan(self.X)
        self.starts = np.append(0, np.flatnonzero(_changes(_words(missing))) + 1)  # of each pattern's rows
        rows = np.stack([self.starts, np.append(self.starts[1:], len(self.X))], axis=1)
        kinds = missing[self.starts]
        sizes = kinds.sum(axis=1)
        self.patterns = []
        for q in np.unique(sizes):
            which = np.flatnonzero(sizes == q)
            columns = np.ascontiguousarray(np.nonzero(kinds[which])[1].reshape(len(which), q))
            self.patterns.append(Patterns(which, columns, rows[which]))


class Filled:
    """Rows with holes under components with means m (k, d) and precisions P (k, d, d)."""

    def __init__(self, holes: Holes, m: Array, P: Array) -> None:
        self.holes, self.P = holes, np.array(P)
        self.E = np.empty((len(m), *holes.X.shape))  # (k, n, d) rows less means
        less_means(holes.X, m, self.E)
        self.blocks = [self._invert(same.columns) for same in holes.patterns]

    def _invert(self, columns: Array) -> tuple[Array, Array]:
        """P_MM⁻¹, packed (patterns, k, q (q + 1) / 2), and log |P_MM| (patterns, k)."""
        (m, q), k = columns.shape, len(self.P)
        inverses, log_det = np.empty((m, k, q * (q + 1) // 2)), np.empty((m, k))
        invert_blocks(self.P, columns, inverses.reshape(m * k, -1), log_det.reshape(-1))
        return inverses, log_det

    def log_densities(self, log_det: Array) -> Array:
        """log f_k of the observed entries (k, n), after which holes hold what is expected there.

        log_det (k,) are those of the covariances.
        """
        G = self.E @ self.P
        squares = np.empty(self.E.shape[:2])
        for same, blocks in zip(self.holes.patterns, self.blocks, strict=True):
            complete(same.columns, same.rows, *blocks, G, self.E, squares)
        squares += (log_det + self.E.shape[2] * LOG_2PI)[:, None]
        squares *= -0.5
        return squares

    def collect(self, R: Array) -> tuple[Array, Array]:
        """Expected sums, less the means, of z (k, d) and of the lower triangles of z zᵀ (k, d, d)."""
        scaled, first = np.empty_like(self.E), np.empty(self.E.shape[::2])
        weigh(self.E, R, scaled, first)
        second = scaled.swapaxes(1, 2) @ self.E
        weights = np.add.reduceat(R, self.holes.starts, axis=1)
        for same, (inverses, _) in zip(self.holes.patterns, self.blocks, strict=True):
            add_blocks(same.columns, inverses, weights.take(same.which, axis=1), second)
        return first, second
