"""A linear machine on approximate kernel features."""

from sklearn.datasets import load_digits
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

X, y = load_digits(n_class=5, return_X_y=True)
X = X / 16.0
nystroem = make_pipeline(Nystroem(gamma=0.2, n_components=80, random_state=1), LinearSVC()).fit(X[:400], y[:400])
fourier = make_pipeline(RBFSampler(gamma=0.2, n_components=200, random_state=1), LinearSVC()).fit(X[:400], y[:400])
assert Nystroem().fit_transform(X[:200]).shape == RBFSampler().fit_transform(X[:200]).shape == (200, 100)
# tolerance: 0.03
result = {"nystroem": nystroem.score(X[400:], y[400:]), "fourier": fourier.score(X[400:], y[400:])}
