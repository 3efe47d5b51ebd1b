"""Losses and tables that the tests of LinearSVC and LinearSVR share."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import scale

from certifit.losses import Hinge, HuberisedHinge, SquaredHinge
from certifit.svm.linear.linear_svm import LinearSVC, LinearSVR

LOSSES = {"hinge": Hinge(), "squared_hinge": SquaredHinge(), "huberised_hinge": HuberisedHinge()}


def free_svc(C=1.0, **settings):
    """A LinearSVC whose intercept is free, unless told otherwise."""
    return LinearSVC(C=C, **{"penalize_intercept": False, **settings})


def free_svr(**settings):
    """A LinearSVR whose intercept is free, unless told otherwise."""
    return LinearSVR(**{"penalize_intercept": False, **settings})


every_loss = pytest.mark.parametrize("loss", LOSSES)


def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return scale(X), y


def noisy(n=200, d=5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) + 1
    return X, (X[:, 0] + rng.normal(size=n) > 1).astype(int)
