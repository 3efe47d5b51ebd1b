r"""
EM climbs a bound
=================

**Statement.** For any responsibilities :math:`q_i` (not negative, summing to 1 over components)
:math:`\log p(x_i) = \mathcal L_i(q, \theta) + \mathrm{KL}(q_i \,\|\, p(\cdot | x_i))` with the bound
:math:`\mathcal L_i = \sum_k q_{ik} \log (p(x_i, k) / q_{ik})`. The E step sets :math:`q` to the posterior and closes
the gap; the M step raises the bound, or leaves it. So the likelihood never falls.

**Why.** :math:`\log \sum_k q_k \frac{p(x, k)}{q_k} \ge \sum_k q_k \log \frac{p(x, k)}{q_k}` (Jensen: the logarithm is
concave); put :math:`p(x, k) = p(k | x)\, p(x)` in, and what is missing is the KL.

**Held by** ``tests/theory/atlas/test_atlas_mixtures.py``: ``test_likelihood_is_bound_plus_divergence``,
``test_e_steps_close_the_gap_and_m_steps_raise_the_bound``.

**Control** ``test_control_responsibilities_that_do_not_sum_to_one``;
``test_control_the_divergence_the_other_way_round``; ``test_control_without_the_entropy``.
"""

import numpy as np
from scipy.stats import multivariate_normal

from certifit import GaussianMixture, load_penguins
from certifit.plots import plot_em_trace

X = load_penguins().dropna()[["bill_length_mm", "bill_depth_mm"]].to_numpy()
model = GaussianMixture(3, reg_covar=0.0, random_state=0).fit(X)
for line in model.em_trace_[:4]:
    print(f"log-likelihood {line['loglik']:.6f} = bound {line['bound']:.6f} + KL {line['kl']:.6f}")

# %%
# The staircase: each M step lifts the bound (blue), each E step closes the KL above it (red).

plot_em_trace(model)

# %%
# A control that must fail
# ^^^^^^^^^^^^^^^^^^^^^^^^
# The posterior closes the gap, other responsibilities lie below; numbers that sum to one half are no bound at all.

parts = zip(model.weights_, model.means_, model.covariances_, strict=True)
joint = np.column_stack([np.log(w) + multivariate_normal.logpdf(X, m, C) for w, m, C in parts])
posterior = model.predict_proba(X)
for words, q in {"posterior": posterior, "smoothed": 0.9 * posterior + 0.1 / 3, "halved": posterior / 2}.items():
    bound = np.where(q > 0, q * (joint - np.log(np.maximum(q, 1e-300))), 0.0).sum(axis=1).mean()
    print(f"{words}: bound {bound:.4f}, log-likelihood {model.em_trace_[-1]['loglik']:.4f}")
