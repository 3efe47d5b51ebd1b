r"""
Eigenvalues are squared singular values
=======================================

**Statement.** Let :math:`Z` be :math:`N` rows less their mean, and :math:`Z = U \Sigma V^\top`. The covariance
:math:`S = Z^\top Z / N` has the eigenvalues :math:`\lambda_i = \sigma_i^2 / N` (and zeros, if there are more
columns), and the right singular vectors are eigenvectors of it: both decompositions are one.

**Why.** :math:`Z^\top Z = V \Sigma U^\top U \Sigma V^\top = V \Sigma^2 V^\top`.

**Held by** ``tests/theory/atlas/test_atlas_linear_algebra.py``: ``test_eigenvalues_are_squared_singular_values``.

**Control** ``test_control_rows_not_centred``: singular values of the rows as they are belong to another matrix.
"""

import numpy as np
from sklearn.datasets import load_wine

from certifit import PCA, linalg
from certifit.plots import plot_scree

wine = load_wine().data / load_wine().data.std(axis=0)
centred, N = wine - wine.mean(axis=0), len(wine)
by_singular_values, by_eigenvalues = linalg.svd(centred), linalg.eigen(centred.T @ centred / N)
print("σ²/N", (by_singular_values.s[:5] ** 2 / N).round(6), "\nλ   ", by_eigenvalues.values[:5].round(6))
print("|v·v'|", np.abs((by_singular_values.Vt[:5].T * by_eigenvalues.vectors[:, :5]).sum(axis=0)).round(9))

# %%
# The shares of the first five components, from the eigenvalues of their PCA, beside all from the singular values.

plot_scree(PCA(5).fit(wine), by_singular_values.s**2 / (N - 1))

# %%
# A control that must fail
# ^^^^^^^^^^^^^^^^^^^^^^^^
# Without the mean taken off, the first singular value is about the mean, not about the variance.

print("σ²/N of the rows as they are", (linalg.svd(wine).s[:5] ** 2 / N).round(6))
