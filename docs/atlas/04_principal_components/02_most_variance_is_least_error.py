r"""
Most variance is least error
============================

**Statement.** Let :math:`\lambda_1 \ge \lambda_2 \ge \dots` be the eigenvalues of the rows' covariance. The direction
of most variance has the variance :math:`V_1 = \lambda_1`, and the best linear code of :math:`M` numbers leaves the
mean squared error :math:`J_M = \lambda_{M+1} + \dots + \lambda_d`: both questions have one answer.

**Why.** For orthonormal directions, variance kept + squared error lost = total variance (Pythagoras, row by row), so
the most of one is the least of the other; by Courant and Fischer no direction has more variance than
:math:`\lambda_1`, and by Ky Fan no :math:`M` of them more than :math:`\lambda_1 + \dots + \lambda_M`.

**Held by** ``tests/theory/atlas/test_atlas_principal_components.py``: ``test_most_variance_is_least_error``.

**Control** ``test_control_uncentred_rows_break_it``: directions of the rows as they are, not of their distances from
the mean, keep less variance and leave more error.
"""

import numpy as np
from sklearn.datasets import load_wine

from certifit import PCA, two_views
from certifit.plots import plot_scree

wine = load_wine().data / load_wine().data.std(axis=0)
print(two_views(wine, 4))

# %%
# Variances and errors are computed apart: the ones by climbing, one direction after the other, the others from rows
# that were encoded and decoded. The picture has the eigenvalues, and what is lost after each.

plot_scree(PCA().fit(wine))

# %%
# A control that must fail
# ^^^^^^^^^^^^^^^^^^^^^^^^
# Without subtracting the mean the first "direction" points at it, and the code is worse than it need be.

centred = wine - wine.mean(axis=0)
at_the_mean = np.linalg.svd(wine)[2][0]
print(
    f"variance along it {centred.dot(at_the_mean).var():.3f}, the most possible {two_views(wine, 1).variances[0]:.3f}"
)
