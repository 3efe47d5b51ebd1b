"""Losses of a network's last scores z (k, n), with their slopes: sums over rows, weighted.

The last activation belongs to the loss, so that nothing overflows: softmax and log-likelihood together are
log Σ e^z - z_y, whose slope is softmax(z) - e_y.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, xlogy

from certifit.rows import Array


class OutputLoss(ABC):
    """A loss of scores; `targets` are codes of classes (n,), or amounts (k, n)."""

    out_activation: str  # what turns scores into predictions, by scikit-learn's word

    @abstractmethod
    def outputs(self, targets: int) -> int:
        """Return how many scores a row has, of so many classes or columns of y."""

    @abstractmethod
    def value_and_slope(self, z: Array, targets: Array, w: Array) -> tuple[float, Array]:
        """Return Σ w φ(z, y), and its slope w ∂φ/∂z (k, n)."""

    @abstractmethod
    def predictions(self, z: Array) -> Array:
        """Return the mean response (k, n) of scores: probabilities, or amounts."""


@dataclass(frozen=True)
class SoftmaxCrossEntropy(OutputLoss):
    """φ = log Σ e^z - Σ t z, with t 1 for the row's class, 0 for others; `smoothing` spreads a share evenly."""

    smoothing: float = 0.0
    out_activation = "softmax"

    def outputs(self, targets: int) -> int:
        return targets

    def value_and_slope(self, z: Array, targets: Array, w: Array) -> tuple[float, Array]:
        k, n = z.shape
        rows = np.arange(n)
        shifted = z - z.max(axis=0)
        own = shifted[targets, rows]
        score = own if not self.smoothing else (1 - self.smoothing) * own + self.smoothing * shifted.mean(axis=0)
        p = np.exp(shifted)
        total = p.sum(axis=0)
        value = float(np.dot(w, (np.log(total) - score).astype(np.float64)))
        p /= total
        p[targets, rows] -= 1 - self.smoothing
        if self.smoothing:
            p -= self.smoothing / k
        p *= w.astype(z.dtype)
        return value, p

    def predictions(self, z: Array) -> Array:
        p = np.exp(z - z.max(axis=0))
        return p / p.sum(axis=0)


@dataclass(frozen=True)
class LogisticCrossEntropy(OutputLoss):
    """φ = log(1 + e^z) - t z for two classes, whose one score is the log-odds of the second."""

    smoothing: float = 0.0
    out_activation = "logistic"

    def outputs(self, targets: int) -> int:
        return 1

    def value_and_slope(self, z: Array, targets: Array, w: Array) -> tuple[float, Array]:
        t = (targets * (1 - self.smoothing) + self.smoothing / 2).astype(z.dtype)
        value = float(np.dot(w, (np.logaddexp(0, z[0]) - t * z[0]).astype(np.float64)))
        return value, ((expit(z[0]) - t) * w.astype(z.dtype))[None]

    def predictions(self, z: Array) -> Array:
        return np.vstack([expit(-z), expit(z)])


@dataclass(frozen=True)
class SquaredLoss(OutputLoss):
    """φ = (z - y)² / 2, the mean over the columns of y."""

    out_activation = "identity"

    def outputs(self, targets: int) -> int:
        return targets

    def value_and_slope(self, z: Array, targets: Array, w: Array) -> tuple[float, Array]:
        rest = z - targets
        share = (w / len(z)).astype(z.dtype)
        value = float(np.dot(w / len(z), 0.5 * (rest.astype(np.float64) ** 2).sum(axis=0)))
        return value, rest * share

    def predictions(self, z: Array) -> Array:
        return z


@dataclass(frozen=True)
class HuberLoss(SquaredLoss):
    """φ = r² / 2 where |r| <= delta and delta (|r| - delta / 2) beyond, with r = z - y: outliers pull no harder."""

    delta: float = 1.0

    def value_and_slope(self, z: Array, targets: Array, w: Array) -> tuple[float, Array]:
        rest = (z - targets).astype(np.float64)
        size = np.abs(rest)
        each = np.where(size <= self.delta, 0.5 * rest**2, self.delta * (size - 0.5 * self.delta))
        share = w / len(z)
        return float(np.dot(share, each.sum(axis=0))), (np.clip(rest, -self.delta, self.delta) * share).astype(
            z.dtype
        )


@dataclass(frozen=True)
class PoissonLoss(SquaredLoss):
    """Half the Poisson deviance of counts y with mean e^z."""

    out_activation = "exp"

    def value_and_slope(self, z: Array, targets: Array, w: Array) -> tuple[float, Array]:
        mean = np.exp(z)
        share = w / len(z)
        each = (xlogy(targets, targets) - targets * z - targets + mean).astype(np.float64)
        return float(np.dot(share, each.sum(axis=0))), (mean - targets) * share.astype(z.dtype)

    def predictions(self, z: Array) -> Array:
        return np.exp(z)
