"""Exponential families: one battery for all, at ordinary and at extreme parameters.

Expected values come from quadrature and exact summation, finite differences, scipy.stats, and 60-digit decimals.
"""

import math
import pickle
from decimal import Decimal, getcontext
from fractions import Fraction
from itertools import product

import dask.array as da
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import stats
from scipy.special import softmax

from certifit import DataError, as_rows
from certifit.certificates.families import certify
from certifit.core.rows import ArrayRows
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
    Prior,
    SphericalGaussian,
)
from certifit.families.stable import dirichlet_kl, excess, gamma_bregman, kl_term, log1pmx
from certifit.families.support import lattice

getcontext().prec = 60
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


# ----------------------------------------------------------------------------------------------------- the battery
@each_member
def test_the_coordinate_systems_map_to_each_other(member):
    for other in (
        type(member).from_natural(member.natural, **member.known_values),
        type(member).from_mean(member.mean_parameters, **member.known_values),
    ):
        close(pack(other), pack(member), rtol=1e-8, atol=1e-12)
        close(other.natural, member.natural, rtol=1e-7)
        close(other.mean_parameters, member.mean_parameters, rtol=1e-7, atol=1e-12)


@each_member
def test_the_gradient_of_A_is_the_mean_and_its_hessian_the_covariance_of_T(member):
    eta, sd = member.natural, np.sqrt(np.diag(member.T_covariance()))
    h = 1e-2 / np.maximum(sd, float(member.support.discrete))  # A varies over 1/sd, and over e-folds of rare events

    def at(eta):
        return type(member).from_natural(eta, **member.known_values)

    gradient = derivative(lambda eta: np.float64(at(eta).log_normaliser()), eta, h)
    rounding = 1e-14 * abs(member.log_normaliser()) / h
    assert (np.abs(gradient - member.mean_parameters) <= 1e-6 * sd + rounding).all()
    hessian = derivative(lambda eta: at(eta).mean_parameters, eta, h)
    rounding = 1e-14 * np.abs(member.mean_parameters)[:, None] / h
    assert (np.abs(hessian - member.T_covariance()) <= 1e-5 * np.outer(sd, sd) + rounding).all()


@each_member
def test_fisher_information_transforms_from_natural_to_ordinary_parameters(member):
    theta = pack(member)
    h = 1e-4 * room(member)
    J = derivative(lambda theta: unpack(member, theta).natural, theta, h)
    F = J.T @ member.T_covariance() @ J
    size = np.sqrt(np.outer(np.diag(F), np.diag(F)))
    assert (np.abs(member.fisher_information() - F) <= 1e-5 * size).all()


@each_member
def test_the_density_sums_to_one_and_has_these_moments_and_this_entropy(member):
    def parts(x):
        return np.column_stack([np.ones(len(x)), -np.maximum(member.log_density(x), -1e300), member.T(x)])

    one, entropy, *tau = integral(member, parts)
    sd = np.sqrt(np.diag(member.T_covariance()))
    close(one, 1.0, rtol=1e-10)
    close(member.entropy(), entropy, rtol=1e-9, atol=1e-9)
    assert (np.abs(tau - member.mean_parameters) <= 1e-7 * sd + 1e-10 * np.abs(member.mean_parameters)).all()


@each_member
def test_the_density_is_of_exponential_form(member):
    x = member.sample(20, 1)
    parts = member.log_h(x), member.T(x) @ member.natural, member.log_normaliser()
    size = sum(np.abs(part) for part in parts)
    if member.support.discrete:
        size += np.abs(x).max() * 20  # log h is a difference of log-factorials
    assert (np.abs(member.log_density(x) - (parts[0] + parts[1] - parts[2])) <= 1e-14 * size + 1e-12).all()


