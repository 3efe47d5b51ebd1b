"""The out-of-bag estimate of a forest's R²."""

from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestRegressor

X, y = load_diabetes(return_X_y=True)
model = RandomForestRegressor(n_estimators=100, oob_score=True, min_samples_leaf=3, random_state=0).fit(X, y)
# tolerance: 0.1
result = {"score": model.oob_score_, "first rows": model.oob_prediction_[:20].mean(), "columns": model.n_features_in_}
