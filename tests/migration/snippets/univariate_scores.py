"""Chi-squared and mutual information of columns with classes; percentiles of them."""

from sklearn.datasets import load_digits
from sklearn.feature_selection import SelectPercentile, VarianceThreshold, chi2, f_regression

X, y = load_digits(return_X_y=True)
X, y = X[:300], y[:300]
varied = VarianceThreshold(threshold=1.0).fit(X)
half = SelectPercentile(chi2, percentile=50).fit(X, y)
result = {
    "varied": varied.get_support(),
    "half": half.get_support(),
    "chi2": chi2(X[:, 2:7], y),
    "f": f_regression(X[:, 1:10], y.astype(float)),
}
