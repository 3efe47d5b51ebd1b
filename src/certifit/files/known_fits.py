"""By what a fit is known when it goes on from a checkpoint: its model, its settings and its rows."""

from __future__ import annotations

import secrets
from importlib.metadata import version
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from certifit.exceptions import DataError
from certifit.files.checkpoint import arrays_digest, table_digest
from certifit.rows.rows import Rows

# settings with which a fit goes further, or says more, but no other way
FREE = ("checkpoint", "max_iter", "max_time", "n_jobs", "verbose")


def fit_in_words(estimator: BaseEstimator, rows: Rows) -> dict[str, str]:
    """A word or hash for all that decides a fit."""
    settings = {name: value for name, value in estimator.get_params().items() if name.split("__")[-1] not in FREE}
    for name, value in settings.items():
        if isinstance(value, (np.random.RandomState, np.random.Generator)):
            raise DataError(
                got=f"checkpoint with a generator as {name}",
                wanted="a generator that can be made again",
                fix=f"{name}=0, say, or None.",
            )
    return {
        "model": type(estimator).__name__,
        "version": ", ".join(f"{name} {version(name)}" for name in ("certifit", "numpy", "scipy")),
        "rows": table_digest(rows),
        **{name: _in_words(value) for name, value in settings.items()},
    }


def fresh_seed() -> int:
    """A whole number that nobody can foresee."""
    return secrets.randbits(31)


def _in_words(value: Any) -> str:
    """A text that is the same in every program."""
    if isinstance(value, np.ndarray):
        return arrays_digest(value)
    if isinstance(value, BaseEstimator):
        return type(value).__name__  # its settings stand by themselves
    if callable(value):
        return getattr(value, "__qualname__", type(value).__name__)
    return repr(value)
