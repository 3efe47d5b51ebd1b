"""Strengths chosen by cross-validation: ridge, lasso, elastic net, logistic."""

from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.linear_model import ElasticNetCV, LassoCV, LogisticRegressionCV, RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

X, y = load_diabetes(return_X_y=True)
result = {
    "ridge": RidgeCV(alphas=[1e-3, 1e-2, 1e-1, 1]).fit(X, y).alpha_,
    "lasso": LassoCV(cv=5, random_state=0).fit(X, y).coef_,
    "net": ElasticNetCV(cv=5, l1_ratio=[0.5, 0.9], random_state=0).fit(X, y).coef_,
}
X, y = load_breast_cancer(return_X_y=True)
model = make_pipeline(StandardScaler(), LogisticRegressionCV(Cs=[0.01, 0.1, 1], cv=3, max_iter=1000)).fit(X, y)
result["strength"] = model[-1].C_
