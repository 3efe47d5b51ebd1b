"""Discriminant directions: the generalised eigenvectors of between-class against within-class covariance.

Rows are scaled to unit variance within classes, and whitened by the eigenvectors of their correlation matrix; in
these coordinates the problem is an ordinary one, and directions without variance within classes are left out.
Reference: Hastie, Tibshirani & Friedman, The Elements of Statistical Learning (2009), section 4.3.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh, svd

from certifit.discriminant_analysis.class_covariances import standard_deviations
from certifit.rows import Array


class Whitening(NamedTuple):
    """A (d, r) with AᵀWA = I on the directions that vary within classes."""

    A: Array  # (d, r)
    least: float  # the smallest eigenvalue of the correlation matrix, also of those left out


class Discriminants(NamedTuple):
    """Directions in order of their ratio of between-class to within-class variance."""

    vectors: Array  # (d, r)
    ratios: Array  # (r,)


def whiten(within: Array, mean: Array, least: float) -> Whitening:
    """Return the whitening of directions whose variance exceeds `least`, in units of the columns' own."""
    variances = np.diag(within)
    deviation = standard_deviations(variances, np.abs(mean).max(axis=0))
    constant = variances <= (8 * np.finfo(np.float64).eps * np.abs(mean).max(axis=0)) ** 2
    R = within / deviation[:, None] / deviation
    R[constant] = R[:, constant] = 0.0
    values, vectors = eigh(R)
    kept = values > least
    A = vectors[:, kept] / np.sqrt(values[kept]) / deviation[:, None]
    return Whitening(A[:, ::-1], float(values[0]))


def all_discriminants(A: Array, between: Array) -> Discriminants:
    """Return all directions of the whitened space by ratio; where `between` is shrunk, some may be negative."""
    M = A.T @ between @ A
    ratios, vectors = eigh((M + M.T) / 2)
    return Discriminants(_with_signs(A @ vectors[:, ::-1]), ratios[::-1])


def centroid_discriminants(A: Array, centroids: Array) -> Discriminants:
    """Return the directions that weighted, centred class means (k, d) span, by their ratios."""
    _, singular, Vt = svd(centroids @ A, full_matrices=False)
    return Discriminants(_with_signs(A @ Vt.T), singular**2)


def _with_signs(S: Array) -> Array:
    """Return directions (d, r) whose largest entries are positive."""
    largest = S[np.abs(S).argmax(axis=0), np.arange(S.shape[1])]
    return S * np.where(largest < 0, -1.0, 1.0)
