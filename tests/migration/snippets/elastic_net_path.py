"""Paths of the lasso and the elastic net."""

from sklearn.datasets import load_diabetes
from sklearn.linear_model import ElasticNet, Lasso, enet_path, lasso_path

X, y = load_diabetes(return_X_y=True)
X = X / X.std(axis=0)
y = y - y.mean()
alphas, lasso, gaps = lasso_path(X, y, eps=5e-3, n_alphas=10)
_, enet, _ = enet_path(X, y, eps=5e-3, l1_ratio=0.8, n_alphas=10)
_, positive, _ = lasso_path(X, y, eps=5e-3, n_alphas=10, positive=True)
single = ElasticNet(alpha=1.0, l1_ratio=0.7, max_iter=5000).fit(X, y)
result = {
    "alphas": alphas,
    "lasso": lasso,
    "enet": enet,
    "positive": positive,
    "coef": single.coef_,
    "zeros": Lasso(2.0).fit(X, y).coef_ == 0,
}
