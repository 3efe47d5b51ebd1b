"""Samples and parameters that are at the limit of a family, or beyond it."""

import math

import numpy as np
import pytest

from certifit import DataError
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
    Geometric,
    InverseGaussian,
    Multinomial,
    MultivariateGaussian,
    NegativeBinomial,
    Poisson,
    Prior,
    SphericalGaussian,
)

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
