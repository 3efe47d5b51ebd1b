"""How many different values there are, from their hashes: exactly up to a limit, and estimated beyond it.

The k smallest hashes of what was seen are kept. They depend on the set of values alone, not on how often these occur
or on how rows are cut into blocks. Where there are fewer than k, they are counted; where the k-th smallest is the
share u of all hashes there could be, there are about (k - 1) / u values, with a relative error of 1/√k (Bar-Yossef
et al., Counting distinct elements in a data stream, 2002).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from certifit.rows import Array


@dataclass(frozen=True)
class DistinctTuning:
    """How many hashes are kept, and when an estimate says that all values are different."""

    kept: int = 2**16  # so many different values are counted exactly
    standard_errors: float = 4.0  # an estimate so close to the number of rows says that all are different


class DistinctValues:
    """The smallest hashes of the values of a column."""

    def __init__(self, tuning: DistinctTuning = DistinctTuning()) -> None:
        self.tuning = tuning
        self.hashes = np.zeros(0, dtype=np.uint64)  # ascending, at most so many as are kept
        self.pending: list[Array] = []  # not yet among them
        self.limit = np.uint64(2**64 - 1)  # a larger hash is not among the smallest

    def add(self, hashes: Array) -> None:
        """Take notice of values with these hashes (n,)."""
        self.pending.append(_different(hashes[hashes <= self.limit]))
        if sum(map(len, self.pending)) > self.tuning.kept:
            self._settle()

    def merge(self, other: DistinctValues) -> None:
        """Take notice of all that another has seen."""
        self.pending += [other.hashes, *other.pending]
        self._settle()

    def _settle(self) -> None:
        self.hashes = _different(np.concatenate([self.hashes, *self.pending]))[: self.tuning.kept]
        self.pending = []
        if len(self.hashes) == self.tuning.kept:
            self.limit = self.hashes[-1]

    def count(self, observed: int) -> int:
        """The number of different values among so many; where it is estimated, to three digits.

        >>> found = DistinctValues()
        >>> found.add(hashed_numbers(np.arange(500.0) % 40))
        >>> found.count(500)
        40
        """
        self._settle()
        kept = self.tuning.kept
        if len(self.hashes) < kept:
            return len(self.hashes)
        about = (kept - 1) / ((float(self.hashes[-1]) + 1) / 2.0**64)
        if about >= (1 - self.tuning.standard_errors / np.sqrt(kept)) * observed:
            return observed
        return int(float(f"{about:.3g}"))


def _different(hashes: Array) -> Array:
    """Different numbers, ascending: sorting is faster than NumPy's own way where most of them differ."""
    hashes = np.sort(hashes)
    return hashes[np.append(True, hashes[1:] != hashes[:-1])] if len(hashes) else hashes


def hashed_numbers(x: Array) -> Array:
    """A hash (n,) of each number; 0 and -0 have the same."""
    return mixed_bits((np.asarray(x, dtype=np.float64) + 0.0).view(np.uint64))


def hashed_texts(text: pa.Array) -> Array:
    """A hash (n,) of each text: a sum over its bytes, each times a number drawn for its place.

    >>> a, b, c = hashed_texts(pa.array(["ab", "ba", "ab"]))
    >>> bool(a == c != b)
    True
    """
    text = text.cast(pa.large_string())
    buffers = text.buffers()
    ends = np.frombuffer(buffers[1], dtype=np.int64)[text.offset : text.offset + len(text) + 1]
    lengths = np.diff(ends)
    letters = np.frombuffer(buffers[2] or b"", dtype=np.uint8)[ends[0] : ends[-1]] if len(text) else np.zeros(0)
    first = np.repeat(ends[:-1] - ends[0], lengths)
    places = np.arange(len(letters)) - first
    factors = mixed_bits(np.arange(1, int(lengths.max(initial=0)) + 1, dtype=np.uint64)) | np.uint64(1)
    terms = (letters.astype(np.uint64) + np.uint64(1)) * factors[places]
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(terms, dtype=np.uint64)])
    whole = ends - ends[0]
    return mixed_bits(sums[whole[1:]] - sums[whole[:-1]] + lengths.astype(np.uint64))


def mixed_bits(bits: Array) -> Array:
    """Whole numbers (n,) of 64 bits, each bit of which depends on all bits (Steele, Lea & Flood's splitmix64)."""
    bits = bits + np.uint64(0x9E3779B97F4A7C15)
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))