def twin(m):
    """The same distribution in scipy.stats."""
    match m:
        case Bernoulli():
            return stats.bernoulli(m.p)
        case Binomial():
            return stats.binom(m.n, m.p)
        case Categorical():
            return stats.rv_discrete(values=(np.arange(len(m.p)), m.p))
        case Multinomial():
            return stats.multinomial(m.n, m.p)
        case Poisson():
            return stats.poisson(m.rate)
        case Geometric():
            return stats.geom(m.p, loc=-1)
        case NegativeBinomial():
            return stats.nbinom(m.r, m.p)
        case Gaussian() | GaussianFixedVariance():
            return stats.norm(m.mean, math.sqrt(m.variance))
        case DiagonalGaussian() | SphericalGaussian() | MultivariateGaussian():
            return stats.multivariate_normal(m.mean, m.covariance)
        case Exponential():
            return stats.expon(scale=1 / m.rate)
        case Gamma():
            return stats.gamma(m.shape, scale=1 / m.rate)
        case InverseGaussian():
            return stats.invgauss(m.mean / m.shape, scale=m.shape)
        case Beta():
            return stats.beta(m.a, m.b)
        case Dirichlet():
            return stats.dirichlet(m.a)


@each_family
def test_densities_and_moments_agree_with_scipy(family):
    member = MEMBERS[family][0]
    x, peer = member.sample(50, 2), twin(member)
    if family is Dirichlet:
        theirs = np.array([peer.logpdf(row) for row in x])
    else:
        theirs = peer.logpmf(x) if hasattr(peer, "logpmf") else peer.logpdf(x)
    close(member.log_density(x), theirs, rtol=1e-11, atol=1e-12)
    close(member.entropy(), peer.entropy(), rtol=1e-8)
    if member.support.vector:
        mean = peer.mean() if callable(peer.mean) else peer.mean
        cov = peer.cov() if callable(peer.cov) else peer.cov
        close(member.mean, mean)
        close(member.covariance, cov, atol=1e-15)
    else:
        close([member.mean, member.variance], [peer.mean(), peer.var()], rtol=1e-10)


@each_member
def test_sample_moments(member):
    n = 20_000
    x = member.sample(n, 3)
    assert member.support.contains(x).all()
    assert (x == member.sample(n, 3)).all()
    sd = np.sqrt(np.diag(member.T_covariance()))
    rounding = 1e-12 * np.abs(member.mean_parameters)
    off = np.abs(member.T(x).mean(axis=0) - member.mean_parameters)
    assert (off <= 6 * sd / math.sqrt(n) + 3 / n + rounding).all()


def test_no_density_outside_the_support():
    outside = {
        Bernoulli: [0.5, 2, -1, np.nan],
        Binomial: [13, -1, 0.5],
        Poisson: [-1, 1.5, np.inf],
        Categorical: [3, -1, 0.5, np.nan],
        Exponential: [-1e-9],
        Gamma: [0.0, -1],
        Beta: [0, 1, 1.5],
        Gaussian: [np.inf, np.nan],
        Multinomial: [[1, 1, 1], [8, -1, 0]],
        Dirichlet: [[0.5, 0.5, 0.0], [0.5, 0.5, 0.5]],
    }
    for family, x in outside.items():
        assert (MEMBERS[family][0].log_density(x) == -np.inf).all(), family


def test_members_are_values():
    a, b = MultivariateGaussian([0.0, 1.0], S), MultivariateGaussian([0.0, 1.0], S)
    assert a == b
    assert hash(a) == hash(b)
    assert a != MultivariateGaussian([0.0, 1.5], S)
    assert pickle.loads(pickle.dumps(a)) == a
    with pytest.raises(ValueError, match="read-only"):
        a.mean[0] = 3.0


# --------------------------------------------------------------------------------------------------- divergences
@each_family
def test_kl_is_the_bregman_divergence_of_A_and_the_integral_of_the_log_ratio(family):
    p = MEMBERS[family][0]
    for factor in (0.7, 1.2):
        q = unpack(p, factor * pack(p))
        bregman = q.log_normaliser() - p.log_normaliser() - (q.natural - p.natural) @ p.mean_parameters
        close(p.kl(q), bregman, rtol=1e-10)
        with np.errstate(invalid="ignore"):  # far out both are -inf
            ratio = integral(p, lambda x, q=q: np.nan_to_num(p.log_density(x) - q.log_density(x)))
        close(p.kl(q), ratio, rtol=1e-8)
    assert p.kl(p) == 0.0


@each_member
def test_kl_of_nearly_equal_members_is_half_the_fisher_distance(member):
    """KL(θ, θ + Δ) = ½ Δ'F Δ (1 + O(Δ)): at a relative 1e-9 plain formulas have lost every digit."""
    theta = pack(member)
    sign = np.where(np.arange(len(theta)) % 2, -1.0, 1.0)
    moved = unpack(member, theta + 1e-9 * sign * room(member))
    delta = pack(moved) - theta
    expected = 0.5 * delta @ member.fisher_information() @ delta
    close(member.kl(moved), expected, rtol=1e-7 if np.ndim(member.parameters.get("p", 0)) == 0 else 1e-6)


