"""Exponential families: one battery for all, at ordinary and at extreme parameters.

Expected values come from quadrature and exact summation, finite differences, and scipy.stats.
"""

import math
import pickle

import numpy as np
import pytest
from scipy import stats

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
from tests.families.family_members import (
    MEMBERS,
    S,
    close,
    derivative,
    each_family,
    each_member,
    integral,
    pack,
    room,
    unpack,
)


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
