"""What a pass through a network works with: random numbers while training, and memory that it uses again."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import DTypeLike

from certifit.rows import Array


class Workspace:
    """Random numbers and arrays for the layers of a pass.

    Every minibatch asks for the same arrays in the same order. With `reuse` each gets the memory that the minibatch
    before it had, because fresh pages of memory take longer than the arithmetic of a convolution.
    """

    def __init__(self, reuse: bool = False) -> None:
        self.draw: np.random.Generator | None = None  # there while the network is trained
        self.w: Array | None = None  # weights of the rows; None where all have the same
        self._reuse = reuse
        self._arrays: list[Array] = []  # flat
        self._next = 0
        self._zeros = np.zeros(0)

    def begin(self, draw: np.random.Generator | None = None) -> Workspace:
        """Start a pass: whatever the last one had may be overwritten."""
        self.draw, self.w, self._next = draw, None, 0
        return self

    def array(self, shape: tuple[int, ...], dtype: DTypeLike) -> Array:
        """An array of any content."""
        if not self._reuse:
            return np.empty(shape, dtype)
        size, k = math.prod(shape), self._next
        self._next += 1
        if k == len(self._arrays):
            self._arrays.append(np.empty(size, dtype))
        elif self._arrays[k].size < size or self._arrays[k].dtype != dtype:
            self._arrays[k] = np.empty(size, dtype)
        return self._arrays[k][:size].reshape(shape)

    def zeros(self, shape: tuple[int, ...], dtype: DTypeLike) -> Array:
        """Zeros to compare with, which nobody writes to: NumPy compares arrays faster than with a number."""
        size = math.prod(shape)
        if self._zeros.size < size or self._zeros.dtype != dtype:
            self._zeros = np.zeros(size, dtype)
        return self._zeros[:size].reshape(shape)
