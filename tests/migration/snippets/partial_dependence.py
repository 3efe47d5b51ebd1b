"""Partial dependence of a prediction on single columns."""

from sklearn.datasets import load_diabetes
from sklearn.inspection import PartialDependenceDisplay, partial_dependence
from sklearn.svm import SVR

X, y = load_diabetes(return_X_y=True)
model = SVR(C=100.0, gamma=5.0).fit(X[:200], y[:200])
found = partial_dependence(model, X[:200], features=[2], grid_resolution=10)
PartialDependenceDisplay.from_estimator(model, X[:200], features=[2, 3], grid_resolution=5)
result = {"average": found["average"]}
