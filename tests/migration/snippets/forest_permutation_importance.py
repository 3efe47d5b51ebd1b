"""Importances of a forest, by impurity and by shuffling."""

from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.inspection import permutation_importance

X, y = load_iris(return_X_y=True)
model = RandomForestClassifier(n_estimators=200, random_state=0).fit(X, y)
found = permutation_importance(model, X, y, n_repeats=5, random_state=0)
# tolerance: 0.25
result = {"impurity": model.feature_importances_, "sepals matter little": (found.importances_mean < 0.05).sum()}
