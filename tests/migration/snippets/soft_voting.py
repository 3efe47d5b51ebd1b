"""Soft votes of a tree, a forest and a machine."""

from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier, VotingClassifier
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

X, y = load_iris(return_X_y=True)
members = [
    ("tree", DecisionTreeClassifier(max_depth=4, random_state=0)),
    ("forest", RandomForestClassifier(n_estimators=20, random_state=0)),
    ("svc", SVC(kernel="rbf", probability=True, random_state=0)),
]
model = VotingClassifier(members, voting="soft", weights=[2, 1, 2]).fit(X[::2], y[::2])
# tolerance: 0.03
result = {"score": model.score(X[1::2], y[1::2])}
