r"""
EM becomes k-means
==================

**Statement.** Let :math:`k` spherical Gaussians share weight and variance :math:`\sigma^2`. As :math:`\sigma \to 0`
responsibilities become 0 or 1 (of rows with one nearest centre), an EM step on the means becomes Lloyd's step (of
centres that are the nearest of some row), and :math:`-2 \sigma^2 \log L` (less a constant) the k-means objective,
which it misses by at most :math:`2 \sigma^2 n \log k`.

**Why.** Responsibilities are the softmax of :math:`-|x - c_j|^2 / 2 \sigma^2`, whose limit picks the nearest centre;
:math:`-2 \sigma^2 \log \sum_j e^{-d_j / 2 \sigma^2}` lies between :math:`\min_j d_j - 2 \sigma^2 \log k` and
:math:`\min_j d_j`.

**Held by** ``tests/theory/atlas/test_atlas_mixtures.py``: ``test_em_becomes_kmeans``.

**Control** ``test_control_variances_of_their_own_keep_em_apart``: if one component keeps a larger variance than the
others, the limit is not k-means; ``test_control_a_wide_component_is_not_lloyd``.
"""

import matplotlib.pyplot as plt
import numpy as np

from certifit import GaussianMixture, load_penguins
from certifit.plots import plot_mixture

X = load_penguins().dropna()[["bill_length_mm", "bill_depth_mm"]]
X = ((X - X.mean()) / X.std()).to_numpy()
model = GaussianMixture(3, covariance_type="spherical", random_state=0).fit(X)
model.weights_, C = np.full(3, 1 / 3), model.means_
nearest = ((X[:, None] - C) ** 2).sum(axis=2).argmin(axis=1)
lloyd = np.stack([X[nearest == j].mean(axis=0) for j in range(3)])
fig, axes = plt.subplots(1, 3, figsize=(12, 4), layout="constrained")
for ax, sigma in zip(axes, (1.0, 0.3, 0.05), strict=True):
    model.covariances_ = np.full(3, sigma**2)
    q = model.predict_proba(X)
    print(f"sigma {sigma}: means {np.abs(q.T @ X / q.sum(axis=0)[:, None] - lloyd).max():.1e} from Lloyd's")
    plot_mixture(model, X, ax=ax).set_title(f"sigma {sigma}")

# %%
# Colours are responsibilities: mixed on the left, pure on the right.
#
# A control that must fail
# ^^^^^^^^^^^^^^^^^^^^^^^^
# If one component stays twice as wide as the others, rows go elsewhere however small the variances are.

model.covariances_ = np.array([0.2, 0.1, 0.1]) ** 2
print(f"{np.mean(model.predict(X) != nearest):.0%} of the birds are not with their nearest centre")
