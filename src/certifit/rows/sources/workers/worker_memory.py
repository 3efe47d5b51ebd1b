"""Memory of Dask's workers is used again, as in any other process.

Dask starts workers with MALLOC_TRIM_THRESHOLD_=65536, so that they give memory back soon. In the GNU C library this
also turns off what it otherwise learns by itself: that a program which frees large blocks will want them again. Every
array of more than 128 kB is then mapped and unmapped, and each of its pages is fetched and cleared by the kernel:
passes with temporaries take up to twice as long.
"""

from __future__ import annotations

import ctypes
import os
from functools import cache

TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3  # the C library's numbers of these settings
LARGEST_LEARNT = 32 * 2**20  # bytes: the threshold that the library would at most learn; it keeps twice as many


@cache
def reuse_memory() -> None:
    """Set what the C library would have learnt, where a setting keeps it from learning; once in a process."""
    if "MALLOC_TRIM_THRESHOLD_" not in os.environ:
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if os.name == "posix" else None
    if mallopt is not None:
        mallopt(MMAP_THRESHOLD, LARGEST_LEARNT)
        mallopt(TRIM_THRESHOLD, 2 * LARGEST_LEARNT)
