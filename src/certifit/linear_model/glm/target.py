"""Targets with their offset, exposure, trials and clusters, taken apart for a pass, refused where wrong."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from certifit.checkers.plain.response_columns import ResponseLayout
from certifit.exceptions import DataError
from certifit.rows import Array, Block, Matrix


class Response(NamedTuple):
    """One block's rows and targets; rows without weight are left out."""

    X: Matrix  # (rows, d)
    y: Array  # (rows,)
    offset: Array  # (rows,)
    trials: Array  # (rows,)
    clusters: Array | None  # (rows,) a number for each row's cluster
    times: Array  # (rows,) row weights
    w: Array  # (rows,) row weights times trials
    number: Array  # (rows,) number of each row in the table


def take_apart(layout: ResponseLayout, block: Block) -> Response:
    """Split the columns of a block's target and drop rows without weight."""
    assert block.y is not None
    y, n = block.y if block.y.ndim == 1 else block.y[:, 0], len(block.w)
    beside = {name: block.y[:, place] for name, place in layout._asdict().items() if place is not None}
    offset, trials = beside.get("offset", np.zeros(n)), beside.get("trials", np.ones(n))
    exposure = beside.get("exposure")
    w = block.w if "trials" not in beside else block.w * trials
    response = Response(block.X, y, offset, trials, beside.get("clusters"), block.w, w, np.arange(n) + block.start)
    if not w.all():
        used = w != 0
        exposure = None if exposure is None else exposure[used]
        kept: list[Any] = [None if part is None else part[used] for part in response]
        response = Response(*kept)
    if exposure is not None:
        _refuse(exposure <= 0, exposure, response, "exposure", "positive exposures")
        response = response._replace(offset=response.offset + np.log(exposure))
    if "trials" in beside:
        y, trials = response.y, response.trials
        _refuse(trials < 0, trials, response, "number of trials", "at least 0 trials")
        _refuse(y > trials, y, response, "number of successes", "no more successes than trials")
        response = response._replace(y=y / trials)
    return response


def _refuse(bad: Array, values: Array, response: Response, name: str, wanted: str) -> None:
    if bad.any():
        row = int(np.argmax(bad))
        raise DataError(got=f"{name} {values[row]:g} in row {response.number[row]}", wanted=wanted)
