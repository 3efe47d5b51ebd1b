"""Targets with what stands beside them (offset, exposure, trials, clusters), carried as columns of y."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from certifit.exceptions import DataError
from certifit.rows import Array, Block, Matrix


class Layout(NamedTuple):
    """Which column of the target holds what, where there is more than y itself."""

    offset: int | None = None
    exposure: int | None = None
    trials: int | None = None
    clusters: int | None = None

    @property
    def columns(self) -> int:
        return 1 + sum(place is not None for place in self)


class Response(NamedTuple):
    """One block's rows and targets, taken apart; rows without weight are left out."""

    X: Matrix  # (rows, d)
    y: Array  # (rows,)
    offset: Array  # (rows,)
    trials: Array  # (rows,)
    clusters: Array | None
    times: Array  # (rows,) row weights
    w: Array  # (rows,) row weights times trials
    number: Array  # (rows,) of each row in the table


def take_apart(layout: Layout, block: Block) -> Response:
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


def lay_out(y: Any, beside: dict[str, Any]) -> tuple[Layout, Any]:
    """Targets and what stands beside them as one `y`: names of columns, or arrays side by side."""
    given = {name: value for name, value in beside.items() if value is not None}
    layout = Layout(**{name: place for place, name in enumerate(given, start=1)})
    if not given:
        return layout, y
    columns = list(given.values()) if y is None else [y, *given.values()]
    if len(columns) == 1:
        return layout, columns[0]
    names = [isinstance(column, str) for column in columns]
    if all(names):
        return layout, columns
    if any(names):
        raise DataError(
            got=f"some of y, {', '.join(given)} as names of columns and some as arrays",
            wanted="all of them as names, or all as arrays",
        )
    if any(hasattr(column, "__dask_graph__") for column in columns):
        import dask.array as da

        return layout, da.stack([da.asarray(column) for column in columns], axis=1)
    return layout, np.column_stack([np.asarray(column, dtype=np.float64) for column in columns])
