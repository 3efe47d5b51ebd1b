"""The boundary of a machine over a grid of two columns."""

import numpy as np
from sklearn.datasets import load_iris
from sklearn.inspection import DecisionBoundaryDisplay
from sklearn.svm import SVC

X, y = load_iris(return_X_y=True)
model = SVC(gamma=0.7).fit(X[:, :2], y)
display = DecisionBoundaryDisplay.from_estimator(model, X[:, :2], response_method="predict", grid_resolution=40)
result = {"share": np.mean(display.response == 1), "support": len(model.support_) / len(X)}
