"""Gradient boosting that stops when held-out rows no longer gain."""

from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import HistGradientBoostingClassifier

X, y = load_breast_cancer(return_X_y=True)
model = HistGradientBoostingClassifier(early_stopping=True, n_iter_no_change=5, max_iter=60, random_state=0).fit(X, y)
# tolerance: 0.02
result = {"accuracy": model.score(X, y), "one score a stage": len(model.validation_score_) - model.n_iter_}
