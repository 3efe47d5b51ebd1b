"""How much a score falls when a column is shuffled."""

from sklearn.datasets import load_diabetes
from sklearn.inspection import permutation_importance
from sklearn.linear_model import Ridge

X, y = load_diabetes(return_X_y=True)
model = Ridge(alpha=1e-2).fit(X[:300], y[:300])
found = permutation_importance(model, X[300:], y[300:], n_repeats=5, random_state=0)
result = {"mean": found.importances_mean, "std": found.importances_std}
