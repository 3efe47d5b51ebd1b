"""A linear machine with its solver's arguments."""

from sklearn.datasets import make_classification
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC, LinearSVR

X, y = make_classification(200, n_features=4, random_state=0)
model = make_pipeline(StandardScaler(), LinearSVC(dual="auto", random_state=0, tol=1e-5, verbose=0)).fit(X, y)
regressor = LinearSVR(dual="auto", random_state=0, tol=1e-6, C=1.0, max_iter=100000).fit(X, X[:, 0] + 0.1 * y)
# tolerance: 2e-2
result = {
    "coef": model[-1].coef_,
    "intercept": model[-1].intercept_,
    "score": model.score(X, y),
    "svr": regressor.coef_,
}
