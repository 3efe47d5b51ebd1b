"""The error of gradient boosting stage by stage."""

import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.ensemble import HistGradientBoostingRegressor

X, y = load_diabetes(return_X_y=True)
model = HistGradientBoostingRegressor(max_iter=20, random_state=0).fit(X[:300], y[:300])
result = {"errors": [np.mean((y[300:] - p) ** 2) for p in model.staged_predict(X[300:])]}
