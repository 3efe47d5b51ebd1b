"""AdaBoost.R2 of regression trees, stage by stage."""

import numpy as np
from sklearn.ensemble import AdaBoostRegressor
from sklearn.tree import DecisionTreeRegressor

rng = np.random.RandomState(1)
X = np.linspace(0, 6, 100)[:, None]
y = np.sin(X).ravel() + np.sin(6 * X).ravel() + rng.normal(0, 0.1, 100)
model = AdaBoostRegressor(DecisionTreeRegressor(max_depth=4), n_estimators=30, random_state=0).fit(X, y)
last = list(model.staged_score(X, y))[-1]
# tolerance: 0.05
result = {"score": model.score(X, y), "last stage": last, "columns": model.feature_importances_}
