"""Fitting by the smallest KL divergence: closed forms, descent, both directions, samples, pictures."""

import math

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import minimize

from certifit import DataError
from certifit.divergence import Divergence, Mixture, entropy, kl, minimise_kl
from certifit.divergence.plots import plot_directions, plot_projection_path
from certifit.families import (
    Beta,
    Binomial,
    DiagonalGaussian,
    Exponential,
    Gamma,
    Gaussian,
    GaussianFixedVariance,
    InverseGaussian,
    MultivariateGaussian,
    NegativeBinomial,
    Poisson,
    SphericalGaussian,
)


def bimodal():
    return Mixture([0.4, 0.6], [Gaussian(-3.0, 1.0), Gaussian(2.0, 0.5)])


def plane():
    first = MultivariateGaussian([0.0, 0.0], [[1.0, 0.3], [0.3, 0.5]])
    second = MultivariateGaussian([1.0, -1.0], [[0.8, 0.0], [0.0, 1.2]])
    return first, second


@pytest.mark.parametrize(("n", "p"), [(1, 0.5), (20, 0.3), (1000, 0.01), (10_000, 0.7)])
def test_binomial_on_gaussians(n, p):
    """μ = np and σ² = np(1-p), in closed form and by gradient descent."""
    closed, descent = minimise_kl(Binomial(p, n), Gaussian), minimise_kl(Binomial(p, n), Gaussian, method="gradient")
    for found in (closed, descent):
        assert found.member.mean == pytest.approx(n * p, rel=1e-9)
        assert found.member.variance == pytest.approx(n * p * (1 - p), rel=1e-9)
        assert found.certificate.kind == "exact"
        assert found.certificate.holds
        assert "may be negative" in found.kl.note
        assert found.certificate.facts["moments of p from"] == "its mean and variance"
    assert closed.path is None
    path = descent.path
    assert len(path.members) == len(path.parameters) == len(path.gradients) == len(path.objective) > 3
    assert path.members[-1] == descent.member
    assert (np.diff(path.objective) <= 1e-12 * np.abs(path.objective[0])).all()
    assert np.abs(path.gradients[0]).max() > 1e-3


def test_gradients_are_those_of_the_divergence():
    """Central differences of kl itself, forward and reverse."""
    target = Mixture([0.4, 0.6], [Gamma(2.0, 1.0), Gamma(9.0, 1.0)])
    for direction in ("forward", "reverse"):
        found = minimise_kl(target, Gamma, direction, method="gradient")
        eta = Gamma(3.0, 0.7).natural
        gradient = found.gradient(eta)

        def value(eta, direction=direction):
            q = Gamma.from_natural(eta)
            return float(kl(target, q) if direction == "forward" else kl(q, target))

        h = 1e-4
        central = [(value(eta + h * e) - value(eta - h * e)) / (2 * h) for e in np.eye(2)]
        np.testing.assert_allclose(gradient, central, rtol=1e-6)
        np.testing.assert_allclose(found.gradient(found.member.natural), 0, atol=1e-8)
        assert found.certificate.holds


