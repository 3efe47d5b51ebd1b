"""Probabilities of classes from their scores η: two classes have one score (the other's is 0), more one each."""

from __future__ import annotations

import numpy as np
from scipy.special import expit, log_expit, log_softmax, softmax

from certifit.rows import Array


def class_probabilities(eta: Array) -> Array:
    """Probability of every class that has a score: (rows, 1) of scores (rows, 1), or (rows, k) of scores (rows, k).

    >>> class_probabilities(np.array([[0.0]])).tolist(), class_probabilities(np.zeros((1, 4))).tolist()
    ([[0.5]], [[0.25, 0.25, 0.25, 0.25]])
    """
    return expit(eta) if eta.shape[1] == 1 else softmax(eta, axis=1)


def all_probabilities(eta: Array) -> Array:
    """Probability of every class (rows, k), of scores (rows,) for two classes and (rows, k) for more."""
    return np.column_stack([expit(-eta), expit(eta)]) if eta.ndim == 1 else softmax(eta, axis=1)


def all_log_probabilities(eta: Array) -> Array:
    """Logarithm of `all_probabilities`, accurate where the probability itself underflows."""
    return np.column_stack([log_expit(-eta), log_expit(eta)]) if eta.ndim == 1 else log_softmax(eta, axis=1)


def logistic_curvature(eta: Array) -> Array:
    """The second derivative p (1 - p) of the logistic loss at scores η, accurate in both tails."""
    return expit(eta) * expit(-eta)
