"""Forest, boosting and machine, stacked."""

from sklearn.datasets import load_diabetes
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor, StackingRegressor
from sklearn.linear_model import LassoCV, RidgeCV

X, y = load_diabetes(return_X_y=True)
members = [
    ("forest", RandomForestRegressor(n_estimators=20, random_state=42)),
    ("lasso", LassoCV(alphas=20)),
    ("boosting", HistGradientBoostingRegressor(max_iter=20, random_state=0)),
]
model = StackingRegressor(members, final_estimator=RidgeCV(), cv=3).fit(X[:300], y[:300])
# tolerance: 0.06
result = {"score": model.score(X[300:], y[300:])}
