"""A grid search over every kernel by name, the sigmoid among them."""

from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import scale
from sklearn.svm import SVC

X, y = load_iris(return_X_y=True)
search = GridSearchCV(SVC(), {"kernel": ["linear", "poly", "rbf", "sigmoid"]}, cv=3).fit(scale(X), y)
# tolerance: 0.03
result = {"scores": search.cv_results_["mean_test_score"]}
