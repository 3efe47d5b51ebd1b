r"""
Feature selection with proved zeros
===================================

**Statement.** In :math:`\min_\beta \frac{1}{2n} |y - X\beta|^2 + \alpha |\beta|_1` every column with
:math:`|x_j^\top r| < n\alpha`, where :math:`r` are the residuals of the optimum, has the coefficient zero in every
optimum. From a duality gap :math:`G` it can be proved before the optimum is known, because its residuals lie within a
ball around those of the fit whose radius goes to zero with :math:`G`.

**Why.** Where :math:`\beta_j \ne 0` the slope :math:`x_j^\top r / n` must balance the penalty's slope,
:math:`\pm\alpha`; at zero the penalty's slope may be anything between.

**Held by** ``tests/theory/atlas/test_atlas_principal_components.py``: ``test_zeros_of_l1_are_proved``,
``test_shuffled_columns_are_not_chosen``.

**Control** ``test_control_correlation_with_the_target``: the correlation with :math:`y` in place of the residuals
says nothing of the kind: it drops a column that the optimum uses.
"""

import numpy as np
import pandas as pd
from sklearn.datasets import load_diabetes

from certifit import L1Selector
from certifit.plots import plot_l1_path

X, y = load_diabetes(return_X_y=True, as_frame=True)
shuffled = X.apply(np.random.default_rng(0).permutation).add_suffix(" shuffled")
table = pd.concat([X, shuffled], axis=1) / X.iloc[:, 0].std()
model = L1Selector("squared", "ebic").fit(table, y)
print("chosen:", *table.columns[model.support_])
print(f"{len(model.proved_zero_)} of {table.shape[1]} columns proved to be 0, {len(model.undecided_)} undecided")

# %%
# Ten columns about people with diabetes, and the same ten in random order. Along the path, the columns in use and
# those that are proved to have no part in any optimum.

plot_l1_path(model)

# %%
# A control that must fail
# ^^^^^^^^^^^^^^^^^^^^^^^^
# By its correlation with the target alone the column "sex" would be dropped at this penalty.

correlation = np.abs((table - table.mean()).T @ (y - y.mean())) / len(y)
print(f"sex: {correlation['sex']:.2f} < {model.alpha_:.2f}, but its coefficient is {model.coef_[0, 1]:.2f}")
