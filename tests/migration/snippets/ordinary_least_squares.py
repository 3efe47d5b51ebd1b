"""Least squares, plain, non-negative and with row weights."""

import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LinearRegression
from sklearn.metrics import mean_squared_error, r2_score

X, y = load_diabetes(return_X_y=True)
plain = LinearRegression(n_jobs=1).fit(X[:-20], y[:-20])
positive = LinearRegression(positive=True).fit(X[:-20], y[:-20])
weighted = LinearRegression(fit_intercept=False).fit(X, y, sample_weight=np.arange(len(y)) + 1.0)
result = {
    "coef": plain.coef_,
    "intercept": plain.intercept_,
    "rank": plain.rank_,
    "positive": positive.coef_,
    "weighted": weighted.coef_,
    "r2": r2_score(y[-20:], plain.predict(X[-20:])),
    "error": mean_squared_error(y[-20:], positive.predict(X[-20:])),
}
