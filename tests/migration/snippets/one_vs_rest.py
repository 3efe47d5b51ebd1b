"""One machine for each class."""

from sklearn.datasets import load_iris
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.svm import SVC, LinearSVC

X, y = load_iris(return_X_y=True)
rest = OneVsRestClassifier(SVC(kernel="rbf", C=1.0)).fit(X, y)
one = OneVsOneClassifier(LinearSVC(random_state=0)).fit(X, y)
# tolerance: 0.021
result = {"rest": rest.score(X, y), "one": one.score(X, y), "machines": len(one.estimators_)}
