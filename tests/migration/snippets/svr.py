"""Support vector regression of a sine, with three kernels."""

import numpy as np
from sklearn.svm import SVR

rng = np.random.default_rng(0)
X = np.sort(5 * rng.random((60, 1)), axis=0)
y = np.sin(X).ravel()
y[::5] += 3 * (0.5 - rng.random(12))
machines = {
    "rbf": SVR(kernel="rbf", C=100, gamma=0.1, epsilon=0.1),
    "linear": SVR(kernel="linear", C=100, gamma="auto"),
    "poly": SVR(kernel="poly", C=10, gamma="auto", degree=3, epsilon=0.1, coef0=1),
}
result = {name: machine.fit(X, y).predict(X) for name, machine in machines.items()}
