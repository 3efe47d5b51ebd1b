"""Several scores at once, with the fitted estimators kept."""

from sklearn.datasets import load_diabetes
from sklearn.linear_model import Lasso
from sklearn.model_selection import KFold, cross_validate

X, y = load_diabetes(return_X_y=True)
scores = ("r2", "neg_mean_absolute_error")
found = cross_validate(
    Lasso(alpha=0.1), X, y, cv=KFold(4), scoring=scores, return_estimator=True, return_train_score=True
)
result = {
    "r2": found["test_r2"],
    "error": found["test_neg_mean_absolute_error"],
    "train": found["train_r2"],
    "coefficients": [model.coef_ for model in found["estimator"]],
}
