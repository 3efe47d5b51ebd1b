"""A regression tree of a sine, two depths, two targets."""

import numpy as np
from sklearn.tree import DecisionTreeRegressor

rng = np.random.RandomState(1)
X = np.sort(5 * rng.rand(80, 1), axis=0)
y = np.sin(X).ravel()
y[::5] += 3 * (0.5 - rng.rand(16))
grid = np.arange(0.0, 5.0, 0.1)[:, None]
both = DecisionTreeRegressor(max_depth=3).fit(X, np.column_stack([y, np.cos(X[:, 0])]))
result = {f"depth {d}": DecisionTreeRegressor(max_depth=d, random_state=0).fit(X, y).predict(grid) for d in (2, 5)}
result["two targets"] = both.predict(grid)
