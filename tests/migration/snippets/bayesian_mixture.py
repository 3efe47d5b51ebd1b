"""A Bayesian mixture that empties the components it does not need."""

import numpy as np
from sklearn.datasets import make_blobs
from sklearn.mixture import BayesianGaussianMixture

X, _ = make_blobs(300, centers=[[0, 0], [6, 6], [0, 6]], cluster_std=0.8, random_state=0)
model = BayesianGaussianMixture(
    n_components=6, weight_concentration_prior=0.01, random_state=2, max_iter=2000, n_init=3, tol=1e-5
).fit(X)
# tolerance: 0.05
result = {"three largest": np.sort(model.weights_)[-3:]}
