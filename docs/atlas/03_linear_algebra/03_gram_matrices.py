r"""
U'U is positive definite if columns are independent
===================================================

**Statement.** For every matrix :math:`U` the matrix :math:`U^\top U` is symmetric and :math:`v^\top U^\top U v \ge
0`. It is positive definite exactly where the columns of :math:`U` are linearly independent.

**Why.** :math:`v^\top U^\top U v = |U v|^2`, which is zero only if :math:`U v = 0`; independent columns have
:math:`U v = 0` for :math:`v = 0` alone.

**Held by** ``tests/theory/atlas/test_atlas_linear_algebra.py``: ``test_gram_matrices``.

**Control** ``test_control_a_column_that_is_a_sum``: a column that is the sum of others leaves a direction with
:math:`v^\top U^\top U v = 0`.
"""

import numpy as np
from sklearn.datasets import load_iris

from certifit import linalg
from certifit.plots import plot_quadratic_form

U = load_iris().data
print(linalg.positive_definite(U.T @ U).verdict, "| eigenvalues", linalg.eigen(U.T @ U).values.round(2))

# %%
# The form of two columns, widths of sepals and petals, divided by the number of rows: blue in every direction.

plot_quadratic_form(U[:, [1, 3]].T @ U[:, [1, 3]] / len(U))

# %%
# A control that must fail
# ^^^^^^^^^^^^^^^^^^^^^^^^
# A fifth column, the sum of two, has an exact combination that vanishes. (In millimetres, whole numbers, so that no
# rounding hides it.)

whole = np.rint(10 * U)
G = np.column_stack([whole, whole[:, 0] + whole[:, 1]])
G = G.T @ G
answer = linalg.positive_definite(G)
print(answer.verdict, "| eigenvalues", linalg.eigen(G).values.round(2), "| witness", answer.witness.round(3))
