"""What a calibration says, group by group: rows, radius, and how many new rows are covered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import beta

from certifit.checkers.model_selection.conformal import smallest_rank
from certifit.core import Certificate
from certifit.model_selection.result_table import ResultTable, TabledResult
from certifit.rows import Array


@dataclass(frozen=True, repr=False)
class CalibrationSummary(TabledResult):
    """Calibration scores by group with their radius; prints as a table, and plots their distribution."""

    picture = "plot_calibration_scores"

    model: str
    scores: Mapping[Any, Array]  # by group; None where there are no groups
    radius: Mapping[Any, float]  # empty for folds
    coverage: float
    confidence: float  # of the coverage of this very model
    certificate: Certificate

    def table(self) -> ResultTable:
        """Return a line for each group: the coverage on average, and that of this very model by the Beta law."""
        columns: dict[str, list[Any]] = {
            name: [] for name in ("group", "rows", "radius", "on average", "this model, at least")
        }
        for group, values in self.scores.items():
            n = len(values)
            k = smallest_rank(n, self.coverage)
            known = group in self.radius
            line = (
                "all" if group is None else str(group), n, self.radius[group] if known else np.nan, k / (n + 1),
                float(beta.ppf(1 - self.confidence, k, n + 1 - k)) if known else np.nan,
            )  # fmt: skip
            for name, value in zip(columns, line, strict=True):
                columns[name].append(value)
        note = f"{self.certificate.claim}; this model with {100 * self.confidence:g} % confidence"
        if not self.radius:
            note = f"{self.certificate.claim}; folds have no radius: every calibration row votes"
        return ResultTable(f"{self.model}, coverage {100 * self.coverage:g} %", columns, (note,))
