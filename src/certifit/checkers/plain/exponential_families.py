"""The textbook formulas of exponential families, for their checkers, in plain NumPy and SciPy.

    p(x | θ) = h(x) exp(η·T(x) - A(η)),    at the likeliest parameters  E T = mean of T over the rows

Statistics are standardised by the member itself, (T - location)/standard deviation, so that an offset of 1e8 hides no
error. A log-density is given as the terms of its sum, so that a checker knows how much rounding to allow.
`family_at(name, θ)` returns a member; the table TEXTBOOK lists all families.
Reference: Bishop, Pattern Recognition and Machine Learning (2006), section 2.4 and appendix B.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.special import digamma, gammaln, polygamma, xlog1py, xlogy

from certifit.rows import Array

Theta = Mapping[str, Any]  # parameters by name
LogDensity = Callable[[Array], list[Any]]  # of rows (n, d): terms that add up to log p(x), each (n,) or a number


class PlainFamily(NamedTuple):
    """One member of a family with m statistics; rows X are (n, d)."""

    T: Callable[[Array], Array]  # (n, m), in standard deviations from the member's location
    expected: Array  # E T  (m,)
    size: Array  # |location| in standard deviations: rounding errors are proportional to it  (m,)
    log_p: LogDensity
    imagined: Callable[[Array], Array]  # standardises a prior's mean of the statistics  (m,)
    discrete: bool = False


def family_at(family: str, theta: Theta, method: str = "ml") -> PlainFamily:
    """Return the member with these parameters; for the method of moments T is x and its squared deviation."""
    member = TEXTBOOK[family](theta)
    mean_and_variance = _mean_and_variance(family, theta) if method == "moments" else None
    return member if mean_and_variance is None else _with_total_square(*mean_and_variance, member.log_p)


def parameter_names(family: str) -> tuple[str, ...]:
    """Return the names of the parameters of a family of numbers, in the order in which fitted models keep them."""
    names: dict[str, tuple[str, ...]] = {
        "Bernoulli": ("p",),
        "Beta": ("a", "b"),
        "Binomial": ("p", "n"),
        "Exponential": ("rate",),
        "Gamma": ("shape", "rate"),
        "Gaussian": ("mean", "variance"),
        "GaussianFixedVariance": ("mean", "variance"),
        "Geometric": ("p",),
        "InverseGaussian": ("mean", "shape"),
        "NegativeBinomial": ("p", "r"),
        "Poisson": ("rate",),
    }
    return names[family]


# --------------------------------------------------------------------------- statistics that several families share
def _linear(mean: Any, variance: Any, log_p: LogDensity, total: float | None = None) -> PlainFamily:
    """Return a family of counts with T(x) = x; if the columns have a known total, a prior's mean omits the last."""
    mean, sd = np.atleast_1d(mean), np.atleast_1d(np.sqrt(variance))
    sd = np.where(sd > 0, sd, 1.0)

    def imagined(tau: Array) -> Array:
        return ((tau if total is None else np.append(tau, total - tau.sum())) - mean) / sd

    return PlainFamily(lambda X: (X - mean) / sd, np.zeros(len(mean)), np.abs(mean) / sd, log_p, imagined, True)


def _with_total_square(mean: Any, variance: Any, log_p: LogDensity) -> PlainFamily:
    """Return a family whose T are the columns and the sum of their squared deviations from the mean."""
    mean, total = np.atleast_1d(mean), float(np.sum(variance))
    sd = np.sqrt(np.broadcast_to(variance, len(mean)))

    def T(X: Array) -> Array:
        return np.column_stack([(X - mean) / sd, ((X - mean) ** 2).sum(axis=1) / total])

    def imagined(tau: Array) -> Array:
        m = tau[:-1]
        return np.append((m - mean) / sd, (tau[-1] - 2 * m @ mean + mean @ mean) / total)

    size = np.abs(mean) / sd
    return PlainFamily(T, np.append(np.zeros(len(mean)), 1.0), np.append(size, size.max()), log_p, imagined)


def _gaussian_log_p(mean: Any, variance: Any) -> LogDensity:
    """Return the log-density of independent Gaussian columns."""
    mean = np.atleast_1d(mean)
    v = np.broadcast_to(variance, len(mean))
    return lambda X: [-0.5 * ((X - mean) ** 2 / v).sum(axis=1), -0.5 * np.log(2 * np.pi * v).sum()]


