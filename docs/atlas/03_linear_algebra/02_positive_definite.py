r"""
Positive definite matrices
==========================

**Statement.** For a symmetric :math:`A` the following are the same: :math:`v^\top A v > 0` for all :math:`v \ne 0`;
all eigenvalues are positive; :math:`A = L L^\top` with an invertible :math:`L`. Then :math:`A` is invertible and
:math:`\det A > 0`. A positive determinant alone is not enough.

**Why.** With :math:`c = Q^\top v` it is :math:`v^\top A v = \sum_i \lambda_i c_i^2`, and :math:`\det A = \prod_i
\lambda_i`: a product is positive also where an even number of factors is negative. With :math:`\lambda_i > 0` take
:math:`L = Q \Lambda^{1/2}`; and :math:`v^\top L L^\top v = |L^\top v|^2 > 0` if :math:`L` is invertible.

**Held by** ``tests/theory/atlas/test_atlas_linear_algebra.py``: ``test_positive_definite``.

**Control** ``test_control_a_positive_determinant_alone``: :math:`-A` of order two has the same determinant, and
:math:`v^\top (-A) v < 0`.
"""

import numpy as np

from certifit import linalg
from certifit.datasets import load_penguins
from certifit.plots import plot_quadratic_form

bills = load_penguins()[["bill_length_mm", "bill_depth_mm"]].dropna()
A = np.corrcoef(bills.T)
answer = linalg.positive_definite(A)
print(answer.verdict, "| eigenvalues", linalg.eigen(A).values, "| det", np.linalg.det(A))
print("A - LL'\n", (A - answer.factor @ answer.factor.T).round(12))

# %%
# The correlation of two columns is positive definite: :math:`v^\top A v = 1` is an ellipse, and no direction is red.

plot_quadratic_form(A)

# %%
# A control that must fail
# ^^^^^^^^^^^^^^^^^^^^^^^^
# The determinant of -A is positive as well, for there are two eigenvalues; a vector proves that -A is not definite.

v = linalg.positive_definite(-A).witness
print(f"det(-A) = {np.linalg.det(-A):.3f}, but v'(-A)v = {v @ -A @ v:.3f}")
