"""A regression on the logarithm of its target."""

import numpy as np
from sklearn.compose import TransformedTargetRegressor
from sklearn.datasets import make_regression
from sklearn.linear_model import Ridge

X, y = make_regression(100, 4, noise=5, random_state=0)
y = np.exp((y - y.min()) / 200)
model = TransformedTargetRegressor(regressor=Ridge(), func=np.log, inverse_func=np.exp).fit(X, y)
result = {"score": model.score(X, y), "coefficients": model.regressor_.coef_}
