"""Prediction intervals by two quantile regressions."""

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor

rng = np.random.default_rng(0)
X = rng.uniform(0, 10, (400, 1))
y = X[:, 0] * np.sin(X[:, 0]) + rng.normal(0, 0.5 + X[:, 0] / 10)
low, high = (
    HistGradientBoostingRegressor(loss="quantile", quantile=q, max_iter=40, random_state=0).fit(X, y).predict(X)
    for q in (0.05, 0.95)
)
# tolerance: 0.03
result = {"covered": np.mean((y >= low) & (y <= high)), "width": np.mean(high - low)}
