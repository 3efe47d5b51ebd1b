"""What missing entries cost: one step of a method on rows with missing entries, beside one on complete rows."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from benchmarks.datasets import Array
from benchmarks.harness import NOISY, Options, timed
from benchmarks.reporting import Report, Table, as_number, as_percent, as_seconds, say

TARGET = 8.0  # times the complete step, 10 % missing at random


def with_missing(X: Array, columns: int) -> dict[str, Array]:
    """The same rows with more and more missing; a third of the rows may lack their first columns."""
    return {
        "complete": X,
        f"a third of the rows without their first {columns} columns": cut(X, columns),
        "1 % missing at random": scatter_missing(X, 0.01),
        "10 % missing at random": scatter_missing(X, 0.1),
        "50 % missing at random": scatter_missing(X, 0.5),
    }


def scatter_missing(X: Array, share: float) -> Array:
    return np.where(np.random.default_rng(0).random(X.shape) < share, np.nan, X)


def cut(X: Array, columns: int) -> Array:
    """The same missing entries in every third row: two patterns in all."""
    out = X.copy()
    out[::3, :columns] = np.nan
    return out


def cost_of_missing(title: str, what: str, steps: Mapping[str, Callable[[], Any]], options: Options) -> Report:
    """Time the steps in turn; they are named as in `with_missing`."""
    seconds: dict[str, list[float]] = {name: [] for name in steps}
    others = 0.0
    for turn in range(options.repeat + 1):
        say(f"round {turn} of {options.repeat}")
        for name, step in steps.items():
            _, taken, foreign = timed(step)
            if turn:  # the first calls compile
                seconds[name].append(taken)
                others += foreign
    busy = max(0.0, others / (2 * sum(map(sum, seconds.values()))))  # ticks may count less than was used
    medians = {name: statistics.median(times) for name, times in seconds.items()}
    ratios = {name: median / medians["complete"] for name, median in medians.items()}
    asked = ratios["10 % missing at random"]
    rows = [
        [name, as_seconds(medians[name]), f"{as_seconds(min(s))} – {as_seconds(max(s))}", as_number(ratios[name])]
        for name, s in seconds.items()
    ]
    note = (
        f"10 % missing at random: **{as_number(asked)} times** the complete step; target {TARGET:g}: "
        f"{'met' if asked <= TARGET else 'missed'}; others used {as_percent(busy)} of the processors"
        f"{' — **noisy, do not trust**' if busy > NOISY else ''}."
    )
    table = Table(what, ["rows", "median", "min – max", "of complete"], rows, note)
    return Report(title, [table], {"seconds": seconds, "ratios": ratios, "target": TARGET, "cpu_of_others": busy})
