"""Compiled loops of folds from sums: moments by fold and class, and scores of rows by what is left without them."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from certifit.numerics.compiled.compiling import called_from_python, compiled_with

# Scores are sums over columns. Allowing any order of addition lets the compiler use vector instructions.
ANY_ORDER = {"reassoc", "contract"}


class DeviationSums(NamedTuple):
    """Rows by fold and class, as sums about a centre of the class."""

    n: NDArray[np.float64]  # (f, k) rows
    z: NDArray[np.float64]  # (f, k, d) Σ (x - c)
    zz: NDArray[np.float64]  # (f, k, d) Σ (x - c)²


class RemovableMoments(NamedTuple):
    """All rows by class, and all of them."""

    n: NDArray[np.float64]  # (k,)
    mean: NDArray[np.float64]  # (k, d)
    squares: NDArray[np.float64]  # (k, d) about the mean
    grand_mean: NDArray[np.float64]  # (d,)
    grand_squares: NDArray[np.float64]  # (d,)
    widest: NDArray[np.intp]  # (d,) columns by their grand squares, the largest first


@called_from_python
def fold_class_sums(X, folds, codes, centres, n_folds):
    """Return `DeviationSums` of rows X (n, d) in folds (n,) and classes `codes` (n,), about `centres` (k, d)."""
    k, d = centres.shape
    n = np.zeros((n_folds, k))
    z = np.zeros((n_folds, k, d))
    zz = np.zeros((n_folds, k, d))
    for i in range(X.shape[0]):
        f, c = folds[i], codes[i]
        n[f, c] += 1
        for j in range(d):
            apart = X[i, j] - centres[c, j]
            z[f, c, j] += apart
            zz[f, c, j] += apart * apart
    return DeviationSums(n, z, zz)


@compiled_with(fastmath=ANY_ORDER)
def fold_scores(X, folds, mean, precision, offset):
    """Return offset - Σ precision (x - mean)² / 2 of each row (n, k), by the parameters (f, k, d) of its fold."""
    k, d = mean.shape[1:]
    out = np.empty((X.shape[0], k))
    for i in range(X.shape[0]):
        f = folds[i]
        for c in range(k):
            total = 0.0
            for j in range(d):
                apart = X[i, j] - mean[f, c, j]
                total += precision[f, c, j] * apart * apart
            out[i, c] = offset[f, c] - 0.5 * total
    return out


@compiled_with(fastmath=ANY_ORDER)
def scores_without_self(X, codes, moments, smoothing):
    """Return log p(class) + log p(row | class) of each row (n, k), by the moments without it.

    A variance is written as a multiple of the class's own, so that the logarithm of several is that of a product.
    Those of classes that the row is not of move with the floor alone, so little that reciprocals are linear in it.
    """
    count, mean, squares, grand_mean, grand_squares, widest = moments
    k, d = mean.shape
    n = X.shape[0]
    known = np.empty((k, d))
    constant = np.empty(k)
    added = np.zeros(k)
    most = np.zeros(k)
    floor_of_all = smoothing * np.max(grand_squares) / n
    for c in range(k):
        constant[c] = 0.0
        for j in range(d):
            # A column without spread has the floor alone; 1 where that is nothing too.
            v = squares[c, j] / count[c] + floor_of_all
            known[c, j] = 1 / v if v > 0 else 1.0
            constant[c] -= np.log(2 * np.pi / known[c, j])
            added[c] += known[c, j]
            most[c] = max(most[c], 1 / v if v > 0 else np.inf)
    out, ratios = np.empty((n, k)), np.empty(d)
    for i in range(n):
        largest = 0.0
        for j in widest:
            # What a row leaves is less than all: no further column can be the widest.
            if grand_squares[j] <= largest:
                break
            apart = X[i, j] - grand_mean[j]
            largest = max(largest, grand_squares[j] - apart * apart * n / (n - 1))
        floor = smoothing * (largest / (n - 1))
        moved = floor - floor_of_all
        for c in range(k):
            # The square of so small a share is rounding.
            if codes[i] != c and abs(moved) * most[c] < 1e-8:
                total, slope = 0.0, 0.0
                for j in range(d):
                    apart = X[i, j] - mean[c, j]
                    part = apart * apart * known[c, j]
                    total += part
                    slope += part * known[c, j]
                total -= moved * slope
                out[i, c] = np.log(count[c] / (n - 1)) + 0.5 * (constant[c] - moved * added[c] - total)
                continue
            own = 1.0 if codes[i] == c else 0.0
            left = count[c] - own
            stretch = count[c] / left  # of a deviation, when the mean leaves the row
            total, logs, product = 0.0, 0.0, 1.0
            for j in range(d):
                apart = X[i, j] - mean[c, j]
                v = max(squares[c, j] - own * apart * apart * stretch, 0.0) / left + floor
                far = apart * (1 + own * (stretch - 1))
                ratios[j] = v * known[c, j]
                total += far * far * known[c, j] / ratios[j]
            for j in range(d):
                product *= ratios[j]
                if j % 8 == 7:
                    logs += np.log(product)
                    product = 1.0
            logs += np.log(product)
            out[i, c] = np.log(left / (n - 1)) + 0.5 * (constant[c] - logs - total)
    return out


@called_from_python
def normalise_scores(scores):
    """Turn log scores of classes (n, k), in place, into shares of 1, and return the number of the best (n,)."""
    best = np.zeros(scores.shape[0], dtype=np.intp)
    for i in range(scores.shape[0]):
        top = 0
        for c in range(1, scores.shape[1]):
            if scores[i, c] > scores[i, top]:
                top = c
        highest, total = scores[i, top], 0.0
        for c in range(scores.shape[1]):
            scores[i, c] = 1.0 if c == top else np.exp(scores[i, c] - highest)
            total += scores[i, c]
        for c in range(scores.shape[1]):
            scores[i, c] /= total
        best[i] = top
    return best
