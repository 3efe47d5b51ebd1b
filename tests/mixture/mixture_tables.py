"""Tables that tests of Gaussian mixtures share."""

import numpy as np
import pytest

from certifit.mixture.gaussian.covariance_shapes import SHAPES

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
