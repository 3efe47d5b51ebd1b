"""What would let a fit that was stopped early reach its tolerance: a warning names the cure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from certifit.core.loop import Mark


@dataclass(frozen=True)
class CureTuning:
    """How many passes are named."""

    fewest: int = 100
    caution: float = 4.0  # times what the gains so far promise: the last digits may come more slowly


def cure(
    settings: Mapping[str, Any],
    attributes: Mapping[str, Any],
    usual: int | None = None,
    tuning: CureTuning = CureTuning(),
) -> str:
    """Return the limit that stopped a fit and a value that would do; empty where no limit was reached.

    `usual` is the estimator's default for max_iter: more than that is named only where that was not enough.

    >>> marks = (Mark(5.0, 1.0, 0.1), Mark(4.0, 0.1, 0.2))
    >>> cure({"max_iter": 1, "tol": 1e-6}, {"n_iter_": 1, "history_": marks})
    'stopped by max_iter=1; about 100 would do'
    >>> cure({"max_iter": 50, "tol": 1e-6}, {"n_iter_": 7, "history_": marks})
    ''
    >>> cure({"max_iter": -1, "tol": 1e-6}, {"n_iter_": 7, "history_": marks})
    ''
    """
    loops = _loops(attributes)
    most, limit = settings.get("max_iter"), settings.get("max_time")
    if limit is not None and _seconds_with_one_more_pass(loops) >= limit:
        return f"stopped by max_time={limit:g}; more time, or None, would do"
    passes = [len(loop) - 1 for loop in loops] or [int(np.max(attributes.get("n_iter_", -1)))]
    if most is None or most < 0 or max(passes) < most:  # below 0: no limit
        return ""
    needed = max((_passes_needed(loop, float(settings.get("tol", 0.0))) for loop in loops), default=0.0)
    enough = _round(max(tuning.fewest, most * 2, needed * tuning.caution))
    if usual is not None and most < usual < enough:
        enough = usual
    return f"stopped by max_iter={most}; about {enough} would do"


def _loops(attributes: Mapping[str, Any]) -> list[Sequence[Mark]]:
    """Return the history of each loop that a fit ran, or the fit of the model inside."""
    history = attributes.get("history_", getattr(attributes.get("model_"), "history_", ()))
    loops = (history,) if history and isinstance(history[0], Mark) else history
    return [loop for loop in loops if len(loop) and isinstance(loop[0], Mark)]


def _seconds_with_one_more_pass(loops: Sequence[Sequence[Mark]]) -> float:
    """Return when one more pass would have ended: loops share a time limit, and may end just before it."""
    marks = [[0.0, *(mark.seconds for mark in loop)] for loop in loops]
    longest = max((end - begin for times in marks for begin, end in pairwise(times)), default=0.0)
    return sum(times[-1] for times in marks) + longest


def _passes_needed(loop: Sequence[Mark], tol: float) -> float:
    """Return how many passes reach the tolerance if every one gains the same share as those so far."""
    gains = [mark.gain for mark in loop if 0 < mark.gain < math.inf]
    if len(gains) < 2 or not 0 < tol < gains[-1] < gains[0]:
        return 10.0 * len(loop)
    return len(loop) * math.log(gains[0] / tol) / math.log(gains[0] / gains[-1])


def _round(number: float) -> int:
    """Return 1, 2 or 5 times a power of ten, at least the number."""
    unit = 10 ** math.floor(math.log10(number))
    return next(times * unit for times in (1, 2, 5, 10) if times * unit >= number)
