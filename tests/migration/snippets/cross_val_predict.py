"""Predictions of every row by a model that has not seen it."""

from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import cross_val_predict

X, y = load_iris(return_X_y=True)
probability = cross_val_predict(LogisticRegression(max_iter=500), X, y, cv=3, method="predict_proba")
result = {"loss": log_loss(y, probability), "probability": probability}
