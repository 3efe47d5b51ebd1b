r"""
Sometimes provably the best
===========================

**Statement.** k-means is hard in general, but a clustering at hand can often be proved best of *all*: a lower bound
:math:`L` on the sum of squares of every partition (the dual of a semidefinite relaxation) that meets the value
:math:`V` reached leaves nothing to find; in general the best lies in :math:`[L, V]`.

**Why.** A partition is the matrix :math:`Z = \sum_j 1_j 1_j^T / n_j`: positive semidefinite, no entry negative, rows
that sum to 1, trace :math:`k`. The least sum of squares over all such matrices is no larger, and any dual point
bounds it from below (Peng and Wei, 2007).

**Held by** ``tests/theory/atlas/test_atlas_clusters.py``: ``test_the_proved_best_is_the_best_of_all_partitions``.

**Control** ``test_control_a_worse_end_is_not_proved``: a local minimum that is not global must not pass.
"""

from itertools import product

import numpy as np

from certifit import KMeans, config, load_penguins
from certifit.plots import plot_cells

birds = load_penguins().dropna().groupby("species").head(4)
X = birds[["bill_length_mm", "flipper_length_mm"]]
X = (X - X.mean()) / X.std()
with config(proof="best"):  # the dual of the relaxation, which takes longer than the fit
    model = KMeans(3, random_state=0).fit(X)
print(f"reached {model.inertia_:.7f}, no partition below {model.certificate_.bound:.7f}")
# All ways to put twelve birds into three groups; that of the first bird is called 0.
each = np.array([(0, *others) for others in product(range(3), repeat=11)])
best = np.full(len(each), (X.to_numpy() ** 2).sum())
for j in range(3):
    best -= (((each == j) @ X.to_numpy()) ** 2).sum(axis=1) / np.maximum(1, (each == j).sum(axis=1))
print(f"the best of {len(each)} by trying them all: {best.min():.7f}")
plot_cells(model, X)

# %%
# A control that must fail
# ^^^^^^^^^^^^^^^^^^^^^^^^
# Another start rests at a worse end. It is a fixed point too, but the certificate claims no more than it can.

with config(proof="best"):
    worse = KMeans(3, init=X.to_numpy()[[0, 4, 5]], tol=0.0, swaps=0).fit(X)
print(f"reached {worse.inertia_:.4f}, at most {worse.certificate_.ratio:.3f} times the best")