def _diagonal(theta: Theta) -> PlainFamily:
    """Return independent Gaussian columns, with T = the columns and their squares."""
    mean, v = theta["mean"], theta["variance"]
    sd = np.sqrt(v)

    def T(X: Array) -> Array:
        Z = (X - mean) / sd
        return np.concatenate([Z, Z * Z], axis=1)

    def imagined(tau: Array) -> Array:
        m, square = np.split(tau, 2)
        return np.concatenate([(m - mean) / sd, (square - 2 * m * mean + mean**2) / v])

    expected = np.repeat([0.0, 1.0], len(mean))
    return PlainFamily(T, expected, np.tile(np.abs(mean) / sd, 2), _gaussian_log_p(mean, v), imagined)


def _full(theta: Theta) -> PlainFamily:
    """Return a Gaussian with a full covariance, with T = the whitened columns and their products."""
    mean, L = theta["mean"], cholesky(theta["covariance"], lower=True)
    d = len(mean)
    i, j = np.triu_indices(d)
    correlation = theta["covariance"] / np.sqrt(np.outer(np.diag(theta["covariance"]), np.diag(theta["covariance"])))

    def whiten(A: Array) -> Array:
        return solve_triangular(L, A, lower=True)

    def T(X: Array) -> Array:
        Z = whiten((X - mean).T).T
        return np.concatenate([Z, Z[:, i] * Z[:, j]], axis=1)

    def log_p(X: Array) -> list[Any]:
        square = (whiten((X - mean).T) ** 2).sum(axis=0)
        return [-0.5 * square, -0.5 * d * np.log(2 * np.pi), -np.log(np.diag(L)).sum()]

    def imagined(tau: Array) -> Array:
        m, square = tau[:d], np.zeros((d, d))
        square[i, j] = square[j, i] = tau[d:]
        about = square - np.outer(m, mean) - np.outer(mean, m) + np.outer(mean, mean)
        return np.append(whiten(m - mean), whiten(whiten(about).T)[i, j])

    size = float(np.abs(mean / np.sqrt(np.diag(theta["covariance"]))).max() + d) * np.linalg.cond(correlation)
    expected = np.append(np.zeros(d), (i == j).astype(float))
    return PlainFamily(T, expected, np.full(len(expected), size), log_p, imagined)


def _gamma(theta: Theta) -> PlainFamily:
    """Return a gamma distribution, with T = u and log(x/mean) - u, u = x/mean - 1: log x is nearly linear in x."""
    a, b = theta["shape"], theta["rate"]
    m = a / b
    if a < 1e4:
        below, sd = digamma(a) - np.log(a), np.sqrt(polygamma(1, a) - 1 / a)
    else:  # the first terms of the asymptotic series, the rest of which is below rounding
        below, sd = -(1 / 2 + 1 / (12 * a)) / a, np.sqrt(1 / 2 + 1 / (6 * a)) / a

    def T(X: Array) -> Array:
        u = (X - m) / m
        log = np.where(u < -0.5, np.log(X / m), np.log1p(np.maximum(u, -0.5)))  # log1p loses digits far below m
        return np.concatenate([u * np.sqrt(a), (log - u) / sd], axis=1)

    def log_p(X: Array) -> list[Any]:
        x = X[:, 0]
        return [a * np.log(b * x), -np.log(x), -b * x, -gammaln(a)]

    def imagined(tau: Array) -> Array:
        u = tau[1] / m - 1
        return np.array([u * np.sqrt(a), (tau[0] - np.log(m) - u) / sd])

    return PlainFamily(T, np.array([0.0, below / sd]), np.full(2, np.sqrt(a) + 1), log_p, imagined)


def _inverse_gaussian(theta: Theta) -> PlainFamily:
    """Return an inverse Gaussian, with T = x and (x - mean)²/x, which replaces 1/x because it does not cancel."""
    m, s = theta["mean"], theta["shape"]
    sd = np.sqrt(m**3 / s)

    def log_p(X: Array) -> list[Any]:
        x = X[:, 0]
        return [0.5 * np.log(s / (2 * np.pi)), -1.5 * np.log(x), -0.5 * s * ((x - m) / m) ** 2 / x]

    return PlainFamily(
        lambda X: np.concatenate([(X - m) / sd, s * ((X - m) / m) ** 2 / X], axis=1),
        np.array([0.0, 1.0]),
        np.full(2, m / sd + 1),
        log_p,
        lambda tau: np.array([(tau[0] - m) / sd, s * (tau[0] / m**2 - 2 / m + tau[1])]),
    )


def _dirichlet(a: Array, logs: Callable[[Array], Array]) -> PlainFamily:
    """Return a Dirichlet distribution, with T = the logarithms of the shares, which `logs` computes from rows."""
    total = a.sum()
    mean, sd = digamma(a) - digamma(total), np.sqrt(polygamma(1, a) - polygamma(1, total))

    def log_p(X: Array) -> list[Any]:
        L = logs(X)
        return [gammaln(total), -gammaln(a).sum(), L @ a, -L.sum(axis=1)]

    size = (np.abs(digamma(a)) + np.abs(digamma(total)) + 1) / sd
    return PlainFamily(lambda X: (logs(X) - mean) / sd, np.zeros(len(a)), size, log_p, lambda tau: (tau - mean) / sd)


