"""Clusters of digits and how good they are."""

from sklearn.cluster import KMeans
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.metrics import adjusted_rand_score, homogeneity_score, silhouette_score

X, y = load_digits(return_X_y=True)
Z = PCA(n_components=10, random_state=0).fit_transform(X[:600])
model = KMeans(n_clusters=10, n_init=4, random_state=0).fit(Z)
homogeneity_score(y[:600], model.labels_), adjusted_rand_score(y[:600], model.labels_)
assert model.cluster_centers_.shape == (10, 10)
assert model.transform(Z).shape == (600, 10)
# tolerance: 0.03
result = {"silhouette": silhouette_score(Z, model.labels_)}
at_most = {"inertia": model.inertia_}
