"""Families of numbers as the textbook has them, for the checker of mixtures: plain NumPy and SciPy.

Of each family: its sufficient statistic T, the parameters that maximise the likelihood given the mean of T, and the
expected log-likelihood η·(mean of T) - A(η), up to terms that no parameter changes.
Reference: Brown, Fundamentals of statistical exponential families (1986).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import brentq, root
from scipy.special import betaln, digamma, gammaln, polygamma, xlog1py, xlogy

from certifit.rows import Array

Theta = Mapping[str, Any]  # parameters by name; of a Categorical also k, its number of classes


class TextbookFamily(NamedTuple):
    """What the textbook says of a family; tau (m,) is a mean of T."""

    free: tuple[str, ...]  # names of the parameters that are estimated
    T: Callable[[Array, Theta], Array]  # (n, m) of entries (n,), given known parameters
    likeliest: Callable[[Array, Theta], dict[str, Any]]  # free parameters, given tau and known ones
    score: Callable[[Theta, Array], float]  # η·tau - A(η)
    extra_row: Callable[[Theta], Any] | None = None  # T of the row that counts get in addition; None for densities
    known: tuple[str, ...] = ()  # names of the parameters that are known beforehand


def _entry(x: Array, _known: Theta) -> Array:
    return x[:, None]


def _likeliest_beta(tau: Array, _known: Theta) -> dict[str, Any]:
    """Solve ψ(a) - ψ(a + b) = E log x and ψ(b) - ψ(a + b) = E log (1 - x) for the logarithms of a and b."""

    def off(z: Array) -> Array:
        ab = np.exp(z)
        return digamma(ab) - digamma(ab.sum()) - tau

    def slope(z: Array) -> Array:
        ab = np.exp(z)
        return (np.diag(polygamma(1, ab)) - polygamma(1, ab.sum())) * ab

    a, b = np.exp(root(off, np.zeros(2), jac=slope, tol=1e-14).x)
    return {"a": a, "b": b}


def _likeliest_gamma(tau: Array, _known: Theta) -> dict[str, Any]:
    """Solve log shape - ψ(shape) = log E x - E log x for the logarithm of the shape."""
    gap = np.log(tau[1]) - tau[0]
    shape = np.exp(brentq(lambda z: z - digamma(np.exp(z)) - gap, -40.0, 40.0, xtol=1e-14))
    return {"shape": shape, "rate": shape / tau[1]}


def _binomial_score(theta: Theta, tau: Array) -> float:
    p, x = theta["p"], tau[0]
    return float(xlogy(x, p) + xlog1py(theta.get("n", 1) - x, -p))


def _likeliest_failures(tau: Array, known: Theta) -> dict[str, Any]:
    """p = r / (r + mean), below 1 wherever there are failures: with p = 1 they would be impossible."""
    r = known.get("r", 1.0)
    return {"p": min(r / (r + tau[0]), np.nextafter(1.0, 0.0)) if tau[0] > 0 else 1.0}


def _negative_binomial_score(theta: Theta, tau: Array) -> float:
    return float(xlog1py(tau[0], -theta["p"]) + theta.get("r", 1.0) * np.log(theta["p"]))


def _gaussian_score(theta: Theta, tau: Array) -> float:
    m, v = theta["mean"], theta["variance"]
    return float(-0.5 * ((tau[1] - 2 * m * tau[0] + m * m) / v + np.log(v)))


def _inverse_gaussian_score(theta: Theta, tau: Array) -> float:
    m, shape = theta["mean"], theta["shape"]
    return float(0.5 * np.log(shape) + shape / m - 0.5 * shape * (tau[0] / m**2 + tau[1]))


_bernoulli = TextbookFamily(
    ("p",),
    _entry,
    lambda t, known: {"p": t[0] / known.get("n", 1)},
    _binomial_score,
    lambda known: known.get("n", 1) / 2,
)
_geometric = TextbookFamily(
    ("p",),
    _entry,
    _likeliest_failures,
    _negative_binomial_score,
    lambda known: known.get("r", 1.0),
)
UNIVARIATE_FAMILIES: dict[str, TextbookFamily] = {
    "Bernoulli": _bernoulli,
    "Binomial": _bernoulli._replace(known=("n",)),
    "Poisson": TextbookFamily(
        ("rate",),
        _entry,
        lambda t, _: {"rate": t[0]},
        lambda o, t: float(xlogy(t[0], o["rate"]) - o["rate"]),
        lambda _: 1,
    ),
    "Geometric": _geometric,
    "NegativeBinomial": _geometric._replace(known=("r",)),
    "Categorical": TextbookFamily(
        ("p",),
        lambda x, known: (x[:, None] == np.arange(known["k"])).astype(np.float64),
        lambda t, _: {"p": t / t.sum()},
        lambda o, t: float(xlogy(t, o["p"]).sum()),
        lambda known: 1.0 / known["k"],
    ),
    "Exponential": TextbookFamily(
        ("rate",),
        _entry,
        lambda t, _: {"rate": 1.0 / t[0]},
        lambda o, t: float(np.log(o["rate"]) - o["rate"] * t[0]),
    ),
    "Gaussian": TextbookFamily(
        ("mean", "variance"),
        lambda x, _: np.column_stack([x, x * x]),
        lambda t, _: {"mean": t[0], "variance": t[1] - t[0] ** 2},
        _gaussian_score,
    ),
    "GaussianFixedVariance": TextbookFamily(
        ("mean",),
        _entry,
        lambda t, _: {"mean": t[0]},
        lambda o, t: float((o["mean"] * t[0] - o["mean"] ** 2 / 2) / o["variance"]),
        known=("variance",),
    ),
    "Gamma": TextbookFamily(
        ("shape", "rate"),
        lambda x, _: np.column_stack([np.log(x), x]),
        _likeliest_gamma,
        lambda o, t: float(o["shape"] * (t[0] + np.log(o["rate"])) - o["rate"] * t[1] - gammaln(o["shape"])),
    ),
    "InverseGaussian": TextbookFamily(
        ("mean", "shape"),
        lambda x, _: np.column_stack([x, 1.0 / x]),
        lambda t, _: {"mean": t[0], "shape": 1.0 / (t[1] - 1.0 / t[0])},
        _inverse_gaussian_score,
    ),
    "Beta": TextbookFamily(
        ("a", "b"),
        lambda x, _: np.column_stack([np.log(x), np.log1p(-x)]),
        _likeliest_beta,
        lambda o, t: float(o["a"] * t[0] + o["b"] * t[1] - betaln(o["a"], o["b"])),
    ),
}
