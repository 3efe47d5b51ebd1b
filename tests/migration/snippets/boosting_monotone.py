"""A boosted curve that may only rise."""

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor

rng = np.random.default_rng(0)
X = rng.uniform(size=(300, 2))
y = 5 * X[:, 0] + np.sin(10 * np.pi * X[:, 0]) - 5 * X[:, 1] + rng.normal(0, 0.1, 300)
model = HistGradientBoostingRegressor(monotonic_cst=[1, -1], max_iter=50, random_state=0).fit(X, y)
grid = np.column_stack([np.linspace(0, 1, 30), np.full(30, 0.5)])
# tolerance: 0.03
result = {"score": model.score(X, y), "falls": (np.diff(model.predict(grid)) < 0).sum()}
