"""Members of every exponential family, ordinary and not, and instruments that measure them without their formulas."""

import math
from itertools import product

import numpy as np
import pytest
from scipy.special import softmax

from certifit.families import (
    Bernoulli,
    Beta,
    Binomial,
    Categorical,
    DiagonalGaussian,
    Dirichlet,
    Exponential,
    Gamma,
    Gaussian,
    GaussianFixedVariance,
    Geometric,
    InverseGaussian,
    Multinomial,
    MultivariateGaussian,
    NegativeBinomial,
    Poisson,
    SphericalGaussian,
)

S = np.array([[2.0, 0.6], [0.6, 1.0]])
MEMBERS = {  # the first of each is ordinary, the others are not
    Bernoulli: [Bernoulli(0.3), Bernoulli(1e-9), Bernoulli(1 - 1e-4)],
    Binomial: [Binomial(0.4, 12), Binomial(1e-7, 1000), Binomial(0.5, 10**9)],
    Categorical: [Categorical([0.2, 0.5, 0.3]), Categorical([1e-9, 0.5, 0.5 - 1e-9])],
    Multinomial: [Multinomial([0.2, 0.5, 0.3], 7), Multinomial([1e-6, 0.9, 0.1 - 1e-6], 20)],
    Poisson: [Poisson(3.7), Poisson(1e-6), Poisson(1e12)],
    Geometric: [Geometric(0.3), Geometric(1e-9), Geometric(1 - 1e-6)],
    NegativeBinomial: [
        NegativeBinomial(0.4, 2.5),
        NegativeBinomial(1e-7, 0.05),
        NegativeBinomial(1e-4, 300.0),
        NegativeBinomial(1e-5, 1e5),
    ],
    Gaussian: [Gaussian(0.5, 2.0), Gaussian(10.0, 1e-3), Gaussian(-2.0, 1e9)],
    GaussianFixedVariance: [GaussianFixedVariance(1.5, 4.0), GaussianFixedVariance(-1e3, 1e-6)],
    DiagonalGaussian: [DiagonalGaussian([0.5, -1.0], [2.0, 0.3]), DiagonalGaussian([0.0, 5.0], [1e-6, 1e6])],
    SphericalGaussian: [SphericalGaussian([0.5, -1.0], 2.0), SphericalGaussian([1.0, 2.0], 1e-4)],
    MultivariateGaussian: [
        MultivariateGaussian([0.5, -1.0], S),
        MultivariateGaussian([0.0, 1.0], [[1e4, 9.0], [9.0, 1e-2]]),
    ],
    Exponential: [Exponential(2.0), Exponential(1e-8), Exponential(1e8)],
    Gamma: [Gamma(2.5, 0.7), Gamma(0.05, 3.0), Gamma(1e6, 10.0)],
    InverseGaussian: [InverseGaussian(1.0, 2.0), InverseGaussian(2.0, 1e4), InverseGaussian(0.5, 0.05)],
    Beta: [Beta(2.0, 3.5), Beta(0.1, 3.0), Beta(1e4, 3e4)],
    Dirichlet: [Dirichlet([1.5, 2.0, 3.0]), Dirichlet([40.0, 2.0, 7.0])],
}
FAMILIES = list(MEMBERS)
CONTINUOUS = [f for f in FAMILIES if not MEMBERS[f][0].support.discrete]
ALL = [pytest.param(m, id=f"{type(m).__name__}{i}") for ms in MEMBERS.values() for i, m in enumerate(ms)]
each_member = pytest.mark.parametrize("member", ALL)
each_family = pytest.mark.parametrize("family", FAMILIES, ids=lambda f: f.__name__)


