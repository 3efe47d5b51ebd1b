"""Rare classes in a forest."""

from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import balanced_accuracy_score

X, y = make_classification(600, weights=[0.9], random_state=0, class_sep=1.5)
result = {}
for weight in ("balanced", "balanced_subsample", {0: 1, 1: 5}):
    model = RandomForestClassifier(50, class_weight=weight, max_depth=4, random_state=0).fit(X[:400], y[:400])
    result[str(weight)] = balanced_accuracy_score(y[400:], model.predict(X[400:]))
# tolerance: 0.06
