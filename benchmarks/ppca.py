"""What holes cost: one EM step of probabilistic PCA on rows with missing entries, beside one on complete rows."""

from __future__ import annotations

import statistics
from functools import partial

import numpy as np

from benchmarks.datasets import Array, mnist
from benchmarks.harness import NOISY, Options, timed
from benchmarks.reporting import Report, Table, as_number, as_percent, as_seconds, say
from certifit.core import Rows, as_rows
from certifit.models.ppca_em import measure, update
from certifit.models.ppca_rows import Point
from certifit.models.ppca_start import variances

COMPONENTS = 50
TARGET = 8.0  # times the complete step, 10 % missing at random


def ppca_holes(title: str, options: Options) -> Report:
    X, _, words = mnist(options)
    at = variances(as_rows(X), COMPONENTS).point(COMPONENTS)
    tables = {
        "complete": X,
        "a third of the rows without their first 100 columns": cut(X),
        "1 % missing at random": scatter_holes(X, 0.01),
        "10 % missing at random": scatter_holes(X, 0.1),
        "50 % missing at random": scatter_holes(X, 0.5),
    }
    steps = {name: partial(one_step, as_rows(data, holes=True), at) for name, data in tables.items()}
    seconds: dict[str, list[float]] = {name: [] for name in steps}
    others = 0.0
    for turn in range(options.repeat + 1):
        say(f"round {turn} of {options.repeat}")
        for name, step in steps.items():
            _, taken, foreign = timed(step)
            if turn:  # the first calls compile
                seconds[name].append(taken)
                others += foreign
    busy = others / (2 * sum(map(sum, seconds.values())))
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
    table = Table(
        f"one EM step, {words}, {COMPONENTS} components", ["rows", "median", "min – max", "of complete"], rows, note
    )
    return Report(title, [table], {"seconds": seconds, "ratios": ratios, "target": TARGET, "cpu_of_others": busy})


def one_step(rows: Rows, at: Point) -> float:
    """Negative log-likelihood a row, from one E step and one M step."""
    return update(float(rows.n_rows), at, measure(rows, at)).objective


def scatter_holes(X: Array, share: float) -> Array:
    return np.where(np.random.default_rng(0).random(X.shape) < share, np.nan, X)


def cut(X: Array) -> Array:
    """The same holes in every third row: two patterns in all."""
    out = X.copy()
    out[::3, :100] = np.nan
    return out