def decimal_kl(p, q):
    """The textbook's formula in 60 digits."""
    D = Decimal
    match p:
        case Bernoulli():
            a, b = D(p.p), D(q.p)
            return a * (a / b).ln() + (1 - a) * ((1 - a) / (1 - b)).ln()
        case Geometric():
            return decimal_kl(Bernoulli(p.p), Bernoulli(q.p)) / D(p.p)
        case Poisson():
            return D(p.rate) * (D(p.rate) / D(q.rate)).ln() - D(p.rate) + D(q.rate)
        case Exponential():
            ratio = D(q.rate) / D(p.rate)
            return ratio - 1 - ratio.ln()
        case Gaussian():
            ratio = D(p.variance) / D(q.variance)
            return (ratio - 1 - ratio.ln() + (D(p.mean) - D(q.mean)) ** 2 / D(q.variance)) / 2
        case InverseGaussian():
            ratio, gap = D(q.shape) / D(p.shape), (D(p.mean) - D(q.mean)) ** 2 / D(p.mean) / D(q.mean) ** 2
            return (ratio - 1 - ratio.ln() + D(q.shape) * gap) / 2
        case Gamma():
            ratio = D(q.rate) / D(p.rate)
            of_shape = (D(p.shape) - D(q.shape)) * psi(p.shape) - log_gamma(p.shape) + log_gamma(q.shape)
            return of_shape - D(q.shape) * ratio.ln() + D(p.shape) * (ratio - 1)
        case Dirichlet():
            total, other = sum(map(D, p.a)), sum(map(D, q.a))
            out = log_gamma(total) - log_gamma(other)
            for a, b in zip(p.a, q.a, strict=True):
                out += log_gamma(b) - log_gamma(a) + (D(a) - D(b)) * (psi(a) - psi(total))
            return out


def bernoulli_numbers(count):
    """B_2, B_4, …, by their recurrence, exactly."""
    B = [Fraction(1)]
    for m in range(1, 2 * count + 1):
        B.append(-sum(math.comb(m + 1, k) * B[k] for k in range(m)) / (m + 1))
    return [Decimal(b.numerator) / b.denominator for b in B[2::2]]


STIRLING = bernoulli_numbers(40)
LIFT = 60  # Stirling's series at a + 60 is good to 60 digits


def log_gamma(a):
    a = Decimal(a)
    z = a + LIFT
    series = sum(b / (2 * k * (2 * k - 1) * z ** (2 * k - 1)) for k, b in enumerate(STIRLING, 1))
    half_log_2pi = Decimal("0.91893853320467274178032973640561763986139747363778341281715154048276569592726")
    return (z - Decimal("0.5")) * z.ln() - z + half_log_2pi + series - sum((a + k).ln() for k in range(LIFT))


def psi(a):
    a = Decimal(a)
    z = a + LIFT
    series = sum(b / (2 * k * z ** (2 * k)) for k, b in enumerate(STIRLING, 1))
    return z.ln() - 1 / (2 * z) - series - sum(1 / (a + k) for k in range(LIFT))


def test_decimals_of_log_gamma():
    """Γ(21) = 20!, Γ(½)² = π, ψ(3) - ψ(1) = 3/2."""
    assert abs(log_gamma(21) - Decimal(math.factorial(20)).ln()) < Decimal("1e-52")
    assert abs(float(2 * log_gamma(0.5)) - math.log(math.pi)) < 1e-15
    assert abs(psi(3) - psi(1) - Decimal("1.5")) < Decimal("1e-52")


