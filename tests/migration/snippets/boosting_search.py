"""Learning rate and leaves of boosting, in a cross-validation with several scores."""

from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import cross_validate

X, y = load_breast_cancer(return_X_y=True)
model = HistGradientBoostingClassifier(max_iter=20, max_leaf_nodes=7, random_state=0)
found = cross_validate(model, X, y, cv=3, scoring=["accuracy", "roc_auc", "neg_log_loss"])
# tolerance: 0.08
result = {name: found[f"test_{name}"] for name in ("accuracy", "roc_auc", "neg_log_loss")}
