"""Stacked classifiers with logistic regression on top."""

from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier, StackingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

X, y = load_iris(return_X_y=True)
forest = RandomForestClassifier(n_estimators=10, random_state=42)
machine = make_pipeline(StandardScaler(), LinearSVC(random_state=42))
stack = StackingClassifier([("rf", forest), ("svr", machine)], final_estimator=LogisticRegression(), cv=3).fit(X, y)
# tolerance: 0.021
result = {"accuracy": stack.score(X, y)}
