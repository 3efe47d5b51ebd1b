"""Circles unfolded by kernel PCA."""

import numpy as np
from sklearn.datasets import make_circles
from sklearn.decomposition import KernelPCA

X, y = make_circles(n_samples=150, factor=0.3, noise=0.05, random_state=0)
model = KernelPCA(n_components=4, kernel="rbf", gamma=10, fit_inverse_transform=True, alpha=0.1).fit(X)
result = {
    "scores": np.abs(model.transform(X)),
    "eigenvalues": model.eigenvalues_,
    "back": model.inverse_transform(model.transform(X)),
}
