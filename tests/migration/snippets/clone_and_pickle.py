"""Models copied, changed and stored."""

import io
import pickle

import joblib
import numpy as np
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression

X, y = load_iris(return_X_y=True)
model = LogisticRegression(C=0.5, max_iter=300).fit(X, y)
copy = clone(model).set_params(C=5.0).fit(X, y)
again = pickle.loads(pickle.dumps(model))
file = io.BytesIO()
joblib.dump(copy, file)
file.seek(0)
stored = joblib.load(file)
assert np.array_equal(again.predict(X), model.predict(X))
assert np.array_equal(stored.coef_, copy.coef_)
assert model.get_params()["C"] == 0.5
result = {"first": model.coef_, "second": copy.coef_}
