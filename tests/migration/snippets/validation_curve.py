"""The score as a function of gamma."""

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import validation_curve
from sklearn.svm import SVC

X, y = load_digits(return_X_y=True)
subset = np.isin(y, [1, 2])
gammas = np.logspace(-5, -2, 4)
train, test = validation_curve(SVC(), X[subset], y[subset], param_name="gamma", param_range=gammas, cv=3)
result = {"train": train, "test": test}
