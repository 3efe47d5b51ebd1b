"""Densities, soft labels and new rows of a Gaussian mixture."""

from sklearn.datasets import make_blobs
from sklearn.mixture import GaussianMixture

X, _ = make_blobs(300, centers=[[0, 0], [4, 4]], random_state=0)
model = GaussianMixture(n_components=2, random_state=0, tol=1e-7, max_iter=500, reg_covar=1e-6).fit(X)
rows, labels = model.sample(20)
assert rows.shape == (20, 2)
assert labels.shape == (20,)
result = {
    "log-likelihood": model.score(X),
    "densities": model.score_samples(X[:20]),
    "weights": sorted(model.weights_),
    "converged": model.converged_,
    "surest": model.predict_proba(X).max(axis=1),
}