PAIRS = [
    (Bernoulli(1e-300), Bernoulli(1e-12)),
    (Bernoulli(0.3), Bernoulli(0.3 + 1e-15)),
    (Bernoulli(1 - 1e-16), Bernoulli(1e-16)),
    (Geometric(1e-12), Geometric(1.0000001e-12)),
    (Poisson(1e12), Poisson(1e12 + 1.0)),
    (Poisson(1e-300), Poisson(1e12)),
    (Poisson(1.0), Poisson(1.25)),
    (Poisson(1.0), Poisson(1.2500001)),
    (Exponential(1e-200), Exponential(1e100)),
    (Exponential(1.0), Exponential(1 + 1e-13)),
    (Gaussian(1e8, 1e-4), Gaussian(1e8 + 1e-7, 1.0000001e-4)),
    (Gaussian(0.0, 1e-200), Gaussian(0.0, 1.0)),
    (InverseGaussian(2.0, 1e9), InverseGaussian(2.0 + 1e-9, 1e9 + 1)),
    (Gamma(1.0, 2.0), Gamma(2.0, 2.0)),
    (Gamma(9.0, 2.0), Gamma(10.0, 2.2)),
    (Gamma(3000.0, 3.0), Gamma(3001.0, 3.001)),
    (Gamma(1.0, 1e-10), Gamma(3000.0, 1e10)),
    (Gamma(3000.0, 1e-10), Gamma(1.0, 1e10)),
    (Dirichlet([1.0, 2.0, 3.0]), Dirichlet([3.0, 1.0, 1.0])),
    (Dirichlet([2000.0, 3000.0]), Dirichlet([2002.0, 3003.0])),
    (Dirichlet([2000.0, 1.0]), Dirichlet([2001.0, 1.0])),
    (Dirichlet([1.0, 1.0]), Dirichlet([4000.0, 1.0])),
    (Gamma(1e-5, 1.0), Gamma(1.0001e-5, 1.0)),
    (Gamma(1e9, 1.0), Gamma(1e9 + 1, 1.0)),
    (Gamma(0.3, 1.0), Gamma(1e7, 1e3)),
    (Gamma(1.8e6, 651.0), Gamma(7.5, 5e-4)),
    (Dirichlet([1e7, 2e7]), Dirichlet([1e7 * (1 + 2**-20), 2e7 * (1 + 2**-20)])),
    (Dirichlet([0.3, 0.2, 1e5]), Dirichlet([0.30001, 0.2, 1e5])),
    (Dirichlet([1e-4, 1e-4]), Dirichlet([1e4, 1e-4])),
    (Dirichlet([1e6, 0.5]), Dirichlet([1.1e6, 0.5])),
]


@pytest.mark.parametrize(("p", "q"), PAIRS, ids=lambda m: str(m))
def test_kl_has_twelve_digits(p, q):
    close(p.kl(q), float(decimal_kl(p, q)), rtol=1e-12)


def test_beta_is_a_dirichlet_and_wide_gaussians_agree():
    close(Beta(2.0, 3.0).kl(Beta(5.0, 1.5)), dirichlet_kl(np.array([2.0, 3.0]), np.array([5.0, 1.5])))
    p = MultivariateGaussian([0.0, 1.0], np.diag([2.0, 1e-9]))
    q = MultivariateGaussian([1.0, 1.0], np.diag([1.0, 1e9]))
    one = [Gaussian(*a).kl(Gaussian(*b)) for a, b in (((0, 2.0), (1, 1.0)), ((1, 1e-9), (1, 1e9)))]
    close(p.kl(q), sum(one))


def test_kl_limits_and_refusals():
    assert Bernoulli(0.0).kl(Bernoulli(0.5)) == pytest.approx(math.log(2))
    assert Bernoulli(0.5).kl(Bernoulli(0.0)) == np.inf
    assert Poisson(0.0).kl(Poisson(2.0)) == 2.0
    assert Categorical([0.5, 0.5, 0.0]).kl(Categorical([0.5, 0.0, 0.5])) == np.inf
    assert Categorical([0.5, 0.5, 0.0]).kl(Categorical([0.25, 0.25, 0.5])) == pytest.approx(math.log(2))
    for a, b in (
        (Poisson(1.0), Exponential(1.0)),
        (Binomial(0.5, 3), Binomial(0.5, 4)),
        (Categorical([0.5, 0.5]), Categorical([0.5, 0.25, 0.25])),
        (Dirichlet([1.0, 1.0]), Dirichlet([1.0, 1.0, 1.0])),
    ):
        with pytest.raises(DataError, match="wanted two members"):
            a.kl(b)


