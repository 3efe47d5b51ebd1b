"""Extremely randomised trees, with and without a bootstrap."""

from sklearn.datasets import load_iris
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.model_selection import cross_val_score

X, y = load_iris(return_X_y=True)
plain = cross_val_score(ExtraTreesClassifier(n_estimators=30, random_state=0), X, y, cv=3).mean()
drawn = ExtraTreesClassifier(n_estimators=50, bootstrap=True, oob_score=True, random_state=0).fit(X, y).oob_score_
# tolerance: 0.03
result = {"plain": plain, "out of bag": drawn}
