"""Probabilities and votes of a kernel machine."""

from sklearn.datasets import load_iris
from sklearn.svm import SVC

X, y = load_iris(return_X_y=True)
model = SVC(gamma="auto", probability=True, random_state=0).fit(X, y)
votes = SVC(gamma="auto", decision_function_shape="ovo").fit(X, y)
# tolerance: 0.08
result = {"probability": model.predict_proba(X), "score": model.score(X, y), "votes": votes.decision_function(X[:5])}
