"""Breiman's simulated data: error rates of forests and of single trees as his Random Forests (2001) prints them.

Table 2 there: 100 trees, 300 rows to learn from, 3000 to test, Forest-RI with a single input, and one tree. The data are those of Breiman,
Bias, variance, and arcing classifiers (1996), as R's mlbench makes them.
"""

import numpy as np
import pytest

from certifit import DecisionTreeClassifier, RandomForestClassifier


def twonorm(rng, n):
    """N(±a, I) in 20 columns, a = 2/√20 each; no rule errs less than 2.3 %."""
    y = rng.integers(0, 2, n)
    return rng.normal(size=(n, 20)) + np.where(y == 1, 1, -1)[:, None] * 2 / np.sqrt(20), y


def ringnorm(rng, n):
    """N(0, 4 I) against N(a, I), a = 1/√20 each."""
    y = rng.integers(0, 2, n)
    Z = rng.normal(size=(n, 20))
    return np.where(y[:, None] == 0, 2 * Z, Z + 1 / np.sqrt(20)), y


def waveform(rng, n):
    """Random mixtures of two of three triangles in 21 columns, with noise; no rule errs less than 14 %."""
    at = np.arange(1, 22)
    waves = [np.maximum(6 - np.abs(at - centre), 0) for centre in (11, 15, 7)]
    y, u = rng.integers(0, 3, n), rng.uniform(size=(n, 1))
    first, second = np.array([0, 0, 1])[y], np.array([1, 2, 2])[y]
    return u * np.array(waves)[first] + (1 - u) * np.array(waves)[second] + rng.normal(size=(n, 21)), y


@pytest.mark.parametrize(
    ("data", "forest", "tree"), [(twonorm, 3.9, 24.7), (ringnorm, 4.9, 25.7), (waveform, 17.3, 34.0)]
)
def test_error_rates_of_forests_and_single_trees(data, forest, tree):
    found = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X, y = data(rng, 300)
        new, labels = data(rng, 3000)
        models = RandomForestClassifier(100, max_features=1, random_state=seed), DecisionTreeClassifier()
        found.append([100 * (1 - model.fit(X, y).score(new, labels)) for model in models])
    mean, error = np.mean(found, axis=0), np.std(found, axis=0, ddof=1) / np.sqrt(10)
    # His numbers are means of 50 runs or so, with an error of their own.
    assert abs(mean[0] - forest) < 3 * np.hypot(error[0], error[0] / 2) + 0.35
    assert mean[1] > 1.5 * mean[0]
    assert mean[1] < tree + 3 * error[1] + 0.5
