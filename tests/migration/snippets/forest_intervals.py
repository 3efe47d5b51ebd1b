"""The trees of a forest, one by one."""

import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestRegressor

X, y = load_diabetes(return_X_y=True)
model = RandomForestRegressor(n_estimators=40, max_features=0.5, random_state=0).fit(X[:300], y[:300])
each = np.stack([tree.predict(X[300:]) for tree in model.estimators_])
spread = np.std([tree.feature_importances_ for tree in model.estimators_], axis=0)
# tolerance: 0.15
result = {
    "mean of trees": np.abs(each.mean(axis=0) - model.predict(X[300:])).max() + 1,
    "spread of trees": each.std(axis=0).mean(),
    "importances": spread.mean(),
}
