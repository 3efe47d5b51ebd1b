"""Whitened principal components of pictures before a kernel machine (digits in place of faces)."""

from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X[:700], y[:700], random_state=0)
axes = PCA(n_components=20, svd_solver="randomized", whiten=True, random_state=0)
model = make_pipeline(axes, SVC(kernel="rbf", C=10, gamma=0.01, class_weight="balanced")).fit(X_train, y_train)
pictures = model[0].components_.reshape((20, 8, 8))
assert pictures.shape == (20, 8, 8)
# tolerance: 0.015
result = {"accuracy": model.score(X_test, y_test), "share": model[0].explained_variance_ratio_.sum()}
