"""Weights routed through a search to fit and score."""

import numpy as np
import sklearn
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import GridSearchCV

X, y = load_iris(return_X_y=True)
weight = np.random.default_rng(0).uniform(0.5, 2, len(y))
with sklearn.config_context(enable_metadata_routing=True):
    forest = RandomForestClassifier(n_estimators=20, random_state=0)
    forest = forest.set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
    search = GridSearchCV(forest, {"max_depth": [2, 4]}, cv=3).fit(X, y, sample_weight=weight)
# tolerance: 0.03
result = {"scores": search.cv_results_["mean_test_score"]}