def test_a_sample_gives_maximum_likelihood_and_both_numbers():
    rng = np.random.default_rng(0)
    x = rng.poisson(3.0, 500)
    found = minimise_kl(x, Poisson)
    assert found.member.rate == pytest.approx(x.mean(), rel=1e-14)
    values, counts = np.unique(x, return_counts=True)
    share = counts / 500
    assert found.entropy == pytest.approx(stats.entropy(share), rel=1e-13)
    assert found.mean_log_likelihood == pytest.approx(stats.poisson(x.mean()).logpmf(x).mean(), rel=1e-12)
    assert found.kl == pytest.approx((share * np.log(share / stats.poisson(x.mean()).pmf(values))).sum(), rel=1e-10)
    assert found.kl == pytest.approx(-found.entropy - found.mean_log_likelihood, rel=1e-10)
    assert any("log-likelihood" in check.name for check in found.certificate.checks)
    assert found.certificate.holds
    assert "-H(p) - mean log-likelihood" in str(found)
    by_table = minimise_kl((values, share), Poisson)
    assert by_table.member.rate == pytest.approx(x.mean(), rel=1e-13)
    gamma = rng.gamma(3.0, size=200)
    assert minimise_kl(gamma, Gamma, method="gradient").member.shape == pytest.approx(
        stats.gamma.fit(gamma, floc=0)[0], rel=1e-6
    )
    rows = rng.normal(size=(100, 2))
    flat = minimise_kl(rows, MultivariateGaussian, method="gradient")
    np.testing.assert_allclose(flat.member.covariance, np.cov(rows.T, bias=True), rtol=1e-8)
    assert flat.certificate.holds


def test_projections_of_distributions():
    p = bimodal()
    found = minimise_kl(p, Gaussian)
    assert found.member.mean == pytest.approx(p.mean, abs=1e-12)
    assert found.member.variance == pytest.approx(p.variance, rel=1e-13)
    assert type(found.kl) is Divergence
    assert found.kl == pytest.approx(found.member.entropy() - entropy(p), rel=1e-10)
    assert minimise_kl(Gamma(3.0, 2.0), Exponential).member.rate == pytest.approx(2 / 3, rel=1e-12)
    assert minimise_kl(Gamma(3.0, 2.0), Gamma).kl < 1e-20
    assert minimise_kl(Poisson(2.5), NegativeBinomial, r=4.0).member.mean == pytest.approx(2.5, rel=1e-12)
    assert minimise_kl(Binomial(0.2, 9), Binomial, n=9).member.p == pytest.approx(0.2, rel=1e-13)
    assert minimise_kl(Gamma(3.0, 2.0), GaussianFixedVariance, variance=1.0).member.mean == pytest.approx(
        1.5, rel=1e-13
    )
    first, second = plane()
    both = Mixture([0.25, 0.75], [first, second])
    for family in (MultivariateGaussian, DiagonalGaussian):
        flat = minimise_kl(both, family, draws=1000).member
        np.testing.assert_allclose(flat.mean, both.mean, rtol=1e-12)
        np.testing.assert_allclose(np.diag(flat.covariance), np.diag(both.covariance), rtol=1e-12)
    assert minimise_kl(both, SphericalGaussian, draws=1000).member.variance == pytest.approx(
        np.trace(both.covariance) / 2, rel=1e-12
    )


def test_forward_covers_and_reverse_seeks():
    p = Mixture([0.4, 0.6], [Gaussian(-3.0, 1.0), Gaussian(3.0, 0.8)])
    forward, reverse = minimise_kl(p, Gaussian), minimise_kl(p, Gaussian, "reverse")
    assert forward.member.variance > 8
    assert reverse.member.mean == pytest.approx(3.0, abs=0.05)
    assert reverse.member.variance == pytest.approx(0.8, abs=0.05)
    assert reverse.kl == pytest.approx(-math.log(0.6), abs=0.01)  # all of q lies under 0.6 of one member
    assert reverse.certificate.kind == "stationary"
    assert reverse.certificate.holds
    other = minimise_kl(p, Gaussian, "reverse", start=Gaussian(-3.5, 1.0))
    assert other.member.mean == pytest.approx(-3.0, abs=0.05)
    assert other.kl > reverse.kl
    inside = minimise_kl(Mixture([0.5, 0.5], [Poisson(2.0), Poisson(20.0)]), Binomial, "reverse", n=30)
    assert inside.certificate.holds  # although KL(p, q) is infinite
    best = simplex_minimum(p, reverse.member)
    assert reverse.kl <= best + 1e-10


