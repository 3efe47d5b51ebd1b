"""How much memory there is left."""

from __future__ import annotations

import os
from pathlib import Path


def available_bytes() -> float:
    """Memory that a process can still have, by the system and by the limit of its container."""
    found = [float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))] if hasattr(os, "sysconf") else []
    for line in _lines(Path("/proc/meminfo")):
        if line.startswith("MemAvailable:"):
            found.append(float(line.split()[1]) * 1024)
    limit, used = (_lines(Path("/sys/fs/cgroup") / name) for name in ("memory.max", "memory.current"))
    if limit and used and limit[0].isdigit():
        found.append(float(limit[0]) - float(used[0]))
    return max(min(found, default=float("inf")), 0.0)


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except OSError:
        return []