def test_parameters_at_the_ends_of_floating_point():
    """What is too large is infinite, what cannot be computed is refused: nothing is ever NaN."""
    assert Exponential(1e-300).kl(Exponential(1e300)) == np.inf
    assert Gaussian(0.0, 1.0).kl(Gaussian(1e200, 1.0)) == np.inf
    assert GaussianFixedVariance(0.0, 1.0).kl(GaussianFixedVariance(1e200, 1.0)) == np.inf
    assert Gamma(1e-300, 1e150).log_density([1e200]) == -np.inf
    close(InverseGaussian(1e100, 1e-300).entropy(), InverseGaussian(1e-200, 1e-300).entropy(), rtol=1e-12)
    with pytest.raises(DataError, match="range of floating point"):
        Gamma(1e300, 1e-150).kl(Gamma(1e-300, 1e-150))
    with pytest.raises(DataError, match="NumPy can draw"):
        Poisson(1e100).sample(3)


@pytest.mark.parametrize("t", [1e-300, 1e-12, -1e-12, 1e-3, 0.2499, 0.2501, -0.2501, -0.9, 30.0])
def test_stable_forms_against_decimals(t):
    x = Decimal(t)
    exact = (1 + x).ln() - x
    if abs(t) < 1e-20:  # 60 digits are not enough here
        exact = -x * x / 2
    close(float(log1pmx(t)), float(exact), rtol=1e-15, atol=0)
    if abs(t) > 1e-20:
        y = Decimal(1 + t)
        close(float(excess(1.0, 1 + t)), float(y - 1 - y.ln()), rtol=1e-14)
        close(float(kl_term(1 + t, 1.0)), float(y * y.ln() - y + 1), rtol=1e-14)


@pytest.mark.parametrize(("a", "b"), [(1, 2), (9, 10), (10, 11), (12, 500), (500, 1), (3, 3000), (900, 901)])
def test_the_bregman_divergence_of_log_gamma(a, b):
    def f(x):
        return log_gamma(x) - Decimal(x) * Decimal(x).ln() + x

    close(float(gamma_bregman(b, a)), float(f(b) - f(a) - (b - a) * (psi(a) - Decimal(a).ln())), rtol=1e-13)


def test_long_sums_over_whole_numbers():
    """Σ q^x = 1/(1-q) over a tail of 1e9 values, at every length of the first run."""
    p = 1e-7
    x, w = lattice((1 - p) / p, (1 - p) / p**2, np.inf)
    assert len(x) < 200_000
    assert (x == np.floor(x)).all()
    close(w @ np.exp(x * np.log1p(-p)), 1 / p, rtol=1e-12)


# ------------------------------------------------------------------------------------------------------- fitting
@each_family
def test_a_fit_matches_its_moments_and_no_neighbour_is_likelier(family):
    known = MEMBERS[family][0].known_values
    x = drawn(family)
    fit = family.fit(x, **known)
    member = fit.member
    assert fit.certificate.kind == "exact"
    assert fit.certificate.holds, str(fit.certificate)
    assert fit.n == len(x)
    close(fit.log_likelihood, member.log_density(x).sum())
    sd = np.sqrt(np.diag(member.T_covariance()))
    assert (np.abs(member.T(x).mean(axis=0) - member.mean_parameters) <= 1e-10 * sd).all()
    theta = pack(member)
    for j, sign in product(range(len(theta)), (-1, 1)):
        near = theta.copy()
        near[j] += sign * 1e-3 / math.sqrt(member.fisher_information()[j, j])
        assert unpack(member, near).log_density(x).sum() < fit.log_likelihood


def test_fits_agree_with_scipy():
    x = drawn(Gamma)
    shape, _, scale = stats.gamma.fit(x, floc=0)
    member = Gamma.fit(x).member
    close([member.shape, member.rate], [shape, 1 / scale], rtol=1e-7)
    x = drawn(Beta)
    a, b, _, _ = stats.beta.fit(x, floc=0, fscale=1)
    member = Beta.fit(x).member
    close([member.a, member.b], [a, b], rtol=1e-7)
    x = drawn(InverseGaussian)
    member = InverseGaussian.fit(x).member
    close([member.mean, 1 / member.shape], [x.mean(), (1 / x).mean() - 1 / x.mean()], rtol=1e-12)
    x = drawn(MultivariateGaussian)
    close(MultivariateGaussian.fit(x).member.covariance, np.cov(x.T, bias=True), rtol=1e-12)
    close(MultivariateGaussian.fit(x, unbiased=True).member.covariance, np.cov(x.T), rtol=1e-12)


