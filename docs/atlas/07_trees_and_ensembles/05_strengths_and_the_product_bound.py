r"""
Strengths and the product bound
===============================

**Statement.** A learner with the weighted error :math:`0 < e < \frac12` multiplies the mean exponential loss by
:math:`Z(\alpha) = (1 - e) e^{-\alpha} + e e^{\alpha}`, least for :math:`\alpha = \frac12 \log \frac{1 - e}{e}`, where
:math:`Z = 2 \sqrt{e (1 - e)}`. So the share of wrong rows is at most :math:`\prod_m Z_m \le \exp\left(-2 \sum_m
(\frac12 - e_m)^2\right)`.

**Why.** Wrong rows have :math:`e^{-yf} \ge 1`, and the weights' sums telescope: the mean of :math:`e^{-yf}` is the
product of the :math:`Z_m`. Last, :math:`4 e (1 - e) = 1 - (1 - 2e)^2 \le e^{-(1 - 2e)^2}`.

**Held by** ``tests/theory/atlas/test_atlas_trees_and_ensembles.py``: ``test_the_loss_is_the_product``.

**Control** ``test_control_strengths_without_the_half``: :math:`\alpha = \log\frac{1 - e}{e}`, with which the loss
does not fall at all.
"""

import numpy as np

from certifit import AdaBoostClassifier, load_penguins
from certifit.plots import plot_boosting_bound

penguins = load_penguins().dropna()
X, y = penguins[["bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g"]], penguins["sex"]
model = AdaBoostClassifier(n_estimators=60).fit(X, y)
plot_boosting_bound(model, X, y)

# %%
# The first dot is one stump's :math:`2 \sqrt{e (1 - e)}`; every later learner meets weights that make the last one a
# coin, and still has an edge.
#
# A control that must fail
# ^^^^^^^^^^^^^^^^^^^^^^^^
# Twice the strength turns the least of :math:`Z` into 1: nothing is gained.

e = model.estimator_errors_
for name, a in (("with the half", np.log((1 - e) / e) / 2), ("without", np.log((1 - e) / e))):
    print(f"{name}: product of Z after 60 stages {np.prod((1 - e) * np.exp(-a) + e * np.exp(a)):.4f}")
