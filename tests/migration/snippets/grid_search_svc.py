"""A grid search over C and gamma of a support vector machine."""

from sklearn.datasets import load_wine
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

X, y = load_wine(return_X_y=True)
pipeline = Pipeline([("scale", StandardScaler()), ("svc", SVC())])
search = GridSearchCV(pipeline, {"svc__C": [0.1, 1, 10], "svc__gamma": [0.01, "scale"]}, cv=3).fit(X, y)
result = {
    "scores": search.cv_results_["mean_test_score"],
    "best": search.best_score_,
    "C": search.best_params_["svc__C"],
}