def _trials(theta: Theta) -> PlainFamily:
    """Return the distribution of successes in n trials, one unless given."""
    p, n = theta["p"], theta.get("n", 1)

    def log_p(X: Array) -> list[Any]:
        x = X[:, 0]
        ways = [gammaln(n + 1), -gammaln(x + 1), -gammaln(n - x + 1)]
        return [*ways, xlogy(x, p), xlog1py(n - x, -p)]

    return _linear(n * p, n * p * (1 - p), log_p)


def _poisson(theta: Theta) -> PlainFamily:
    rate = theta["rate"]
    return _linear(rate, rate, lambda X: [xlogy(X[:, 0], rate), -rate, -gammaln(X[:, 0] + 1)])


def _failures(theta: Theta) -> PlainFamily:
    """Return the distribution of failures before the r-th success, the first unless given."""
    p, r = np.float64(theta["p"]), theta.get("r", 1.0)  # a variance may be infinite

    def log_p(X: Array) -> list[Any]:
        x = X[:, 0]
        return [gammaln(x + r), -gammaln(r), -gammaln(x + 1), r * np.log(p), xlog1py(x, -p)]

    return _linear(r * (1 - p) / p, r * (1 - p) / p**2, log_p)


def _classes(theta: Theta) -> PlainFamily:
    """Return the distribution of one draw from classes, with T = the indicators of the classes."""
    p = theta["p"]
    member = _linear(p, p * (1 - p), lambda X: [np.log(p[X[:, 0].astype(int)])], total=1.0)
    return member._replace(T=lambda X: member.T((np.arange(len(p)) == X).astype(float)))


def _multinomial(theta: Theta) -> PlainFamily:
    p, n = theta["p"], theta["n"]
    return _linear(
        n * p,
        n * p * (1 - p),
        lambda X: [gammaln(n + 1), -gammaln(X + 1).sum(axis=1), xlogy(X, p).sum(axis=1)],
        total=n,
    )


def _exponential(theta: Theta) -> PlainFamily:
    rate = theta["rate"]
    member = _linear(1 / rate, 1 / rate**2, lambda X: [np.log(rate), -rate * X[:, 0]])
    return member._replace(discrete=False)


def _known_variance(theta: Theta) -> PlainFamily:
    """Return a Gaussian whose variance is known."""
    mean, v = theta["mean"], theta["variance"]
    return _linear(mean, v, _gaussian_log_p(mean, v))._replace(discrete=False)


def _plain_gaussian(theta: Theta) -> PlainFamily:
    """Return a Gaussian of numbers, or of vectors with one variance for all columns."""
    mean, v = theta["mean"], theta["variance"]
    return _with_total_square(mean, np.broadcast_to(v, np.size(mean)), _gaussian_log_p(mean, v))


TEXTBOOK: dict[str, Callable[[Theta], PlainFamily]] = {
    "Bernoulli": _trials,
    "Binomial": _trials,
    "Categorical": _classes,
    "Multinomial": _multinomial,
    "Poisson": _poisson,
    "Geometric": _failures,
    "NegativeBinomial": _failures,
    "Gaussian": _plain_gaussian,
    "SphericalGaussian": _plain_gaussian,
    "GaussianFixedVariance": _known_variance,
    "DiagonalGaussian": _diagonal,
    "MultivariateGaussian": _full,
    "Exponential": _exponential,
    "Gamma": _gamma,
    "InverseGaussian": _inverse_gaussian,
    "Beta": lambda theta: _dirichlet(
        np.array([theta["a"], theta["b"]]), lambda X: np.concatenate([np.log(X), np.log1p(-X)], axis=1)
    ),
    "Dirichlet": lambda theta: _dirichlet(theta["a"], np.log),
}


def _mean_and_variance(family: str, theta: Theta) -> tuple[Any, Any] | None:
    """Return mean and variance of x, None where T already consists of them."""
    match family:
        case "Gamma":
            return theta["shape"] / theta["rate"], theta["shape"] / theta["rate"] ** 2
        case "InverseGaussian":
            return theta["mean"], theta["mean"] ** 3 / theta["shape"]
        case "Beta":
            mean, variance = _share_moments(np.array([theta["a"], theta["b"]]))
            return mean[0], variance[0]
        case "Dirichlet":
            return _share_moments(theta["a"])
    return None


def _share_moments(a: Array) -> tuple[Array, Array]:
    """Return means and variances of the shares of a Dirichlet distribution."""
    mean = a / a.sum()
    return mean, mean * (1 - mean) / (a.sum() + 1)
