"""Losses of additive scores F for the checkers, in plain NumPy: value, slope, curvature and conjugate.

A row's share of a lower bound at a dual number u is  g(u) = -φ*(u) = min over t of φ(t) - u t,  where u must lie in
the range of slopes. All have 0 in that range.

| loss | φ(y, t) | u = φ' | φ" | g(u) |
|---|---|---|---|---|
| squared_error | (t - y)²/2 | t - y | 1 | -u²/2 - u y |
| absolute_error | abs(t - y) | ±1 | | -u y |
| quantile (α) | α (y - t)₊ + (1 - α)(t - y)₊ | -α, 1 - α | | -u y |
| quantiles, t (n, k) | the sum of these over k levels α | as above | | as above |
| huber (δ) | (t - y)²/2, δ (abs(t - y) - δ/2) beyond δ | clip(t - y, ±δ) | | -u²/2 - u y |
| poisson | exp t - y t | exp t - y | exp t | q - q log q, q = y + u |
| gamma | t + y exp(-t) | 1 - y exp(-t) | y exp(-t) | q - q log(q/y), q = 1 - u |
| log_loss, y in [0, 1] | log(1 + exp t) - y t | p - y | p (1 - p) | H(q), q = y + u |
| exponential, y = 0 or 1 | exp(-z t), z = 2y - 1 | -z exp(-z t) | exp(-z t) | v - v log v, v = -z u |
| multinomial, t (n, k) | log Σ exp t - t_y | p - [y] | p (1 - p) | H(q), q = [y] + u |
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from scipy.special import entr, expit, logsumexp, softmax, xlogy

from certifit.exceptions import DataError
from certifit.rows import Array


class PlainScoreLoss(ABC):
    """A loss of scores t (n,), or (n, k) where there are several classes, with targets y (n,)."""

    translates = False  # whether φ(y, t) depends on y - t alone
    smooth = True  # whether φ" exists and leaves of trees are found by it
    several = False  # whether scores are (n, k)

    @abstractmethod
    def value(self, y: Array, t: Array) -> Array:
        """φ of each row (n,)."""

    @abstractmethod
    def slope(self, y: Array, t: Array) -> Array:
        """φ', in the shape of t."""

    def curvature(self, y: Array, t: Array) -> Array:
        """φ" (its diagonal where there are several scores), in the shape of t."""
        return np.ones_like(t)

    @abstractmethod
    def gain(self, y: Array, u: Array) -> Array:
        """g(u) of each row (n,); -inf where u is no slope."""

    def balanced(self, y: Array, w: Array, u: Array) -> Array:
        """Slopes near u with Σ w u = 0: of positive and negative ones the heavier are scaled down."""
        up, down = float(w @ np.maximum(u, 0)), float(w @ np.maximum(-u, 0))
        scale = np.where(u > 0, down / up if up > down else 1.0, up / down if down > up else 1.0)
        return u * scale


class PlainSquaredError(PlainScoreLoss):
    """Half the squared error."""

    translates = True

    def value(self, y: Array, t: Array) -> Array:
        return 0.5 * (t - y) ** 2

    def slope(self, y: Array, t: Array) -> Array:
        return t - y

    def gain(self, y: Array, u: Array) -> Array:
        return -0.5 * u**2 - u * y


@dataclass(frozen=True)
class PlainQuantile(PlainScoreLoss):
    """The pinball loss of the α-quantile, times `scale`: the absolute error for α = ½ and scale 2."""

    alpha: float = 0.5
    scale: float = 1.0
    translates = True
    smooth = False

    def value(self, y: Array, t: Array) -> Array:
        return self.scale * np.where(t < y, self.alpha * (y - t), (1 - self.alpha) * (t - y))

    def slope(self, y: Array, t: Array) -> Array:
        return self.scale * np.where(t < y, -self.alpha, 1 - self.alpha)

    def gain(self, y: Array, u: Array) -> Array:
        inside = (u >= -self.scale * self.alpha) & (u <= self.scale * (1 - self.alpha))
        return np.where(inside, -u * y, -np.inf)


@dataclass(frozen=True)
class PlainQuantiles(PlainScoreLoss):
    """The sum of the pinball losses of several quantiles, with a score for each."""

    alphas: tuple[float, ...] = (0.5,)
    translates = True
    smooth = False
    several = True

    def value(self, y: Array, t: Array) -> Array:
        alpha, rest = np.array(self.alphas), y[:, None] - t
        return np.where(rest > 0, alpha * rest, (alpha - 1) * rest).sum(axis=1)

    def slope(self, y: Array, t: Array) -> Array:
        alpha = np.array(self.alphas)
        return np.where(t < y[:, None], -alpha, 1 - alpha)

    def gain(self, y: Array, u: Array) -> Array:
        alpha = np.array(self.alphas)
        inside = ((u >= -alpha) & (u <= 1 - alpha)).all(axis=1)
        return np.where(inside, -u.sum(axis=1) * y, -np.inf)

    def balanced(self, y: Array, w: Array, u: Array) -> Array:
        return np.stack([PlainQuantile(a).balanced(y, w, v) for a, v in zip(self.alphas, u.T, strict=True)], axis=1)


@dataclass(frozen=True)
class PlainHuber(PlainScoreLoss):
    """Half the squared error up to residuals of δ, and from there on linear."""

    delta: float = 1.0
    translates = True
    smooth = False

    def value(self, y: Array, t: Array) -> Array:
        size = np.abs(t - y)
        return np.where(size <= self.delta, 0.5 * size**2, self.delta * (size - 0.5 * self.delta))

    def slope(self, y: Array, t: Array) -> Array:
        return np.clip(t - y, -self.delta, self.delta)

    def gain(self, y: Array, u: Array) -> Array:
        return np.where(np.abs(u) <= self.delta, -0.5 * u**2 - u * y, -np.inf)


