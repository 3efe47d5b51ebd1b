"""Columns added one by one by their cross-validated score."""

from sklearn.datasets import load_iris
from sklearn.feature_selection import SequentialFeatureSelector
from sklearn.linear_model import LogisticRegression

X, y = load_iris(return_X_y=True)
forward = SequentialFeatureSelector(LogisticRegression(max_iter=1000), n_features_to_select=2, cv=3).fit(X, y)
result = {"support": forward.get_support(), "shape": forward.transform(X).shape}