def simplex_minimum(p, near):
    """The smallest KL(q, p) that Nelder-Mead finds from close by."""

    def value(t):
        return float(kl(Gaussian(t[0], math.exp(t[1])), p))

    return minimize(value, [near.mean + 0.1, math.log(near.variance) + 0.1], method="Nelder-Mead", tol=1e-6).fun


def test_stopping_early_is_not_certified():
    p = Mixture([0.4, 0.6], [Gaussian(-3.0, 1.0), Gaussian(3.0, 0.8)])
    for direction in ("forward", "reverse"):
        assert minimise_kl(p, Gaussian, direction, "gradient").certificate.holds
        assert not minimise_kl(p, Gaussian, direction, "gradient", max_iter=1).certificate.holds


def test_what_cannot_be_projected_is_refused():
    with pytest.raises(DataError, match="'forward' or 'reverse'"):
        minimise_kl(Poisson(1.0), Gaussian, "sideways")
    with pytest.raises(DataError, match="'gradient'"):
        minimise_kl(Gaussian(0.0, 1.0), Gaussian, "reverse", "closed")
    with pytest.raises(DataError, match="'closed' or 'gradient'"):
        minimise_kl(Poisson(1.0), Gaussian, method="newton")
    with pytest.raises(DataError, match="sample or vectors"):
        minimise_kl([1.0, 2.0], Gaussian, "reverse")
    with pytest.raises(DataError, match="mass where p has none"):
        minimise_kl(Gamma(2.0, 1.0), Gaussian, "reverse")
    with pytest.raises(DataError, match="one for each value"):
        minimise_kl(([1.0, 2.0], [1.0]), Gaussian)
    with pytest.raises(DataError, match=r"sums to 0\.9"):
        minimise_kl(([1.0, 2.0], [0.5, 0.4]), Gaussian)
    with pytest.raises(DataError, match=r"\(values, probabilities\)"):
        minimise_kl(([1.0], [2.0], [3.0]), Gaussian)
    with pytest.raises(DataError, match="all equal"):
        minimise_kl([2.0, 2.0, 2.0], Gaussian)
    with pytest.raises(DataError, match="outside the support of Gamma; wanted positive"):
        minimise_kl(Gaussian(0.0, 1.0), Gamma)
    with pytest.raises(DataError, match="outside the support of Binomial; wanted whole numbers from 0 to 9"):
        minimise_kl(Poisson(1.0), Binomial, n=9)
    with pytest.raises(DataError, match="no finite mean"):
        minimise_kl(Gamma(0.5, 1.0), InverseGaussian)


# ----------------------------------------------------------------------------------------------------------- plots
def test_plots():
    found = minimise_kl(Binomial(0.3, 20), Gaussian, method="gradient")
    ax = plot_projection_path(found)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("mean", "variance")
    np.testing.assert_allclose(ax.lines[0].get_xydata(), found.path.ordinary)
    one = plot_projection_path(minimise_kl(Binomial(0.3, 20), Poisson, method="gradient"))
    assert one.get_yscale() == "log"
    with pytest.raises(DataError, match="with a path"):
        plot_projection_path(minimise_kl(Binomial(0.3, 20), Gaussian))
    ax = plot_directions(bimodal(), Gaussian)
    x, density = ax.lines[0].get_data()
    np.testing.assert_allclose(density, stats.norm(0, math.sqrt(6.7)).pdf(x), rtol=1e-9)


@pytest.mark.parametrize(
    ("p", "family", "words"),
    [
        (Binomial(0.3, 20), Gaussian, "one is discrete and the other continuous"),
        (Gaussian(0.0, 1.0), Poisson, "one is discrete and the other continuous"),
        (Beta(2.0, 3.0), Gaussian, "has mass where p has none"),
    ],
)
def test_a_reverse_divergence_that_is_infinite_is_refused_in_words_of_its_own(p, family, words):
    with pytest.raises(DataError, match=words) as refused:
        minimise_kl(p, family, "reverse")
    assert "column" not in str(refused.value)