@each_family
def test_every_fitted_parameter_that_is_changed_breaks_the_certificate(family):
    known = MEMBERS[family][0].known_values
    x = drawn(family)
    rows = as_rows(np.asarray(x).reshape(len(x), -1))
    fit = family.fit(rows, **known)
    theta = pack(fit.member)
    for j in range(len(theta)):
        wrong = theta.copy()
        wrong[j] *= 1 + 1e-6
        parameters = unpack(fit.member, wrong).parameters
        certificate = certify(family.__name__, parameters, rows, fit.log_likelihood)
        assert not certificate.checks[0].passed, (family, j)
    honest = certify(family.__name__, fit.member.parameters, rows, fit.log_likelihood)
    assert honest.holds
    liar = certify(family.__name__, fit.member.parameters, rows, fit.log_likelihood * (1 + 1e-9))
    assert not liar.holds


@each_family
def test_weight_two_is_the_row_twice_and_blocks_merge(family):
    known = MEMBERS[family][0].known_values
    x = np.asarray(drawn(family, 90))
    w = np.arange(90) % 3
    once = family.fit(x, sample_weight=w, **known)
    twice = family.fit(np.repeat(x, w, axis=0), **known)
    assert once.n == twice.n == 90
    assert once.certificate.holds
    close(pack(once.member), pack(twice.member), rtol=1e-10, atol=1e-13)
    close(once.log_likelihood, twice.log_likelihood, rtol=1e-11)
    rows = ArrayRows(x.reshape(90, -1), w=w.astype(float))
    rows.block_rows = 8
    blocks = family.fit(rows, **known)
    assert blocks.certificate.holds
    close(pack(blocks.member), pack(once.member), rtol=1e-10, atol=1e-13)


@each_family
def test_from_a_file_as_in_memory(family, tmp_path):
    known = MEMBERS[family][0].known_values
    x = np.asarray(drawn(family, 60)).reshape(60, -1)
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({f"x{j}": x[:, j] for j in range(x.shape[1])}), path)
    stored = family.fit(path, **known)
    assert stored.certificate.holds
    assert stored.member == family.fit(x, **known).member
    assert family.fit(da.from_array(x, chunks=(32, -1)), **known).certificate.holds


@each_family
def test_float32_rows(family):
    """Sums are float64 whatever the rows are."""
    known = MEMBERS[family][0].known_values
    assert family.fit(np.asarray(drawn(family, 60), np.float32), **known).certificate.holds


def test_rows_of_weight_zero_are_not_there():
    w = [0, 1, 1, 2]
    for family, nothing, x in (
        (Poisson, -1.5, [1, 2, 4]),
        (Gamma, -3.0, [1.0, 2.0, 4.0]),
        (Gaussian, 1e200, [1, 2, 4]),
    ):
        fit = family.fit([nothing, *x], sample_weight=w)
        assert fit.certificate.holds
        close(pack(fit.member), pack(family.fit(x, sample_weight=w[1:]).member))
    with pytest.raises(DataError, match="-1 in row 3"):
        Poisson.fit([-1, 0, 2, -1], sample_weight=w)


def test_rare_events_keep_their_digits():
    """One success in 3e9 trials, whichever row comes first."""
    assert Bernoulli.fit([1, 0], sample_weight=[1, 3e9]).member.p == 1 / (3e9 + 1)
    assert Categorical.fit([0, 1], sample_weight=[3e9, 1]).member.p[1] == 1 / (3e9 + 1)


def test_numbers_come_in_many_shapes():
    expected = Poisson.fit(np.array([1.0, 2.0, 6.0])).member
    column = pd.DataFrame({"x": [1, 2, 6]})
    series = pd.Series([1, 2, 6]), pd.Series([1, 2, 6], name="x"), pl.Series("x", [1, 2, 6])
    for x in ([1, 2, 6], (1, 2, 6), [[1], [2], [6]], *series, column, da.from_array(np.array([1.0, 2.0, 6.0]))):
        assert Poisson.fit(x).member == expected
    with pytest.raises(DataError, match="one column"):
        Poisson.fit([[1, 2], [3, 4]])


