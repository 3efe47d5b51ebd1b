"""Clusters by small batches."""

from sklearn.cluster import MiniBatchKMeans
from sklearn.datasets import make_blobs

X, y = make_blobs(600, centers=[[1, 1], [-1, -1], [1, -1]], cluster_std=0.4, random_state=0)
model = MiniBatchKMeans(n_clusters=3, batch_size=64, n_init=5, max_no_improvement=10, random_state=0).fit(X)
# tolerance: 0.1
result = {"centres": sorted(model.cluster_centers_.round(6).tolist())}
at_most = {"inertia": model.inertia_}
