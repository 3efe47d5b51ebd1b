"""Whether the machine is quiet enough to measure on, and what changed since the last record."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path
from typing import Any

HISTORY = Path(__file__).parent / "history"
MOST_BUSY = 0.05  # share of the machine that other programs may use


def busy_share(seconds: float = 2.0) -> float:
    """The share of all cores that programs use, while this one waits."""
    before, _ = _ticks(), time.sleep(seconds)
    after = _ticks()
    total = sum(after) - sum(before)
    idle = sum(after[3:5]) - sum(before[3:5])  # idle, and waiting for a disk
    return 1.0 - idle / total if total else 0.0


def _ticks() -> list[int]:
    stat = Path("/proc/stat")
    return [int(word) for word in stat.read_text().split("\n")[0].split()[1:9]] if stat.exists() else [0] * 8


def keep_record(result: dict[str, Any], folder: Path = HISTORY) -> str:
    """Append the cases of a full run to the benchmark's history; return what changed since the run before."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{result['name']}.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    cases = {
        case["name"]: {name: case[name] for name in ("ours", "best_peer", "best_peer_median", "ratio")}
        for case in result.get("cases", ())
    }
    record = {
        "date": result["machine"]["date"], "cpu": result["machine"]["cpu"], "commit": _commit(),
        "versions": result["versions"], "cases": cases,
    }  # fmt: skip
    path.write_text("\n".join([*lines, json.dumps(record)]) + "\n")
    return changes(json.loads(lines[-1]), record) if lines else "this is the first record"


def changes(before: dict[str, Any], now: dict[str, Any]) -> str:
    """The ratios of all cases, then and now.

    >>> then, now = ({"date": "2026-11-16", "commit": "abc", "cases": {"all": {"ratio": r}}} for r in (0.5, 0.4))
    >>> changes(then, now)
    'since 2026-11-16 (abc): all 0.5 -> 0.4'
    """
    told = [
        f"{name} {before['cases'][name]['ratio']:.3g} -> {case['ratio']:.3g}"
        for name, case in now["cases"].items()
        if case["ratio"] is not None and (before["cases"].get(name) or {}).get("ratio") is not None
    ]
    return f"since {before['date'][:10]} ({before['commit']}): {', '.join(told) or 'no case in common'}"


def _commit() -> str:
    try:
        return subprocess.run(
            ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True, cwd=HISTORY.parent
        ).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
