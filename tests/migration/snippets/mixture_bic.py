"""The number and shape of Gaussian components by BIC."""

import numpy as np
from sklearn.mixture import GaussianMixture

rng = np.random.RandomState(0)
X = np.concatenate([rng.randn(150, 2) @ np.array([[0.0, -0.1], [1.7, 0.4]]), 0.7 * rng.randn(150, 2) + [-4, 2]])
scores = {}
for shape in ("spherical", "tied", "diag", "full"):
    for k in range(1, 4):
        model = GaussianMixture(
            n_components=k, covariance_type=shape, random_state=0, n_init=2, tol=1e-5, max_iter=500
        ).fit(X)
        scores[shape, k] = model.bic(X)
best = min(scores, key=scores.get)
assert best == ("full", 2), best
result = {"bic": scores["full", 2], "one": scores["spherical", 1]}
at_most = {f"{shape} {k}": value for (shape, k), value in scores.items()}
