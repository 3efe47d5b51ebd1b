r"""
The gradient of A is the mean
=============================

**Statement.** For densities :math:`p(x | \eta) = h(x) \exp(\eta \cdot T(x) - A(\eta))` the gradient of the
log-normaliser is the mean, :math:`\nabla A(\eta) = E\, T(x)`, and its Hessian the covariance, :math:`\nabla^2 A(\eta)
= \mathrm{Cov}\, T(x)`, inside the set of all :math:`\eta` where the sum (or integral) is finite. So :math:`A` is
convex.

**Why.** :math:`A(\eta) = \log \sum_x h(x) e^{\eta \cdot T(x)}`; to differentiate the logarithm of the sum is to take
the mean of :math:`T` under the normalised terms, and to do it again is to take its covariance.

**Held by** ``tests/theory/atlas/test_atlas_exponential_families.py``: ``test_gradient_of_a_is_the_mean``.

**Control** ``test_control_slope_in_the_ordinary_parameter``: the derivative in a parameter that is not the natural
one is not the mean.
"""

from certifit.datasets import load_visits
from certifit.families import Poisson
from certifit.plots import plot_log_normaliser

member = Poisson.fit(load_visits()["visits"]).member
eta, h = member.natural, 1e-4
left, right = (Poisson.from_natural(eta + step).log_normaliser() for step in (-h, h))
print(f"slope of A {(right - left) / (2 * h):.6f}, mean {member.mean:.6f}")
print(f"second difference {(right - 2 * member.log_normaliser() + left) / h**2:.4f}, variance {member.variance:.4f}")

# %%
# The tangent at the fitted member has the slope of its mean; the parabola with its variance as second derivative
# stays closer to the curve near by.

plot_log_normaliser(member)

# %%
# A control that must fail
# ^^^^^^^^^^^^^^^^^^^^^^^^
# In the rate itself, which is not the natural parameter, the slope of A is one, whatever the mean.

left, right = (Poisson(member.rate + step).log_normaliser() for step in (-h, h))
print(f"slope of A in the rate {(right - left) / (2 * h):.6f}")
