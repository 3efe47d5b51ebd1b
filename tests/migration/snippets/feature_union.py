"""Principal components beside the best single columns."""

from sklearn.datasets import load_iris
from sklearn.decomposition import PCA
from sklearn.feature_selection import SelectKBest
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.svm import SVC

X, y = load_iris(return_X_y=True)
features = FeatureUnion([("pca", PCA(n_components=2)), ("univ_select", SelectKBest(k=1))])
pipeline = Pipeline([("features", features), ("svm", SVC(kernel="linear"))])
grid = {"features__pca__n_components": [1, 2], "features__univ_select__k": [1, 2], "svm__C": [0.1, 1]}
search = GridSearchCV(pipeline, grid, cv=3).fit(X, y)
result = {"scores": search.cv_results_["mean_test_score"]}
