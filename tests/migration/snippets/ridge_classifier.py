"""The ridge classifier on sparse words and on numbers."""

from scipy import sparse
from sklearn.datasets import load_wine
from sklearn.linear_model import RidgeClassifier
from sklearn.preprocessing import scale

X, y = load_wine(return_X_y=True)
model = RidgeClassifier(alpha=2.0).fit(scale(X), y)
flags = RidgeClassifier(tol=1e-6, solver="sparse_cg").fit(sparse.csr_matrix(X.mean(axis=0) < X).astype(float), y)
result = {
    "coef": model.coef_,
    "intercept": model.intercept_,
    "scores": model.decision_function(scale(X)),
    "flags": flags.coef_,
}
