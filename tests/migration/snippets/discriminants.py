"""Linear and quadratic discriminants."""

from sklearn.datasets import load_iris
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis

X, y = load_iris(return_X_y=True)
quadratic = QuadraticDiscriminantAnalysis(store_covariance=True).fit(X, y)
linear = LinearDiscriminantAnalysis(store_covariance=True).fit(X, y)
result = {"quadratic": quadratic.predict_proba(X), "linear": linear.predict_proba(X), "spread": quadratic.covariance_}
