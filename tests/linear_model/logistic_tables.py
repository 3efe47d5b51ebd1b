"""Tables and fits that the tests of logistic regression share."""

import numpy as np
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.preprocessing import StandardScaler

from certifit import LogisticRegression, audit

SOLVERS = ["auto", "newton-cholesky", "lbfgs"]
TABLES = {
    "cancer": load_breast_cancer(return_X_y=True),
    "iris": load_iris(return_X_y=True),
    "wine": load_wine(return_X_y=True),
}
TABLES = {name: (StandardScaler().fit_transform(X), y) for name, (X, y) in TABLES.items()}


def exact(**params):
    return LogisticRegression(**{"tol": 1e-12, **params})


def certified(model, X, y, w=None):
    assert np.isfinite(model.coef_).all()
    assert np.isfinite(model.intercept_).all()
    return model.certificate_.holds and audit(model, X, y, w).holds