@pytest.mark.parametrize("unbiased", [False, True])
@pytest.mark.parametrize("family", [Gamma, InverseGaussian, Beta, Gaussian, Exponential], ids=lambda f: f.__name__)
def test_method_of_moments(family, unbiased):
    x = drawn(family)
    if unbiased and family is Exponential:
        with pytest.raises(DataError, match="unbiased"):
            family.fit(x, method="moments", unbiased=True)
        return
    fit = family.fit(x, method="moments", unbiased=unbiased)
    assert fit.certificate.holds
    close(fit.member.mean, x.mean())
    if family is not Exponential:
        close(fit.member.variance, x.var(ddof=int(unbiased)), rtol=1e-11)
        assert ("(n - 1)/n" in fit.note) is not unbiased


def test_method_of_moments_for_shares():
    x = drawn(Dirichlet)
    fit = Dirichlet.fit(x, method="moments")
    assert fit.certificate.holds
    close(fit.member.mean, x.mean(axis=0))
    close(np.trace(fit.member.covariance), x.var(axis=0).sum())
    changed = certify("Dirichlet", {"a": fit.member.a * (1 + 1e-6)}, as_rows(x), fit.log_likelihood, "moments")
    assert not changed.holds


@pytest.mark.parametrize("family", [Gaussian, DiagonalGaussian, SphericalGaussian, MultivariateGaussian])
def test_the_variance_is_biased_unless_asked(family):
    x = np.asarray(drawn(family, 5))
    biased, unbiased = family.fit(x), family.fit(x, unbiased=True)
    assert biased.certificate.holds
    assert unbiased.certificate.holds
    assert "unbiased=True" in biased.note
    assert "unbiased=True" in str(biased)
    assert unbiased.note == ""
    for name in ("variance", "covariance"):
        if hasattr(biased.member, name):
            close(getattr(unbiased.member, name), np.asarray(getattr(biased.member, name)) * 5 / 4)
    with pytest.raises(DataError, match="needs two rows"):
        family.fit(x[:1], unbiased=True)


def test_a_small_variance_far_from_zero():
    z = np.random.default_rng(0).normal(size=5000)
    x = 1e8 + 1e-4 * np.round(z * 2**10) / 2**10
    for family, table in ((Gaussian, x), (DiagonalGaussian, np.column_stack([x, z])), (MultivariateGaussian, None)):
        X = np.column_stack([x, z]) if table is None else table
        fit = family.fit(X)
        assert fit.certificate.holds, str(fit.certificate)
        first = fit.member.covariance[0, 0] if family is not Gaussian else fit.member.variance
        close(first, np.var(x - 1e8), rtol=1e-12)
    y = 1e8 + z
    fit = Gamma.fit(y)
    assert fit.certificate.holds
    close(fit.member.shape, 1e16 / z.var(), rtol=1e-6)
    assert InverseGaussian.fit(y).certificate.holds


@each_family
def test_a_prior_is_imagined_rows(family):
    member = MEMBERS[family][0]
    x = drawn(family, 100)
    imagined = family.from_mean(member.mean_parameters, **member.known_values)
    fit = family.fit(x, prior=Prior(25, imagined.mean_parameters), **member.known_values)
    assert fit.certificate.holds, str(fit.certificate)
    blended = (100 * member.T(x).mean(axis=0) + 25 * member.mean_parameters) / 125
    close(fit.member.mean_parameters, blended, rtol=1e-10)
    rows = as_rows(np.asarray(x).reshape(100, -1))
    assert not certify(family.__name__, fit.member.parameters, rows, fit.log_likelihood).holds


def test_a_prior_mends_a_sample_without_spread():
    for family in (Gaussian, Gamma, InverseGaussian, Beta):
        x = np.full(5, MEMBERS[family][0].mean)
        assert family.fit(x, prior=Prior(2, MEMBERS[family][0].mean_parameters)).certificate.holds


