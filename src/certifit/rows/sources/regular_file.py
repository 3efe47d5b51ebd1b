"""Refuses what is no file before it is opened: a pipe or a device may give bytes for ever, or none."""

from __future__ import annotations

import os
import stat

from certifit.exceptions import DataError

KINDS = {
    stat.S_IFIFO: "a pipe",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
    stat.S_IFDIR: "a directory",
}


def check_regular(path: str | os.PathLike[str]) -> os.stat_result:
    """Refuse a pipe, a device or a directory; gives the state of a file. A link counts as what it leads to."""
    state = os.stat(path)
    if not stat.S_ISREG(state.st_mode):
        raise DataError(
            got=f"{os.fspath(path)!r}, which is {KINDS.get(stat.S_IFMT(state.st_mode), 'no file')}",
            wanted="a file, which can be read again and has an end",
            fix="Copy what it gives to a file first.",
        )
    return state
