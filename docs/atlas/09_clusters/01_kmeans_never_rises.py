r"""
k-means never rises
===================

**Statement.** Neither step of Lloyd's algorithm raises the sum of squared distances
:math:`\sum_i \min_j |x_i - c_j|^2`, and after finitely many passes nothing moves: every row is with its nearest
centre and every centre is the mean of its rows, which (without ties) is a local minimum. Other starts may end in
others.

**Why.** For fixed centres no assignment is better than the nearest one; for fixed rows
:math:`\sum |x - c|^2 = \sum |x - \bar x|^2 + n |\bar x - c|^2` is least at the mean. There are finitely many
partitions, and none comes back once the sum has fallen.

**Held by** ``tests/theory/atlas/test_atlas_clusters.py``: ``test_kmeans_never_rises``,
``test_kmeans_ends_in_a_local_minimum``, ``test_other_starts_end_elsewhere``.

**Control** ``test_control_medians_in_place_of_means_rise``; ``test_control_one_pass_is_not_the_end``.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_iris

from certifit import KMeans
from certifit.plots import plot_cells

petals = load_iris(as_frame=True).data.iloc[:, 2:]
fig, axes = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
for ax, start in zip(axes, ([0, 60, 80, 120], [0, 1, 2, 120]), strict=True):
    model = KMeans(4, init=petals.to_numpy()[start], tol=0.0).fit(petals)
    print("objective", *(f"{mark.objective:.2f}" for mark in model.history_))
    plot_cells(model, petals, ax=ax).set_title(f"objective {model.inertia_:.2f}")

# %%
# Both are at rest. From the second start two centres share the setosas, and no pass will ever part them.
#
# A control that must fail
# ^^^^^^^^^^^^^^^^^^^^^^^^
# Centres at the medians of their rows, not at the means: the objective rises near the end.

X, C = petals.to_numpy(), petals.to_numpy()[[0, 60, 80, 120]]
for _ in range(8):
    squares = ((X[:, None] - C) ** 2).sum(axis=2)
    print(f"{squares.min(axis=1).sum():.2f}", end=" ")
    C = np.stack([np.median(X[squares.argmin(axis=1) == j], axis=0) for j in range(4)])
