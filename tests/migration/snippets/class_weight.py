"""Rare classes that count as much as frequent ones, and rows that count more."""

import numpy as np
from sklearn.datasets import make_blobs
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC, LinearSVC

X, y = make_blobs([200, 30], centers=[[0.0, 0.0], [2.0, 2.0]], cluster_std=[1.5, 0.5], random_state=0)
weight = np.where(np.arange(230) % 5 == 0, 3.0, 1.0)
weighted = SVC(kernel="linear", class_weight={1: 10}).fit(X, y)
rows = SVC(kernel="linear").fit(X, y, sample_weight=weight)
balanced = LogisticRegression(class_weight="balanced").fit(X, y, sample_weight=weight)
linear = LinearSVC(class_weight="balanced", max_iter=10000).fit(X, y)
result = {
    "weighted": weighted.coef_,
    "rows": rows.coef_,
    "balanced": balanced.coef_,
    "linear": linear.coef_,
    "intercept": linear.intercept_,
}
