"""Linear models with several targets in one fit."""

from sklearn.datasets import load_linnerud
from sklearn.linear_model import LinearRegression, Ridge

X, Y = load_linnerud(return_X_y=True)
plain, ridge = LinearRegression().fit(X, Y), Ridge(alpha=0.5).fit(X, Y)
result = {"plain": plain.coef_, "ridge": ridge.coef_, "fit": plain.predict(X), "score": ridge.score(X, Y)}
