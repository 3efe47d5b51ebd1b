"""A path of penalties, each fit started from the last."""

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import scale

X, y = load_breast_cancer(return_X_y=True)
model = LogisticRegression(
    l1_ratio=1, solver="liblinear", tol=1e-6, max_iter=int(1e6), warm_start=True, intercept_scaling=10000.0
)
probabilities = []
for C in np.logspace(-2, 0, 4):
    model.set_params(C=C)
    model.fit(scale(X), y)
    probabilities.append(model.predict_proba(scale(X)))
# tolerance: 0.02
result = {"path": probabilities}
