"""Random bits that depend on their arguments alone: SplitMix64 (Steele, Lea & Flood 2014).

A counter-based generator has no state: any thread, block or checker that knows a row's number and the seed finds the
same bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from certifit.numerics.compiled.compiling import called_by_loops
from certifit.rows import Array

GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # SplitMix64's step: 2^64 divided by the golden ratio


def finished(z: Any) -> Any:
    """Return SplitMix64's finaliser of 64 bits, or of an array of them: each bit of z changes half of the result."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


_finished = called_by_loops(finished)


@called_by_loops
def random_bits(a, b):
    """Return 64 random bits that depend on two numbers alone."""
    return _finished(np.uint64(a) + GOLDEN * (np.uint64(b) + np.uint64(1)))


def random_bits_of_pairs(a: Any, b: Any) -> Array:
    """Return 64 random bits of each pair of whole numbers, or arrays of them: what the compiled `random_bits` are."""
    first, second = (np.atleast_1d(np.asarray(x)).astype(np.uint64) for x in (a, b))
    return np.asarray(finished(first + GOLDEN * (second + np.uint64(1))))


def random_bits_of(number: Array) -> Array:
    """Return 64 random bits (n,) of each row number: what the compiled `random_bits(0, number)` is."""
    return random_bits_of_pairs(0, number)
