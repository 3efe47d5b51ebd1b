"""Reliability of naive Bayes against logistic regression."""

from sklearn.calibration import CalibrationDisplay
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

X, y = make_classification(600, n_features=8, random_state=1)
curves = [
    CalibrationDisplay.from_estimator(m.fit(X, y), X, y, n_bins=5) for m in (GaussianNB(), LogisticRegression())
]
# tolerance: 0.02
result = {f"curve {i}": curve.prob_true for i, curve in enumerate(curves)}