# ------------------------------------------------------------------------------------------------------- instruments
def nodes(member):
    """Points and weights: weights @ f(points) is the sum or integral of f over the support."""
    if isinstance(member, Multinomial):
        k, n = len(member.p), member.n
        x = np.array([x for x in product(range(n + 1), repeat=k) if sum(x) == n], float)
        return x, np.ones(len(x))
    if member.support.discrete:
        return member.lattice()
    if isinstance(member, Dirichlet):
        t = np.linspace(-20, 20, 401)
        grid = np.stack(np.meshgrid(t, t, indexing="ij"), axis=-1).reshape(-1, 2)
        x = softmax(np.column_stack([grid, np.zeros(len(grid))]), axis=1)
        return x, x.prod(axis=1) * (t[1] - t[0]) ** 2
    if member.support.vector:
        t = np.linspace(-9, 9, 181)
        z = np.stack(np.meshgrid(t, t, indexing="ij"), axis=-1).reshape(-1, 2)
        L = np.linalg.cholesky(member.covariance)
        return member.mean + z @ L.T, (t[1] - t[0]) ** 2 * np.linalg.det(L)
    v = np.linspace(-13, 13, 6001)  # trapezoid rule after sinh, and exp or expit where the support asks for it
    m, sd = member.mean, math.sqrt(member.variance)
    if member.support.low == -np.inf:
        return m + sd * np.sinh(v), sd * np.cosh(v) * (v[1] - v[0])
    if member.support.high == 1:
        centre, scale = math.log(m / (1 - m)), min(3.0, sd / (m * (1 - m)))
        t = np.clip(centre + scale * np.sinh(v), -700, 36)
        x = 1 / (1 + np.exp(-t))
        jacobian = x * (1 - x)
    else:
        centre, scale = math.log(m), min(3.0, sd / m)
        t = np.clip(centre + scale * np.sinh(v), -700, 600)
        x = jacobian = np.exp(t)
    return x, np.where((t > -700) & (t < 600), jacobian * scale * np.cosh(v) * (v[1] - v[0]), 0.0)


def integral(member, f):
    """E f(x), one number per column of f."""
    x, w = nodes(member)
    return (w * np.exp(member.log_density(x))) @ f(x)


def derivative(f, x, h):
    """Jacobian of f at x by central differences, extrapolated to step 0."""
    columns = []
    for j in range(len(x)):
        e = np.zeros(len(x))
        e[j] = h[j]
        wide, narrow = (f(x + e) - f(x - e)) / (2 * h[j]), (f(x + e / 2) - f(x - e / 2)) / h[j]
        columns.append((4 * narrow - wide) / 3)
    return np.stack(columns, axis=-1)


def pack(member):
    """The free ordinary parameters as a vector."""
    values = []
    for name, value in member.parameters.items():
        if name == "covariance":
            values.append(value[np.triu_indices(len(value))])
        elif name == "p" and np.ndim(value):
            values.append(value[:-1])
        elif name not in member.known:
            values.append(np.atleast_1d(value))
    return np.concatenate(values)


def unpack(member, theta):
    """The member of the same family and dimension with these free parameters."""
    values, theta = {}, np.asarray(theta, float)
    for name, value in member.parameters.items():
        if name in member.known:
            values[name] = value
        elif name == "covariance":
            M = np.zeros_like(value)
            M[np.triu_indices(len(M))] = theta
            values[name] = M + np.triu(M, 1).T
        elif name == "p" and np.ndim(value):
            values[name] = np.append(theta, 1 - theta.sum())
        else:
            size = np.size(value)
            values[name], theta = (theta[:size] if np.ndim(value) else theta[0]), theta[size:]
    return type(member)(**values)


def room(member):
    """How far each free parameter is from the end of its range, or from 0."""
    theta = pack(member)
    size = np.where(theta == 0, 1e-3, np.abs(theta))
    return np.minimum(size, 1 - theta.sum()) if "p" in member.parameters else size


def close(a, b, rtol=1e-12, atol=0.0):
    np.testing.assert_allclose(a, b, rtol=rtol, atol=atol)


def drawn(family, size=400, seed=0):
    return MEMBERS[family][0].sample(size, seed)
