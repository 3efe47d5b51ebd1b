"""The elbow: inertia by the number of clusters."""

from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs

X, _ = make_blobs(300, centers=4, cluster_std=0.6, random_state=0)
at_most = {
    f"{k}": KMeans(n_clusters=k, random_state=42, n_init=10, algorithm="elkan").fit(X).inertia_ for k in range(1, 7)
}
