"""Rows that a fit held out to see when to stop: drawn by their numbers, so that an audit finds the same ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from certifit.core import Setting
from certifit.exceptions import DataError
from certifit.rows import Array, ArrayRows, Rows


def validation_rows(n: int, fraction: float, seed: int) -> Array:
    """Which of n rows are held out (n,) bool."""
    return np.random.default_rng(seed).random(n) < fraction


def hold_out(rows: Rows, fraction: float, seed: int) -> tuple[ArrayRows, Array]:
    """The rows with those for validation at weight 0, and which these are."""
    data = rows.load()
    out = validation_rows(data.n_rows, fraction, seed)
    return ArrayRows(data.X, data.y, np.where(out, 0.0, data.w), data.names), out


def without_validation_rows(model: Any, rows: Rows) -> Rows:
    """The rows that a model was fitted on, where it held some out."""
    if getattr(model, "n_iter_no_change", None) is None:
        return rows
    Setting(int, least=0).check("validation_seed_", model.validation_seed_)
    found, _ = hold_out(rows, float(model.validation_fraction), int(model.validation_seed_))
    if not found.w.any():
        raise DataError(got="no rows but those for validation", wanted="the rows that the model was fitted on")
    return found
