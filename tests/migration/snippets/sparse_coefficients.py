"""Sparse tables, and coefficients stored sparsely."""

from scipy import sparse
from sklearn.datasets import make_regression
from sklearn.linear_model import Lasso, LogisticRegression, Ridge

X, y = make_regression(80, 30, n_informative=4, noise=1.0, random_state=0)
X[abs(X) < 0.8] = 0
table = sparse.csr_matrix(X)
lasso = Lasso(alpha=0.5).fit(table, y)
ridge = Ridge(solver="sparse_cg", tol=1e-8).fit(table, y)
classifier = LogisticRegression().fit(table, y > 0).sparsify()
result = {
    "lasso": lasso.coef_,
    "sparse": lasso.sparse_coef_.toarray(),
    "ridge": ridge.coef_,
    "scores": classifier.predict_proba(table),
}
