"""L1, L2, elastic net and no penalty, with the solvers that scikit-learn needs for them."""

from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

X, y = load_digits(return_X_y=True)
X, y = StandardScaler().fit_transform(X[:400]), (y[:400] > 4).astype(int)
penalties = {
    "l1": LogisticRegression(C=0.1, l1_ratio=1.0, solver="saga", tol=1e-6, max_iter=10000),
    "l2": LogisticRegression(C=0.1, solver="newton-cg", n_jobs=1),
    "elastic": LogisticRegression(C=0.1, l1_ratio=0.5, solver="saga", tol=1e-6, max_iter=10000),
}
result = {name: model.fit(X, y).coef_ for name, model in penalties.items()}
