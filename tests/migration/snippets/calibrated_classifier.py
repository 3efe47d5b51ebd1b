"""Calibrated probabilities of a linear machine."""

from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_classification
from sklearn.metrics import brier_score_loss
from sklearn.svm import LinearSVC

X, y = make_classification(400, n_features=6, random_state=0)
model = CalibratedClassifierCV(LinearSVC(random_state=0), method="sigmoid", cv=3).fit(X[:300], y[:300])
# tolerance: 2e-2
result = {
    "brier": brier_score_loss(y[300:], model.predict_proba(X[300:])[:, 1]),
    "probability": model.predict_proba(X[300:]),
}
