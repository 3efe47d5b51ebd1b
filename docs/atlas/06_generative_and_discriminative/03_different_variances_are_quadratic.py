r"""
Different variances bend the boundary
=====================================

**Statement.** If each class has variances of its own, the log-odds of class 1 against class 0 are quadratic: linear
terms plus :math:`\sum_j \frac12 (1/\sigma_{0j}^2 - 1/\sigma_{1j}^2)\, x_j^2`, without products of columns. Of two
columns, classes meet in conics whose axes are parallel to those of the columns.

**Why.** The squares of :math:`\log N(x_j; \mu_{cj}, \sigma_{cj}^2)` no longer cancel in Bayes' rule; products would
come from covariances, which naive Bayes sets to 0.

**Held by** ``tests/theory/atlas/test_atlas_generative_and_discriminative.py``:
``test_different_variances_are_quadratic``.

**Control** ``test_control_covariances_need_products``: quadratic discriminant analysis, with covariances, is not of
this form; ``test_control_equal_variances_have_no_squares``.
"""

import numpy as np

from certifit import GaussianNB, QuadraticDiscriminantAnalysis, load_penguins
from certifit.plots import plot_boundaries

birds = load_penguins().dropna()
X, species = birds[["bill_length_mm", "bill_depth_mm"]], birds["species"]
naive, full = GaussianNB().fit(X, species), QuadraticDiscriminantAnalysis().fit(X, species)
squares = np.column_stack([X, X**2, np.ones(len(X))])
logs = naive.predict_log_proba(X)
found = np.linalg.lstsq(squares, logs[:, 1] - logs[:, 0], rcond=None)[0]
by_hand = (1 / naive.var_[0] - 1 / naive.var_[1]) / 2
print(f"coefficients of the squares {found[2:4].round(5)}, by the variances {by_hand.round(5)}")
plot_boundaries({"variances of each class": naive, "covariances too": full}, X, species)

# %%
# A control that must fail
# ^^^^^^^^^^^^^^^^^^^^^^^^
# With covariances (on the right, conics lie askew) squares alone do not make up the log-odds.

for name, model in {"variances": naive, "covariances": full}.items():
    logs = model.predict_log_proba(X)
    print(f"{name}: squares left {np.linalg.lstsq(squares, logs[:, 1] - logs[:, 0], rcond=None)[1][0]:.3g}")
