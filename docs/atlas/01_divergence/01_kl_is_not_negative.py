r"""
KL is not negative, and not symmetric
=====================================

**Statement.** :math:`KL(p, q) = \sum_x p(x) \log \frac{p(x)}{q(x)} \ge 0` for all distributions :math:`p, q`, and it
is zero only if :math:`p = q`. Its terms may be negative, and :math:`KL(q, p)` is in general another number.

**Why.** :math:`\log t \le t - 1`, with equality at :math:`t = 1` only. With :math:`t = q/p`:
:math:`-KL(p, q) \le \sum_x p(x) (q(x)/p(x) - 1) \le 1 - 1 = 0`, summed where :math:`p(x) > 0`, because both sum to
one.

**Held by** ``tests/theory/atlas/test_atlas_divergence.py``: ``test_kl_is_not_negative``.

**Control** ``test_control_counts_are_no_distributions``: the same sum of counts, which do not sum to one, is
negative.
``test_control_total_variation_is_symmetric``: a distance has the other properties, but both directions are equal.
"""

import numpy as np

from certifit.datasets import load_visits
from certifit.divergence import kl
from certifit.plots import plot_kl_terms

visits = load_visits()
counts = [
    np.bincount(part.clip(upper=9), minlength=10)
    for _, part in visits.groupby(visits["physical_limitation"] > 0)["visits"]
]
healthy, limited = (c / c.sum() for c in counts)
print(f"KL(limited, healthy) = {kl(limited, healthy):.4f}, KL(healthy, limited) = {kl(healthy, limited):.4f}")
print(f"KL(healthy, healthy) = {kl(healthy, healthy)}")

# %%
# Visits to a doctor in a year (9+: nine or more) of people with a physical limitation (p) and without (q). Bars below
# zero are where p has less mass than q; together the bars are above zero.

plot_kl_terms(limited, healthy, [*range(9), "9+"])

# %%
# A control that must fail
# ^^^^^^^^^^^^^^^^^^^^^^^^
# Of counts, which do not sum to one, the same sum is below zero: Gibbs' inequality is about distributions.

print(f"sum of terms of counts: {np.sum(counts[1] * np.log(counts[1] / counts[0])):.0f}")
