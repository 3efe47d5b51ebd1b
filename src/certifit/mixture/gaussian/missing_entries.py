"""Rows with missing entries under Gaussian components, exactly.

With M the missing columns of a row, O the observed ones, e the row less the mean, 0 where an entry is missing, and
g = P e, P = C⁻¹:
    e_Oᵀ (C_OO)⁻¹ e_O = eᵀ P e - g_Mᵀ P_MM⁻¹ g_M,     log |C_OO| = log |C| + log |P_MM|,
and given the observed entries, the missing ones less their means are N(-P_MM⁻¹ g_M, P_MM⁻¹). Rows are sorted by their
pattern, the set of columns that they miss: rows of one pattern share P_MM⁻¹, and matrices of patterns that miss the
same number of columns are inverted side by side. Where columns are independent within a component, missing entries
are just left out: the log-density is linear in the features of those that are observed (`observed_features`).

| when               | what                                                                                     |
|--------------------|------------------------------------------------------------------------------------------|
| once a block       | `by_pattern` sorts the rows, so that batches hold whole runs of one pattern               |
| once a batch       | `BatchPatterns` lists its patterns                                                        |
| E step             | `CompletedRows.log_densities` fills missing entries with their conditional means          |
| sums of the E step | `CompletedRows.weighted_sums` adds conditional covariances to the products of full rows   |
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from certifit.mixture.gaussian.gaussian_loops import (
    LOG_2PI,
    add_conditional_covariances,
    complete_rows,
    subtract_means,
    weigh_rows,
)
from certifit.numerics.packed.inverses_loops import invert_blocks
from certifit.rows import Array


def by_pattern(X: Array, counted: Array) -> tuple[Array, Array]:
    """Sort the rows that `counted` (n,) marks: complete ones first, and rows of one pattern side by side.

    Returns their indices and the numbers of their patterns, ascending; 0 is that of complete rows.
    """
    words = _pattern_words(np.isnan(X))
    incomplete = words.any(axis=0)
    full, some = np.flatnonzero(counted & ~incomplete), np.flatnonzero(counted & incomplete)
    words = words[:, some]
    order = np.lexsort((*words, np.bitwise_count(words).sum(axis=0)))
    number = 1 + np.cumsum(np.append(0, _pattern_changes(words[:, order])))
    return np.append(full, some[order]), np.append(np.zeros_like(full), number[: len(some)])


def _pattern_words(missing: Array) -> Array:
    """Pack each row of a mask (n, d) into 64-bit whole numbers (words, n), which sort quickly."""
    n, d = missing.shape
    bits = np.zeros((n, -(-d // 64) * 64), bool)
    bits[:, :d] = missing
    return np.packbits(bits).view(np.uint64).reshape(n, -1).T


def _pattern_changes(words: Array) -> Array:
    """Mark rows whose pattern is not that of the row before (n - 1,)."""
    return np.asarray((words[:, 1:] != words[:, :-1]).any(axis=0))


def incomplete_last(X: Array, counted: Array) -> tuple[Array, Array]:
    """The indices of the rows that `counted` (n,) marks, complete ones first, and whether each is incomplete."""
    incomplete = np.asarray(np.isnan(X).any(axis=1))
    order = np.concatenate([np.flatnonzero(counted & ~incomplete), np.flatnonzero(counted & incomplete)])
    return order, incomplete[order]


def observed_features(Z: Array) -> Array:
    """z², z and 1 of the entries of rows Z (d, n), 0 where an entry is missing (3 d, n)."""
    squares, entries, seen = F = np.empty((3, *Z.shape))
    np.logical_not(np.isnan(Z), out=seen, casting="unsafe")
    np.copyto(entries, Z)
    entries[np.isnan(Z)] = 0.0
    np.multiply(entries, entries, out=squares)
    return F.reshape(-1, Z.shape[1])


class EqualPatterns(NamedTuple):
    """Patterns of a batch that miss the same number q of columns."""

    which: Array  # (patterns,) their numbers among all of the batch
    columns: Array  # (patterns, q) columns that are missing
    rows: Array  # (patterns, 2) the first row, and the one after the last


class BatchPatterns:
    """The patterns of a batch of rows Z (d, n), in which rows of one pattern lie side by side."""

    def __init__(self, Z: Array) -> None:
        self.X = np.ascontiguousarray(Z.T)  # (n, d)
        missing = np.isnan(self.X)
        # the first row of each pattern
        self.starts = np.append(0, np.flatnonzero(_pattern_changes(_pattern_words(missing))) + 1)
        rows = np.stack([self.starts, np.append(self.starts[1:], len(self.X))], axis=1)
        masks = missing[self.starts]
        sizes = masks.sum(axis=1)
        self.by_size: list[EqualPatterns] = []
        for q in np.unique(sizes):
            which = np.flatnonzero(sizes == q)
            columns = np.ascontiguousarray(np.nonzero(masks[which])[1].reshape(len(which), q))
            self.by_size.append(EqualPatterns(which, columns, rows[which]))


class CompletedRows:
    """A batch of rows with missing entries under components with means m (k, d) and precisions P (k, d, d)."""

    def __init__(self, patterns: BatchPatterns, m: Array, P: Array) -> None:
        self.patterns, self.P = patterns, np.array(P)
        self.E = np.empty((len(m), *patterns.X.shape))  # (k, n, d) rows less means
        subtract_means(patterns.X, m, self.E)
        self.inverses = [self._invert(equal.columns) for equal in patterns.by_size]

    def _invert(self, columns: Array) -> tuple[Array, Array]:
        """Return P_MM⁻¹, packed (patterns, k, q (q + 1) / 2), and log |P_MM| (patterns, k)."""
        (m, q), k = columns.shape, len(self.P)
        inverses, log_det = np.empty((m, k, q * (q + 1) // 2)), np.empty((m, k))
        invert_blocks(self.P, columns, inverses.reshape(m * k, -1), log_det.reshape(-1))
        return inverses, log_det

    def log_densities(self, log_det: Array) -> Array:
        """Fill the missing entries of E with conditional means; return log f_k of the observed entries (k, n).

        log_det (k,) are those of the covariances.
        """
        G = self.E @ self.P
        squares = np.empty(self.E.shape[:2])
        for equal, inverses in zip(self.patterns.by_size, self.inverses, strict=True):
            complete_rows(equal.columns, equal.rows, *inverses, G, self.E, squares)
        squares += (log_det + self.E.shape[2] * LOG_2PI)[:, None]
        squares *= -0.5
        return squares

    def weighted_sums(self, R: Array) -> tuple[Array, Array]:
        """Return the expected Σ r e (k, d) and the lower triangles of the expected Σ r e eᵀ (k, d, d)."""
        scaled, first = np.empty_like(self.E), np.empty(self.E.shape[::2])
        weigh_rows(self.E, R, scaled, first)
        second = scaled.swapaxes(1, 2) @ self.E
        weights = np.add.reduceat(R, self.patterns.starts, axis=1)
        for equal, (inverses, _) in zip(self.patterns.by_size, self.inverses, strict=True):
            add_conditional_covariances(equal.columns, inverses, weights.take(equal.which, axis=1), second)
        return first, second
