"""Partial dependence of a boosted model, by prediction, and drawn."""

from sklearn.datasets import load_diabetes
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.inspection import PartialDependenceDisplay, partial_dependence

X, y = load_diabetes(return_X_y=True)
model = HistGradientBoostingRegressor(max_iter=30, random_state=0).fit(X, y)
found = partial_dependence(model, X, features=[2], grid_resolution=8, method="brute")
PartialDependenceDisplay.from_estimator(model, X, features=[2, (2, 8)], grid_resolution=4)
result = {"average": found["average"]}
