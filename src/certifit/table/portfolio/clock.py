"""A budget of time: how much is left, and how it is written."""

from __future__ import annotations

import math
import re
import time

from certifit.exceptions import DataError

_SECONDS = {"": 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}


class Clock:
    """Counts down from so many seconds; None never runs out, as a run that is replayed must not look at the time."""

    def __init__(self, seconds: float | None) -> None:
        self.end = math.inf if seconds is None else time.monotonic() + seconds

    def left(self) -> float:
        """Seconds until the end, below 0 after it."""
        return self.end - time.monotonic()


def read_budget(words: str | float) -> float:
    """Seconds of a budget such as 90, '60s', '2m' or '1h'.

    >>> read_budget("60s"), read_budget("1.5m"), read_budget(5)
    (60.0, 90.0, 5.0)
    """
    found = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]*)?)\s*([a-z]*)\s*", str(words).lower())
    if found is None or found[2] not in _SECONDS or not math.isfinite(float(found[1])):
        raise DataError(
            got=f"a budget of {words!r}", wanted="seconds, minutes or hours", fix="60s, 2m or 1h, for instance."
        )
    return float(found[1]) * _SECONDS[found[2]]
