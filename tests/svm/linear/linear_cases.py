"""Losses and tables that the tests of LinearSVC and LinearSVR share."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import scale

from certifit.losses import Hinge, HuberisedHinge, SquaredHinge

LOSSES = {"hinge": Hinge(), "squared_hinge": SquaredHinge(), "huberised_hinge": HuberisedHinge()}
every_loss = pytest.mark.parametrize("loss", LOSSES)


def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return scale(X), y


def noisy(n=200, d=5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) + 1
    return X, (X[:, 0] + rng.normal(size=n) > 1).astype(int)
