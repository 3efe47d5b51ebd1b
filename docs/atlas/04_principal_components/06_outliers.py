r"""
PCA and outliers
================

**Statement.** One row, far enough away, turns the first principal component to any direction. A trimmed PCA makes the
error of the :math:`h` rows that fit best small: as long as wrong rows are no more than those it leaves out, no
distance of theirs can carry the least of that error away. Where the right rows have a clear axis, as here, it stays
theirs.

**Why.** The variance along a direction is a mean of squares, and one square can exceed the sum of all others. But the
:math:`h` best rows of the best plane err no more than any :math:`h` right rows about their own plane, wherever the
wrong ones are.

**Held by** ``tests/theory/atlas/test_atlas_principal_components.py``: ``test_trimming_resists_outliers``.

**Control** ``test_control_more_outliers_than_are_trimmed``: with more wrong rows than are left out, the trimmed axis
is turned as well.
"""

import numpy as np

from certifit import PCA, RobustPCA, TrimmedPCA
from certifit.datasets import load_penguins
from certifit.plots import plot_first_axes

penguins = load_penguins().dropna()[["flipper_length_mm", "bill_length_mm", "bill_depth_mm", "body_mass_g"]]
rows = (penguins / penguins.std()).to_numpy()


def double(every):
    """The rows with twice the depth of the bill in every so many of them, and which rows these are."""
    wrong = np.arange(len(rows)) % every == 0
    return np.where(wrong[:, None] & (np.arange(4) == 2), 2 * rows, rows), wrong


typed, wrong = double(every=15)
models = {"PCA": PCA(1), "trimmed": TrimmedPCA(1, keep=0.8, random_state=0), "robust": RobustPCA()}
plot_first_axes({name: model.fit(typed) for name, model in models.items()}, typed, wrong)

# %%
# In one row of fifteen the depth of the bill is twice too large. The axis of all rows follows these few.
#
# A control that must fail
# ^^^^^^^^^^^^^^^^^^^^^^^^
# With a third of all rows wrong, a fifth left out is too few.

axis = TrimmedPCA(1, keep=0.8, random_state=0).fit(double(every=3)[0]).components_[0]
print(f"trimmed axis off by {np.degrees(np.arccos(abs(axis @ PCA(1).fit(rows).components_[0]))):.0f} degrees")
