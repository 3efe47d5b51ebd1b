"""Columns chosen by a forest, as a data frame."""

from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.feature_selection import SelectFromModel

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
forest = ExtraTreesClassifier(n_estimators=50, random_state=0)
select = SelectFromModel(forest, max_features=5, threshold=-1).set_output(transform="pandas").fit(X, y)
chosen = select.transform(X)
result = {"shape": chosen.shape, "names": [name in X.columns for name in chosen]}
