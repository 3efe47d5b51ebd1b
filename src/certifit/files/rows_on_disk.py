"""Arrays larger than memory: written once, a few rows at a time, to temporary files, and read in any order.

The files have no name, so that nothing is left of them whatever ends the program.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from contextlib import ExitStack
from typing import IO, Any

import numpy as np

from certifit.exceptions import DataError
from certifit.rows import Array


def arrays_on_disk(parts: Iterable[tuple[Array, ...]]) -> tuple[Array, ...]:
    """Write several arrays, some rows of each at a time, and return them as read-only memory maps.

    >>> pieces = ((np.full((2, 3), k), np.full(2, -k)) for k in range(3))
    >>> X, y = arrays_on_disk(pieces)
    >>> X.shape, y.tolist()
    ((6, 3), [0, 0, -1, -1, -2, -2])
    """
    with ExitStack() as stack:
        files: list[IO[bytes]] = []
        kinds: list[tuple[np.dtype[Any], tuple[int, ...]]] = []
        rows = 0
        for arrays in parts:
            if not files:
                files = [stack.enter_context(tempfile.TemporaryFile(prefix="certifit-")) for _ in arrays]
                kinds = [(array.dtype, array.shape[1:]) for array in arrays]
            _write(files, arrays)
            rows += len(arrays[0])
        if not rows:
            raise DataError(got="no rows to keep", wanted="at least one row with a positive weight")
        return tuple(
            np.memmap(file, dtype, "r", shape=(rows, *shape))
            for file, (dtype, shape) in zip(files, kinds, strict=True)
        )


def _write(files: list[IO[bytes]], arrays: tuple[Array, ...]) -> None:
    try:
        for file, array in zip(files, arrays, strict=True):
            file.write(np.ascontiguousarray(array).data)
            file.flush()
    except OSError as error:
        raise DataError(
            got=f"a temporary directory {tempfile.gettempdir()!r} that cannot hold the rows ({error})",
            wanted="room for the columns in use",
            fix="Set TMPDIR to a larger disk.",
        ) from error
