"""Tables and plain densities that tests of Gaussian mixtures share."""

from pathlib import Path

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.datasets import load_iris

from certifit.checkers.mixture import gaussian as checker
from certifit.checkers.mixture.adapter import audit_gaussian_mixture
from certifit.mixture.gaussian.covariance_shapes import SHAPES

IRIS = load_iris().data
every_shape = pytest.mark.parametrize("kind", SHAPES)


def two_groups(n=200, seed=0):
    """Two groups of rows (n, 2), well apart."""
    rng = np.random.default_rng(seed)
    narrow = rng.normal(size=(n // 2, 2)) * [0.5, 0.3] + [4, 3]
    return np.concatenate([rng.normal(size=(n // 2, 2)), narrow])


def with_missing(X, share, seed=1):
    """With entries missing at random, and one row without any entry."""
    X = np.where(np.random.default_rng(seed).random(X.shape) < share, np.nan, X)
    X[5] = np.nan
    return X


def old_faithful():
    """272 eruptions (Härdle, Smoothing Techniques, 1991; R's data set `faithful`)."""
    path = Path(__file__).parents[1] / "published" / "data" / "old_faithful.csv"
    return np.loadtxt(path, delimiter=",", skiprows=1)


def audit(model, X, w=None, tol=1e-6):
    return audit_gaussian_mixture(model, X, None, w, tol)


def covariances(model):
    """As matrices (k, d, d)."""
    expand = checker.COVARIANCE_TYPES[model.covariance_type].expand
    return expand(np.asarray(model.covariances_), *model.means_.shape)


def joint(model, X):
    """log π_k f_k of the observed entries by SciPy, row by row (n, k)."""
    out = np.zeros((len(X), len(model.weights_)))
    for i, x in enumerate(X):
        here = ~np.isnan(x)
        for k, (m, C) in enumerate(zip(model.means_, covariances(model), strict=True)):
            if here.any():
                out[i, k] = multivariate_normal.logpdf(x[here], m[here], C[np.ix_(here, here)])
    return out + np.log(model.weights_)
