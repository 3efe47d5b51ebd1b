"""The samples of bagging, worked out from seeds: which rows and columns a member was shown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from certifit.checkers.ensemble.forest.plain_bootstrap import column_order, drawn_counts, mixed
from certifit.rows import Array

COLUMNS = 0xA0761D6478BD642F  # tells the draws of columns from those of rows


@dataclass(frozen=True)
class SamplePlan:
    """How members draw rows and columns."""

    rows: int  # how many rows each draws
    columns: int
    replace: bool  # whether rows are drawn with replacement
    replace_columns: bool
    n_columns: int

    def row_weights(self, seed: int, order: Array, weight: Array) -> Array:
        """How much each row counts for a member (n,): how often it is drawn, or its weight where it is."""
        if self.replace:
            return drawn_counts(seed, self.rows, order, weight).astype(np.float64)
        there = order[weight[order] > 0]
        if self.rows >= len(there):
            return weight
        chosen = there[np.argsort(mixed(seed, np.arange(len(there))), kind="stable")[: self.rows]]
        found = np.zeros(len(weight))
        found[chosen] = weight[chosen]
        return found

    def columns_of(self, seed: int) -> Array:
        """The columns that a member is shown."""
        key = np.uint64(seed) ^ np.uint64(COLUMNS)
        if self.replace_columns:
            return np.asarray(mixed(key, np.arange(self.columns)) % np.uint64(self.n_columns)).astype(np.int64)
        if self.columns == self.n_columns:
            return np.arange(self.n_columns)
        return np.sort(np.array(column_order(key, self.n_columns, self.columns), np.int64))


def sample_plan(model: Any, weight: Array, n_columns: int) -> SamplePlan:
    """What the settings of a model mean for rows of these weights."""
    whole = (weight == np.rint(weight)).all()
    n = float(weight.sum()) if whole and model.bootstrap else float((weight > 0).sum())
    asked = model.max_samples
    if asked is None:
        rows = int(n)
    else:
        rows = int(asked) if isinstance(asked, (int, np.integer)) else max(1, int(asked * n))
    wanted = model.max_features
    columns = int(wanted) if isinstance(wanted, (int, np.integer)) else max(1, int(wanted * n_columns))
    return SamplePlan(rows, columns, bool(model.bootstrap), bool(model.bootstrap_features), n_columns)
