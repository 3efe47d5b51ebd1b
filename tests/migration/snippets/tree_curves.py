"""Learning and validation curves of a tree, and its ROC curve."""

from sklearn.datasets import load_breast_cancer
from sklearn.metrics import RocCurveDisplay
from sklearn.model_selection import learning_curve, validation_curve
from sklearn.tree import DecisionTreeClassifier

X, y = load_breast_cancer(return_X_y=True)
tree = DecisionTreeClassifier(max_depth=3, random_state=0)
sizes, train, test = learning_curve(tree, X, y, cv=3, train_sizes=[0.3, 1.0])
_, held = validation_curve(tree, X, y, param_name="max_depth", param_range=[1, 3], cv=3)
display = RocCurveDisplay.from_estimator(tree.fit(X[:400], y[:400]), X[400:], y[400:])
# tolerance: 0.06
result = {"sizes": sizes, "train": train.mean(1), "test": test.mean(1), "held": held.mean(1), "area": display.roc_auc}
