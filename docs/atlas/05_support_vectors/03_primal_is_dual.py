r"""
Primal is dual
==============

**Statement.** The soft-margin machine :math:`\min \frac12 |w|^2 + C \sum_i \xi_i`, :math:`\xi_i = \max(0, 1 - y_i
f(x_i))`, and its dual :math:`\max \sum_i \alpha_i - \frac12 |\sum_i \alpha_i y_i x_i|^2` over :math:`0 \le \alpha_i
\le C`, :math:`\sum_i \alpha_i y_i = 0`, have one value. Then :math:`w = \sum_i \alpha_i y_i x_i`, and a row is on the
margin if :math:`0 < \alpha < C`; rows inside it or misclassified have :math:`\alpha = C`, rows beyond it
:math:`\alpha = 0` and are of no account. :math:`C` is :math:`1/\lambda` of :math:`\frac\lambda2 |w|^2 + \sum_i
\xi_i`.

**Why.** Convex, with feasible points inside: strong duality (Slater). Equal values force
:math:`\alpha_i (y_i f(x_i) - 1 + \xi_i) = 0` and :math:`(C - \alpha_i) \xi_i = 0` row by row
(complementary slackness).

**Held by** ``tests/theory/atlas/test_atlas_support_vectors.py``: ``test_primal_is_dual``,
``test_rows_are_of_the_kind_their_dual_variable_says``, ``test_C_is_one_over_lambda``.

**Control** ``test_control_other_dual_points_stay_below``: nine tenths of :math:`\alpha` are feasible and prove less;
``test_control_kinds_by_another_C``; ``test_control_C_is_not_lambda``.
"""

import numpy as np

from certifit import SVC, load_penguins
from certifit.plots import plot_machine

birds = load_penguins().dropna()
birds = birds[birds["species"] != "Gentoo"]
X, y = birds[["bill_depth_mm", "bill_length_mm"]], np.where(birds["species"] == "Chinstrap", 1, -1)
X = (X - X.mean()) / X.std()
model = SVC(kernel="linear", C=1.0).fit(X, birds["species"])
signed = model.dual_coef_[0]  # alpha y of the support vectors
w, slack = signed @ X.to_numpy()[model.support_], np.maximum(0, 1 - y * model.decision_function(X))
print(f"primal {w @ w / 2 + slack.sum():.9f}, dual {np.abs(signed).sum() - w @ w / 2:.9f}")

# %%
# Every marked bird holds the boundary; the others could be left out.

plot_machine(model, X, birds["species"])

# %%
# A control that must fail
# ^^^^^^^^^^^^^^^^^^^^^^^^
# Nine tenths of the dual variables satisfy all constraints, so their value is a lower bound, but not the optimum.

print(f"dual value of them {0.9 * np.abs(signed).sum() - 0.81 * w @ w / 2:.4f}")
