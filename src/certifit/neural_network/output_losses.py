"""What a network's scores mean: the loss of each row, its slope in the scores, and the answers made of them.

With these pairs of loss and answer the slope in the scores is answer minus target: softmax and cross-entropy, the
logistic function and its cross-entropy, the identity and half the squared error, exp and the Poisson deviance.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, log_expit, softmax, xlogy

from certifit.neural_network.output_loss_loops import find_softmax_slopes, shift_scores
from certifit.rows import Array


class OutputLoss(ABC):
    """The loss of scores (n, k) for targets (n, k)."""

    name: str  # of the answer, in scikit-learn's words

    @abstractmethod
    def answers(self, scores: Array) -> Array:
        """Probabilities or means (n, k)."""

    @abstractmethod
    def values(self, scores: Array, y: Array) -> Array:
        """The loss of each row (n,)."""

    def slopes(self, scores: Array, y: Array) -> Array:
        """The slopes of each row's loss in its scores (n, k)."""
        return self.answers(scores) - y

    def values_and_slopes(self, scores: Array, y: Array, factors: Array) -> tuple[Array, Array]:
        """Both at once, the slopes times a factor of each row (n,); they are an array of their own."""
        return self.values(scores, y), self.slopes(scores, y) * factors[:, None]


def smoothed_targets(y: Array, smoothing: float, k: int) -> Array:
    """Targets of k classes moved towards an equal share of each (Szegedy et al. 2016)."""
    return y * y.dtype.type(1 - smoothing) + y.dtype.type(smoothing / k) if smoothing else y


@dataclass(frozen=True)
class SoftmaxCrossEntropy(OutputLoss):
    """One of k classes: - Σ y log softmax(scores); with smoothing s, y is (1 - s) y + s / k."""

    smoothing: float = 0.0

    name = "softmax"

    def answers(self, scores: Array) -> Array:
        return softmax(scores, axis=1)

    def values(self, scores: Array, y: Array) -> Array:
        return self.values_and_slopes(scores, y, np.ones(len(y), scores.dtype))[0]

    def values_and_slopes(self, scores: Array, y: Array, factors: Array) -> tuple[Array, Array]:
        y = smoothed_targets(y, self.smoothing, y.shape[1])
        powers, (aligned, totals) = np.empty_like(scores), np.empty((2, len(scores)), scores.dtype)
        shift_scores(scores, y, powers, aligned)
        np.exp(powers, out=powers)
        find_softmax_slopes(powers, y, factors, totals)
        # Targets add up to 1, so that the logarithm of the total counts once.
        return np.log(totals) - aligned, powers


@dataclass(frozen=True)
class LogisticCrossEntropy(OutputLoss):
    """One of two classes, or any number of labels each of which is there or not."""

    smoothing: float = 0.0

    name = "logistic"

    def answers(self, scores: Array) -> Array:
        return expit(scores)

    def values(self, scores: Array, y: Array) -> Array:
        y = smoothed_targets(y, self.smoothing, 2)
        return -(y * log_expit(scores) + (1 - y) * log_expit(-scores)).sum(axis=1)

    def slopes(self, scores: Array, y: Array) -> Array:
        return expit(scores) - smoothed_targets(y, self.smoothing, 2)


@dataclass(frozen=True)
class HalfSquares(OutputLoss):
    """Half the squared error, summed over targets."""

    name = "identity"

    def answers(self, scores: Array) -> Array:
        return scores

    def values(self, scores: Array, y: Array) -> Array:
        return 0.5 * ((scores - y) ** 2).sum(axis=1)


@dataclass(frozen=True)
class HuberResiduals(OutputLoss):
    """Half the squared error up to a residual of 1, and linear beyond: outliers pull no harder than that."""

    name = "identity"

    def answers(self, scores: Array) -> Array:
        return scores

    def values(self, scores: Array, y: Array) -> Array:
        size = np.abs(scores - y)
        return np.where(size <= 1, 0.5 * size**2, size - 0.5).sum(axis=1)

    def slopes(self, scores: Array, y: Array) -> Array:
        return np.clip(scores - y, -1, 1)


@dataclass(frozen=True)
class PoissonScores(OutputLoss):
    """Half the Poisson deviance of means exp(score)."""

    name = "exp"

    def answers(self, scores: Array) -> Array:
        return np.exp(scores)

    def values(self, scores: Array, y: Array) -> Array:
        return (xlogy(y, y) - y * scores - y + np.exp(scores)).sum(axis=1)


OUTPUT_LOSSES: dict[str, OutputLoss] = {
    "softmax": SoftmaxCrossEntropy(),
    "logistic": LogisticCrossEntropy(),
    "squared_error": HalfSquares(),
    "huber": HuberResiduals(),
    "poisson": PoissonScores(),
}
