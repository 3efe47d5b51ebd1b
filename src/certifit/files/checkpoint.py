"""Checkpoints: where an iterative fit stands, in a file, so that the same call goes on after a program was killed.

A file is a line `certifit-checkpoint FORMAT SHA256`, a line of JSON, and the bytes of arrays one after another; the
hash covers all after the first line. It is replaced as a whole or not at all. It says of which fit it is, and no
other fit goes on from it.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from certifit.exceptions import DataError
from certifit.files.atomic_file import write_atomically
from certifit.rows import Array, Block, Rows
from certifit.rows.sources.regular_file import check_regular

FORMAT = 1


@dataclass(frozen=True)
class CheckpointTuning:
    """How often a fit is written down."""

    seconds: float = 1.0  # from the end of one writing to the next, at least
    share: float = 0.05  # of the time, at most, that is spent on writing


# what comes of reading numbers and arrays that are not what they should be
DAMAGE = (ArithmeticError, AttributeError, EOFError, ImportError, LookupError, MemoryError, RecursionError, TypeError,
          ValueError)  # fmt: skip


def error_words(error: BaseException) -> str:
    """An error's kind and the beginning of what it says."""
    return f"{type(error).__name__}: {error!s:.100}"


class CheckpointContent(NamedTuple):
    """Where a fit stands."""

    numbers: Mapping[str, int]
    arrays: Mapping[str, Array]


class Checkpoint:
    """The file of one fit, which knows the fit by words such as 'data' and 'settings' and a text or hash for each."""

    def __init__(
        self, path: str | os.PathLike[str], fit: Mapping[str, str], tuning: CheckpointTuning = CheckpointTuning()
    ) -> None:
        self.path, self.fit, self.tuning = Path(path), dict(fit), tuning
        self._due = time.monotonic() + tuning.seconds

    @property
    def due(self) -> bool:
        """Whether it is time to write."""
        return time.monotonic() >= self._due

    def write(self, numbers: Mapping[str, int], arrays: Mapping[str, Array]) -> None:
        """Put this in the place of whatever was written before."""
        begin = time.monotonic()
        kept = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
        head = {
            "fit": self.fit,
            "numbers": {name: int(number) for name, number in numbers.items()},
            "arrays": [[name, array.dtype.str, list(array.shape)] for name, array in kept.items()],
        }
        body = b"".join([json.dumps(head).encode(), b"\n", *(array.tobytes() for array in kept.values())])
        write_atomically(
            self.path, f"certifit-checkpoint {FORMAT} {hashlib.sha256(body).hexdigest()}\n".encode() + body
        )
        end = time.monotonic()
        self._due = end + max(self.tuning.seconds, (end - begin) / self.tuning.share)

    def read(self) -> CheckpointContent | None:
        """Where the fit stood when it was last written; None where there is no file. Another fit's is refused."""
        if not self.path.exists():
            return None
        check_regular(self.path)
        content = self.path.read_bytes()
        header = re.match(rb"certifit-checkpoint ([0-9]{1,4}) ([0-9a-f]{64})\n", content)
        if header is None or int(header[1]) != FORMAT:
            self._refuse("which is no checkpoint that this version of certifit reads")
        assert header is not None
        body = content[header.end() :]
        if hashlib.sha256(body).hexdigest() != header[2].decode():
            self._refuse("whose content does not match its checksum: it is damaged or cut short")
        line, _, rest = body.partition(b"\n")
        with self.refusing_damage():
            head = json.loads(line)
            other = [name for name in self.fit if head["fit"].get(name) != self.fit[name]]
            if other:
                self._refuse(f"a checkpoint of a fit with other {' and other '.join(other)}")
            arrays, start = {}, 0
            for name, kind, shape in head["arrays"]:
                dtype = np.dtype(kind)
                end = start + dtype.itemsize * int(np.prod(shape))
                arrays[name] = np.frombuffer(rest[start:end], dtype).reshape(shape).copy()
                start = end
            return CheckpointContent({name: int(number) for name, number in head["numbers"].items()}, arrays)

    @contextmanager
    def refusing_damage(self) -> Iterator[None]:
        """Say in words what goes wrong with contents that no fit writes."""
        try:
            yield
        except DataError:
            raise
        except DAMAGE as error:
            self._refuse(f"a checkpoint with contents that no fit writes ({error_words(error)})")

    def remove(self) -> None:
        """Delete the file: the fit is complete."""
        self.path.unlink(missing_ok=True)

    def _refuse(self, what: str) -> None:
        raise DataError(
            got=f"{str(self.path)!r}, {what}",
            wanted="the checkpoint of this very fit, or no file",
            fix="Make the call that wrote it, or name another file, or delete this one to begin anew.",
        )


def table_digest(rows: Rows) -> str:
    """A hash of all rows, their targets and weights."""
    found = hashlib.sha256(f"{rows.n_rows} {rows.n_features} {rows.dtype}".encode())
    for part in rows.each(_block_digest):
        found.update(part)
    return found.hexdigest()


def arrays_digest(*arrays: Array) -> str:
    """A hash of arrays of numbers."""
    found = hashlib.sha256()
    for array in arrays:
        found.update(f"{array.dtype.str} {array.shape}".encode())
        words = array.dtype == object
        found.update(repr(array.tolist()).encode() if words else np.ascontiguousarray(array).tobytes())
    return found.hexdigest()


def _block_digest(block: Block) -> bytes:
    X: Any = block.X
    parts = [X.data, X.indices, X.indptr] if sparse.issparse(X) else [X]
    return arrays_digest(*parts, np.asarray(block.y), block.w).encode()
