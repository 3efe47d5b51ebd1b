r"""
A binomial projected on a Gaussian
==================================

**Statement.** Of all Gaussians, the one nearest to :math:`p = \mathrm{Bin}(n, \theta)`, :math:`0 < \theta < 1`, by
:math:`E_p \log p - E_p \log q`, has the mean :math:`n\theta` and the variance :math:`n\theta(1-\theta)`. Its gradient
vanishes there and nowhere else, and descent ends where the closed form says.

**Why.** :math:`-E_p \log q = \frac12 \log 2\pi v + \frac{1}{2v} (n\theta(1-\theta) + (n\theta - m)^2)`; its
derivatives are :math:`\frac{m - n\theta}{v}` and :math:`\frac{1}{2v} - \frac{n\theta(1-\theta) + (n\theta -
m)^2}{2v^2}`. For every :math:`v` the mean :math:`n\theta` is best, and then it falls up to :math:`v =
n\theta(1-\theta)` and rises after it.

**Held by** ``tests/theory/atlas/test_atlas_divergence.py``: ``test_binomial_on_a_gaussian``.

**Control** ``test_control_variance_of_a_poisson``: the variance :math:`n\theta`, without its factor :math:`1-\theta`,
leaves a slope.
"""

from certifit.datasets import load_penguins
from certifit.divergence import minimise_kl
from certifit.families import Binomial, Gaussian
from certifit.plots import plot_pmf_and_density

gentoo = Binomial((load_penguins()["species"] == "Gentoo").mean(), 20)
closed = minimise_kl(gentoo, Gaussian)
descent = minimise_kl(gentoo, Gaussian, method="gradient")
print(f"closed form {closed.member}\ndescent     {descent.member}, {len(descent.path.objective) - 1} steps")
print(f"np = {20 * gentoo.p:.4f}, np(1 - p) = {20 * gentoo.p * (1 - gentoo.p):.4f}")
print("gradient there:", closed.gradient(closed.member.natural))

# %%
# How many of twenty penguins are Gentoos, and the Gaussian nearest to it: bars are as wide as one, so that both have
# an area of one.

plot_pmf_and_density(gentoo, closed)

# %%
# A control that must fail
# ^^^^^^^^^^^^^^^^^^^^^^^^
# With the variance of a Poisson distribution, np, the gradient in the natural parameters is not zero.

print(closed.gradient(Gaussian(20 * gentoo.p, 20 * gentoo.p).natural))
