"""Pictures from a few principal components and back."""

import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA

X, _ = load_digits(return_X_y=True)
model = PCA(0.9).fit(X)
again = model.inverse_transform(model.transform(X))
result = {
    "components": model.n_components_,
    "error": np.mean((X - again) ** 2),
    "singular": model.singular_values_,
    "noise": model.noise_variance_,
    "score": model.score(X),
}
