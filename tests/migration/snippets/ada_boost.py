"""Boosted logistic regressions, which take sample_weight."""

from sklearn.datasets import load_iris
from sklearn.ensemble import AdaBoostClassifier
from sklearn.linear_model import LogisticRegression

X, y = load_iris(return_X_y=True)
model = AdaBoostClassifier(LogisticRegression(max_iter=1000), n_estimators=5, random_state=0).fit(X, y)
# tolerance: 0.021
result = {"accuracy": model.score(X, y), "weights": model.estimator_weights_.round(1)}
