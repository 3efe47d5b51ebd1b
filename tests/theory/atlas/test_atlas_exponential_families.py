"""The statements of docs/atlas/02_exponential_families on data; each with a broken variant that must fail."""

from itertools import product

import numpy as np
from scipy import stats
from scipy.integrate import trapezoid
from scipy.special import expit, logsumexp

from certifit import GeneralizedLinearRegressor
from certifit.datasets import load_penguins, load_visits
from certifit.families import Binomial, Gamma, Gaussian, Geometric, Poisson

VISITS = load_visits().iloc[::20]
COUNTS = VISITS["visits"].to_numpy(dtype=float)
MASS = load_penguins()["body_mass_g"].dropna().to_numpy() / 1000


# --------------------------------------------------------------------------------- the gradient of A is the mean
def summed_log_normaliser(member, points, discrete):
    """A(η) as the logarithm of a sum or an integral of h(x) exp(η·T(x)), for any η."""
    T, log_h = member.T(points), member.log_h(points)

    def A(eta):
        log_terms = T @ np.atleast_1d(eta) + log_h
        if discrete:
            return logsumexp(log_terms)
        top = log_terms.max()
        return top + np.log(trapezoid(np.exp(log_terms - top), points))

    return A


def moments_are_derivatives(A, at, mean, covariance, step=1e-3):
    """Whether central differences of A are this mean (m,) and this covariance (m, m)."""
    steps = step * np.eye(len(at)) * np.maximum(1, np.abs(at))
    size = np.diag(steps)
    slope = np.array([A(at + s) - A(at - s) for s in steps]) / (2 * size)
    bend = [[A(at + s + t) - A(at + s - t) - A(at - s + t) + A(at - s - t) for t in steps] for s in steps]
    bend = np.array(bend) / (4 * np.outer(size, size))
    return np.allclose(slope, mean, rtol=1e-5) and np.allclose(bend, covariance, rtol=1e-4)


WHOLE, FINE = np.arange(400.0), np.linspace(1e-3, 20, 20_001)
MEMBERS = {
    "Poisson": (Poisson.fit(COUNTS).member, WHOLE, True),
    "Geometric": (Geometric.fit(COUNTS).member, WHOLE, True),
    "Binomial": (Binomial(0.36, 20), np.arange(21.0), True),
    "Gamma": (Gamma.fit(MASS).member, FINE, False),
    "Gaussian": (Gaussian.fit(MASS).member, np.linspace(-10, 20, 20_001), False),
}


def test_gradient_of_a_is_the_mean():
    for member, points, discrete in MEMBERS.values():
        A = summed_log_normaliser(member, points, discrete)
        assert abs(A(member.natural) - member.log_normaliser()) < 1e-8
        assert moments_are_derivatives(A, member.natural, member.mean_parameters, member.T_covariance())


def test_control_slope_in_the_ordinary_parameter():
    member, points, _ = MEMBERS["Poisson"]
    A = summed_log_normaliser(member, points, discrete=True)
    assert not moments_are_derivatives(
        lambda rate: A(np.log(rate)), np.array([member.rate]), member.mean_parameters, member.T_covariance()
    )


# ------------------------------------------------------------------------- moment matching is maximum likelihood
def is_most_likely(log_likelihood, *parameters):
    """Whether the likelihood falls in every direction of the parameters, near by and further away."""
    best, at = log_likelihood(*parameters), np.array(parameters)
    directions = [np.array(d) for d in product((-1, 0, 1), repeat=len(at)) if any(d)]
    return all(log_likelihood(*(at * (1 + size * d))) < best for d in directions for size in (1e-3, 1e-2, 1e-1))


def gamma_likelihood(shape, rate):
    return stats.gamma.logpdf(MASS, shape, scale=1 / rate).mean()


def test_moment_matching_is_maximum_likelihood():
    gamma, gaussian, poisson = Gamma.fit(MASS).member, Gaussian.fit(MASS).member, Poisson.fit(COUNTS).member
    np.testing.assert_allclose(gamma.mean_parameters, [np.log(MASS).mean(), MASS.mean()], rtol=1e-9)
    assert is_most_likely(gamma_likelihood, gamma.shape, gamma.rate)
    assert is_most_likely(lambda m, v: stats.norm.logpdf(MASS, m, np.sqrt(v)).mean(), MASS.mean(), MASS.var())
    np.testing.assert_allclose([gaussian.mean, gaussian.variance], [MASS.mean(), MASS.var()], rtol=1e-12)
    assert is_most_likely(lambda rate: stats.poisson.logpmf(COUNTS, rate).mean(), poisson.rate)


def test_control_mean_and_variance_of_a_gamma():
    moments = Gamma.fit(MASS, method="moments").member
    np.testing.assert_allclose([moments.mean, moments.variance], [MASS.mean(), MASS.var()], rtol=1e-12)
    assert not is_most_likely(gamma_likelihood, moments.shape, moments.rate)


# ------------------------------------------------------------------------------------------- score equations
COLUMNS = VISITS[["chronic_diseases", "log_coinsurance"]].to_numpy()
DESIGN = np.column_stack([np.ones(len(COLUMNS)), COLUMNS])
ANY_VISIT = (COUNTS > 0).astype(float)


def fitted_means(family, link, y, inverse_link):
    """The means of the fit, by its coefficients."""
    return inverse_link(DESIGN @ coefficients(family, link, y))


def coefficients(family, link, y):
    model = GeneralizedLinearRegressor(family=family, link=link).fit(COLUMNS, y)
    return np.append(model.intercept_, model.coef_)


def score_is_zero(y, mu):
    """Whether every column of the design has the same sum with y as with the means."""
    return bool(np.allclose(DESIGN.T @ mu, DESIGN.T @ y, rtol=1e-8))


def test_score_equations():
    assert score_is_zero(COUNTS, fitted_means("poisson", "log", COUNTS, np.exp))
    assert score_is_zero(ANY_VISIT, fitted_means("binomial", "logit", ANY_VISIT, expit))
    assert score_is_zero(COUNTS, fitted_means("gaussian", "identity", COUNTS, np.positive))
    likeliest = coefficients("poisson", "log", COUNTS)
    assert is_most_likely(lambda *beta: stats.poisson.logpmf(COUNTS, np.exp(DESIGN @ beta)).mean(), *likeliest)


def test_control_another_link():
    assert not score_is_zero(COUNTS, fitted_means("poisson", "identity", COUNTS, np.positive))
    assert not score_is_zero(ANY_VISIT, fitted_means("binomial", "probit", ANY_VISIT, stats.norm.cdf))


# --------------------------------------------------------------------------- the ML variance is biased
BIRDS = load_penguins()["flipper_length_mm"].dropna().to_numpy()[::70]  # five birds, all samples of which are tried


def is_biased(estimate, n):
    """Whether the mean of the estimate over all samples of n with replacement is (n - 1)/n of the variance."""
    mean = np.mean([estimate(np.array(sample)) for sample in product(BIRDS, repeat=n)])
    return bool(np.isclose(mean, (n - 1) / n * BIRDS.var(), rtol=1e-10))


def ml_variance(x):
    """The family's estimate; equal values have no Gaussian, and the variance 0."""
    return Gaussian.fit(x).member.variance if np.ptp(x) > 0 else 0.0


def test_ml_variance_is_biased():
    assert is_biased(ml_variance, 2)
    assert is_biased(ml_variance, 3)


def test_control_known_mean():
    assert not is_biased(lambda x: np.mean((x - BIRDS.mean()) ** 2), 2)
    assert not is_biased(lambda x: x.var(ddof=1), 3)
