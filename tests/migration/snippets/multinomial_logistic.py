"""Softmax regression of several classes, and its score on new rows."""

from sklearn.datasets import load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

X, y = load_wine(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(StandardScaler().fit_transform(X), y, random_state=1)
model = LogisticRegression(solver="lbfgs", C=0.7, tol=1e-8, max_iter=1000, verbose=0, random_state=0).fit(
    X_train, y_train
)
result = {
    "coef": model.coef_,
    "loss": log_loss(y_test, model.predict_proba(X_test)),
    "scores": model.decision_function(X_test),
}
