"""A few rows drawn at random from many in one pass: those whose numbers have the smallest hashes.

Which rows are drawn depends on their numbers and the seed alone, so that a second pass draws the same.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from certifit.rows import Array
from certifit.table.learning.distinct_values import mixed_bits


class RowSample:
    """At most `most` rows of a table."""

    def __init__(self, most: int, seed: int) -> None:
        self.most, self.seed = most, seed
        self.limit = np.uint64(2**64 - 1)  # of the hash of a row that may still be drawn
        self.keys: list[Array] = []
        self.numbers: list[Array] = []
        self.tables: list[pa.Table] = []

    def add(self, table: pa.Table, numbers: Array) -> None:
        """Draw from rows with these numbers (n,)."""
        keys = mixed_bits(mixed_bits(numbers.astype(np.uint64)) + np.uint64(self.seed))
        drawn = keys <= self.limit
        if self.most and drawn.any():
            self._hold(keys[drawn], numbers[drawn], table.filter(drawn))

    def merge(self, other: RowSample) -> None:
        """Draw from all rows that another has drawn from."""
        if other.tables:
            self._hold(np.concatenate(other.keys), np.concatenate(other.numbers), pa.concat_tables(other.tables))

    def _hold(self, keys: Array, numbers: Array, table: pa.Table) -> None:
        self.keys.append(keys)
        self.numbers.append(numbers)
        self.tables.append(table)
        if sum(map(len, self.keys)) > 2 * self.most:
            self._settle()

    def _settle(self) -> None:
        """Keep the rows of the smallest hashes, in the order of their numbers."""
        keys, numbers = np.concatenate(self.keys), np.concatenate(self.numbers)
        chosen = np.argsort(keys, kind="stable")[: self.most]
        chosen = chosen[np.argsort(numbers[chosen], kind="stable")]
        self.keys, self.numbers = [keys[chosen]], [numbers[chosen]]
        self.tables = [pa.concat_tables(self.tables).take(chosen)]
        if len(chosen) == self.most:
            self.limit = self.keys[0].max()

    def drawn(self) -> tuple[pa.Table, Array]:
        """The rows that were drawn, in their order, and their numbers."""
        self._settle()
        return self.tables[0].combine_chunks(), self.numbers[0]


def frequent(labels: Array, fewest: int = 5) -> Array:
    """(n,) whether the class of a row has at least so many rows; all of them where fewer than two classes have.

    >>> frequent(np.array(["a", "a", "b", "c", "c"]), 2)
    array([ True,  True, False,  True,  True])
    """
    classes, code, counts = np.unique(labels, return_inverse=True, return_counts=True)
    many = counts >= fewest
    return many[code] if many.sum() >= min(2, len(classes)) else np.ones(len(labels), dtype=bool)
