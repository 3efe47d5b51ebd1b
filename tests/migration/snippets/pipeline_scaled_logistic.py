"""A pipeline of a scaler and logistic regression, scored on held-out rows."""

from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

X, y = load_breast_cancer(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=0)
model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)).fit(X_train, y_train)
result = {
    "accuracy": model.score(X_test, y_test),
    "probability": model.predict_proba(X_test),
    "log": model.predict_log_proba(X_test[:5]),
    "coefficients": model[-1].coef_,
}
