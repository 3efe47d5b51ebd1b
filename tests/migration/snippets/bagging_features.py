"""Random subspaces: bagged neighbours on half of the columns."""

from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import BaggingClassifier
from sklearn.neighbors import KNeighborsClassifier

X, y = load_breast_cancer(return_X_y=True)
model = BaggingClassifier(KNeighborsClassifier(), max_samples=0.5, max_features=0.5, oob_score=True, random_state=0)
model.fit(X, y)
result = {"score": model.score(X, y), "out of bag": model.oob_score_, "columns": len(model.estimators_features_[0])}
