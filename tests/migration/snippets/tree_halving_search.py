"""Depth and leaves of a tree by successive halving."""

from sklearn.datasets import load_breast_cancer
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.model_selection import HalvingGridSearchCV
from sklearn.tree import DecisionTreeClassifier

X, y = load_breast_cancer(return_X_y=True)
grid = {"max_depth": [1, 4], "min_samples_leaf": [1, 5]}
search = HalvingGridSearchCV(DecisionTreeClassifier(random_state=0), grid, factor=2, random_state=0).fit(X, y)
# tolerance: 0.03
result = {"best": search.best_score_}
