"""A random search over the strength of a penalty."""

from scipy.stats import loguniform
from sklearn.datasets import load_diabetes
from sklearn.linear_model import Ridge
from sklearn.model_selection import RandomizedSearchCV

X, y = load_diabetes(return_X_y=True)
search = RandomizedSearchCV(Ridge(), {"alpha": loguniform(1e-3, 1e2)}, n_iter=12, random_state=0).fit(X, y)
result = {"alpha": search.best_params_["alpha"], "scores": search.cv_results_["mean_test_score"]}
