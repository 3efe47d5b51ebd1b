"""What a convolution's places are pooled by, and how slopes go back through it: compiled.

Each of these is one pass over memory where NumPy needs one for every place of a window. Slabs are (channels, n): the
places of one shift in all windows of all images.
"""

from __future__ import annotations

import numpy as np

from certifit.numerics.compiled.compiling import called_from_python, twin_of
from certifit.rows import Array

NOWHERE = 255  # in place of the number of a slab: a ReLU is off there


@called_from_python
def keep_largest(slabs: Array, biases: Array, clip: bool, largest: Array, where: Array) -> None:
    """Write the largest value of all slabs (places, channels, n) plus its channel's bias, and the first slab with it.

    With `clip` negative results are 0 (ReLU), and their slab is nowhere. What is not a number stays so.
    """
    # One plain pass for each slab, of a channel at a time: these become vector instructions.
    zero = slabs.dtype.type(0)
    for c in range(slabs.shape[1]):
        best, place = largest[c], where[c]
        for i in range(len(best)):
            best[i], place[i] = slabs[0, c, i], 0
        for k in range(1, len(slabs)):
            slab, number = slabs[k, c], np.uint8(k)
            for i in range(len(best)):
                larger = slab[i] > best[i] or slab[i] != slab[i]
                best[i] = slab[i] if larger else best[i]
                place[i] = number if larger else place[i]
        for i in range(len(best)):
            best[i] += biases[c]
        if clip:
            for i in range(len(best)):
                off = best[i] <= zero
                best[i] = zero if off else best[i]
                place[i] = np.uint8(NOWHERE) if off else place[i]


@twin_of(keep_largest)
def _keep_largest_of_arrays(slabs: Array, biases: Array, clip: bool, largest: Array, where: Array) -> None:
    largest[...], where[...] = slabs[0], 0
    for k in range(1, len(slabs)):
        larger = (slabs[k] > largest) | (slabs[k] != slabs[k])
        np.copyto(largest, slabs[k], where=larger)
        where[larger] = k
    largest += biases[:, None]
    if clip:
        off = largest <= 0
        largest[off], where[off] = 0, NOWHERE


@called_from_python
def spread_slopes(slopes: Array, where: Array, slabs: Array) -> None:
    """Write slopes (channels, n) where the largest values were, and zeros elsewhere; those of nowhere become 0."""
    zero = slopes.dtype.type(0)
    for k in range(slabs.shape[0]):
        for c in range(slopes.shape[0]):
            for i in range(slopes.shape[1]):
                slabs[k, c, i] = slopes[c, i] if where[c, i] == k else zero
    for c in range(slopes.shape[0]):
        for i in range(slopes.shape[1]):
            slopes[c, i] = zero if where[c, i] == NOWHERE else slopes[c, i]


@twin_of(spread_slopes)
def _spread_slopes_of_arrays(slopes: Array, where: Array, slabs: Array) -> None:
    for k, slab in enumerate(slabs):
        slab[...] = np.where(where == k, slopes, 0)
    slopes[where == NOWHERE] = 0


@called_from_python
def add_windows(windows: Array, down: int, right: int, images: Array) -> None:
    """Write the sum of windows (channels, a, b, height, width, n), each `down` and `right` of the one before."""
    channels, a, b, height, width, n = windows.shape
    for c in range(channels):
        images[c] = 0
        for i in range(a):
            for j in range(b):
                for y in range(height):
                    for x in range(width):
                        for k in range(n):
                            images[c, y * down + i, x * right + j, k] += windows[c, i, j, y, x, k]


@twin_of(add_windows)
def _add_windows_of_arrays(windows: Array, down: int, right: int, images: Array) -> None:
    _, a, b, height, width, _ = windows.shape
    images[...] = 0
    for i in range(a):
        for j in range(b):
            images[:, i : i + down * height : down, j : j + right * width : right] += windows[:, i, j]
