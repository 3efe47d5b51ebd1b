r"""
The variance of the code does not depend on the mean
====================================================

**Statement.** The code :math:`z = b^\top x` of rows with the covariance :math:`S` has the variance
:math:`b^\top S b`. To add a constant to all rows moves the code and changes neither its variance nor the direction of
most variance: we may as well take off the mean first.

**Why.** :math:`z - \bar z = b^\top (x - \bar x)`, and a constant cancels in :math:`x - \bar x`.

**Held by** ``tests/theory/atlas/test_atlas_principal_components.py``:
``test_variance_does_not_depend_on_the_mean``.

**Control** ``test_control_mean_square_depends_on_the_mean``: the mean square of the code, which is the variance only
if the mean is zero, grows with the constant, and its best direction turns.
"""

import numpy as np

from certifit import PCA, TruncatedSVD
from certifit.datasets import load_penguins
from certifit.plots import plot_two_views

rows = load_penguins()[["flipper_length_mm", "bill_length_mm"]].dropna().to_numpy()
moved = rows + np.array([-200.0, 30.0])
b = PCA(1).fit(rows).components_[0]
print(f"variance {(rows @ b).var():.6f}, after the move {(moved @ b).var():.6f}")
print(f"b'Sb {b @ np.cov(rows.T, ddof=0) @ b:.6f}")
print("directions of most variance", b, PCA(1).fit(moved).components_[0])

# %%
# The code's variance is along the line, what the code leaves across it. Both are the same for the rows before.

plot_two_views(PCA(1).fit(moved), moved)

# %%
# A control that must fail
# ^^^^^^^^^^^^^^^^^^^^^^^^
# The mean square about zero is not the variance: its best direction points nearly at the mean, if that is far away.

print("directions of largest mean square", *(TruncatedSVD(1).fit(part).components_[0] for part in (rows, moved)))
