"""Files that are written as a whole or not at all."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any


def write_atomically(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file so that at any moment either the old or the whole new content is there."""
    with open_atomically(path, f"{len(content):,} bytes") as file:
        _write(file, content)


@contextmanager
def open_atomically(path: str | os.PathLike[str], what: str = "all of it") -> Iterator[IO[bytes]]:
    """Open a file that appears, or takes the place of an older one, when it is closed without an error.

    A link is followed; a device or pipe is written to directly. An error leaves nothing behind.
    """
    target = Path(os.path.realpath(path))
    mode = None
    try:
        if target.exists():
            mode = target.stat().st_mode
            if not stat.S_ISREG(mode):
                with open(target, "wb") as file:
                    yield file
                return
        temporary = target.with_name(f".{target.name[:40]}.{secrets.token_hex(4)}.tmp")
        try:
            with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666), "wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
                if mode is not None:
                    os.chmod(temporary, stat.S_IMODE(mode))
            os.replace(temporary, target)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise OSError(
            error.errno or errno.EIO,
            f"could not write {what} ({error.strerror or error}); "
            "nothing was written, and an older file there is as it was",
            os.fspath(path),
        ) from error


def _write(file: Any, content: bytes) -> None:
    file.write(content)
