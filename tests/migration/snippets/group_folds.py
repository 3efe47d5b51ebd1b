"""Folds by group, and a scorer by name."""

import numpy as np
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold

X, y = load_iris(return_X_y=True)
groups = np.arange(150) // 10 % 5
search = GridSearchCV(
    LogisticRegression(max_iter=1000), {"C": [0.1, 1, 10]}, cv=GroupKFold(5), scoring="neg_log_loss"
)
search.fit(X, y, groups=groups)
result = {"scores": search.cv_results_["mean_test_score"], "C": search.best_params_["C"]}
