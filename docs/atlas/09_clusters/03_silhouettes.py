r"""
Silhouettes can tell too many clusters
======================================

**Statement.** Let :math:`a` be the mean distance of a row to the others of its cluster and :math:`b` that to the rows
of the next one (the other cluster where it is least). The silhouette :math:`s = (b - a) / \max(a, b)` lies between -1
and 1, is positive just where the row's own cluster is nearer on average, and does not change if all rows are shifted,
turned or stretched alike. The least sum of squares falls with every further cluster, up to one for each distinct row,
so it cannot say how many there are. The mean silhouette need not get better; no theorem says where it is largest, but
on the penguins' bills it is for three clusters, as many as there are species.

**Why.** :math:`a` and :math:`b` are means of distances: motions keep them, a common factor cancels in :math:`s`, and
:math:`|b - a| \le \max(a, b)`. A group cut in two has the other half as the next cluster: :math:`b` falls towards
:math:`a`.

**Held by** ``tests/theory/atlas/test_atlas_clusters.py``: ``test_bars_are_silhouettes``,
``test_silhouettes_know_no_units`` and ``test_silhouettes_peak_at_the_species``.

**Control** ``test_control_one_column_stretched``: another unit for one column alone changes them; and
``test_control_the_sum_of_squares_never_peaks``: it asks for as many clusters as it is offered.
"""

import matplotlib.pyplot as plt

from certifit import KMeans, load_penguins
from certifit.plots import plot_silhouettes

bills = load_penguins().dropna()[["bill_length_mm", "bill_depth_mm"]]
bills = (bills - bills.mean()) / bills.std()
models = [KMeans(k, random_state=0).fit(bills) for k in range(2, 7)]
fig, axes = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
for ax, model in zip(axes, (models[1], models[4]), strict=True):
    plot_silhouettes(model, bills, ax=ax)

# %%
# Of three clusters nearly every bird is nearer to its own; of six many lie between two.
#
# A control that must fail
# ^^^^^^^^^^^^^^^^^^^^^^^^
# The sum of squares as the judge: more clusters always look better.

for model in models:
    print(f"{model.n_clusters} clusters: sum of squares {model.inertia_:.0f}")
