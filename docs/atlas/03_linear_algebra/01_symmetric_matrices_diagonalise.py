r"""
Symmetric matrices diagonalise
==============================

**Statement.** A real symmetric matrix is :math:`A = Q \Lambda Q^\top` with real eigenvalues in :math:`\Lambda` and
orthonormal eigenvectors as the columns of :math:`Q`.

**Why.** A largest :math:`v^\top A v` over unit vectors is reached, and there :math:`A v = \lambda v`. :math:`A` maps
what is orthogonal to :math:`v` to itself, because :math:`v^\top A u = \lambda v^\top u = 0`: go on with one dimension
less.

**Held by** ``tests/theory/atlas/test_atlas_linear_algebra.py``: ``test_symmetric_matrices_diagonalise``.

**Control** ``test_control_not_symmetric``: a matrix of a regression, a rotation and a Jordan block are not symmetric;
their eigenvectors are not orthogonal, not real, or too few.
"""

from certifit import linalg
from certifit.datasets import load_penguins
from certifit.plots import plot_quadratic_form

penguins = load_penguins().dropna()
groups = penguins.groupby("species")[["bill_length_mm", "bill_depth_mm"]]
difference = groups.get_group("Gentoo").cov() - groups.get_group("Adelie").cov()
found = linalg.eigen(difference.to_numpy())
print("eigenvalues", found.values, "\nQ'Q\n", (found.vectors.T @ found.vectors).round(12))
print("A - QΛQ'\n", (difference.to_numpy() - found.vectors * found.values @ found.vectors.T).round(12))

# %%
# In which directions do the bills of Gentoos vary more (blue) or less (red) than those of Adélies? The difference of
# two covariances is symmetric, so that its eigenvectors are at right angles, whatever the signs of its eigenvalues.

plot_quadratic_form(difference.to_numpy())

# %%
# A control that must fail
# ^^^^^^^^^^^^^^^^^^^^^^^^
# The matrix of a Jordan block is not symmetric, and no basis of eigenvectors exists; a vector proves it.

print(linalg.diagonalisable([[2.0, 1.0], [0.0, 2.0]]).verdict)
