r"""
Digits 0 and 1 in two components
================================

**Statement.** Two of 64 directions are enough to tell zeros from ones: the images, projected on their first two
principal components, which keep the share :math:`(\lambda_1 + \lambda_2) / \sum_i \lambda_i` of the variance, can be
separated by a line. PCA has not seen the labels, so that it need not be so: threes and eights cannot.

**Why.** The first component of zeros and ones is nearly the difference of their means, and nine tenths of the
variance along it lie between the classes. A line exists exactly where the convex hulls of the classes do not meet;
either a margin or a common point proves it.

**Held by** ``tests/theory/atlas/test_atlas_principal_components.py``: ``test_zeros_and_ones_are_separable``.

**Control** ``test_control_threes_and_eights``: their first two components leave the hulls overlapping.
"""

import numpy as np
from sklearn.datasets import load_digits

from certifit import PCA, HardMarginSVC
from certifit.exceptions import NoSolutionError
from certifit.plots import plot_components

X, y = load_digits(return_X_y=True)
zero_one = y < 2
pca = PCA(2).fit(X[zero_one])
machine = HardMarginSVC(kernel="linear").fit(pca.transform(X[zero_one]), y[zero_one])
print(f"share of the variance {pca.explained_variance_ratio_.sum():.3f}, margin {machine.margin_[0]:.3f}")

# %%
# 360 images as points: zeros on one side, ones on the other.

plot_components(pca, X[zero_one], y[zero_one])

# %%
# A control that must fail
# ^^^^^^^^^^^^^^^^^^^^^^^^
# Threes and eights differ most along their first component too, but vary more within a class; some rows prove that no
# line is between them.

three_eight = np.isin(y, [3, 8])
codes = PCA(2).fit(X[three_eight]).transform(X[three_eight])
try:
    HardMarginSVC(kernel="linear", ridge=0.0).fit(codes, y[three_eight])
except NoSolutionError as refusal:
    print(str(refusal).partition(";")[0])
