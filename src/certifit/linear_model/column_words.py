"""Columns in words: which ones a message is about, in no more words than one reads."""

from __future__ import annotations

import numpy as np

from certifit.core import Certificate
from certifit.rows import Array, Rows


def column_words(rows: Rows, numbers: Array, most: int = 10) -> str:
    """These columns by name, or by number where the table has no names; of many the first."""
    names = [f"column {j}" if rows.names is None else repr(_short(str(rows.names[j]))) for j in numbers[:most]]
    return ", ".join(names) + (f" and {len(numbers) - most} more" if len(numbers) > most else "")


def _short(name: str, most: int = 24) -> str:
    return name if len(name) <= most else f"{name[: most - 1]}…"


def moving_columns(certificate: Certificate, rows: Rows, most: int = 4) -> str:
    """The columns whose coefficients move along the direction that proves that there is no maximum."""
    direction = np.array(certificate.witness)[:, : rows.n_features]
    moving = np.flatnonzero((direction != 0).any(axis=0))
    return column_words(rows, moving, most) if len(moving) else "the intercept"
