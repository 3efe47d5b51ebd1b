"""Linear discriminant analysis as a classifier and as a projection."""

import numpy as np
from sklearn.datasets import load_iris
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

X, y = load_iris(return_X_y=True)
model = LinearDiscriminantAnalysis(n_components=2).fit(X, y)
shrunk = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto").fit(X, y)
result = {
    "projection": np.abs(model.transform(X)),
    "share": model.explained_variance_ratio_,
    "probability": model.predict_proba(X),
    "shrunk": shrunk.predict_proba(X),
}
