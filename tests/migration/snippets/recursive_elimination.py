"""Columns taken away one by one, with and without cross-validation."""

from sklearn.datasets import make_friedman1
from sklearn.feature_selection import RFE, RFECV
from sklearn.linear_model import LinearRegression

X, y = make_friedman1(n_samples=60, n_features=8, random_state=0)
fixed = RFE(LinearRegression(), n_features_to_select=4, step=1).fit(X, y)
chosen = RFECV(LinearRegression(), step=1, cv=4).fit(X, y)
result = {
    "ranking": fixed.ranking_,
    "support": fixed.support_,
    "number": chosen.n_features_,
    "scores": chosen.cv_results_["mean_test_score"],
}
