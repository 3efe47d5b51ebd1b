"""Successive halving of a grid."""

from sklearn.datasets import make_classification
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import HalvingGridSearchCV

X, y = make_classification(400, n_features=8, random_state=0)
search = HalvingGridSearchCV(LogisticRegression(), {"C": [0.01, 0.1, 1, 10]}, random_state=0, factor=2).fit(X, y)
result = {"best": search.best_score_, "rounds": search.n_iterations_, "accuracy": search.score(X, y)}