class PlainPoisson(PlainScoreLoss):
    """Half the Poisson deviance, up to a constant; t is the logarithm of the mean."""

    def value(self, y: Array, t: Array) -> Array:
        return np.exp(t) - y * t

    def slope(self, y: Array, t: Array) -> Array:
        return np.exp(t) - y

    def curvature(self, y: Array, t: Array) -> Array:
        return np.exp(t)

    def gain(self, y: Array, u: Array) -> Array:
        q = y + u
        return np.where(q >= 0, q + entr(q), -np.inf)


class PlainGamma(PlainScoreLoss):
    """Half the gamma deviance, up to a constant; t is the logarithm of the mean."""

    def value(self, y: Array, t: Array) -> Array:
        return t + y * np.exp(-t)

    def slope(self, y: Array, t: Array) -> Array:
        return 1 - y * np.exp(-t)

    def curvature(self, y: Array, t: Array) -> Array:
        return y * np.exp(-t)

    def gain(self, y: Array, u: Array) -> Array:
        q = 1 - u
        return np.where(q >= 0, q + entr(q) + xlogy(q, y), -np.inf)


class PlainLogLoss(PlainScoreLoss):
    """Minus the log-likelihood of y = 1 with log-odds t."""

    def value(self, y: Array, t: Array) -> Array:
        sure = y == 1
        # A small one has all its digits. NumPy's logaddexp says the same in eight times the time.
        wrong = np.where(sure, -t, t)
        return np.maximum(wrong, 0.0) + np.log1p(np.exp(-np.abs(wrong))) - np.where(sure, 0.0, y * t)

    def slope(self, y: Array, t: Array) -> Array:
        sure = y == 1
        share = expit(np.where(sure, -t, t))
        return np.where(sure, -share, share - y)

    def curvature(self, y: Array, t: Array) -> Array:
        small = np.exp(-np.abs(t))
        return small / (1.0 + small) ** 2

    def gain(self, y: Array, u: Array) -> Array:
        q, rest = y + u, (1 - y) - u
        return np.where((q >= 0) & (rest >= 0), entr(q) + entr(rest), -np.inf)


class PlainExponential(PlainScoreLoss):
    """exp(-z t) with z = ±1, as AdaBoost has it; t is half the log-odds."""

    def value(self, y: Array, t: Array) -> Array:
        return np.exp(-(2 * y - 1) * t)

    def slope(self, y: Array, t: Array) -> Array:
        z = 2 * y - 1
        return -z * np.exp(-z * t)

    def curvature(self, y: Array, t: Array) -> Array:
        return self.value(y, t)

    def gain(self, y: Array, u: Array) -> Array:
        v = -(2 * y - 1) * u
        return np.where(v >= 0, v + entr(v), -np.inf)


class PlainMultinomial(PlainScoreLoss):
    """Minus the log-likelihood of class y under the softmax of scores t (n, k)."""

    several = True

    def value(self, y: Array, t: Array) -> Array:
        # The own class has score 0 then, and a sum of exponentials next to 1 has all the digits of its logarithm.
        return np.asarray(logsumexp(t - np.take_along_axis(t, y.astype(np.int64)[:, None], 1), axis=1))

    def slope(self, y: Array, t: Array) -> Array:
        return softmax(t, axis=1) - _one_hot(y, t.shape[1])

    def curvature(self, y: Array, t: Array) -> Array:
        p = softmax(t, axis=1)
        return p * (1 - p)

    def gain(self, y: Array, u: Array) -> Array:
        q = _one_hot(y, u.shape[1]) + u
        inside = (q >= 0).all(axis=1) & (np.abs(q.sum(axis=1) - 1) < 1e-9)
        return np.where(inside, entr(np.maximum(q, 0)).sum(axis=1), -np.inf)

    def balanced(self, y: Array, w: Array, u: Array) -> Array:
        """Probabilities mixed with one distribution for all rows, so that every class has the weight of its rows."""
        label = _one_hot(y, u.shape[1])
        q = np.maximum(u + label, 0)
        q /= q.sum(axis=1, keepdims=True)
        have, want = w @ q, w @ label
        ratio = want / np.where(have > 0, have, 1.0)
        share = min(1.0, max(0.0, 1 - float(ratio[have > 0].min())) * (1 + 1e-12) + 1e-15)
        rest = np.maximum((want - (1 - share) * have) / (share * w.sum()), 0.0)
        return (1 - share) * q + share * rest / rest.sum() - label


def _one_hot(y: Array, k: int) -> Array:
    return (y.astype(np.int64)[:, None] == np.arange(k)).astype(np.float64)


def plain_score_loss(name: str, parameter: float | tuple[float, ...] | None = None) -> PlainScoreLoss:
    """The loss of this name; `parameter` is the α of a quantile, those of several, or the δ of Huber's loss."""
    if isinstance(parameter, tuple):
        return PlainQuantiles(parameter)
    if name == "quantile":
        return PlainQuantile(0.5 if parameter is None else parameter)
    if name == "huber":
        return PlainHuber(1.0 if parameter is None else parameter)
    if name == "absolute_error":
        return PlainQuantile(0.5, 2.0)
    if name not in _NAMED:
        raise DataError(
            got=f"loss {name!r}", wanted=f"one of {', '.join([*_NAMED, 'absolute_error, quantile, huber'])}"
        )
    return _NAMED[name]()


_NAMED: dict[str, type[PlainScoreLoss]] = {
    "squared_error": PlainSquaredError,
    "poisson": PlainPoisson,
    "gamma": PlainGamma,
    "log_loss": PlainLogLoss,
    "exponential": PlainExponential,
    "multinomial": PlainMultinomial,
}
