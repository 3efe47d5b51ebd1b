"""Losses of additive scores, as boosting takes them: by name, with the shapes that its compiled loops know.

Their formulas, with conjugates, are tabled in `checkers.ensemble.score_losses`, whose plain form serves the fits too
wherever a whole array is measured at once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from certifit.checkers.ensemble.score_losses import PlainScoreLoss, plain_score_loss
from certifit.losses.scores.score_slope_loops import CLIPPED, EXPONENTIAL, GAMMA, LOGISTIC, POISSON, SIGNS, SQUARES
from certifit.rows import Array

KINDS = {
    "squared_error": SQUARES, "absolute_error": SIGNS, "quantile": SIGNS, "huber": CLIPPED, "poisson": POISSON,
    "gamma": GAMMA, "log_loss": LOGISTIC, "exponential": EXPONENTIAL,
}  # fmt: skip
FLAT = ("squared_error", "absolute_error", "quantile", "quantiles", "huber")  # every row's curvature is its weight


@dataclass(frozen=True)
class ScoreLoss:
    """A loss by its name, with the α of a quantile, those of several quantiles, or the δ of Huber's loss."""

    name: str
    parameter: float | tuple[float, ...] | None = None

    @property
    def plain(self) -> PlainScoreLoss:
        return plain_score_loss(self.name, self.parameter)

    def scores(self, classes: int = 0) -> int:
        """How many scores a row has."""
        if isinstance(self.parameter, tuple):
            return len(self.parameter)
        return classes if self.name == "multinomial" else 1

    def alpha(self, k: int = 0) -> float:
        """The level of the quantile that score k estimates."""
        if isinstance(self.parameter, tuple):
            return self.parameter[k]
        return 0.5 if self.parameter is None else self.parameter

    def kernel(self, k: int = 0) -> tuple[int, Array]:
        """What the loops over rows know of score k: its kind, and the slopes of quantiles and of Huber's loss."""
        if self.name == "huber":
            return CLIPPED, np.array([-self.alpha(), self.alpha()])
        alpha = self.alpha(k)
        slopes = np.array([-1.0, 1.0] if self.name == "absolute_error" else [-alpha, 1 - alpha])
        return KINDS["quantile" if self.name == "quantiles" else self.name], slopes
