"""Several targets at once, by one model each."""

from sklearn.datasets import make_multilabel_classification, make_regression
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier, MultiOutputRegressor

X, y = make_regression(100, 6, n_targets=3, random_state=0)
several = MultiOutputRegressor(Ridge()).fit(X, y)
Z, labels = make_multilabel_classification(120, n_features=6, n_classes=3, random_state=0)
parallel = MultiOutputClassifier(LogisticRegression()).fit(Z, labels)
chain = ClassifierChain(LogisticRegression(), random_state=0).fit(Z, labels)
result = {"ridge": several.predict(X), "parallel": parallel.score(Z, labels), "chain": chain.score(Z, labels)}
