"""Row weights routed to fit and to the score of a cross-validation."""

import numpy as np
import sklearn
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, make_scorer
from sklearn.model_selection import cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

X, y = load_iris(return_X_y=True)
weight = np.linspace(0.5, 2, len(y))
with sklearn.config_context(enable_metadata_routing=True):
    model = make_pipeline(StandardScaler(), LogisticRegression().set_fit_request(sample_weight=True))
    model[0].set_fit_request(sample_weight=True)
    score = make_scorer(accuracy_score).set_score_request(sample_weight=True)
    found = cross_validate(model, X, y, scoring=score, params={"sample_weight": weight}, cv=4, return_estimator=True)
result = {"scores": found["test_score"], "coefficients": [m[-1].coef_ for m in found["estimator"]]}
