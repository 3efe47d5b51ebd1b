"""Tables and labels that tests of kernel features share."""

import numpy as np

TOL = 1e-4
LARGEST = "largest error of a kernel value"
WITHIN = "of the optimum with the kernel itself within"


def table(n=200, d=4, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


def labelled(n=200, k=2):
    X = table(n)
    score = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * table(n, 1, 1)[:, 0]
    return X, np.digitize(score, np.quantile(score, np.arange(1, k) / k))


def gram(model, X):
    features = model.transform(X)
    return features @ features.T


def minus(A, B):
    return -A @ B.T
