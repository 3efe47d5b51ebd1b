"""A run of minibatch training: what it has done so far, and how it is written down and taken up again."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from certifit.exceptions import DataError
from certifit.files.checkpoint import Checkpoint
from certifit.neural_network.training.optimisers import Optimiser
from certifit.neural_network.training.slopes import LossAndWeights
from certifit.rows import Array


@dataclass
class TrainingProgress:
    """How many epochs brought no improvement: of the validation score where there is one, else of the loss."""

    tol: float
    best_loss: float = math.inf
    best_score: float = -math.inf
    best: Array | None = None  # parameters of the best validation score
    without: int = 0

    def note(self, loss: float, score: float | None, params: Array) -> None:
        improved = loss <= self.best_loss - self.tol if score is None else score >= self.best_score + self.tol
        self.without = 0 if improved else self.without + 1
        self.best_loss = min(self.best_loss, loss)
        if score is not None and score > self.best_score:
            self.best_score, self.best = score, params.copy()


@dataclass
class TrainingRun:
    """Everything that the next minibatch depends on, beside rows and settings."""

    optimiser: Optimiser
    progress: TrainingProgress
    losses: list[float] = field(default_factory=list)  # mean loss of every epoch's minibatches
    scores: list[float] = field(default_factory=list)  # of the validation rows, where there are any
    batch: int = 0  # minibatches of the epoch that is under way
    total: float = 0.0  # of their losses
    ended: bool = False
    first: LossAndWeights | None = None  # of the first minibatch in this program

    def write(self, checkpoint: Checkpoint, max_iter: int) -> None:
        """Put where it stands into a file."""
        at, best = self.optimiser, self.progress.best
        numbers = {
            "steps": at.steps, "rows": at.rows, "epochs": at.epochs, "seed": at.seed, "batch": self.batch,
            "without": self.progress.without, "ended": self.ended, "max_iter": max_iter,
        }  # fmt: skip
        arrays = {
            "params": at.params, "mean": at.mean, "square": at.square, "losses": np.array(self.losses),
            "scores": np.array(self.scores), "best": np.zeros(0, at.params.dtype) if best is None else best,
            "now": np.array([at.rate, self.total, self.progress.best_loss, self.progress.best_score]),
        }  # fmt: skip
        checkpoint.write(numbers, arrays)

    def resume(self, checkpoint: Checkpoint, max_iter: int) -> None:
        """Go on from a file, if there is one."""
        found = checkpoint.read()
        if found is None:
            return
        with checkpoint.refusing_damage():
            self._go_on(*found, max_iter)

    def _go_on(self, numbers: Mapping[str, int], arrays: Mapping[str, Array], max_iter: int) -> None:
        self._check_schedule(numbers, max_iter)
        at = self.optimiser
        if any(arrays[name].shape != own.shape for name, own in (("mean", at.mean), ("square", at.square))):
            raise ValueError("moments of other shapes")
        at.params[:] = arrays["params"]
        at.mean[:], at.square[:] = arrays["mean"], arrays["square"]
        at.steps, at.rows, at.epochs, at.seed = (numbers[k] for k in ("steps", "rows", "epochs", "seed"))
        self.losses, self.scores = arrays["losses"].tolist(), arrays["scores"].tolist()
        at.rate, self.total, self.progress.best_loss, self.progress.best_score = arrays["now"].tolist()
        self.progress.best = arrays["best"] if len(arrays["best"]) else None
        self.progress.without, self.batch, self.ended = (
            numbers["without"], numbers["batch"], bool(numbers["ended"]),
        )  # fmt: skip

    def _check_schedule(self, numbers: Any, max_iter: int) -> None:
        """Refuse to go on with another max_iter where the rate depends on it; to end where it stands is allowed."""
        fixed = self.optimiser.rules.schedule not in ("constant", "invscaling", "adaptive")
        if fixed and max_iter != numbers["max_iter"] and numbers["epochs"] < max_iter:
            raise DataError(
                got=f"max_iter={max_iter} for a checkpoint of a fit with max_iter={numbers['max_iter']}",
                wanted=f"the same, or at most the {numbers['epochs']} epochs that it has done, to end there",
                fix=f"learning_rate={self.optimiser.rules.schedule!r} falls over all epochs.",
            )