# ----------------------------------------------------------------------------------------------------- refusals
DEGENERATE = {
    "Gaussian": lambda: Gaussian.fit([3.0, 3.0, 3.0]),
    "Gaussian at 1e8": lambda: Gaussian.fit(np.full(1000, 1e8 + 0.1)),
    "one row": lambda: Gaussian.fit([3.0]),
    "DiagonalGaussian": lambda: DiagonalGaussian.fit([[1.0, 2.0], [2.0, 2.0]]),
    "SphericalGaussian": lambda: SphericalGaussian.fit([[1.0, 2.0], [1.0, 2.0]]),
    "MultivariateGaussian": lambda: MultivariateGaussian.fit([[1.0, 2.0], [2.0, 4.0], [3.0, 6.0]]),
    "fewer rows than columns": lambda: MultivariateGaussian.fit(np.eye(3)[:2]),
    "Exponential": lambda: Exponential.fit([0.0, 0.0]),
    "Gamma": lambda: Gamma.fit([2.0, 2.0]),
    "Gamma by moments": lambda: Gamma.fit([0.3, 0.3, 0.3], method="moments"),
    "InverseGaussian": lambda: InverseGaussian.fit([0.1, 0.1, 0.1]),
    "Beta": lambda: Beta.fit([0.3, 0.3, 0.3]),
    "Dirichlet": lambda: Dirichlet.fit([[0.2, 0.8]]),
}


@pytest.mark.parametrize("name", DEGENERATE)
def test_samples_without_a_most_likely_member_are_refused(name):
    with pytest.raises(DataError) as caught:
        DEGENERATE[name]()
    assert caught.value.got
    assert caught.value.wanted
    assert caught.value.fix


def test_limits_that_are_members():
    for fit in (
        Bernoulli.fit([1, 1]),
        Bernoulli.fit([0, 0]),
        Binomial.fit([4, 4], n=4),
        Poisson.fit([0, 0]),
        Geometric.fit([0, 0]),
        NegativeBinomial.fit([0, 0], r=2.0),
        Categorical.fit([1, 1], k=3),
        Multinomial.fit([[0, 2, 0]], n=2),
    ):
        assert fit.certificate.holds, fit
        assert fit.log_likelihood == pytest.approx(0.0, abs=1e-12)
        assert fit.member.entropy() == pytest.approx(0.0, abs=1e-12)
        assert fit.member.kl(fit.member) == 0.0
        assert np.isinf(np.diag(fit.member.fisher_information())).any()


REFUSED = {
    "not in the support": (lambda: Poisson.fit([1, 2, 1.5]), "1.5 in row 2"),
    "negative": (lambda: Gamma.fit([1.0, -2.0]), "-2 in row 1"),
    "too many successes": (lambda: Binomial.fit([1, 5], n=4), "5 in row 1"),
    "counts of another total": (lambda: Multinomial.fit([[1, 1], [2, 1]], n=2), "row 1"),
    "not on the simplex": (lambda: Dirichlet.fit([[0.5, 0.5], [0.5, 0.4]]), "row 1"),
    "known parameter left out": (lambda: Binomial.fit([1, 2]), "no known parameters"),
    "unknown parameter": (lambda: Poisson.fit([1, 2], n=3), "Poisson with n"),
    "method": (lambda: Poisson.fit([1], method="mle"), "'mle'"),
    "prior and moments": (lambda: Gamma.fit([1.0, 2.0], method="moments", prior=Prior(1, [0.0, 2.0])), "prior"),
    "prior of another length": (lambda: Gamma.fit([1.0, 2.0], prior=Prior(1, 2.0)), "shape (1,)"),
    "prior without strength": (lambda: Prior(0, 0.5), "strength 0"),
    "probabilities": (lambda: Categorical([0.5, 0.6]), "Categorical"),
    "probability": (lambda: Bernoulli(1.5), "p=1.5"),
    "variance": (lambda: Gaussian(0.0, -1.0), "variance=-1.0"),
    "not a number": (lambda: Poisson(math.nan), "rate=nan"),
    "indefinite": (lambda: MultivariateGaussian([0.0, 0.0], [[1.0, 2.0], [2.0, 1.0]]), "not positive definite"),
    "asymmetric": (lambda: MultivariateGaussian([0.0, 0.0], [[1.0, 0.2], [0.1, 1.0]]), "covariance"),
    "impossible mean logs": (lambda: Dirichlet.from_mean([-0.1, -0.1]), "mean logarithms"),
    "prior of another dimension": (
        lambda: DiagonalGaussian.fit([[1.0, 2.0], [3.0, 5.0]], prior=Prior(1, [0.0, 1.0])),
        "1 columns",
    ),
    "natural parameter of a limit": (lambda: Categorical([1.0, 0.0]).natural, "Categorical"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals_say_what_was_got(name):
    action, words = REFUSED[name]
    with pytest.raises(DataError) as caught:
        action()
    assert words in caught.value.got
    assert caught.value.wanted
