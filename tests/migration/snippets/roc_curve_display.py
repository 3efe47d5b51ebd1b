"""ROC and precision-recall curves of a classifier."""

from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import PrecisionRecallDisplay, RocCurveDisplay
from sklearn.preprocessing import scale

X, y = load_breast_cancer(return_X_y=True)
model = LogisticRegression().fit(scale(X), y)
roc = RocCurveDisplay.from_estimator(model, scale(X), y)
precision = PrecisionRecallDisplay.from_estimator(model, scale(X), y)
result = {"area": roc.roc_auc, "average": precision.average_precision}
