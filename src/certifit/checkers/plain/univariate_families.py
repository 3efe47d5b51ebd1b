"""Families of numbers as the textbook has them: statistics, the likeliest parameters given their means, scores.

For the checker of mixtures, in plain NumPy and SciPy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import brentq, root
from scipy.special import betaln, digamma, gammaln, polygamma, xlog1py, xlogy

from certifit.rows import Array

Theta = Mapping[str, Any]


class Plain(NamedTuple):
    """What the textbook says of a family; tau are means of T."""

    T: Callable[[Array, Theta], Array]  # (n, m) of entries (n,)
    solve: Callable[[Array, Theta], dict[str, Any]]  # the likeliest parameters
    score: Callable[[Theta, Array], float]  # η·tau - A(η)
    middle: Callable[[Theta], Any] | None  # tau of one more row, for counts


def _itself(x: Array, _known: Theta) -> Array:
    return x[:, None]


def _beta(tau: Array, _known: Theta) -> dict[str, Any]:
    """ψ(a) - ψ(a + b) = E log x,  ψ(b) - ψ(a + b) = E log (1 - x), in logarithms of a and b."""

    def off(z: Array) -> Array:
        ab = np.exp(z)
        return digamma(ab) - digamma(ab.sum()) - tau

    def slope(z: Array) -> Array:
        ab = np.exp(z)
        return (np.diag(polygamma(1, ab)) - polygamma(1, ab.sum())) * ab

    a, b = np.exp(root(off, np.zeros(2), jac=slope, tol=1e-14).x)
    return {"a": a, "b": b}


def _gamma(tau: Array, _known: Theta) -> dict[str, Any]:
    gap = np.log(tau[1]) - tau[0]
    shape = np.exp(brentq(lambda z: z - digamma(np.exp(z)) - gap, -40.0, 40.0, xtol=1e-14))
    return {"shape": shape, "rate": shape / tau[1]}


def _trials(theta: Theta, tau: Array) -> float:
    p, x = theta["p"], tau[0]
    return float(xlogy(x, p) + xlog1py(theta.get("n", 1) - x, -p))


def _failures(theta: Theta, tau: Array) -> float:
    return float(xlog1py(tau[0], -theta["p"]) + theta.get("r", 1.0) * np.log(theta["p"]))


def _gaussian(theta: Theta, tau: Array) -> float:
    m, v = theta["mean"], theta["variance"]
    return float(-0.5 * ((tau[1] - 2 * m * tau[0] + m * m) / v + np.log(v)))


COUNTS = Plain(
    _itself, lambda t, _: {"rate": t[0]}, lambda o, t: float(xlogy(t[0], o["rate"]) - o["rate"]), lambda _: 1
)
SUCCESSES = Plain(
    _itself, lambda t, known: {"p": t[0] / known.get("n", 1)}, _trials, lambda known: known.get("n", 1) / 2
)
FAILURES = Plain(
    _itself,
    lambda t, known: {"p": known.get("r", 1.0) / (known.get("r", 1.0) + t[0])},
    _failures,
    lambda known: known.get("r", 1.0),
)
PLAIN: dict[str, Plain] = {
    "Bernoulli": SUCCESSES,
    "Binomial": SUCCESSES,
    "Poisson": COUNTS,
    "Geometric": FAILURES,
    "NegativeBinomial": FAILURES,
    "Categorical": Plain(
        lambda x, known: (x[:, None] == np.arange(known["k"])).astype(np.float64),
        lambda t, _: {"p": t / t.sum()},
        lambda o, t: float(xlogy(t, o["p"]).sum()),
        lambda known: 1.0 / known["k"],
    ),
    "Exponential": Plain(
        _itself, lambda t, _: {"rate": 1.0 / t[0]}, lambda o, t: float(np.log(o["rate"]) - o["rate"] * t[0]), None
    ),
    "Gaussian": Plain(
        lambda x, _: np.column_stack([x, x * x]),
        lambda t, _: {"mean": t[0], "variance": t[1] - t[0] ** 2},
        _gaussian,
        None,
    ),
    "GaussianFixedVariance": Plain(
        _itself,
        lambda t, _: {"mean": t[0]},
        lambda o, t: float((o["mean"] * t[0] - o["mean"] ** 2 / 2) / o["variance"]),
        None,
    ),
    "Gamma": Plain(
        lambda x, _: np.column_stack([np.log(x), x]),
        _gamma,
        lambda o, t: float(o["shape"] * (t[0] + np.log(o["rate"])) - o["rate"] * t[1] - gammaln(o["shape"])),
        None,
    ),
    "InverseGaussian": Plain(
        lambda x, _: np.column_stack([x, 1.0 / x]),
        lambda t, _: {"mean": t[0], "shape": 1.0 / (t[1] - 1.0 / t[0])},
        lambda o, t: float(
            0.5 * np.log(o["shape"]) + o["shape"] / o["mean"] - 0.5 * o["shape"] * (t[0] / o["mean"] ** 2 + t[1])
        ),
        None,
    ),
    "Beta": Plain(
        lambda x, _: np.column_stack([np.log(x), np.log1p(-x)]),
        _beta,
        lambda o, t: float(o["a"] * t[0] + o["b"] * t[1] - betaln(o["a"], o["b"])),
        None,
    ),
}
