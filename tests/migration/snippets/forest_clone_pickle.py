"""Copies of a forest and a boosted model by clone, copy and pickle."""

import pickle

import numpy as np
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier

X, y = load_iris(return_X_y=True)
result = {}
for model in (
    RandomForestClassifier(10, random_state=0),
    HistGradientBoostingClassifier(max_iter=10, random_state=0),
):
    model.fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    fresh = clone(model).fit(X, y)
    name = type(model).__name__
    result[name] = [np.abs(other.predict_proba(X) - model.predict_proba(X)).max() for other in (again, fresh)]
