"""Exponential families of distributions: each class gives densities, entropies, divergences and certified fits.

>>> from certifit.families import Poisson
>>> fit = Poisson.fit([2, 0, 3, 1, 4])
>>> fit.member, fit.certificate.holds
(Poisson(rate=2.0), True)
"""

from certifit.families.classes import Categorical, Multinomial
from certifit.families.continuous import Exponential, Gamma, InverseGaussian
from certifit.families.discrete import Bernoulli, Binomial, Geometric, NegativeBinomial, Poisson
from certifit.families.family import Family
from certifit.families.fitting import Fit, Prior
from certifit.families.gaussian import DiagonalGaussian, Gaussian, GaussianFixedVariance, SphericalGaussian
from certifit.families.multivariate import MultivariateGaussian
from certifit.families.simplex import Beta, Dirichlet
from certifit.families.support import Support

__all__ = [
    "Bernoulli",
    "Beta",
    "Binomial",
    "Categorical",
    "DiagonalGaussian",
    "Dirichlet",
    "Exponential",
    "Family",
    "Fit",
    "Gamma",
    "Gaussian",
    "GaussianFixedVariance",
    "Geometric",
    "InverseGaussian",
    "Multinomial",
    "MultivariateGaussian",
    "NegativeBinomial",
    "Poisson",
    "Prior",
    "SphericalGaussian",
    "Support",
]
