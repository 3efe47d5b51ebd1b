r"""
Moment matching is maximum likelihood
=====================================

**Statement.** In an exponential family with all natural parameters for which it exists, the member whose :math:`E\,
T(x)` equals the sample's mean of :math:`T`, if there is one, has the largest likelihood, and no other member has it.

**Why.** The mean log-likelihood is :math:`\eta \cdot \bar T - A(\eta)` up to a constant: concave in :math:`\eta`,
with the slope :math:`\bar T - \nabla A(\eta) = \bar T - E\, T(x)`, and strictly so in every direction in which the
distribution changes, because :math:`\mathrm{Cov}\, T(x)` is positive there.

**Held by** ``tests/theory/atlas/test_atlas_exponential_families.py``: ``test_moment_matching_is_maximum_likelihood``.

**Control** ``test_control_mean_and_variance_of_a_gamma``: other moments than those of :math:`T` (a gamma's
:math:`T` is :math:`(\log x, x)`, not :math:`(x, x^2)`) give a less likely member.
"""

from certifit.datasets import load_penguins
from certifit.divergence import minimise_kl
from certifit.families import Gamma
from certifit.plots import plot_projection_path

mass = load_penguins()["body_mass_g"].dropna().to_numpy() / 1000
best = Gamma.fit(mass).member
print(best, "\nE T", best.mean_parameters, "\nmean of T in the sample", best.T(mass).mean(axis=0))

# %%
# Descent on the divergence from the sample, over its level lines, ends at the same member.

plot_projection_path(minimise_kl(mass, Gamma, method="gradient"))

# %%
# A control that must fail
# ^^^^^^^^^^^^^^^^^^^^^^^^
# The gamma with the sample's mean and variance is another member, and less likely.

other = Gamma.fit(mass, method="moments").member
print(f"{other}: mean log-likelihood lower by {(best.log_density(mass) - other.log_density(mass)).mean():.2e}")
