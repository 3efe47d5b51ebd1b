r"""
The smallest KL is maximum likelihood
=====================================

**Statement.** Let :math:`\hat p` be the shares of the values in a sample. Among all members :math:`q_\theta` of a
family of discrete distributions, the one with the smallest :math:`KL(\hat p, q_\theta)` is the one with the largest
likelihood. (Of densities, minus the mean log-likelihood takes the place of the divergence, which is infinite.)

**Why.** :math:`KL(\hat p, q_\theta) = -H(\hat p) - \frac1n \sum_i \log q_\theta(x_i)`, and the entropy
:math:`H(\hat p)` does not depend on :math:`\theta`.

**Held by** ``tests/theory/atlas/test_atlas_divergence.py``: ``test_smallest_kl_is_maximum_likelihood``.

**Control** ``test_control_smallest_total_variation``: the member nearest by another distance is less likely.
"""

import numpy as np

from certifit.datasets import load_visits
from certifit.divergence import minimise_kl, total_variation
from certifit.families import Geometric
from certifit.plots import plot_kl_terms

x = load_visits()["visits"].to_numpy(dtype=float)
found = minimise_kl(x, Geometric)
print(found.member, f"KL = {found.kl:.6f} = {-found.entropy - found.mean_log_likelihood:.6f}")
print("the share of successes by hand:", 1 / (1 + x.mean()))

# %%
# The terms of this smallest divergence: visits to a doctor (p), and the geometric law that is nearest (q). The last
# place stands for all numbers above those of the sample.


def law(q):
    """The probabilities of 0, 1, ... and of all numbers above the sample's."""
    return np.append(np.exp(q.log_density(np.arange(x.max() + 1))), (1 - q.p) ** (x.max() + 1))


shares = np.append(np.bincount(x.astype(int)) / len(x), 0)
plot_kl_terms(shares, law(found.member)).set_xlim(-1, 25)

# %%
# A control that must fail
# ^^^^^^^^^^^^^^^^^^^^^^^^
# The member with the smallest total variation is another one, and less likely.

other = min(map(Geometric, np.linspace(0.15, 0.45, 61)), key=lambda q: total_variation(shares, law(q)))
print(
    f"p = {other.p:.3f}: log-likelihood {other.log_density(x).mean():.4f}, less than {found.mean_log_likelihood:.4f}"
)
