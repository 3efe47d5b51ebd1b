r"""
Forests decorrelate
===================

**Statement.** The mean of :math:`T` answers whose errors have the variance :math:`\sigma^2` and, two by two, the
correlation :math:`\rho` has the variance :math:`\rho\sigma^2 + (1 - \rho)\sigma^2 / T`. More trees lower the second
part only; a forest, whose splits choose among few columns drawn at random, is made to lower :math:`\rho`, and
does so here (at the price of a larger :math:`\sigma^2`).

**Why.** The variance of a mean is the mean of all :math:`T^2` covariances, :math:`T` of which are variances. Trees
that may not all ask the same first question make fewer of the same mistakes.

**Held by** ``tests/theory/atlas/test_atlas_trees_and_ensembles.py``: ``test_the_variance_of_a_mean_of_trees`` and
``test_few_columns_decorrelate_trees``.

**Control** ``test_control_trees_are_not_independent``: :math:`\sigma^2 / T`, as if :math:`\rho` were zero; and
``test_control_all_columns_decorrelate_nothing``: another bag in place of the forest.
"""

import numpy as np
from sklearn.datasets import load_diabetes

from certifit import RandomForestRegressor
from certifit.plots import plot_error_correlations

X, y = load_diabetes(return_X_y=True)
bag = RandomForestRegressor(40, max_features=None, random_state=0).fit(X[::2], y[::2])
forest = RandomForestRegressor(40, max_features=1, random_state=0).fit(X[::2], y[::2])
plot_error_correlations({"all columns": bag, "one column drawn": forest}, X[1::2], y[1::2])

# %%
# A control that must fail
# ^^^^^^^^^^^^^^^^^^^^^^^^
# If errors were independent, forty trees would have a fortieth of one tree's variance. They are far from it.

errors = np.stack([tree.predict(X[1::2]) for tree in forest.estimators_]) - y[1::2]
print(f"one tree {errors.var(axis=1).mean():.0f}, the forest {errors.mean(axis=0).var():.0f}, ", end="")
print(f"if independent {errors.var(axis=1).mean() / 40:.0f}")
