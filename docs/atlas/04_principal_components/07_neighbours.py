r"""
Locally linear embedding preserves neighbours
=============================================

**Statement.** Each row is nearly a combination :math:`x_i \approx \sum_j w_{ij} x_j` of its neighbours; locally
linear embedding finds places :math:`y_i`, centred and of unit covariance, with the least :math:`\sum_i |y_i - \sum_j
w_{ij} y_j|^2`: eigenvectors of :math:`(I - W)^\top (I - W)` of the smallest eigenvalues after zero. On a curved
sheet, where a projection lays distant parts on each other, this can keep neighbours together if neighbourhoods are
nearly flat. No theorem says when: on the 600 rows below the modified method (several weights for each row) with six
or eight neighbours does; with ten or more, or with the standard method, it is not so good.

**Why.** Weights that sum to one do not change when the neighbourhood is moved, turned or scaled, so that flat pieces
of the sheet have the same weights in the plane; the least of a quadratic form is at its smallest eigenvectors.

**Held by** ``tests/theory/atlas/test_atlas_principal_components.py``: ``test_embedding_preserves_neighbours``,
``test_embedding_has_the_least_error_of_its_weights``.

**Control** ``test_control_projection_and_wide_neighbourhoods``: PCA's plane does not keep them, and neither do
neighbourhoods so wide that they reach the next turn of the sheet.
"""

import numpy as np
from sklearn.datasets import make_swiss_roll
from sklearn.neighbors import NearestNeighbors

from certifit import PCA, LocallyLinearEmbedding
from certifit.plots import plot_components

rows, along = make_swiss_roll(600, random_state=0)


def along_the_sheet(places):
    """How far away, along the sheet, a row's five nearest in the plane are, on average."""
    near = NearestNeighbors(n_neighbors=5).fit(places).kneighbors(return_distance=False)
    return np.abs(along[near] - along[:, None]).mean()


embedding = LocallyLinearEmbedding(n_neighbors=8, method="modified").fit(rows)
print(f"neighbours in the plane are {along_the_sheet(embedding.embedding_):.2f} apart along the sheet")

# %%
# The sheet unrolled; colours are the place along it, which the fit has not seen.

plot_components(embedding, y=along)

# %%
# A control that must fail
# ^^^^^^^^^^^^^^^^^^^^^^^^
# A projection puts turns on each other, and neighbourhoods of 30 rows reach from one turn to the next.

print(f"PCA: {along_the_sheet(PCA(2).fit(rows).transform(rows)):.2f}")
wide = LocallyLinearEmbedding(n_neighbors=30, method="modified").fit(rows)
print(f"30 neighbours: {along_the_sheet(wide.embedding_):.2f}")
