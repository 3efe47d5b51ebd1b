"""Smooth losses of the margin whose best f is a function of the log-odds: logistic and exponential."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, logit, wrightomega, xlog1py, xlogy

from certifit.losses.loss import setting
from certifit.losses.margin import MarginLoss
from certifit.losses.softmax import logistic_curvature
from certifit.rows import Array


@dataclass(frozen=True, repr=False)
class ExponentialLoss(MarginLoss):
    """The loss of AdaBoost, φ(m) = exp(-m). The best f is half the log-odds.

    >>> ExponentialLoss().risk_minimiser([0.5, 1.0]).tolist()
    [0.0, inf]
    """

    name = "exponential"
    domain = (-np.inf, 0.0)
    smoothness = np.inf

    def __repr__(self) -> str:
        return "Exponential()"  # its public name, in `certifit.losses`

    def _value(self, x: Array) -> Array:
        return np.exp(-x)

    def _derivative(self, x: Array) -> Array:
        return -np.exp(-x)

    _second_derivative = _value

    def _conjugate(self, u: Array) -> Array:
        return -u * (np.log(np.maximum(-u, np.finfo(u.dtype).tiny)) - 1)  # 0 log 0 = 0

    def _prox(self, v: Array, t: Array) -> Array:
        return _exponential_prox(v, np.log(t))

    def _risk_minimiser(self, p: Array) -> Array:
        return 0.5 * logit(p)

    def _psi(self, theta: Array) -> Array:
        return theta**2 / (1 + np.sqrt((1 - theta) * (1 + theta)))  # 1 - sqrt(1 - θ²)


@dataclass(frozen=True)
class Logistic(MarginLoss):
    """The negative log-likelihood of logistic regression, φ(m) = log(1 + exp(-m)) / log(base).

    The best f is the log-odds, in any base. In base 2 it is the tightest that bounds the 0-1 loss: φ(0) = 1.

    Parameters
    ----------
    base : of the logarithm, above 1; e, the natural one, by default

    >>> Logistic(base=2).value(0.0), Logistic(base=2).smoothness < 0.37
    (np.float64(1.0), True)
    """

    base: float = math.e

    def __post_init__(self) -> None:
        object.__setattr__(self, "base", setting("base", self.base, 1, math.inf, closed=False))

    @property
    def name(self) -> str:
        return "logistic" if self.base == math.e else f"logistic, base {self.base:g}"

    @property
    def _scale(self) -> float:
        return 1 / math.log(self.base)

    @property
    def domain(self) -> tuple[float, float]:
        return (-self._scale, 0.0)

    @property
    def smoothness(self) -> float:
        return self._scale / 4

    def _value(self, x: Array) -> Array:
        return np.logaddexp(0, -x) * self._scale

    def _derivative(self, x: Array) -> Array:
        return -self._scale * expit(-x)

    def _second_derivative(self, x: Array) -> Array:
        return self._scale * logistic_curvature(x)

    def _conjugate(self, u: Array) -> Array:
        q = -u / self._scale
        return self._scale * (xlogy(q, q) + xlog1py(1 - q, -q))

    def _prox(self, v: Array, t: Array) -> Array:
        """Solve x = v + t expit(-x) by Newton's method.

        Reflection x -> -x, v -> -(v + t) turns negative answers into positive ones, where the equation is concave:
        from the left, Newton never passes the answer. The start solves it with ½ exp(-x), which is below expit(-x).
        """
        limits = np.finfo(v.dtype)
        t = np.clip(t * self._scale, limits.tiny, limits.max)
        flip = v < -t / 2
        start = np.where(flip, -(v + t), v)
        finite = np.isfinite(start)
        a = np.where(finite, start, 0)
        x = _exponential_prox(a, np.log(t) - math.log(2))
        for _ in range(5):  # from a start within log 2 of the answer; each step doubles the digits
            pull = t * expit(-x)
            x = x + (pull - (x - a)) / (1 + pull * expit(x))
        return np.where(finite, np.where(flip, -x, x), v)

    def _risk_minimiser(self, p: Array) -> Array:
        return logit(p)

    def _psi(self, theta: Array) -> Array:
        theta = np.minimum(theta, 1 - np.finfo(theta.dtype).epsneg)  # at 1 both terms are infinite, their sum is not
        return self._scale * (np.log1p(-(theta**2)) / 2 + theta * np.arctanh(theta))


def _exponential_prox(v: Array, log_t: Array) -> Array:
    """Solve x = v + t exp(-x) = v + z with z + log z = log t - v; where z is large, x = log t - log z is accurate."""
    z = wrightomega(log_t - v)
    return np.where(z > 1, log_t - np.log(np.maximum(z, 1)), v + np.minimum(z, 1))
