"""Naive Bayes batch by batch."""

import numpy as np
from sklearn.datasets import load_digits
from sklearn.naive_bayes import BernoulliNB, GaussianNB, MultinomialNB

X, y = load_digits(return_X_y=True)
models = [GaussianNB(var_smoothing=1e-3), MultinomialNB(), BernoulliNB(binarize=8.0)]
for model in models:
    for part in np.array_split(np.arange(600), 4):
        model.partial_fit(X[part], y[part], classes=np.arange(10))
result = {type(model).__name__: model.predict_log_proba(X[:50]) for model in models}
