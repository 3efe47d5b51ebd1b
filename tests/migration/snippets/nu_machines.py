"""Machines with nu in place of C, and one for outliers."""

from sklearn.datasets import make_blobs
from sklearn.svm import NuSVC, OneClassSVM

X, y = make_blobs(120, centers=2, cluster_std=3, random_state=0)
nu = NuSVC(nu=0.5, gamma="auto").fit(X, y)
outliers = OneClassSVM(nu=0.1, kernel="rbf", gamma=0.1).fit(X)
# tolerance: 0.03
result = {
    "nu": nu.decision_function(X),
    "score": nu.score(X, y),
    "outliers": outliers.decision_function(X),
}
