"""Files that are written as a whole or not at all."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from pathlib import Path
from typing import Any


def write_atomically(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file so that at any moment either the old or the whole new content is there.

    A link is followed; a device or pipe is written to directly. An error leaves nothing behind.
    """
    target = Path(os.path.realpath(path))
    mode = None
    try:
        if target.exists():
            mode = target.stat().st_mode
            if not stat.S_ISREG(mode):
                target.write_bytes(content)
                return
        temporary = target.with_name(f".{target.name[:40]}.{secrets.token_hex(4)}.tmp")
        try:
            with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666), "wb") as file:
                _write(file, content)
                if mode is not None:
                    os.chmod(temporary, stat.S_IMODE(mode))
            os.replace(temporary, target)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise OSError(
            error.errno or errno.EIO,
            f"could not write {len(content):,} bytes ({error.strerror or error}); "
            "nothing was written, and an older file there is as it was",
            os.fspath(path),
        ) from error


def _write(file: Any, content: bytes) -> None:
    file.write(content)
    file.flush()
    os.fsync(file.fileno())
