"""Counts with a Poisson loss and exposure as a weight."""

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.metrics import mean_poisson_deviance

rng = np.random.default_rng(0)
X = rng.uniform(size=(500, 3))
exposure = rng.uniform(0.2, 1, 500)
claims = rng.poisson(exposure * np.exp(X[:, 0]))
model = HistGradientBoostingRegressor(loss="poisson", max_iter=30, learning_rate=0.05, random_state=0)
model.fit(X, claims / exposure, sample_weight=exposure)
deviance = mean_poisson_deviance(claims / exposure, model.predict(X), sample_weight=exposure)
# tolerance: 0.02
result = {"deviance": deviance, "mean": model.predict(X).mean()}
