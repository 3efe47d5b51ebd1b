"""The KL divergence and related measures, between vectors, distributions and samples; projections by the least KL."""

from certifit.divergence.bounds import Bounds, kl_bounds
from certifit.divergence.measures import cross_entropy, entropy, hellinger, jensen_shannon, kl, renyi, total_variation
from certifit.divergence.mixtures import Mixture
from certifit.divergence.projection import Projection, minimise_kl
from certifit.divergence.samples import kl_samples
from certifit.divergence.value import Divergence, Estimate

__all__ = [
    "Bounds",
    "Divergence",
    "Estimate",
    "Mixture",
    "Projection",
    "cross_entropy",
    "entropy",
    "hellinger",
    "jensen_shannon",
    "kl",
    "kl_bounds",
    "kl_samples",
    "minimise_kl",
    "renyi",
    "total_variation",
]
