"""Bagged machines."""

from sklearn.datasets import load_iris
from sklearn.ensemble import BaggingClassifier
from sklearn.svm import SVC

X, y = load_iris(return_X_y=True)
model = BaggingClassifier(SVC(), n_estimators=5, max_samples=0.6, random_state=0).fit(X, y)
# tolerance: 0.021
result = {"accuracy": model.score(X, y)}
