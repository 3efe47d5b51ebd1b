"""Bagged support vector regressions."""

from sklearn.datasets import make_regression
from sklearn.ensemble import BaggingRegressor
from sklearn.svm import SVR

X, y = make_regression(n_samples=100, n_features=4, n_informative=2, random_state=0, shuffle=False)
model = BaggingRegressor(estimator=SVR(), n_estimators=60, random_state=0).fit(X, y)
# tolerance: 0.1
result = {"zero": model.predict([[0, 0, 0, 0]]), "score": model.score(X, y)}
