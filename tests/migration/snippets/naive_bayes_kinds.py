"""Naive Bayes on numbers, counts, flags and categories."""

import numpy as np
from sklearn.naive_bayes import BernoulliNB, CategoricalNB, ComplementNB, GaussianNB, MultinomialNB

rng = np.random.default_rng(1)
X, y = rng.integers(5, size=(60, 10)), np.arange(60) % 3
result = {}
for model in (
    GaussianNB(),
    MultinomialNB(alpha=0.5),
    ComplementNB(norm=True),
    BernoulliNB(),
    CategoricalNB(min_categories=5),
):
    result[type(model).__name__] = model.fit(X, y).predict_proba(X)
