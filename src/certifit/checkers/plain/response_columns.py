"""Targets of generalised linear models with their offset, exposure, trials and clusters.

They travel as columns of one `y`; a *layout* says which column holds what. The solver and the checker use the same
layout, and each takes the columns apart by itself.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from certifit.exceptions import DataError
from certifit.rows import Array, Block
from certifit.rows.named_columns import side_by_side


class ResponseLayout(NamedTuple):
    """Number of the target's column that holds what; None where it was not given. Column 0 is y itself."""

    offset: int | None = None
    exposure: int | None = None
    trials: int | None = None
    clusters: int | None = None

    @property
    def columns(self) -> int:
        return 1 + sum(place is not None for place in self)


def lay_out(y: Any, beside: dict[str, Any]) -> tuple[ResponseLayout, Any]:
    """Put targets, offset, exposure, trials and clusters into one `y`: names of columns, or arrays side by side."""
    given = {name: value for name, value in beside.items() if value is not None}
    layout = ResponseLayout(**{name: place for place, name in enumerate(given, start=1)})
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
    return layout, side_by_side(columns)


def response_columns(layout: ResponseLayout, block: Block) -> tuple[Array, Array, Array]:
    """Targets, offsets (with log exposures) and row weights (times trials) of a block, each (rows,)."""
    Y = np.asarray(block.y, dtype=np.float64)
    Y = Y[:, None] if Y.ndim == 1 else Y
    y, w, offset = Y[:, 0], block.w, np.zeros(len(Y))
    if layout.offset is not None:
        offset = offset + Y[:, layout.offset]
    if layout.exposure is not None:
        with np.errstate(divide="ignore", invalid="ignore"):  # of rows without weight
            offset = offset + np.log(Y[:, layout.exposure])
    if layout.trials is not None:
        trials = Y[:, layout.trials]
        y, w = y / np.where(trials > 0, trials, 1.0), w * trials
    return y, offset, w
