r"""
A kernel is an inner product
============================

**Statement.** :math:`k(x, z) = (x \cdot z + 1)^2` is the inner product :math:`\phi(x) \cdot \phi(z)` of
:math:`\phi(x) = (1, \sqrt2 x_j, x_j^2, \sqrt2 x_i x_j)_{i < j}`; a linear machine on :math:`\phi` is the kernel
machine. A symmetric function is a kernel exactly if none of its Gram matrices :math:`G_{ij} = k(x_i, x_j)` has a
negative eigenvalue.

**Why.** Multiply out the square. If :math:`G = \Phi \Phi^T` then :math:`v^T G v = |\Phi^T v|^2 \ge 0`; if
:math:`G = U \Lambda U^T` with :math:`\Lambda \ge 0`, the rows of :math:`U \Lambda^{1/2}` are features (for all rows
at once: Moore and Aronszajn).

**Held by** ``tests/theory/atlas/test_atlas_support_vectors.py``: ``test_a_kernel_is_an_inner_product``,
``test_the_machine_on_the_map_is_the_kernel_machine``.

**Control** ``test_control_a_map_without_roots_of_two``, ``test_control_a_machine_on_another_map_is_another``;
``test_control_a_function_that_is_no_kernel``: distance is no inner product, and a vector shows it.
"""

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from certifit import SVC, Polynomial, is_psd, load_penguins
from certifit.plots import plot_boundaries

birds = load_penguins().dropna()
X = birds[["bill_length_mm", "flipper_length_mm"]]
X = (X - X.mean()) / X.std()


def explicit(X):
    a, b = np.asarray(X).T
    return np.column_stack([np.ones(len(a)), 2**0.5 * a, 2**0.5 * b, a**2, b**2, 2**0.5 * a * b])


G, features = Polynomial(2, coef0=1.0)(X, X), explicit(X)
print(f"largest difference {np.abs(G - features @ features.T).max():.1e}, is a kernel: {bool(is_psd(G))}")
by_kernel = SVC(kernel=Polynomial(2, coef0=1.0)).fit(X, birds["species"])
by_map = make_pipeline(FunctionTransformer(explicit), SVC(kernel="linear")).fit(X, birds["species"])
plot_boundaries({"the kernel, two columns": by_kernel, "its map, six columns": by_map}, X, birds["species"])

# %%
# A control that must fail
# ^^^^^^^^^^^^^^^^^^^^^^^^
# Distances are symmetric, but v'Gv is negative for this v: they are no inner products.

distances = cdist(X, X)
v = is_psd(distances).witness
print(f"is a kernel: {bool(is_psd(distances))}; v'Gv = {v @ distances @ v:.2f}")
