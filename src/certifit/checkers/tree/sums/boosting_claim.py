"""What a boosting of another library says it has done in every stage."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from certifit.checkers.ensemble.score_losses import PlainScoreLoss, plain_score_loss
from certifit.rows import Array


@dataclass(frozen=True)
class BoostingSettings:
    """The loss, and how leaves get their values: ν times -G / (H + λ), G and H the sums of slopes and curvatures."""

    loss: str
    parameter: float | None  # the α of a quantile, or the δ of Huber's loss
    learning_rate: float  # ν
    l2: float = 0.0  # λ
    l1: float = 0.0  # by which |G| is lowered
    factor: float = 1.0  # of the curvature
    leaf_rows: int = 1  # fewest of a leaf
    leaf_mass: float = 0.0  # least Σ w φ" of a leaf
    longest: float = math.inf  # step of a leaf, before the learning rate
    positive_weight: float = 1.0  # of rows of the second class, but for the best constant before the first tree
    counts_all: bool = False  # whether rows of weight 0 are counted in leaves
    scores: int = 1
    directions: Array | None = None  # (d,) -1, 0 or 1
    from_average: bool = False  # whether the leaves of the first tree hold the best constant too
    unfollowed: str = ""  # settings by which leaves have other values
    digits: float = 1e-5  # relative, that single precision leaves of a stage's slopes

    @property
    def plain(self) -> PlainScoreLoss:
        return plain_score_loss(self.loss, self.parameter)

    @property
    def reason(self) -> str:
        """Why the values of leaves are not checked; empty where they are."""
        if self.unfollowed:
            return f"{self.unfollowed} as set"
        if not self.plain.smooth:
            return "leaves that are quantiles"
        return "leaves held in order by monotone columns" if self.directions is not None else ""

    def steps(self, G: Array, H: Array) -> Array:
        """What leaves with these sums add to the scores."""
        G = np.sign(G) * np.maximum(np.abs(G) - self.l1, 0.0)
        full = -G / np.where(self.factor * H + self.l2 > 0, self.factor * H + self.l2, np.inf)
        return self.learning_rate * np.clip(full, -self.longest, self.longest)

    def gains(self, G: Array, H: Array) -> Array:
        """G² / (H + λ): what a node with these sums gains."""
        return np.maximum(np.abs(G) - self.l1, 0.0) ** 2 / np.maximum(self.factor * H + self.l2, 1e-300)
