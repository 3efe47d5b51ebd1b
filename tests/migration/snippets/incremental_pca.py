"""Principal components batch by batch."""

import numpy as np
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA, IncrementalPCA

X, _ = load_iris(return_X_y=True)
batches = IncrementalPCA(n_components=2, batch_size=30).fit(X)
parts = IncrementalPCA(n_components=2)
for part in np.array_split(X, 3):
    parts.partial_fit(part)
whole = PCA(n_components=2).fit(X)
# tolerance: 0.02
result = {
    "batches": np.abs(batches.transform(X)),
    "parts": parts.explained_variance_,
    "whole": np.abs(whole.transform(X)),
}
