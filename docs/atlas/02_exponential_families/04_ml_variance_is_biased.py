r"""
The maximum likelihood variance is biased
=========================================

**Statement.** For :math:`n` independent draws from one distribution with variance :math:`\sigma^2`, whatever it is,
:math:`s^2 = \frac1n \sum_i (x_i - \bar x)^2` has the mean :math:`\frac{n-1}{n} \sigma^2`.

**Why.** :math:`\frac1n \sum (x_i - \bar x)^2 = \frac1n \sum (x_i - \mu)^2 - (\bar x - \mu)^2`, and the mean of the
last term is :math:`\sigma^2 / n`: the sample's own mean lies nearer to its rows than the true one does.

**Held by** ``tests/theory/atlas/test_atlas_exponential_families.py``: ``test_ml_variance_is_biased``.

**Control** ``test_control_known_mean``: about the true mean, the variance of a sample is not biased.
"""

import numpy as np

from certifit.datasets import load_penguins
from certifit.families import Gaussian
from certifit.plots import plot_estimates

birds = load_penguins()["flipper_length_mm"].dropna().to_numpy()
draws = np.random.default_rng(0).choice(birds, size=(20_000, 8))
sizes = {n: draws[:, :n].var(axis=1) for n in (2, 3, 4, 6, 8)}
for n, found in sizes.items():
    print(f"n = {n}: mean {found.mean():6.1f}, (n-1)/n of the variance {(n - 1) / n * birds.var():6.1f}")
three = draws[0, :3]
print("by the family:", Gaussian.fit(three).member.variance, Gaussian.fit(three, unbiased=True).member.variance)

# %%
# Draws of a few birds from the table, whose variance is the truth here.

plot_estimates({f"n = {n}": found for n, found in sizes.items()}, birds.var())

# %%
# A control that must fail
# ^^^^^^^^^^^^^^^^^^^^^^^^
# About the mean of all birds, a known one, the variance of two birds is right on average.

print(f"n = 2: mean {((draws[:, :2] - birds.mean()) ** 2).mean():.1f}, the variance {birds.var():.1f}")
