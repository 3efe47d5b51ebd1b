r"""
The score equations of a generalised linear model
=================================================

**Statement.** With the canonical link, where :math:`\eta_i = \beta \cdot x_i` is the natural parameter of
:math:`y_i`, maximum likelihood holds exactly where :math:`X^\top (y - \mu) = 0`: each column of :math:`X` has the
same sum with the fitted means as with the data. With an intercept, the fitted means add up to the sum of :math:`y`.

**Why.** The log-likelihood is :math:`\sum_i y_i \eta_i - A(\eta_i)` up to a constant, and
:math:`\nabla A(\eta_i) = \mu_i`; it is moment matching with :math:`T = X^\top y`.

**Held by** ``tests/theory/atlas/test_atlas_exponential_families.py``: ``test_score_equations``.

**Control** ``test_control_another_link``: with a link that is not canonical the likeliest fit leaves
:math:`X^\top (y - \mu)` away from zero, because the equations have weights there.
"""

import numpy as np

from certifit import GeneralizedLinearRegressor
from certifit.datasets import load_visits
from certifit.plots import plot_glm

visits = load_visits().iloc[::20]
X, y = visits[["chronic_diseases", "log_coinsurance"]], visits["visits"]
model = GeneralizedLinearRegressor(family="poisson", link="log").fit(X, y)
design = np.column_stack([np.ones(len(X)), X])
print("X'(y - mu) =", (design.T @ (y - model.predict(X))).round(5), " X'y =", (design.T @ y).round(1))

# %%
# The mean with its band, and the residuals: sums match, but many more rows are far out than a Poisson law allows.

plot_glm(model, X, y)

# %%
# A control that must fail
# ^^^^^^^^^^^^^^^^^^^^^^^^
# With the identity link, which is not Poisson's canonical one, the sums do not match.

other = GeneralizedLinearRegressor(family="poisson", link="identity").fit(X, y)
print("X'(y - mu) =", (design.T @ (y - other.predict(X))).round(5))
